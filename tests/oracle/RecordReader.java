// Reads partitions of one broker after another as a consumer gets them, and writes down what it gets.
//
//   java -cp LIBS:CLASSES RecordReader
//
// Each line in: BOOTSTRAP, OUTPUT and the partitions (topic-number), with tabs between. A line out: "ok", or "error" and
// the reason. OUTPUT gets one JSON object a line: one for each partition, followed by its records. Contents are base64.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class RecordReader {
    /** So long nothing may come: a log may end with offsets that no batch has, and a consumer stays before them. */
    static final long SILENT_MS = 15_000;

    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer = "ok";
            try {
                read(line.split("\t"));
            } catch (Throwable error) {
                answer = "error " + String.valueOf(error).replaceAll("\\s+", " ");
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    static void read(String[] words) throws Exception {
        try (Writer output = new OutputStreamWriter(new FileOutputStream(words[1]), StandardCharsets.UTF_8);
             KafkaConsumer<byte[], byte[]> everything = consumer(words[0], "read_uncommitted");
             KafkaConsumer<byte[], byte[]> committed = consumer(words[0], "read_committed")) {
            for (String name : Arrays.asList(words).subList(2, words.length)) {
                int dash = name.lastIndexOf('-');
                readPartition(new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1))), everything, committed, output);
            }
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("isolation.level", isolation);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "none");
        properties.put("allow.auto.create.topics", "false");
        properties.put("max.poll.records", "5000");
        properties.put("default.api.timeout.ms", "20000");  // a leader that does not serve a partition never answers
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void readPartition(TopicPartition place, KafkaConsumer<byte[], byte[]> everything, KafkaConsumer<byte[], byte[]> committed, Writer output) throws Exception {
        String problem = leaderProblem(everything, place);
        if (problem != null) {
            output.write("{\"place\":\"" + place + "\",\"problem\":\"" + problem + "\"}\n");
            return;
        }
        List<TopicPartition> places = List.of(place);
        everything.assign(places);
        committed.assign(places);
        long start, end, stable;
        try {
            start = everything.beginningOffsets(places).get(place);
            end = everything.endOffsets(places).get(place);
            stable = committed.endOffsets(places).get(place);
        } catch (TimeoutException error) {  // the leader does not serve it
            output.write("{\"place\":\"" + place + "\",\"problem\":\"no answer\"}\n");
            return;
        }
        output.write("{\"place\":\"" + place + "\",\"start\":" + start + ",\"end\":" + end + ",\"stable\":" + stable + "}\n");
        drain(everything, place, start, end, each -> output.write(row(each)));
        drain(committed, place, start, stable, each -> output.write("{\"committed\":" + each.offset() + "}\n"));
    }

    /** Why nothing can be read of a partition: no broker knows it, or none leads it. */
    static String leaderProblem(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place) throws Exception {
        String problem = "unknown";
        for (int attempt = 0; attempt < 40; attempt++) {
            List<PartitionInfo> found = consumer.partitionsFor(place.topic());
            if ((found == null || found.isEmpty()) && attempt > 8) return problem;
            if (found != null) {
                for (PartitionInfo each : found) {
                    if (each.partition() != place.partition()) continue;
                    if (each.leader() != null && !each.leader().isEmpty()) return null;
                    problem = "no leader";
                }
            }
            Thread.sleep(250);
        }
        return problem;
    }

    interface Taker {
        void take(ConsumerRecord<byte[], byte[]> each) throws IOException;
    }

    static void drain(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, long start, long end, Taker taker) throws IOException {
        consumer.seek(place, start);
        long position = start, moved = System.currentTimeMillis();
        while (position < end && System.currentTimeMillis() < moved + SILENT_MS) {
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(500))) {
                if (each.offset() < end) taker.take(each);
            }
            if (consumer.position(place) > position) {
                position = consumer.position(place);
                moved = System.currentTimeMillis();
            }
        }
    }

    static String row(ConsumerRecord<byte[], byte[]> each) {
        StringBuilder headers = new StringBuilder();
        for (Header header : each.headers()) {
            headers.append(headers.length() == 0 ? "" : ",").append("[").append(text(header.key().getBytes(StandardCharsets.UTF_8)));
            headers.append(",").append(text(header.value())).append("]");
        }
        return "{\"offset\":" + each.offset() + ",\"timestamp\":" + each.timestamp() + ",\"leader_epoch\":" + each.leaderEpoch().orElse(-1)
            + ",\"key\":" + text(each.key()) + ",\"value\":" + text(each.value()) + ",\"headers\":[" + headers + "]}\n";
    }

    static String text(byte[] content) {
        return content == null ? "null" : "\"" + Base64.getEncoder().encodeToString(content) + "\"";
    }
}
