// Does to a cluster what a scenario asks, and says what clients see of it: one JSON object a line in, one a line out.
//
//   java -cp LIBS:CLASSES Workbench BOOTSTRAP
//
// Each command has "op" and the words of the method of that name; the answer is {"ok": ...} or {"error": "..."}.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

public class Workbench {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
    static String bootstrap;
    static Admin admin;

    public static void main(String[] words) throws Exception {
        bootstrap = words[0];
        admin = Admin.create(properties());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("ok", answerTo(JSON.readTree(line)));
            } catch (Throwable error) {
                Throwable cause = error instanceof java.util.concurrent.ExecutionException ? error.getCause() : error;
                answer.put("error", String.valueOf(cause));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("default.api.timeout.ms", "60000");
        properties.put("request.timeout.ms", "30000");
        return properties;
    }

    static JsonNode answerTo(JsonNode words) throws Exception {
        switch (words.get("op").asText()) {
            case "create": return create(words);
            case "configure": return configure(words);
            case "send": return send(words);
            case "delete_records": return deleteRecords(words);
            case "elect": return elect(words);
            case "reassign": return reassign(words);
            case "move": return move(words);
            case "leader": return leader(words);
            case "ends": return ends(words);
            case "commit": return commitOffsets(words);
            case "voter": return voter(words);
            case "list": return list(words);
            case "witness": return witness(words);
            default: throw new IllegalArgumentException("no such op");
        }
    }

    static TopicPartition place(JsonNode words) {
        return new TopicPartition(words.get("topic").asText(), words.path("partition").asInt(0));
    }

    static Map<String, String> texts(JsonNode node) {
        Map<String, String> found = new TreeMap<>();
        node.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    static List<Integer> integers(JsonNode node) {
        List<Integer> found = new ArrayList<>();
        node.forEach(each -> found.add(each.asInt()));
        return found;
    }

    static JsonNode create(JsonNode words) throws Exception {
        NewTopic topic;
        String name = words.get("topic").asText();
        if (words.has("replicas")) {
            Map<Integer, List<Integer>> assignment = new HashMap<>();
            for (int number = 0; number < words.path("partitions").asInt(1); number++) assignment.put(number, integers(words.get("replicas")));
            topic = new NewTopic(name, assignment);
        } else {
            topic = new NewTopic(name, words.path("partitions").asInt(1), (short) 1);
        }
        admin.createTopics(List.of(topic.configs(texts(words.path("configs"))))).all().get();
        for (int attempt = 0; attempt < 100; attempt++) {
            try {
                boolean ready = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().stream().allMatch(each -> each.leader() != null);
                if (ready) break;
            } catch (java.util.concurrent.ExecutionException notYet) {
                // the broker that was asked does not know the topic yet
            }
            Thread.sleep(100);
        }
        return null;
    }

    static JsonNode configure(JsonNode words) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        texts(words.get("configs")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), value.isEmpty() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, words.get("topic").asText());
        if (words.path("whole").asBoolean(false)) return configureWhole(resource, texts(words.get("configs")));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        Thread.sleep(500);
        return null;
    }

    /** For brokers before 2.3: all configs of a topic anew, by a method that clients from 4.0 on lack. */
    static JsonNode configureWhole(ConfigResource resource, Map<String, String> configs) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        configs.forEach((name, value) -> entries.add(new ConfigEntry(name, value)));
        Object result = Admin.class.getMethod("alterConfigs", Map.class).invoke(admin, Map.of(resource, new Config(entries)));
        ((AlterConfigsResult) result).all().get();
        Thread.sleep(1000);
        return null;
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode words) {
        String transaction = words.path("transaction").asText("");
        boolean idempotent = words.path("idempotent").asBoolean(false);
        String codec = words.path("codec").asText("none");
        String id = words.path("producer").asText("p") + "/" + codec + "/" + !transaction.isEmpty() + "/" + idempotent;
        return PRODUCERS.computeIfAbsent(id, each -> {
            Properties properties = properties();
            properties.put("compression.type", codec);
            properties.put("acks", words.path("acks").asText("all"));
            properties.put("linger.ms", words.path("linger").asText("20"));
            properties.put("batch.size", words.path("batch").asText("4000"));
            properties.put("enable.idempotence", String.valueOf(idempotent || !transaction.isEmpty()));
            properties.put("max.block.ms", "30000");
            properties.put("delivery.timeout.ms", "60000");
            if (!transaction.isEmpty()) {
                String name = words.path("producer").asText("p");
                properties.put("transactional.id", "field-" + name + (name.equals("fenced") ? "" : "-" + codec));
                properties.put("transaction.timeout.ms", "600000");
                properties.put("acks", "all");
            }
            KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
            if (!transaction.isEmpty()) made.initTransactions();
            return made;
        });
    }

    /** count records from time start on, step ms apart; keys 0..keys-1 at random; null values at the given rate. */
    static JsonNode send(JsonNode words) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(words);
        String transaction = words.path("transaction").asText("");
        Random random = new Random(words.path("seed").asLong(1));
        int count = words.path("count").asInt(10), keys = words.path("keys").asInt(0), size = words.path("size").asInt(200);
        double tombstones = words.path("tombstones").asDouble(0);
        long start = words.path("start").asLong(System.currentTimeMillis()), step = words.path("step").asLong(1000);
        TopicPartition place = place(words);
        if (!transaction.isEmpty() && !transaction.equals("continue") && !words.path("resumed").asBoolean(false)) producer.beginTransaction();
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            byte[] key = keys == 0 ? null : ("key-" + random.nextInt(keys)).getBytes(StandardCharsets.UTF_8);
            byte[] value = null;
            if (random.nextDouble() >= tombstones) {
                value = new byte[random.nextInt(size) + 1];
                for (int at = 0; at < value.length; at++) value[at] = (byte) ('a' + random.nextInt(words.path("letters").asInt(4)));
            }
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(place.topic(), place.partition(), start + number * step, key, value);
            if (words.path("headers").asBoolean(false) && number % 3 == 0) record.headers().add("source", "bench".getBytes()).add("null", null);
            futures.add(producer.send(record));
            if (words.path("each").asBoolean(false)) producer.flush();
        }
        producer.flush();
        long last = -1;
        if (!words.path("lossy").asBoolean(false)) for (Future<RecordMetadata> each : futures) last = each.get().offset();
        if (transaction.equals("commit")) producer.commitTransaction();
        if (transaction.equals("abort")) producer.abortTransaction();
        return JSON.getNodeFactory().numberNode(last);
    }

    static JsonNode deleteRecords(JsonNode words) throws Exception {
        admin.deleteRecords(Map.of(place(words), RecordsToDelete.beforeOffset(words.get("before").asLong()))).all().get();
        return null;
    }

    static JsonNode elect(JsonNode words) throws Exception {
        ElectionType type = words.path("unclean").asBoolean(false) ? ElectionType.UNCLEAN : ElectionType.PREFERRED;
        admin.electLeaders(type, Set.of(place(words))).partitions().get();
        return null;
    }

    static JsonNode reassign(JsonNode words) throws Exception {
        admin.alterPartitionReassignments(Map.of(place(words), Optional.of(new NewPartitionReassignment(integers(words.get("replicas")))))).all().get();
        for (int attempt = 0; attempt < 300 && !admin.listPartitionReassignments().reassignments().get().isEmpty(); attempt++) Thread.sleep(200);
        return null;
    }

    static JsonNode move(JsonNode words) throws Exception {
        TopicPartition place = place(words);
        TopicPartitionReplica replica = new TopicPartitionReplica(place.topic(), place.partition(), words.get("broker").asInt());
        admin.alterReplicaLogDirs(Map.of(replica, words.get("dir").asText())).all().get();
        for (int attempt = 0; attempt < 300; attempt++) {
            var info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
            if (words.get("dir").asText().equals(info.getCurrentReplicaLogDir()) && info.getFutureReplicaLogDir() == null) return null;
            Thread.sleep(200);
        }
        throw new IllegalStateException("the replica did not move");
    }

    static JsonNode leader(JsonNode words) throws Exception {
        TopicPartition place = place(words);
        var info = admin.describeTopics(List.of(place.topic())).allTopicNames().get().get(place.topic()).partitions().get(place.partition());
        ObjectNode answer = JSON.createObjectNode();
        answer.put("leader", info.leader() == null ? -1 : info.leader().id());
        ArrayNode isr = answer.putArray("isr");
        info.isr().forEach(each -> isr.add(each.id()));
        return answer;
    }

    static JsonNode ends(JsonNode words) throws Exception {
        TopicPartition place = place(words);
        ObjectNode answer = JSON.createObjectNode();
        answer.put("start", admin.listOffsets(Map.of(place, OffsetSpec.earliest())).all().get().get(place).offset());
        answer.put("end", admin.listOffsets(Map.of(place, OffsetSpec.latest())).all().get().get(place).offset());
        return answer;
    }

    static JsonNode commitOffsets(JsonNode words) throws Exception {
        TopicPartition place = place(words);
        Properties properties = properties();
        properties.put("group.id", words.get("group").asText());
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        if (words.has("protocol")) properties.put("group.protocol", words.get("protocol").asText());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(place.topic()));
            for (int attempt = 0; attempt < words.path("polls").asInt(20); attempt++) {
                if (!consumer.poll(Duration.ofMillis(300)).isEmpty()) consumer.commitSync();
            }
        }
        return null;
    }

    static JsonNode voter(JsonNode words) throws Exception {
        int id = words.get("id").asInt();
        Uuid directory = Uuid.fromString(words.get("directory").asText());
        if (words.path("remove").asBoolean(false)) {
            admin.removeRaftVoter(id, directory).all().get();
        } else {
            Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", words.get("port").asInt()));
            admin.addRaftVoter(id, directory, endpoints).all().get();
        }
        return null;
    }

    static JsonNode list(JsonNode words) throws Exception {
        ArrayNode names = JSON.createArrayNode();
        for (String each : new TreeSet<>(admin.listTopics().names().get())) if (each.matches(words.get("pattern").asText())) names.add(each);
        return names;
    }

    // -- what clients see ------------------------------------------------------------------------------------

    /** Every record of the topics into a file, one JSON object a line, and answers of ListOffsets. */
    static JsonNode witness(JsonNode words) throws Exception {
        List<String> topics = new ArrayList<>();
        words.get("topics").forEach(each -> topics.add(each.asText()));
        ObjectNode answer = JSON.createObjectNode();
        boolean isOld = words.path("old").asBoolean(false);
        try (Writer output = new OutputStreamWriter(new FileOutputStream(words.get("output").asText()), StandardCharsets.UTF_8);
             KafkaConsumer<byte[], byte[]> everything = consumer("read_uncommitted"); KafkaConsumer<byte[], byte[]> committed = consumer("read_committed")) {
            for (String topic : topics) {
                for (PartitionInfo info : everything.partitionsFor(topic)) {
                    TopicPartition place = new TopicPartition(topic, info.partition());
                    ObjectNode seen = answer.putObject(topic + "-" + info.partition());
                    TreeSet<Long> times = new TreeSet<>();
                    everything.assign(List.of(place));
                    long start = everything.beginningOffsets(List.of(place)).get(place), end = everything.endOffsets(List.of(place)).get(place);
                    seen.put("leader", info.leader() == null ? -1 : info.leader().id());
                    seen.put("start", start);
                    seen.put("end", end);
                    seen.put("records", drain(everything, place, start, end, output, times));
                    if (!isOld) {
                        committed.assign(List.of(place));
                        long stable = committed.endOffsets(List.of(place)).get(place);
                        seen.put("stable", stable);
                        drainOffsets(committed, place, start, stable, seen.putArray("committed"));
                    }
                    lookUps(everything, place, times, seen);
                }
            }
        }
        return answer;
    }

    static KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Properties properties = properties();
        properties.put("isolation.level", isolation);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("max.poll.records", "5000");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static long drain(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, long start, long end, Writer output, Set<Long> times) throws IOException {
        consumer.seek(place, start);
        long count = 0, deadline = System.currentTimeMillis() + 60_000;
        Base64.Encoder base64 = Base64.getEncoder();
        while (consumer.position(place) < end) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("stands at " + consumer.position(place) + " of " + end + " in " + place);
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(500))) {
                if (each.offset() >= end) continue;
                ObjectNode row = JSON.createObjectNode();
                row.put("place", place.toString());
                row.put("offset", each.offset());
                row.put("timestamp", each.timestamp());
                row.put("timestamp_type", each.timestampType().toString());
                row.put("leader_epoch", each.leaderEpoch().orElse(-1));
                row.put("key", each.key() == null ? null : base64.encodeToString(each.key()));
                row.put("value", each.value() == null ? null : base64.encodeToString(each.value()));
                ArrayNode headers = row.putArray("headers");
                for (Header header : each.headers()) headers.addArray().add(header.key()).add(header.value() == null ? null : base64.encodeToString(header.value()));
                output.write(JSON.writeValueAsString(row) + "\n");
                if (each.timestamp() >= 0) times.add(each.timestamp());
                count++;
            }
        }
        return count;
    }

    static void drainOffsets(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, long start, long end, ArrayNode offsets) {
        consumer.seek(place, start);
        long deadline = System.currentTimeMillis() + 60_000;
        while (consumer.position(place) < end) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("stands at " + consumer.position(place) + " of " + end + " in " + place);
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(500))) if (each.offset() < end) offsets.add(each.offset());
        }
    }

    static void lookUps(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, TreeSet<Long> times, ObjectNode seen) throws Exception {
        TreeSet<Long> asked = new TreeSet<>(List.of(0L));
        List<Long> all = new ArrayList<>(times);
        int step = Math.max(1, all.size() / 15);
        for (int at = 0; at < all.size(); at += step) asked.addAll(List.of(Math.max(0, all.get(at) - 1), all.get(at), all.get(at) + 1));
        if (!all.isEmpty()) asked.addAll(List.of(all.get(all.size() - 1), all.get(all.size() - 1) + 1));
        ArrayNode lookups = seen.putArray("lookups");
        for (long time : asked) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(place, time)).get(place);
            lookups.addArray().add(time).add(found == null ? -1 : found.offset()).add(found == null ? -1 : found.timestamp());
        }
        try {
            var found = admin.listOffsets(Map.of(place, OffsetSpec.maxTimestamp())).all().get(90, TimeUnit.SECONDS).get(place);
            seen.putArray("max_timestamp").add(found.offset()).add(found.timestamp());
        } catch (java.util.concurrent.ExecutionException unsupported) {
            seen.put("max_timestamp_error", String.valueOf(unsupported.getCause()));
        }
    }
}
