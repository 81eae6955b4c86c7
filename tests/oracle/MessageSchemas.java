import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Asks the jars of a Kafka release what the records of its internal topics look like.
 *
 *   java -cp "LIBS/*" MessageSchemas.java schemas
 *       one JSON object: record types with their numbers, and every message's schema per version
 *   java -cp "LIBS/*" MessageSchemas.java messages SEED COUNT
 *       JSON lines: COUNT random messages per message class and version: their bytes in hex as Kafka writes
 *       them, and the text that Kafka's own JSON converter makes of those bytes
 */
public class MessageSchemas {
    static final Map<String, String> PACKAGES = Map.of(
        "org.apache.kafka.coordinator.group.generated", "__consumer_offsets",
        "org.apache.kafka.coordinator.share.generated", "__share_group_state",
        "org.apache.kafka.coordinator.transaction.generated", "__transaction_state",
        "org.apache.kafka.common.metadata", "__cluster_metadata",
        "org.apache.kafka.server.log.remote.metadata.storage.generated", "__remote_log_metadata",
        "org.apache.kafka.common.message", "clients");
    static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "schemas" -> System.out.println(schemas());
            case "messages" -> messages(new Random(Long.parseLong(args[1])), Integer.parseInt(args[2]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    // -- which classes there are ----------------------------------------------------------------------------

    static TreeMap<String, Class<?>> classes(boolean enums) throws Exception {
        TreeMap<String, Class<?>> found = new TreeMap<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(entry).getName().startsWith("kafka") || !entry.endsWith(".jar")) continue;
            try (JarFile jar = new JarFile(entry)) {
                for (JarEntry each : (Iterable<JarEntry>) jar.stream()::iterator) {
                    String name = each.getName();
                    if (!name.endsWith(".class") || name.contains("$")) continue;
                    name = name.substring(0, name.length() - 6).replace('/', '.');
                    if (!PACKAGES.containsKey(name.substring(0, Math.max(0, name.lastIndexOf('.'))))) continue;
                    if (name.matches(".*(Request|Response|Header|JsonConverter|JsonConverters|ApiMessageType)(Data)?")) continue;
                    Class<?> type = Class.forName(name);
                    if (enums ? type.isEnum() : !type.isEnum() && Message.class.isAssignableFrom(type)) found.put(name, type);
                }
            }
        }
        return found;
    }

    static String topic(Class<?> type) {
        return PACKAGES.get(type.getPackageName());
    }

    // -- schemas --------------------------------------------------------------------------------------------

    static ObjectNode schemas() throws Exception {
        ObjectNode all = JSON.objectNode();
        ArrayNode types = all.putArray("types");
        for (Class<?> type : classes(true).values()) {
            for (Object each : type.getEnumConstants()) {
                ObjectNode node = types.addObject();
                node.put("topic", topic(type)).put("name", ((Enum<?>) each).name());
                node.put("id", (short) type.getMethod("id").invoke(each));
                for (String maker : List.of("newRecordKey", "newRecordValue", "newMetadataRecord")) {
                    try {
                        node.put(maker, type.getMethod(maker).invoke(each).getClass().getSimpleName());
                    } catch (NoSuchMethodException none) {
                        continue;
                    }
                }
            }
        }
        ArrayNode messages = all.putArray("messages");
        for (Class<?> type : classes(false).values()) {
            Message message = (Message) type.getConstructor().newInstance();
            ObjectNode node = messages.addObject();
            node.put("topic", topic(type)).put("name", type.getSimpleName());
            node.put("lowest", message.lowestSupportedVersion()).put("highest", message.highestSupportedVersion());
            ObjectNode versions = node.putObject("versions");
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            for (int version = message.lowestSupportedVersion(); version <= message.highestSupportedVersion(); version++)
                versions.set(Integer.toString(version), struct(schemas[version], type));
        }
        return all;
    }

    static ObjectNode struct(Schema schema, Class<?> type) throws Exception {
        ObjectNode node = JSON.objectNode().put("flexible", false);
        ArrayNode fields = node.putArray("fields");
        Object fresh = type.getDeclaredConstructor().newInstance();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                node.put("flexible", true);
                for (var each : taggedFields(bound.def.type).entrySet()) fields.add(field(each.getValue(), type, fresh).put("tag", each.getKey()));
            } else {
                fields.add(field(bound.def, type, fresh));
            }
        }
        return node;
    }

    /** The tagged fields in the order of their tags; older releases have no accessor for them. */
    @SuppressWarnings("unchecked")
    static TreeMap<Integer, org.apache.kafka.common.protocol.types.Field> taggedFields(Type type) throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return new TreeMap<>((Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(type));
    }

    static ObjectNode field(org.apache.kafka.common.protocol.types.Field def, Class<?> type, Object fresh) throws Exception {
        Field java = javaField(type, def.name);
        ObjectNode node = JSON.objectNode().put("name", java.getName());
        // The order of Kafka's JSON is that of the declaration, tagged or not.
        node.put("order", javaFields(type).indexOf(java));
        describe(def.type, java, node);
        node.set("default", scalar(java.get(fresh)));
        return node;
    }

    static void describe(Type type, Field java, ObjectNode node) throws Exception {
        node.put("nullable", type.isNullable());
        if (type.isArray()) {
            Type element = type.arrayElementType().get();
            node.put("type", "[]" + typeName(element));
            if (element instanceof Schema) node.set("struct", struct((Schema) element, elementClass(java)));
        } else {
            node.put("type", typeName(type));
            if (type instanceof Schema) node.set("struct", struct((Schema) type, java.getType()));
        }
    }

    static String typeName(Type type) {
        if (type instanceof Schema) return "struct";
        String name = type.toString().toLowerCase().replace("compact_", "").replace("nullable_", "");
        return switch (name) {
            case "boolean" -> "bool";
            case "unsigned_int32" -> "uint32";
            default -> name;
        };
    }

    static JsonNode scalar(Object value) {
        if (value == null) return JSON.nullNode();
        if (value instanceof Boolean b) return JSON.booleanNode(b);
        if (value instanceof Double d) return JSON.numberNode(d);
        if (value instanceof Number n) return JSON.numberNode(n.longValue());
        if (value instanceof byte[] b) return JSON.textNode(Base64.getEncoder().encodeToString(b));
        if (value instanceof Collection<?> c) return JSON.arrayNode();
        if (value instanceof Message) return JSON.objectNode();
        return JSON.textNode(value.toString());
    }

    // -- the Java side of a struct --------------------------------------------------------------------------

    static List<Field> javaFields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field each : type.getDeclaredFields()) {
            if (Modifier.isStatic(each.getModifiers()) || each.getName().equals("_unknownTaggedFields")) continue;
            if (List.of("prev", "next").contains(each.getName()) && each.getType() == int.class) continue;
            each.setAccessible(true);
            fields.add(each);
        }
        return fields;
    }

    static Field javaField(Class<?> type, String snakeName) {
        String wanted = snakeName.replace("_", "");
        for (Field each : javaFields(type))
            if (each.getName().equalsIgnoreCase(wanted)) return each;
        throw new IllegalStateException(type + " has no field for " + snakeName);
    }

    static Class<?> elementClass(Field java) {
        java.lang.reflect.Type generic = java.getGenericType();
        if (!(generic instanceof ParameterizedType)) generic = ((Class<?>) generic).getGenericSuperclass();
        return (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
    }

    // -- random messages ------------------------------------------------------------------------------------

    static void messages(Random random, int count) throws Exception {
        for (Class<?> type : classes(false).values()) {
            Message fresh = (Message) type.getConstructor().newInstance();
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            for (short version = fresh.lowestSupportedVersion(); version <= fresh.highestSupportedVersion(); version++) {
                for (int i = 0; i < count; i++) {
                    Message message = (Message) type.getConstructor().newInstance();
                    fill(message, schemas[version], random, i == 0);
                    byte[] raw = bytesOf(message, version);
                    Message read = (Message) type.getConstructor().newInstance();
                    read.read(new ByteBufferAccessor(ByteBuffer.wrap(raw)), version);
                    Method write = converter.getMethod("write", type, short.class);
                    ObjectNode line = JSON.objectNode().put("topic", topic(type)).put("name", type.getSimpleName());
                    line.put("version", version).put("hex", HexFormat.of().formatHex(raw));
                    System.out.println(line.put("json", write.invoke(null, read, version).toString()));
                }
            }
        }
    }

    static byte[] bytesOf(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    static void fill(Object target, Schema schema, Random random, boolean plain) throws Exception {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                for (var each : taggedFields(bound.def.type).values())
                    if (!plain && random.nextInt(3) > 0) set(target, each, random, plain);
            } else {
                set(target, bound.def, random, plain);
            }
        }
    }

    static void set(Object target, org.apache.kafka.common.protocol.types.Field def, Random random, boolean plain) throws Exception {
        Field java = javaField(target.getClass(), def.name);
        java.set(target, value(def.type, java, random, plain));
    }

    @SuppressWarnings("unchecked")
    static Object value(Type type, Field java, Random random, boolean plain) throws Exception {
        if (!plain && type.isNullable() && random.nextInt(4) == 0) return null;
        if (type.isArray()) {
            Type element = type.arrayElementType().get();
            boolean list = java.getType() == List.class;
            Collection<Object> all = list ? new ArrayList<>() : (Collection<Object>) java.getType().getConstructor().newInstance();
            int count = plain ? 1 : random.nextInt(4);
            for (int i = 0; i < count; i++)
                all.add(element instanceof Schema ? struct((Schema) element, elementClass(java), random, plain) : primitive(typeName(element), random, plain));
            return all;
        }
        if (type instanceof Schema) return struct((Schema) type, java.getType(), random, plain);
        Object value = primitive(typeName(type), random, plain);
        return java.getType() == ByteBuffer.class ? ByteBuffer.wrap((byte[]) value) : value;
    }

    static Object struct(Schema schema, Class<?> type, Random random, boolean plain) throws Exception {
        Object struct = type.getDeclaredConstructor().newInstance();
        fill(struct, schema, random, plain);
        return struct;
    }

    static Object primitive(String type, Random random, boolean plain) {
        boolean edge = !plain && random.nextInt(4) == 0;
        return switch (type) {
            case "bool" -> random.nextBoolean();
            case "int8" -> (byte) (plain ? random.nextInt(100) : random.nextInt());
            case "int16" -> (short) (plain ? random.nextInt(1000) : random.nextInt());
            case "uint16" -> random.nextInt(plain ? 1000 : 65536);
            case "uint32" -> plain ? random.nextInt(1000) : random.nextInt() & 0xffffffffL;
            case "int32" -> edge ? (random.nextBoolean() ? Integer.MIN_VALUE : -1) : plain ? random.nextInt(100000) : random.nextInt();
            case "int64" -> edge ? (random.nextBoolean() ? Long.MIN_VALUE : -1L) : plain ? random.nextInt(100000) : random.nextLong();
            case "float64" -> edge ? List.of(0.0, -0.0, 1e7, 1e-3, 9.99e-4, Double.NaN, Double.NEGATIVE_INFINITY, 1e300, 123456789.125).get(random.nextInt(9))
                : plain ? random.nextInt(1000) / 4.0 : Double.valueOf(Math.scalb((double) random.nextInt(), random.nextInt(60) - 40));
            case "uuid" -> edge ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
            case "string" -> string(random, plain);
            case "bytes" -> bytes(random, plain);
            default -> throw new IllegalStateException(type);
        };
    }

    static String string(Random random, boolean plain) {
        String alphabet = plain ? "abcdefghijklmnopqrstuvwxyz" : "ab\"\\/\b\t\n\u0001\u001f\u007f\u0085\u00e9\u2028\u4e2d<&'";
        StringBuilder text = new StringBuilder();
        int length = plain ? 4 : random.nextInt(20) == 0 ? 200 : random.nextInt(6);
        for (int i = 0; i < length; i++) text.append(alphabet.charAt(random.nextInt(alphabet.length())));
        if (!plain && random.nextInt(8) == 0) text.append("\ud83d\ude80");
        return text.toString();
    }

    static byte[] bytes(Random random, boolean plain) {
        byte[] bytes = new byte[plain ? 4 : random.nextInt(40) == 0 ? 300 : random.nextInt(7)];
        random.nextBytes(bytes);
        return bytes;
    }
}
