// A cluster's life in steps, and what an AdminClient says of it: the truth for the metadata command.
//
//   java -cp 'libs/*' ClusterScenario.java BOOTSTRAP step NUMBER     changes the cluster
//   java -cp 'libs/*' ClusterScenario.java BOOTSTRAP describe        prints one JSON object

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

public class ClusterScenario {
    static Admin admin;

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("default.api.timeout.ms", "60000");
        try (Admin opened = Admin.create(properties)) {
            admin = opened;
            if (args[1].equals("step")) step(Integer.parseInt(args[2]));
            else if (args[1].equals("offset")) System.out.println(endOffset());
            else System.out.println(new ObjectMapper().writeValueAsString(describe()));
        }
    }

    static void step(int number) throws Exception {
        switch (number) {
            case 1 -> {
                admin.createTopics(List.of(
                    new NewTopic("orders", 3, (short) 3).configs(Map.of("retention.ms", "3600000", "min.insync.replicas", "2")),
                    new NewTopic("users", 2, (short) 2).configs(Map.of("cleanup.policy", "compact", "segment.bytes", "1048576")),
                    new NewTopic("temporary", 4, (short) 1))).all().get();
            }
            case 2 -> {
                alter(ConfigResource.Type.TOPIC, "orders", Map.of("retention.ms", "7200000", "max.message.bytes", "2000000"));
                alter(ConfigResource.Type.BROKER, "", Map.of("log.retention.ms", "86400000"));
                alter(ConfigResource.Type.BROKER, "1", Map.of("log.cleaner.threads", "2"));
                admin.createPartitions(Map.of("users", NewPartitions.increaseTo(5))).all().get();
                admin.deleteTopics(List.of("temporary")).all().get();
                admin.createAcls(List.of(
                    acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", AclOperation.READ, AclPermissionType.ALLOW),
                    acl(ResourceType.TOPIC, "pay", PatternType.PREFIXED, "User:bob", AclOperation.WRITE, AclPermissionType.DENY),
                    acl(ResourceType.GROUP, "*", PatternType.LITERAL, "User:alice", AclOperation.READ, AclPermissionType.ALLOW))).all().get();
                quota(Map.of("user", "alice", "client-id", "reports"), "producer_byte_rate", 1048576.0);
                quota(Collections.singletonMap("user", null), "consumer_byte_rate", 2097152.0);
                quota(Map.of("user", "carol"), "request_percentage", 12.5);
                scram(List.of(
                    new UserScramCredentialUpsertion("alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), "alice-has-a-secret"),
                    new UserScramCredentialUpsertion("bob", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), "bob-has-a-secret")));
            }
            case 3 -> {
                admin.alterPartitionReassignments(Map.of(
                    new TopicPartition("users", 0), Optional.of(new NewPartitionReassignment(List.of(2, 1))),
                    new TopicPartition("orders", 1), Optional.of(new NewPartitionReassignment(List.of(1, 2))))).all().get();
            }
            case 4 -> {
                admin.createTopics(List.of(new NewTopic("temporary", 2, (short) 2).configs(Map.of("retention.bytes", "1000000")))).all().get();
                admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, "orders"), List.of(
                    new AlterConfigOp(new ConfigEntry("max.message.bytes", ""), AlterConfigOp.OpType.DELETE)))).all().get();
                admin.deleteAcls(List.of(new AclBindingFilter(ResourcePatternFilter.ANY,
                    new AccessControlEntryFilter("User:bob", null, AclOperation.ANY, AclPermissionType.ANY)))).all().get();
                admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", "carol")),
                    List.of(new ClientQuotaAlteration.Op("request_percentage", null))))).all().get();
                scram(List.of(new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)));
            }
        }
    }

    static void alter(ConfigResource.Type type, String name, Map<String, String> configs) throws Exception {
        Collection<AlterConfigOp> changes = configs.entrySet().stream()
            .map(each -> new AlterConfigOp(new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET)).toList();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), changes)).all().get();
    }

    static void quota(Map<String, String> entity, String key, double value) throws Exception {
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity),
            List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
    }

    static void scram(List<UserScramCredentialAlteration> alterations) throws Exception {
        try {
            admin.alterUserScramCredentials(alterations).all().get();
        } catch (java.util.concurrent.ExecutionException error) {
            // Clusters before metadata.version 3.5-IV2 have none.
            if (!(error.getCause() instanceof org.apache.kafka.common.errors.UnsupportedVersionException)) throw error;
        }
    }

    static AclBinding acl(ResourceType type, String name, PatternType pattern, String who, AclOperation what, AclPermissionType how) {
        return new AclBinding(new ResourcePattern(type, name, pattern), new AccessControlEntry(who, "*", what, how));
    }

    static long endOffset() throws Exception {
        return admin.describeMetadataQuorum().quorumInfo().get().highWatermark();
    }

    static Map<String, Object> describe() throws Exception {
        Map<String, Object> all = new TreeMap<>();
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        all.put("leader", quorum.leaderId());
        all.put("leader_epoch", quorum.leaderEpoch());
        all.put("end_offset_before", quorum.highWatermark());
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        Map<String, Object> topics = new TreeMap<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("topic_id", topic.topicId().toString());
            row.put("internal", topic.isInternal());
            row.put("configs", configs(ConfigResource.Type.TOPIC, topic.name(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG));
            List<Object> partitions = new ArrayList<>();
            topic.partitions().forEach(each -> partitions.add(new TreeMap<String, Object>(Map.of(
                "partition", each.partition(),
                "leader", each.leader() == null || each.leader().isEmpty() ? -1 : each.leader().id(),
                "replicas", each.replicas().stream().map(node -> node.id()).toList(),
                "isr", each.isr().stream().map(node -> node.id()).toList()))));
            row.put("partitions", partitions);
            topics.put(topic.name(), row);
        }
        all.put("topics", topics);
        Map<String, Object> brokerConfigs = new TreeMap<>();
        brokerConfigs.put("", configs(ConfigResource.Type.BROKER, "", ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG));
        List<Integer> brokers = admin.describeCluster().nodes().get().stream().map(node -> node.id()).sorted().toList();
        for (int id : brokers)
            brokerConfigs.put("" + id, configs(ConfigResource.Type.BROKER, "" + id, ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG));
        all.put("brokers", brokers);
        all.put("broker_configs", brokerConfigs);
        Map<String, Object> features = new TreeMap<>();
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) -> features.put(name, range.maxVersionLevel()));
        all.put("features", features);
        all.put("acls", admin.describeAcls(AclBindingFilter.ANY).values().get().stream().map(each -> List.of(
            each.pattern().resourceType().name(), each.pattern().name(), each.pattern().patternType().name(),
            each.entry().principal(), each.entry().host(), each.entry().operation().name(), each.entry().permissionType().name()))
            .sorted(Comparator.comparing(Object::toString)).toList());
        List<Object> quotas = new ArrayList<>();
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) ->
            values.forEach((key, value) -> quotas.add(Arrays.asList(new TreeMap<>(entity.entries()), key, value))));
        quotas.sort(Comparator.comparing(Object::toString));
        all.put("quotas", quotas);
        List<Object> scram = new ArrayList<>();
        if ((short) features.get("metadata.version") >= 11)
          admin.describeUserScramCredentials().all().get().values().forEach(user -> user.credentialInfos().forEach(info ->
            scram.add(List.of(user.name(), info.mechanism().mechanismName(), info.iterations()))));
        scram.sort(Comparator.comparing(Object::toString));
        all.put("scram", scram);
        all.put("time", System.currentTimeMillis());
        all.put("end_offset", endOffset());
        return all;
    }

    static Map<String, String> configs(ConfigResource.Type type, String name, ConfigEntry.ConfigSource source) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().stream()
            .filter(each -> each.source() == source && each.value() != null)
            .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value, (one, other) -> one, TreeMap::new));
    }
}
