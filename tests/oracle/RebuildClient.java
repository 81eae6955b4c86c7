// What clients do to a cluster whose controllers are lost, and what they see before and after, for tests.oracle.rebuild_trials.
//
//   java -cp "LIBS/*" RebuildClient BOOTSTRAP fill REPLICAS      topics, configs, ACLs, SCRAM users, quotas, groups, transactions
//   java -cp "LIBS/*" RebuildClient BOOTSTRAP load FILE [quiet]  clients that work until they are killed; FILE gets what was acknowledged;
//                                                                quiet: they change no metadata
//   java -cp "LIBS/*" RebuildClient BOOTSTRAP state              what the cluster says of itself, a line for each thing
//   java -cp "LIBS/*" RebuildClient BOOTSTRAP read TOPIC ...     every committed record: topic, tab, value
//   java -cp "LIBS/*" RebuildClient BOOTSTRAP change SUFFIX      a change of each kind, after which the metadata is stale

import java.io.PrintStream;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

public class RebuildClient {
    static String bootstrap;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "60000", "request.timeout.ms", "15000"));
        switch (args[1]) {
            case "fill" -> fill(Short.parseShort(args[2]));
            case "load" -> load(new PrintStream(args[2]), args.length > 3);
            case "state" -> state();
            case "read" -> read(List.of(args).subList(2, args.length));
            case "change" -> change(args[2]);
            default -> throw new IllegalArgumentException(args[1]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void fill(short replicas) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : List.of("orders", "ledger", "plain"))
            topics.add(new NewTopic(name, 3, replicas).configs(Map.of("min.insync.replicas", "1", "retention.ms", "-1")));
        topics.add(new NewTopic("compacted", 2, replicas).configs(Map.of("cleanup.policy", "compact", "segment.ms", "60000")));
        admin.createTopics(topics).all().get();
        acl("first");
        scram("first");
        quota("first", 1000);
        config(ConfigResource.Type.TOPIC, "plain", "max.message.bytes", "123456");
        config(ConfigResource.Type.BROKER, "", "log.cleaner.threads", "2");
        try (KafkaProducer<String, String> producer = producer("filler")) {
            producer.initTransactions();
            for (int number = 0; number < 20; number++) {
                producer.beginTransaction();
                for (int each = 0; each < 5; each++)
                    producer.send(new ProducerRecord<>("plain", "k" + each, "fill-" + number + "-" + each));
                if (number % 4 == 3) producer.abortTransaction(); else producer.commitTransaction();
            }
        }
        for (String group : List.of("billing", "shipping"))
            try (KafkaConsumer<String, String> consumer = consumer(group)) {
                consumer.assign(partitions(List.of("plain")));
                consumer.commitSync(Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(group.length())));
            }
    }

    /** Changes of each kind; those of brokers' disks too: a topic that is new, one that is gone, more partitions, a new leader. */
    static void change(String suffix) throws Exception {
        admin.createTopics(List.of(new NewTopic("new-" + suffix, 2, (short) 3).configs(Map.of("retention.ms", "-1")))).all().get();
        admin.createPartitions(Map.of("plain", NewPartitions.increaseTo(5))).all().get();
        admin.deleteTopics(List.of("compacted")).all().get();
        acl(suffix);
        scram(suffix);
        quota(suffix, 2000);
        config(ConfigResource.Type.TOPIC, "orders", "max.message.bytes", "654321");
        try (KafkaProducer<String, String> producer = producer(null)) {
            for (int each = 0; each < 50; each++)
                producer.send(new ProducerRecord<>("new-" + suffix, "k" + each, "new-" + each)).get();
        }
    }

    static void acl(String user) throws Exception {
        admin.createAcls(List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL),
            new AccessControlEntry("User:" + user, "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
    }

    static void scram(String user) throws Exception {
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user,
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret-" + user))).all().get();
    }

    static void quota(String user, double rate) throws Exception {
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", user)),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", rate))))).all().get();
    }

    static void config(ConfigResource.Type type, String name, String key, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name),
            List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)))).all().get();
    }

    static KafkaProducer<String, String> producer(String id) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "acks", "all", "linger.ms", "2",
            "delivery.timeout.ms", "600000", "max.block.ms", "600000", "request.timeout.ms", "10000"));
        if (id != null) settings.putAll(Map.of("transactional.id", id, "transaction.timeout.ms", "600000"));  // longer than the outage
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String group) {
        return new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "isolation.level", "read_committed", "default.api.timeout.ms", "600000"), new StringDeserializer(), new StringDeserializer());
    }

    static List<TopicPartition> partitions(Collection<String> topics) throws Exception {
        List<TopicPartition> found = new ArrayList<>();
        for (TopicDescription each : admin.describeTopics(topics).allTopicNames().get().values())
            each.partitions().forEach(partition -> found.add(new TopicPartition(each.name(), partition.partition())));
        return found;
    }

    interface Work { void run() throws Exception; }

    static void thread(PrintStream out, String name, Work work) {
        new Thread(() -> {
            try {
                work.run();
            } catch (Throwable error) {
                say(out, "died " + name + " " + error);
            }
        }, name).start();
    }

    static synchronized void say(PrintStream out, String line) {
        out.println(System.currentTimeMillis() + "\t" + line);
        out.flush();
    }

    static void load(PrintStream out, boolean quiet) throws Exception {
        thread(out, "producer", () -> {
            KafkaProducer<String, String> producer = producer(null);
            for (int number = 0; ; number++) {
                String value = "orders-" + number;
                producer.send(new ProducerRecord<>("orders", value, value), (where, error) ->
                    say(out, error == null ? "sent\torders\t" + value : "failed\t" + value + " " + error));
                Thread.sleep(10);
            }
        });
        thread(out, "transactions", () -> {
            KafkaProducer<String, String> producer = producer("ledger-writer");
            producer.initTransactions();
            for (int number = 0; ; number++) {
                producer.beginTransaction();
                for (int each = 0; each < 3; each++)
                    producer.send(new ProducerRecord<>("ledger", "k" + number, "ledger-" + number + "-" + each));
                producer.commitTransaction();
                for (int each = 0; each < 3; each++)
                    say(out, "sent\tledger\tledger-" + number + "-" + each);
                Thread.sleep(60);
            }
        });
        thread(out, "consumer", () -> {
            KafkaConsumer<String, String> consumer = consumer("readers");
            consumer.subscribe(List.of("orders", "ledger"));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.count() > 0) {
                    consumer.commitSync();
                    say(out, "read\t" + records.count());
                }
            }
        });
        thread(out, "admin", () -> {
            for (int number = 0; !quiet; number++) {
                String name = "made-" + number;
                try {
                    admin.createTopics(List.of(new NewTopic(name, 1, (short) 3).configs(Map.of("retention.ms", "-1")))).all().get();
                    say(out, "done\ttopic " + name);
                    config(ConfigResource.Type.TOPIC, name, "max.message.bytes", "" + (100000 + number));
                    say(out, "done\tconfig " + name + " max.message.bytes=" + (100000 + number));
                    quota("q" + number, 100 + number);
                    say(out, "done\tquota q" + number + " " + (100.0 + number));
                    acl("u" + number);
                    say(out, "done\tacl User:u" + number);
                } catch (ExecutionException error) {
                    say(out, "undone\t" + name + " " + error.getCause());
                }
                Thread.sleep(250);
            }
        });
        Thread.sleep(Long.MAX_VALUE);
    }

    static void state() throws Exception {
        Set<String> lines = new TreeSet<>();
        Map<String, TopicDescription> topics = admin.describeTopics(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get()).allTopicNames().get();
        List<ConfigResource> resources = new ArrayList<>();
        for (TopicDescription each : topics.values()) {
            lines.add("topic " + each.name() + " " + each.topicId() + " " + each.partitions().size());
            each.partitions().forEach(partition -> {
                if (partition.leader() == null || partition.leader().isEmpty())
                    lines.add("leaderless " + each.name() + "-" + partition.partition());
            });
            resources.add(new ConfigResource(ConfigResource.Type.TOPIC, each.name()));
        }
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        nodes.forEach(each -> lines.add("broker " + each.id()));
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> config.entries().forEach(entry -> {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG || entry.source() == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
                lines.add("config " + resource.name() + " " + entry.name() + "=" + entry.value());
        }));
        admin.describeAcls(AclBindingFilter.ANY).values().get().forEach(each -> lines.add("acl " + each.entry().principal() + " " + each));
        admin.describeUserScramCredentials().all().get().forEach((name, each) -> lines.add("scram " + name + " " + each.credentialInfos()));
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) ->
            lines.add("quota " + entity.entries() + " " + values));
        for (String group : List.of("billing", "shipping", "readers"))
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) ->
                lines.add("group " + group + " " + partition + " " + (group.equals("readers") ? "" : offset.offset())));
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) ->
            lines.add("feature " + name + " " + range.maxVersionLevel()));
        lines.forEach(System.out::println);
    }

    static void read(List<String> topics) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer("witness-" + UUID.randomUUID())) {
            List<TopicPartition> all = partitions(topics);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long until = System.currentTimeMillis() + 60000;
            StringBuilder found = new StringBuilder();
            while (System.currentTimeMillis() < until && all.stream().anyMatch(each -> consumer.position(each) < ends.get(each)))
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200)))
                    found.append(each.topic()).append('\t').append(each.value()).append('\n');
            System.out.print(found);
        }
    }
}
