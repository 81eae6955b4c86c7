// Topics with the records that a JSON file describes: what the trials of retention and compaction run on.
//
//   java -cp 'libs/*' LogScenario.java BOOTSTRAP SPEC.json
//
// The file is a list of {"topic", "configs", "late_configs", "delete_before", "batches": [{"transaction": null, "commit",
// "abort" or "open", "producer": N, "codec", "records": [[key or null, value size or -1 for null, timestamp], ...]}]}.
// Late configs are set once everything is written; an entry with "broker" in place of "topic" has those of a broker.
// "replicas" of a topic are the nodes of its partition, "acks" of a batch makes its producer one without idempotence.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class LogScenario {
    static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        JsonNode spec = new ObjectMapper().readTree(new File(args[1]));
        Random random = new Random(1);
        try (Admin admin = Admin.create(properties)) {
            Set<String> known = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            for (JsonNode topic : spec) {
                if (!topic.has("topic") || known.contains(topic.get("topic").asText())) continue;
                List<Integer> replicas = new ArrayList<>();
                if (topic.has("replicas")) topic.get("replicas").forEach(each -> replicas.add(each.asInt()));
                NewTopic made = replicas.isEmpty() ? new NewTopic(topic.get("topic").asText(), 1, (short) 1)
                    : new NewTopic(topic.get("topic").asText(), Map.of(0, replicas));
                admin.createTopics(List.of(made.configs(texts(topic.get("configs"))))).all().get();
            }
            for (JsonNode topic : spec) {
                if (!topic.has("topic")) continue;
                String name = topic.get("topic").asText();
                for (JsonNode batch : topic.get("batches")) send(name, batch, random);
                if (topic.has("delete_before"))
                    admin.deleteRecords(Map.of(new TopicPartition(name, 0), RecordsToDelete.beforeOffset(topic.get("delete_before").asLong()))).all().get();
            }
            Map<ConfigResource, Collection<AlterConfigOp>> late = new HashMap<>();
            for (JsonNode topic : spec) {
                List<AlterConfigOp> changes = new ArrayList<>();
                texts(topic.get("late_configs")).forEach((name, value) ->
                    changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
                ConfigResource of = topic.has("broker") ? new ConfigResource(ConfigResource.Type.BROKER, topic.get("broker").asText())
                    : new ConfigResource(ConfigResource.Type.TOPIC, topic.get("topic").asText());
                if (!changes.isEmpty()) late.put(of, changes);
            }
            if (!late.isEmpty()) admin.incrementalAlterConfigs(late).all().get();
        }
        for (KafkaProducer<byte[], byte[]> producer : producers.values()) producer.close(java.time.Duration.ZERO);
        System.exit(0);
    }

    static Map<String, String> texts(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    static void send(String topic, JsonNode batch, Random random) throws Exception {
        String transaction = batch.hasNonNull("transaction") ? batch.get("transaction").asText() : null;
        KafkaProducer<byte[], byte[]> producer = producer(batch, transaction != null);
        if (transaction != null) producer.beginTransaction();
        for (JsonNode record : batch.get("records")) {
            byte[] key = record.get(0).isNull() ? null : record.get(0).asText().getBytes("UTF-8");
            int size = record.get(1).asInt();
            byte[] value = size < 0 ? null : new byte[size];
            if (value != null) random.nextBytes(value);
            producer.send(new ProducerRecord<>(topic, 0, record.get(2).asLong(), key, value));
        }
        producer.flush();
        if ("commit".equals(transaction)) producer.commitTransaction();
        if ("abort".equals(transaction)) producer.abortTransaction();
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode batch, boolean isTransactional) {
        String codec = batch.hasNonNull("codec") ? batch.get("codec").asText() : "none";
        String acks = batch.hasNonNull("acks") ? batch.get("acks").asText() : null;
        String id = (batch.has("producer") ? batch.get("producer").asInt() : 0) + "-" + codec + (isTransactional ? "-txn" : "") + (acks == null ? "" : "-acks" + acks);
        return producers.computeIfAbsent(id, each -> {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", bootstrap);
            properties.put("linger.ms", "5000");
            properties.put("batch.size", "400000");
            properties.put("max.request.size", "2000000");
            properties.put("compression.type", codec);
            if (acks != null) {
                properties.put("acks", acks);
                properties.put("enable.idempotence", "false");
            }
            if (isTransactional) {
                properties.put("transactional.id", "scenario-" + each);
                properties.put("transaction.timeout.ms", "900000");
            }
            KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
            if (isTransactional) made.initTransactions();
            return made;
        });
    }
}
