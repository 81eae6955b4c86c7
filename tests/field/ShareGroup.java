// Reads a topic in a share group, and accepts, releases and rejects records in turn: ShareGroup BOOTSTRAP TOPIC

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ShareGroup {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        try (Admin admin = Admin.create(properties)) {
            try {
                FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
                admin.updateFeatures(Map.of("share.version", update), new UpdateFeaturesOptions()).all().get();
            } catch (java.util.concurrent.ExecutionException already) {
                // on by itself
            }
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "field-share");
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(change))).all().get();
        }
        properties.put("group.id", "field-share");
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("max.poll.records", "40");
        long read = 0;
        AcknowledgeType[] types = {AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(words[1]));
            long end = System.currentTimeMillis() + 20_000;
            while (System.currentTimeMillis() < end && read < 320) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(500))) {
                    consumer.acknowledge(each, types[(int) (read++ % types.length)]);
                }
                consumer.commitSync();
            }
        }
        System.out.println(read + " deliveries");
        System.exit(0);
    }
}
