// Five hundred groups of every protocol, their commits inside and outside of transactions, and what the broker then
// says of them: the truth for the groups command.
//
//   java -cp 'libs/*' GroupScenario.java BOOTSTRAP COUNT SEED     prints one JSON object, then waits to be killed
//
// Members of the consumer, share and streams protocols are single requests, so that hundreds of them need no threads.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.serialization.*;

public class GroupScenario {
    static final Map<String, Integer> TOPICS = new TreeMap<>(Map.of("orders", 3, "payments", 2, "audit.log", 1));
    static String bootstrap;
    static Admin admin;
    static Raw raw;
    static Random random;
    static final Map<String, Long> ends = new TreeMap<>();
    static final List<Object> keptOpen = new ArrayList<>();
    static final List<Map<String, Object>> pending = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        int count = Integer.parseInt(args[1]);
        random = new Random(Long.parseLong(args[2]));
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "60000"));
        makeTopics();
        String[] host = bootstrap.split(":");
        raw = new Raw(new Socket(host[0], Integer.parseInt(host[1])));
        for (int number = 0; number < count; number++) {
            if (number % 10 < 4) classic(name("classic", number), number);
            else if (number % 10 < 7) consumer(name("consumer", number), number);
            else if (number % 10 < 9) share(name("share", number), number);
            else streams(name("streams", number), number);
        }
        shareConsumers();
        transactions(count);
        tombstones(count);
        Thread.sleep(3000); // the share coordinator writes behind the group coordinator
        System.out.println(new ObjectMapper().writeValueAsString(truth()));
        System.out.flush();
        Thread.sleep(600_000);
    }

    static String name(String protocol, int number) {
        return number % 50 == 3 ? protocol + " grüße, \"" + number + "\"" : protocol + "-" + number;
    }

    static void makeTopics() throws Exception {
        admin.createTopics(TOPICS.entrySet().stream().map(e -> new NewTopic(e.getKey(), e.getValue(), (short) 1)
            .configs(Map.of("segment.index.bytes", "4096"))).toList()).all().get();
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap,
                "compression.type", "gzip", "linger.ms", "50"), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (var topic : TOPICS.entrySet())
                for (int partition = 0; partition < topic.getValue(); partition++) {
                    long end = 200 + random.nextInt(800);
                    ends.put(topic.getKey() + "-" + partition, end);
                    for (long at = 0; at < end; at++)
                        producer.send(new ProducerRecord<>(topic.getKey(), partition, null, ("r" + at).getBytes()));
                }
        }
    }

    static Map<TopicPartition, OffsetAndMetadata> someOffsets(int number) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (String name : ends.keySet())
            if (random.nextInt(3) > 0) {
                int dash = name.lastIndexOf('-');
                var partition = new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
                long offset = random.nextInt(5) == 0 ? ends.get(name) : random.nextInt((int) (long) ends.get(name));
                var epoch = random.nextBoolean() ? Optional.of(0) : Optional.<Integer>empty();
                String metadata = number % 7 == 0 ? "host-" + number + " \u00e9" : "";
                offsets.put(partition, new OffsetAndMetadata(offset, epoch, metadata));
            }
        return offsets;
    }

    static void commit(String group, int number, int times) throws Exception {
        for (int time = 0; time < times; time++)
            admin.alterConsumerGroupOffsets(group, someOffsets(number)).all().get();
    }

    // -- the protocols ---------------------------------------------------------------------------------------------

    static void classic(String group, int number) throws Exception {
        if (number % 20 != 0) {
            commit(group, number, 1 + number % 3);
            return;
        }
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", group, "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "session.timeout.ms", "300000", "heartbeat.interval.ms", "1000",
            "max.poll.records", "50", "client.id", "c" + number);
        var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("orders"));
        for (int turn = 0; turn < 20; turn++)
            if (!consumer.poll(Duration.ofMillis(500)).isEmpty()) break;
        consumer.commitSync();
        if (number % 40 == 0) consumer.close();
        else keptOpen.add(consumer);
    }

    static void consumer(String group, int number) throws Exception {
        if (number % 3 == 0) commit(group, number, 1);  // a classic group, until the first member comes
        List<String> members = new ArrayList<>();
        List<Integer> epochs = new ArrayList<>();
        for (int each = 0; each < 1 + number % 3; each++) {
            String member = Uuid.randomUuid().toString();
            var answer = ((ConsumerGroupHeartbeatResponse) raw.send(new ConsumerGroupHeartbeatRequest.Builder(
                new ConsumerGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).setMemberEpoch(0)
                    .setRebalanceTimeoutMs(300000).setSubscribedTopicNames(List.of("orders", "payments"))
                    .setServerAssignor("uniform").setTopicPartitions(List.of())).build((short) 1))).data();
            check(answer.errorCode(), answer.errorMessage());
            members.add(member);
            epochs.add(answer.memberEpoch());
        }
        int last = members.size() - 1;
        for (var offset : someOffsets(number).entrySet()) {
            var partition = new OffsetCommitRequestData.OffsetCommitRequestPartition()
                .setPartitionIndex(offset.getKey().partition()).setCommittedOffset(offset.getValue().offset())
                .setCommittedMetadata(offset.getValue().metadata());
            var request = new OffsetCommitRequestData().setGroupId(group).setMemberId(members.get(last))
                .setGenerationIdOrMemberEpoch(epochs.get(last)).setTopics(List.of(
                    new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(offset.getKey().topic())
                        .setPartitions(List.of(partition))));
            var answer = ((OffsetCommitResponse) raw.send(OffsetCommitRequest.Builder.forTopicNames(request).build((short) 9))).data();
            check(answer.topics().get(0).partitions().get(0).errorCode(), "commit");
        }
        if (number % 4 == 0)
            for (String member : members) leaveConsumer(group, member);
    }

    static void leaveConsumer(String group, String member) throws Exception {
        var answer = ((ConsumerGroupHeartbeatResponse) raw.send(new ConsumerGroupHeartbeatRequest.Builder(
            new ConsumerGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).setMemberEpoch(-1))
            .build((short) 1))).data();
        check(answer.errorCode(), answer.errorMessage());
    }

    static void share(String group, int number) throws Exception {
        List<String> members = new ArrayList<>();
        for (int each = 0; each < 1 + number % 2; each++) {
            String member = Uuid.randomUuid().toString();
            shareHeartbeat(group, member, 0);
            members.add(member);
        }
        if (number % 4 != 0) return;
        for (String member : members) shareHeartbeat(group, member, -1);
        if (number % 8 == 0) {
            Map<TopicPartition, Long> offsets = new HashMap<>();
            offsets.put(new TopicPartition("payments", 0), (long) random.nextInt((int) (long) ends.get("payments-0")));
            offsets.put(new TopicPartition("payments", 1), ends.get("payments-1"));
            admin.alterShareGroupOffsets(group, offsets).all().get();
        }
    }

    static void shareHeartbeat(String group, String member, int epoch) throws Exception {
        var data = new ShareGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).setMemberEpoch(epoch);
        if (epoch == 0) data.setSubscribedTopicNames(List.of("payments"));
        var answer = ((ShareGroupHeartbeatResponse) raw.send(new ShareGroupHeartbeatRequest.Builder(data).build((short) 1))).data();
        check(answer.errorCode(), answer.errorMessage());
    }

    static void shareConsumers() throws Exception {
        for (int number = 0; number < 3; number++) {
            Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", "share-reader-" + number,
                "share.acknowledgement.mode", "explicit", "max.poll.records", "30");
            admin.incrementalAlterConfigs(Map.of(
                new org.apache.kafka.common.config.ConfigResource(
                    org.apache.kafka.common.config.ConfigResource.Type.GROUP, "share-reader-" + number),
                List.of(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET))))
                .all().get();
            var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of("audit.log"));
            int seen = 0;
            for (int turn = 0; turn < 40 && seen < 120; turn++) {
                var records = consumer.poll(Duration.ofMillis(500));
                int at = 0;
                for (var record : records) {
                    boolean skipped = number == 1 && at++ % 4 == 0 && seen > 0;
                    consumer.acknowledge(record, skipped ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
                seen += records.count();
            }
            if (number == 2) keptOpen.add(consumer);
            else consumer.close();
        }
    }

    static void streams(String group, int number) throws Exception {
        String member = Uuid.randomUuid().toString();
        String source = number % 4 == 1 ? "missing" : "orders";
        var subtopology = new StreamsGroupHeartbeatRequestData.Subtopology().setSubtopologyId("0").setSourceTopics(List.of(source));
        var answer = streamsHeartbeat(new StreamsGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).setMemberEpoch(0)
            .setRebalanceTimeoutMs(300000).setProcessId(Uuid.randomUuid().toString()).setClientTags(List.of())
            .setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of())
            .setTopology(new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(List.of(subtopology))));
        if (number % 3 == 0) {
            streamsHeartbeat(new StreamsGroupHeartbeatRequestData().setGroupId(group).setMemberId(member).setMemberEpoch(-1));
            admin.alterStreamsGroupOffsets(group, someOffsets(number)).all().get();
        }
    }

    static StreamsGroupHeartbeatResponseData streamsHeartbeat(StreamsGroupHeartbeatRequestData data) throws Exception {
        var answer = ((StreamsGroupHeartbeatResponse) raw.send(new StreamsGroupHeartbeatRequest.Builder(data).build((short) 0))).data();
        check(answer.errorCode(), answer.errorMessage());
        return answer;
    }

    // -- transactions and tombstones -------------------------------------------------------------------------------

    static void transactions(int count) throws Exception {
        for (int number = 0; number < 12; number++) {
            Producer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap,
                "transactional.id", "t-" + number, "transaction.timeout.ms", "900000"),
                new ByteArraySerializer(), new ByteArraySerializer());
            producer.initTransactions();
            for (int turn = 0; turn < 3; turn++) {
                boolean staysOpen = turn == 2 && number % 3 == 2;
                producer.beginTransaction();
                for (int each = 0; each < 3; each++) {
                    String group = each == 0 ? "classic-" + (1 + 10 * number) : "in-transaction-" + number + "-" + each;
                    var offsets = someOffsets(number);
                    producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(group));
                    if (staysOpen)
                        offsets.forEach((partition, offset) -> pending.add(Map.of("group", group, "topic", partition.topic(),
                            "partition", partition.partition(), "offset", offset.offset())));
                    if (each == 2 && turn == 1 && number % 2 == 0) commit(group, number, 1);  // between commit and marker
                }
                if (staysOpen) break;
                if ((number + turn) % 3 == 0) producer.abortTransaction();
                else producer.commitTransaction();
            }
            if (number % 3 == 2) keptOpen.add(producer);
            else producer.close();
        }
    }

    static void tombstones(int count) throws Exception {
        List<String> deleted = new ArrayList<>();
        for (int number = 2; number < count; number += 50) deleted.add(name("classic", number));
        for (String group : deleted) admin.deleteConsumerGroups(List.of(group)).all().get();
        for (int number = 52; number < count; number += 50)
            commit(name("classic", number), number, 1);  // deleted, and back
        for (int number = 11; number < count; number += 50) {
            String group = name("classic", number);
            var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet();
            if (!offsets.isEmpty()) admin.deleteConsumerGroupOffsets(group, Set.of(offsets.iterator().next())).all().get();
        }
        for (int number = 4; number < count; number += 20)
            if (number % 10 >= 4 && number % 10 < 7 && number % 4 == 0)
                admin.deleteConsumerGroups(List.of(name("consumer", number))).all().get();
        for (int number = 8; number < count; number += 40)
            if (number % 10 >= 7 && number % 10 < 9) admin.deleteShareGroups(List.of(name("share", number))).all().get();
        for (int number = 9; number < count; number += 60)
            admin.deleteStreamsGroups(List.of(name("streams", number))).all().get();
    }

    // -- the truth ---------------------------------------------------------------------------------------------------

    static Map<String, Object> truth() throws Exception {
        Map<String, Object> groups = new TreeMap<>();
        for (GroupListing listed : admin.listGroups().all().get()) {
            String group = listed.groupId();
            Map<String, Object> said = new TreeMap<>();
            String protocol = listed.type().map(GroupType::toString).orElse("?").toLowerCase(Locale.ROOT);
            said.put("protocol", protocol);
            said.put("state", listed.groupState().map(GroupState::toString).orElse("?"));
            Map<String, Object> offsets = new TreeMap<>();
            switch (protocol) {
                case "share" -> {
                    var described = admin.describeShareGroups(List.of(group)).all().get().get(group);
                    said.put("members", described.members().stream().map(m -> m.consumerId()).sorted().toList());
                    said.put("generation", described.groupEpoch());
                    var found = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get();
                    found.forEach((partition, info) -> { if (info != null && info.startOffset() >= 0) offsets.put(partition.toString(), described(info)); });
                }
                case "streams" -> {
                    var described = admin.describeStreamsGroups(List.of(group)).all().get().get(group);
                    said.put("members", described.members().stream().map(m -> m.memberId()).sorted().toList());
                    said.put("generation", described.groupEpoch());
                    var found = admin.listStreamsGroupOffsets(Map.of(group, new ListStreamsGroupOffsetsSpec())).partitionsToOffsetAndMetadata(group).get();
                    found.forEach((partition, offset) -> { if (offset != null) offsets.put(partition.toString(), described(offset)); });
                }
                default -> {
                    var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                    said.put("members", described.members().stream().map(m -> m.consumerId()).sorted().toList());
                    described.groupEpoch().ifPresent(epoch -> said.put("generation", epoch));
                    var found = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                    found.forEach((partition, offset) -> { if (offset != null) offsets.put(partition.toString(), described(offset)); });
                }
            }
            said.put("offsets", offsets);
            groups.put(group, said);
        }
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        TOPICS.forEach((topic, partitions) -> IntStream.range(0, partitions).forEach(partition ->
            asked.put(new TopicPartition(topic, partition), OffsetSpec.latest())));
        Map<String, Long> logEnds = new TreeMap<>();
        admin.listOffsets(asked).all().get().forEach((partition, info) -> logEnds.put(partition.toString(), info.offset()));
        return new TreeMap<>(Map.of("groups", groups, "pending", pending, "log_ends", logEnds));
    }

    static Map<String, Object> described(OffsetAndMetadata offset) {
        Map<String, Object> found = new TreeMap<>(Map.of("offset", offset.offset(), "metadata", offset.metadata()));
        offset.leaderEpoch().ifPresent(epoch -> found.put("leader_epoch", epoch));
        return found;
    }

    static Map<String, Object> described(SharePartitionOffsetInfo info) {
        Map<String, Object> found = new TreeMap<>(Map.of("offset", info.startOffset()));
        info.lag().ifPresent(lag -> found.put("lag", lag));
        return found;
    }

    static void check(short error, String message) {
        if (error != 0) throw new IllegalStateException(org.apache.kafka.common.protocol.Errors.forCode(error) + " " + message);
    }

    /** One connection, one request at a time. */
    static class Raw {
        final DataInputStream in;
        final DataOutputStream out;
        int correlation;

        Raw(Socket socket) throws IOException {
            in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        }

        AbstractResponse send(AbstractRequest request) throws IOException {
            var header = new RequestHeader(request.apiKey(), request.version(), "scenario", correlation++);
            ByteBuffer bytes = request.serializeWithHeader(header);
            out.writeInt(bytes.remaining());
            out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
            out.flush();
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        }
    }
}
