import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a broker with transactions that commit, abort, are fenced and stay open; or says what clients see of them.
 *
 *   java -cp "LIBS/*" TransactionLab.java BOOTSTRAP fill SEED STEPS
 *   java -cp "LIBS/*" TransactionLab.java BOOTSTRAP read [TOPIC ...]
 *
 * "read" prints, tab-separated: OFFSETS and READ with the isolation level, topic and partition, the first offset and the
 * end, and the offsets that a consumer got; PRODUCER with topic, partition and the fields of describeProducers;
 * TRANSACTION with the fields of describeTransactions.
 */
public class TransactionLab {
    private static final int PARTITIONS = 2;
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        if (arguments[1].equals("fill"))
            fill(new Random(Long.parseLong(arguments[2])), Integer.parseInt(arguments[3]));
        else
            read(List.of(arguments).subList(2, arguments.length));
        System.out.flush();
        // Open transactions stay open: no producer is closed.
        Runtime.getRuntime().halt(0);
    }

    private static Properties properties(Map<String, String> more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(more);
        return properties;
    }

    private static KafkaProducer<byte[], byte[]> producer(String transactionalId, String codec) {
        Map<String, String> more = new HashMap<>(Map.of("linger.ms", "0", "compression.type", codec));
        if (transactionalId != null)
            more.putAll(Map.of("transactional.id", transactionalId, "transaction.timeout.ms", "900000"));
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties(more), new ByteArraySerializer(), new ByteArraySerializer());
        if (transactionalId != null)
            producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, Random random, String topic, int partition, int count) {
        for (int i = 0; i < count; i++) {
            byte[] key = ("key-" + random.nextInt(12)).getBytes();
            producer.send(new ProducerRecord<>(topic, partition, key, ("value-" + random.nextInt(100000)).getBytes()));
        }
        producer.flush();
    }

    private static void fill(Random random, int steps) throws Exception {
        try (Admin admin = Admin.create(properties(Map.of()))) {
            Map<String, String> small = Map.of("segment.index.bytes", "4096", "retention.ms", "-1");
            Map<String, String> compacted = new HashMap<>(small);
            compacted.putAll(Map.of("cleanup.policy", "compact", "segment.ms", "300", "min.cleanable.dirty.ratio", "0.01",
                "delete.retention.ms", "1", "min.compaction.lag.ms", "0"));
            admin.createTopics(List.of(
                new NewTopic("payments", PARTITIONS, (short) 1).configs(small),
                new NewTopic("accounts", PARTITIONS, (short) 1).configs(compacted))).all().get();
            String[] topics = {"payments", "payments", "accounts"};
            List<KafkaProducer<byte[], byte[]>> clients = new ArrayList<>();
            for (int i = 0; i < 4; i++)
                clients.add(producer("billing-" + i, i % 2 == 0 ? "none" : "lz4"));
            KafkaProducer<byte[], byte[]> plain = producer(null, "none");
            Set<KafkaProducer<byte[], byte[]>> open = new HashSet<>();
            for (int step = 0; step < steps; step++) {
                KafkaProducer<byte[], byte[]> client = clients.get(random.nextInt(clients.size()));
                int chance = random.nextInt(10);
                String topic = topics[random.nextInt(topics.length)];
                int partition = random.nextInt(PARTITIONS);
                if (chance < 2) {
                    send(plain, random, topic, partition, 1 + random.nextInt(3));
                } else if (chance < 7 || !open.contains(client)) {
                    if (open.add(client))
                        client.beginTransaction();
                    send(client, random, topic, partition, 1 + random.nextInt(4));
                } else {
                    if (random.nextInt(3) == 0) client.abortTransaction(); else client.commitTransaction();
                    open.remove(client);
                }
            }
            for (KafkaProducer<byte[], byte[]> client : open)
                client.commitTransaction();
            fence(random);
            trim(admin, random);
            waitForCleaner(plain, random);
            for (int i = 0; i < PARTITIONS; i++) {
                KafkaProducer<byte[], byte[]> left = producer("left-open-" + i, "none");
                left.beginTransaction();
                send(left, random, "payments", i, 3);
                send(plain, random, "payments", i, 2);
                KafkaProducer<byte[], byte[]> client = clients.get(i);
                client.beginTransaction();
                send(client, random, "payments", i, 2);
                if (i == 0) client.abortTransaction(); else client.commitTransaction();
            }
        }
    }

    /** A client that takes the transactional id of another, whose transaction the coordinator then aborts. */
    private static void fence(Random random) {
        KafkaProducer<byte[], byte[]> old = producer("fenced", "none");
        old.beginTransaction();
        send(old, random, "payments", 0, 4);
        KafkaProducer<byte[], byte[]> next = producer("fenced", "none");
        next.beginTransaction();
        send(next, random, "payments", 0, 2);
        next.commitTransaction();
        try {
            old.commitTransaction();
            throw new IllegalStateException("the first client was not fenced");
        } catch (org.apache.kafka.common.KafkaException expected) {
            System.out.println("FENCED\t" + expected.getClass().getSimpleName());
        }
    }

    private static void trim(Admin admin, Random random) throws Exception {
        TopicPartition partition = new TopicPartition("payments", 1);
        long end = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(end / 4 + random.nextInt(5)))).all().get();
    }

    /** Segments roll by time, so that the cleaner may take all but the last; then it is given time to. */
    private static void waitForCleaner(KafkaProducer<byte[], byte[]> plain, Random random) throws Exception {
        for (int round = 0; round < 3; round++) {
            Thread.sleep(700);
            for (int i = 0; i < PARTITIONS; i++)
                send(plain, random, "accounts", i, 1);
        }
        Thread.sleep(8000);
    }

    private static void read(List<String> topics) throws Exception {
        try (Admin admin = Admin.create(properties(Map.of()))) {
            List<TopicPartition> partitions = new ArrayList<>();
            admin.describeTopics(topics).allTopicNames().get().forEach((topic, description) ->
                description.partitions().forEach(each -> partitions.add(new TopicPartition(topic, each.partition()))));
            for (String level : List.of("read_uncommitted", "read_committed"))
                consume(level, partitions);
            for (TopicPartition each : partitions)
                for (ProducerState producer : admin.describeProducers(List.of(each)).partitionResult(each).get().activeProducers())
                    System.out.printf("PRODUCER\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d%n", each.topic(), each.partition(),
                        producer.producerId(), producer.producerEpoch(), producer.coordinatorEpoch().orElse(-1),
                        producer.lastSequence(), producer.lastTimestamp(), producer.currentTransactionStartOffset().orElse(-1));
            for (TransactionListing listing : admin.listTransactions().all().get()) {
                TransactionDescription known = admin.describeTransactions(List.of(listing.transactionalId()))
                    .description(listing.transactionalId()).get();
                System.out.printf("TRANSACTION\t%s\t%d\t%d\t%s\t%d\t%d\t%s%n", listing.transactionalId(), known.producerId(),
                    known.producerEpoch(), known.state(), known.transactionTimeoutMs(),
                    known.transactionStartTimeMs().orElse(-1), new TreeSet<>(known.topicPartitions().stream()
                        .map(TopicPartition::toString).toList()));
            }
        }
    }

    private static void consume(String level, List<TopicPartition> partitions) {
        Map<String, String> more = Map.of("isolation.level", level, "enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(properties(more), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            for (TopicPartition each : partitions) {
                System.out.printf("OFFSETS\t%s\t%s\t%d\t%d\t%d%n", level, each.topic(), each.partition(), begins.get(each), ends.get(each));
                consumer.assign(List.of(each));
                consumer.seek(each, begins.get(each));
                List<String> offsets = new ArrayList<>();
                long deadline = System.currentTimeMillis() + 20000;
                while (consumer.position(each) < ends.get(each) && System.currentTimeMillis() < deadline)
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                        offsets.add(Long.toString(record.offset()));
                System.out.printf("READ\t%s\t%s\t%d\t%s%n", level, each.topic(), each.partition(), String.join(",", offsets));
            }
        }
    }
}
