// Counts keys of streams-input into streams-output, exactly once, through a repartition and a changelog topic:
//   CountingStream BOOTSTRAP STATE_FOLDER

import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

public class CountingStream {
    public static void main(String[] words) throws Exception {
        for (int run = 0; run < 2; run++) {
            Properties properties = new Properties();
            properties.put("application.id", "field-stream");
            properties.put("bootstrap.servers", words[0]);
            properties.put("processing.guarantee", "exactly_once_v2");
            properties.put("commit.interval.ms", "300");
            properties.put("state.dir", words[1] + "/streams-" + run);
            properties.put("replication.factor", "1");
            properties.put("statestore.cache.max.bytes", "0");
            properties.put("default.key.serde", Serdes.StringSerde.class.getName());
            properties.put("default.value.serde", Serdes.StringSerde.class.getName());
            properties.put("consumer.auto.offset.reset", "earliest");
            StreamsBuilder builder = new StreamsBuilder();
            builder.<String, String>stream("streams-input")
                .filter((key, value) -> key != null && value != null)
                .groupBy((key, value) -> key.substring(key.length() - 1))
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
                .toStream()
                .to("streams-output", Produced.with(Serdes.String(), Serdes.Long()));
            KafkaStreams streams = new KafkaStreams(builder.build(), properties);
            streams.start();
            Thread.sleep(12_000);
            streams.close(java.time.Duration.ofSeconds(15));
        }
        System.out.println("two runs");
        System.exit(0);
    }
}
