// Writes with the Java client of whichever release it is compiled against (0.11 or later):
//   JavaClient BOOTSTRAP TOPIC BROKER_VERSION plain|all
// plain leaves out headers, idempotence and transactions, for brokers before 0.11.

import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class JavaClient {
    static long sent = 0;
    static final long BASE = System.currentTimeMillis() - 86_400_000L;

    public static void main(String[] words) throws Exception {
        boolean all = words[3].equals("all");
        List<String> ways = new ArrayList<>();
        List<String> codecs = new ArrayList<>(Arrays.asList("none", "gzip", "snappy", "lz4"));
        if (knowsZstd(words)) codecs.add("zstd");
        for (String codec : codecs) {
            for (boolean idempotent : all ? new boolean[] {false, true} : new boolean[] {false}) {
                Properties properties = properties(words[0], codec);
                properties.put("enable.idempotence", String.valueOf(idempotent));
                try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
                    send(producer, words[1], 1, all);
                    send(producer, words[1], 70, all);
                }
                ways.add(codec + (idempotent ? " idempotent" : ""));
            }
        }
        if (all) {
            Properties properties = properties(words[0], "none");
            properties.put("transactional.id", "java-" + words[1]);
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
                producer.initTransactions();
                for (int number = 0; number < 6; number++) {
                    producer.beginTransaction();
                    send(producer, words[1], 7, true);
                    if (number % 3 == 2) producer.abortTransaction();
                    else producer.commitTransaction();
                }
            }
            ways.add("transactions");
        }
        System.out.println("{\"sent\": " + sent + ", \"ways\": [\"" + String.join("\", \"", ways) + "\"]}");
    }

    /** Whether broker and client are of 2.1 or later. */
    static boolean knowsZstd(String[] words) {
        String[] numbers = words[2].split("\\.");
        if (Integer.parseInt(numbers[0]) * 100 + Integer.parseInt(numbers[1]) < 201) return false;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties(words[0], "zstd"))) {
            return true;
        } catch (org.apache.kafka.common.KafkaException unknown) {
            return false;
        }
    }

    static Properties properties(String bootstrap, String codec) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("compression.type", codec);
        properties.put("acks", "all");
        properties.put("linger.ms", "20");
        properties.put("retries", "5");
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        return properties;
    }

    static void send(KafkaProducer<byte[], byte[]> producer, String topic, int count, boolean headers) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            byte[] key = number % 4 == 3 ? null : ("key-" + number).getBytes("UTF-8");
            byte[] value = number % 10 == 9 ? null : new byte[number * 41 % 700];
            if (value != null) Arrays.fill(value, (byte) ('a' + number % 26));
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, BASE + (sent + number) * 1000, key, value);
            if (headers && number % 3 == 0) {
                record.headers().add("source", "java".getBytes("UTF-8"));
                record.headers().add("null", null);
            }
            futures.add(producer.send(record));
        }
        producer.flush();
        for (Future<RecordMetadata> future : futures) future.get();
        sent += count;
    }
}
