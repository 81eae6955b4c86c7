// What the clients of an incident do, and what the broker said to them: the truth for tests.oracle.incidents.
//
//   java -cp 'libs/*' IncidentClient.java BOOTSTRAP SPEC.json     prints a line of JSON for each step
//
// SPEC.json is a list of steps: {"do": "send", ...}; see the methods. In keys and values %d is the number of the record.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

public class IncidentClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, KafkaProducer<byte[], byte[]>> transactional = new HashMap<>();
    static String bootstrap;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "60000"));
        for (JsonNode step : JSON.readTree(new File(args[1]))) {
            Object said = done(step);
            System.out.println(JSON.writeValueAsString(said));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // what is open stays open
    }

    static Object done(JsonNode step) throws Exception {
        switch (step.get("do").asText()) {
            case "create" -> { return create(step); }
            case "delete" -> admin.deleteTopics(List.of(step.get("topic").asText())).all().get();
            case "partitions" -> admin.createPartitions(Map.of(step.get("topic").asText(),
                NewPartitions.increaseTo(step.get("count").asInt()))).all().get();
            case "config" -> admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.TOPIC, step.get("topic").asText()),
                texts(step.get("configs")).entrySet().stream().map(each -> new AlterConfigOp(
                    new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET)).toList())).all().get();
            case "send" -> { return send(step); }
            case "commit" -> { return commit(step); }
            case "catch_up" -> { return catchUp(step.get("group").asText()); }
            case "storm" -> { return storm(step); }
            case "delete_group" -> admin.deleteConsumerGroups(List.of(step.get("group").asText())).all().get();
            case "consume" -> { return consume(step); }
            case "describe" -> { return describe(step.get("topic").asText()); }
            case "producers" -> { return producers(partition(step.get("partition").asText())); }
            case "transactions" -> { return admin.listTransactions().all().get().stream().map(each ->
                List.of(each.transactionalId(), each.producerId())).toList(); }
            case "elect" -> { return elect(ElectionType.valueOf(step.path("type").asText("PREFERRED"))); }
            case "quorum" -> { return admin.describeMetadataQuorum().quorumInfo().get().leaderId(); }
            case "sleep" -> Thread.sleep(step.get("ms").asLong());
            default -> throw new IllegalArgumentException(step.toString());
        }
        return System.currentTimeMillis();
    }

    static Object create(JsonNode step) throws Exception {
        String name = step.get("topic").asText();
        NewTopic topic;
        if (step.has("assignment")) {
            Map<Integer, List<Integer>> assignment = new TreeMap<>();
            for (JsonNode each : step.get("assignment")) {
                List<Integer> nodes = new ArrayList<>();
                each.forEach(node -> nodes.add(node.asInt()));
                assignment.put(assignment.size(), nodes);
            }
            topic = new NewTopic(name, assignment);
        } else {
            topic = new NewTopic(name, step.path("count").asInt(1), (short) step.path("replicas").asInt(1));
        }
        CreateTopicsResult made = admin.createTopics(List.of(topic.configs(texts(step.get("configs")))));
        return made.topicId(name).get().toString();
    }

    /** Records in batches of "batch" records; the partition, offset and time of each as the broker acknowledged them. */
    static Object send(JsonNode step) throws Exception {
        String transaction = step.path("transaction").asText(null), id = step.path("transactional_id").asText(null);
        KafkaProducer<byte[], byte[]> producer = id == null ? producer(step) : transactional.computeIfAbsent(id, name -> {
            KafkaProducer<byte[], byte[]> opened = producer(step);
            opened.initTransactions();
            return opened;
        });
        if (id != null) producer.beginTransaction();
        int from = step.path("from").asInt(0), count = step.get("count").asInt(), batch = step.path("batch").asInt(50);
        int keys = step.path("keys").asInt(Integer.MAX_VALUE), size = step.path("size").asInt(0);
        long time = step.path("time").asLong(0), every = step.path("every_ms").asLong(0);
        Integer partition = step.has("partition") ? step.get("partition").asInt() : null;
        Random random = new Random(from);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int at = from; at < from + count; at++) {
            String key = step.has("key") ? step.get("key").asText().replace("%d", "" + at % keys) : null;
            byte[] value = step.path("value").asText("value-%d").replace("%d", "" + at).getBytes("UTF-8");
            if (size > 0) {
                byte[] padded = new byte[size];
                random.nextBytes(padded);
                System.arraycopy(value, 0, padded, 0, value.length);
                value = padded;
            }
            Long timestamp = time == 0 ? null : Long.valueOf(time + (at - from) * every);
            sent.add(producer.send(new ProducerRecord<>(step.get("topic").asText(), partition, timestamp,
                key == null ? null : key.getBytes("UTF-8"), value)));
            if (sent.size() % batch == 0) producer.flush();
            if (step.has("pause_ms")) Thread.sleep(step.get("pause_ms").asLong());
        }
        producer.flush();
        if ("commit".equals(transaction)) producer.commitTransaction();
        if ("abort".equals(transaction)) producer.abortTransaction();
        List<Object> found = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata metadata = each.get();
            found.add(List.of(metadata.partition(), metadata.offset(), metadata.timestamp()));
        }
        if (id == null) producer.close();
        return step.path("quiet").asBoolean(false) ? found.size() : found;
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode step) {
        Map<String, Object> properties = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "5000",
            "batch.size", "1000000", "max.request.size", "2000000", "delivery.timeout.ms", "120000"));
        if (step.has("transactional_id")) properties.put("transactional.id", step.get("transactional_id").asText());
        properties.putAll(texts(step.get("producer")));
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static Object commit(JsonNode step) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        texts(step.get("offsets")).forEach((name, offset) ->
            offsets.put(partition(name), new OffsetAndMetadata(Long.parseLong(offset))));
        admin.alterConsumerGroupOffsets(step.get("group").asText(), offsets).all().get();
        return System.currentTimeMillis();
    }

    /** Commit the end of each partition that a group has read. */
    static Object catchUp(String group) throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet()
            .forEach(each -> wanted.put(each, OffsetSpec.latest()));
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        admin.listOffsets(wanted).all().get().forEach((each, end) -> ends.put(each, new OffsetAndMetadata(end.offset())));
        admin.alterConsumerGroupOffsets(group, ends).all().get();
        return System.currentTimeMillis();
    }

    /** A consumer that commits after each record, as a wrong setting makes it. */
    static Object storm(JsonNode step) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", bootstrap, "group.id", step.get("group").asText(),
            "enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = partition(step.get("partition").asText());
            consumer.assign(List.of(partition));
            for (int at = 0; at < step.get("count").asInt(); at++) {
                consumer.commitAsync(Map.of(partition, new OffsetAndMetadata(at % 500 + 1)), null);
                if (at % 200 == 199) consumer.commitSync(Map.of(partition, new OffsetAndMetadata(at % 500 + 1)));
            }
        }
        return System.currentTimeMillis();
    }

    /** The offsets and values that a consumer gets from an offset on, the end that it was told, and what stopped it. */
    static Object consume(JsonNode step) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", "false",
            "isolation.level", step.path("isolation").asText("read_uncommitted"));
        Map<String, Object> found = new TreeMap<>();
        List<Long> offsets = new ArrayList<>();
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = partition(step.get("partition").asText());
            consumer.assign(List.of(partition));
            consumer.seek(partition, step.path("from").asLong(0));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            found.put("end", end);
            long deadline = System.currentTimeMillis() + step.path("seconds").asLong(10) * 1000;
            try {
                while (consumer.position(partition) < end && System.currentTimeMillis() < deadline)
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                        offsets.add(record.offset());
                        if (record.value() != null) values.add(new String(record.value(), 0, Math.min(record.value().length, 40), "UTF-8"));
                    }
            } catch (KafkaException error) {
                found.put("error", error.toString());
            }
        }
        found.put("offsets", offsets);
        if (step.path("values").asBoolean(false)) found.put("values", values);
        return found;
    }

    static Object describe(String name) throws Exception {
        TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        List<Object> partitions = new ArrayList<>();
        topic.partitions().forEach(each -> partitions.add(Map.of(
            "leader", each.leader() == null || each.leader().isEmpty() ? -1 : each.leader().id(),
            "isr", each.isr().stream().map(Node::id).sorted().toList())));
        return Map.of("topic_id", topic.topicId().toString(), "partitions", partitions);
    }

    static Object producers(TopicPartition partition) throws Exception {
        return admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().stream()
            .map(each -> List.of(each.producerId(), each.producerEpoch(), each.currentTransactionStartOffset().orElse(-1L)))
            .toList();
    }

    /** Let the first replica of each partition lead, or any that is there. */
    static Object elect(ElectionType type) throws Exception {
        try {
            admin.electLeaders(type, null).partitions().get();
        } catch (java.util.concurrent.ExecutionException error) {
            return error.toString();
        }
        return System.currentTimeMillis();
    }

    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    static Map<String, String> texts(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }
}
