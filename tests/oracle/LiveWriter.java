import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes to a broker for some seconds, in all ways that change the files of its logs.
 *
 *   java -cp "LIBS/*" LiveWriter.java BOOTSTRAP SECONDS
 *
 * One client commits and aborts transactions in a log that rolls every second and whose head is deleted on request; one
 * does so in a log that is compacted, and is started again with every hundredth transaction, which raises its producer
 * epoch; in another compacted log all that is left of most epochs are aborted transactions, which the cleaner removes; and
 * a topic is deleted and created again. Prints the number of transactions.
 */
public class LiveWriter {
    private static String bootstrap;
    private static long end;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        end = System.currentTimeMillis() + 1000 * Long.parseLong(arguments[1]);
        try (Admin admin = Admin.create(properties(Map.of()))) {
            Map<String, String> rolled = Map.of("segment.ms", "1000", "segment.index.bytes", "4096",
                "index.interval.bytes", "256", "file.delete.delay.ms", "500");
            Map<String, String> compacted = new HashMap<>(rolled);
            compacted.putAll(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01",
                "delete.retention.ms", "1", "min.compaction.lag.ms", "0"));
            Map<String, String> unmerged = new HashMap<>(compacted);
            unmerged.put("segment.bytes", "1048576");
            if (!admin.listTopics().names().get().contains("payments"))
                admin.createTopics(List.of(new NewTopic("payments", 1, (short) 1).configs(rolled),
                    new NewTopic("accounts", 1, (short) 1).configs(compacted),
                    new NewTopic("limits", 1, (short) 1).configs(unmerged))).all().get();
            Thread accounts = started(() -> transactions("accounts", 100));
            Thread limits = started(() -> restarts());
            Thread brief = started(() -> comeAndGo(admin));
            Thread head = started(() -> deleteHead(admin));
            transactions("payments", 100000);
            for (Thread each : List.of(accounts, limits, brief, head))
                each.join();
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static Thread started(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        });
        thread.start();
        return thread;
    }

    private static boolean isOver() {
        return System.currentTimeMillis() > end;
    }

    private static Properties properties(Map<String, String> more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(more);
        return properties;
    }

    private static KafkaProducer<byte[], byte[]> producer(String topic) {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
            properties(Map.of("linger.ms", "0", "transactional.id", topic)), new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    private static void transactions(String topic, int perClient) throws Exception {
        Random random = new Random(1);
        int count = 0;
        while (!isOver()) {
            try (KafkaProducer<byte[], byte[]> client = producer(topic)) {
                for (int i = 0; i < perClient && !isOver(); i++, count++) {
                    client.beginTransaction();
                    for (int left = 1 + random.nextInt(5); left > 0; left--) {
                        byte[] key = ("key-" + random.nextInt(40)).getBytes();
                        client.send(new ProducerRecord<>(topic, 0, key, new byte[random.nextInt(400)]));
                    }
                    client.flush();
                    if (random.nextInt(3) == 0) client.abortTransaction(); else client.commitTransaction();
                    Thread.sleep(10);
                }
            }
        }
        System.out.println(topic + "\t" + count);
    }

    /**
     * One record that stays, then aborted transactions of later epochs, and time to compact them. The record is so large
     * that the cleaner does not merge two segments, which would delete the producer snapshot between them.
     */
    private static void restarts() throws Exception {
        for (int i = 0; !isOver(); i++) {
            try (KafkaProducer<byte[], byte[]> client = producer("limits")) {
                client.beginTransaction();
                client.send(new ProducerRecord<>("limits", 0, ("limit-" + end + "-" + i).getBytes(), new byte[700000]));
                client.commitTransaction();
            }
            try (KafkaProducer<byte[], byte[]> client = producer("limits")) {
                for (int j = 0; j < 3; j++) {
                    client.beginTransaction();
                    client.send(new ProducerRecord<>("limits", 0, "limit".getBytes(), new byte[10]));
                    client.flush();
                    client.abortTransaction();
                }
            }
            Thread.sleep(2000);
        }
    }

    private static void comeAndGo(Admin admin) throws Exception {
        while (!isOver()) {
            admin.createTopics(List.of(new NewTopic("brief", 2, (short) 1))).all().get();
            try (KafkaProducer<byte[], byte[]> client = new KafkaProducer<>(
                    properties(Map.of()), new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int i = 0; i < 500; i++)
                    client.send(new ProducerRecord<>("brief", i % 2, null, new byte[10]));
            }
            Thread.sleep(6000);
            admin.deleteTopics(List.of("brief")).all().get();
            Thread.sleep(1000);
        }
    }

    private static void deleteHead(Admin admin) throws Exception {
        TopicPartition partition = new TopicPartition("payments", 0);
        while (!isOver()) {
            Thread.sleep(3000);
            long last = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
            long first = admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get().offset();
            if (last - first > 3000)
                admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(last - 3000))).all().get();
        }
    }
}
