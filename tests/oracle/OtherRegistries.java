import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes values with the serializers of another registry, and prints each as a line: what wrote it, the value and its
 * headers in base64, and what the deserializer returns.
 *
 * <p>Arguments: apicurio or glue, the address of the registry, the schema.
 */
public final class OtherRegistries {
    private final String address;
    private final Schema schema;

    private OtherRegistries(String address, Schema schema) {
        this.address = address;
        this.schema = schema;
    }

    public static void main(String[] words) throws Exception {
        OtherRegistries program = new OtherRegistries(words[1], new Schema.Parser().parse(words[2]));
        if (words[0].equals("glue")) {
            for (String compression : new String[] {"NONE", "ZLIB"}) {
                program.write("glue " + compression, "com.amazonaws.services.schemaregistry",
                        "serializers.GlueSchemaRegistryKafkaSerializer",
                        "deserializers.GlueSchemaRegistryKafkaDeserializer", Map.of("compression", compression));
            }
        } else {
            for (String inHeaders : new String[] {"false", "true"}) {
                program.write("apicurio headers=" + inHeaders, "io.apicurio.registry.serde.avro",
                        "AvroKafkaSerializer", "AvroKafkaDeserializer",
                        Map.of("apicurio.registry.headers.enabled", inHeaders));
            }
        }
    }

    @SuppressWarnings("unchecked")
    private void write(String what, String room, String writer, String reader, Map<String, Object> own)
            throws Exception {
        Map<String, Object> config = new HashMap<>(own);
        config.put("apicurio.registry.url", address);
        config.put("apicurio.registry.auto-register", "true");
        config.put("endpoint", address);
        config.put("region", "us-east-1");
        config.put("dataFormat", "AVRO");
        config.put("avroRecordType", "GENERIC_RECORD");
        config.put("schemaAutoRegistrationEnabled", true);
        Serializer<Object> serializer =
                (Serializer<Object>) Class.forName(room + "." + writer).getDeclaredConstructor().newInstance();
        Deserializer<Object> deserializer =
                (Deserializer<Object>) Class.forName(room + "." + reader).getDeclaredConstructor().newInstance();
        serializer.configure(config, false);
        deserializer.configure(config, false);
        for (int number = 0; number < 3; number++) {
            GenericRecord record = new GenericData.Record(schema);
            record.put("id", 4711L + number);
            record.put("customer", "Ana " + "Z".repeat(20 * number));
            RecordHeaders headers = new RecordHeaders();
            byte[] value = serializer.serialize("orders", headers, record);
            StringJoiner named = new StringJoiner(",");
            for (Header each : headers) {
                named.add(each.key() + "=" + Base64.getEncoder().encodeToString(each.value()));
            }
            System.out.println(String.join("\t", what, Base64.getEncoder().encodeToString(value), named.toString(),
                    deserializer.deserialize("orders", headers, value).toString()));
        }
    }
}
