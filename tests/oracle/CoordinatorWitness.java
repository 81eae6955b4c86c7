import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;

/**
 * What a client gets of the coordinators of a broker.
 *
 *   java -cp "LIBS/*" CoordinatorWitness.java BOOTSTRAP create PARTITIONS TOPIC ...
 *   java -cp "LIBS/*" CoordinatorWitness.java BOOTSTRAP ask FILE
 *
 * Each line of FILE is "group" or "id", a tab and a name. "ask" prints each line, and after a tab the committed offsets of
 * the group, or the state of the transactional id; or the name of an error.
 */
public class CoordinatorWitness {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("default.api.timeout.ms", "8000");
        properties.put("request.timeout.ms", "4000");
        Admin admin = Admin.create(properties);
        if (arguments[1].equals("create"))
            create(admin, Integer.parseInt(arguments[2]), List.of(arguments).subList(3, arguments.length));
        else
            ask(admin, Files.readAllLines(Path.of(arguments[2])));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void create(Admin admin, int partitions, List<String> topics) throws Exception {
        List<NewTopic> made = new ArrayList<>();
        for (String topic : topics)
            made.add(new NewTopic(topic, partitions, (short) 1).configs(Map.of("cleanup.policy", "compact")));
        admin.createTopics(made).all().get();
    }

    private static void ask(Admin admin, List<String> lines) throws Exception {
        Map<String, KafkaFuture<String>> answers = new TreeMap<>();
        for (String line : lines) {
            String[] words = line.split("\t");
            answers.put(line, words[0].equals("group") ? offsets(admin, words[1]) : state(admin, words[1]));
        }
        for (Map.Entry<String, KafkaFuture<String>> each : answers.entrySet()) {
            String answer;
            try {
                answer = each.getValue().get();
            } catch (ExecutionException error) {
                answer = error.getCause().getClass().getSimpleName();
            }
            System.out.println(each.getKey() + "\t" + answer);
        }
    }

    private static KafkaFuture<String> offsets(Admin admin, String group) {
        return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().thenApply(found -> {
            Map<String, Long> offsets = new TreeMap<>();
            found.forEach((partition, offset) -> offsets.put(partition.toString(), offset == null ? null : offset.offset()));
            return offsets.toString();
        });
    }

    private static KafkaFuture<String> state(Admin admin, String id) {
        return admin.describeTransactions(List.of(id)).description(id).thenApply(found -> found.state().toString());
    }
}
