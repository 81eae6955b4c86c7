"""The cluster's metadata: topics, brokers, configs, ACLs and the other records of the metadata log."""

from __future__ import annotations

from format.columns.schema import Column, RowSchema

IMAGE = RowSchema(
    "image",
    (
        Column("path", "string", "the metadata partition that was read"),
        Column("cluster_id", "string", "from meta.properties"),
        Column("node_id", "int", "node id of the log directory, from meta.properties"),
        Column("last_offset", "int", "offset of the last record that was read"),
        Column("last_timestamp", "timestamp", "timestamp of that record"),
        Column("snapshot", "string", "the snapshot with which the image starts, null for none"),
        Column("start_offset", "int", "offset from which on the log was replayed"),
        Column("record_count", "int", "records of the log that were replayed"),
        Column("leader", "int", "the active controller: node id of the quorum's leader, null if no record names it"),
        Column("leader_epoch", "int", "its epoch"),
        Column("voters", "any", "node ids of the voters, null if they are in the controllers' configuration"),
        Column("next_producer_id", "int", "the first producer id that is not assigned to a broker yet"),
    ),
)
TOPIC = RowSchema(
    "topic",
    (
        Column("topic", "string", "the topic"),
        Column("topic_id", "string", "its id"),
        Column("partition_count", "int", "partitions"),
        Column("replication_factor", "int", "the largest number of replicas of a partition"),
        Column("internal", "bool", "a topic of Kafka's own"),
        Column("marked_deleted", "bool", "deleted from the cluster, but its directories here are not deleted yet"),
        Column("configs", "any", "configs that are set for the topic itself"),
    ),
)
ASSIGNMENT = RowSchema(
    "assignment",
    (
        Column("topic", "string", "the topic"),
        Column("topic_id", "string", "its id"),
        Column("partition", "int", "partition number"),
        Column("leader", "int", "node id of the leader, null for none"),
        Column("leader_epoch", "int", "leader epoch"),
        Column("partition_epoch", "int", "counts the changes of the partition"),
        Column("replicas", "any", "node ids of the replicas, the preferred leader first"),
        Column("isr", "any", "node ids of the replicas that are in sync"),
        Column("adding_replicas", "any", "replicas that a reassignment adds"),
        Column("removing_replicas", "any", "replicas that a reassignment removes"),
        Column("eligible_leader_replicas", "any", "replicas that can become leader without loss (KIP-966), null if the cluster does not record them"),
        Column("last_known_elr", "any", "the last known eligible leader replicas"),
        Column("leader_recovery_state", "string", "RECOVERED, or RECOVERING after an unclean election"),
        Column("directories", "any", "id of the log directory of each replica, null if none is assigned"),
    ),
)
BROKER = RowSchema(
    "broker",
    (
        Column("node_id", "int", "node id"),
        Column("role", "string", "broker or controller; a node that is both has two rows"),
        Column("rack", "string", "its rack"),
        Column("fenced", "bool", "registered, but not serving"),
        Column("in_controlled_shutdown", "bool", "stopping"),
        Column("broker_epoch", "int", "offset of the record that registered it"),
        Column("incarnation_id", "string", "id of this run of its process"),
        Column("voter", "bool", "votes in the quorum; null if the voters are in the controllers' configuration"),
        Column("leader", "bool", "leads the quorum: the active controller"),
        Column("endpoints", "any", "its listeners"),
        Column("log_dirs", "any", "ids of its log directories"),
        Column("cordoned_log_dirs", "any", "ids of those that get no new partitions"),
    ),
)
CONFIG = RowSchema(
    "config",
    (
        Column("resource_type", "string", "topic, broker, client-metrics or group"),
        Column("resource_name", "string", "topic, node id, or other name; null for the default of all brokers"),
        Column("name", "string", "the config"),
        Column("value", "string", "its value, (hidden) for a secret"),
        Column("is_sensitive", "bool", "whether the value is a secret, or may be one"),
    ),
)
FEATURE = RowSchema(
    "feature",
    (
        Column("name", "string", "the feature, such as metadata.version"),
        Column("level", "int", "its finalized level"),
        Column("release", "string", "the release of a metadata.version, such as 4.3-IV0"),
    ),
)
ACL = RowSchema(
    "acl",
    (
        Column("resource_type", "string", "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
        Column("resource_name", "string", "the resource"),
        Column("pattern_type", "string", "LITERAL or PREFIXED"),
        Column("principal", "string", "who"),
        Column("host", "string", "from where"),
        Column("operation", "string", "what"),
        Column("permission_type", "string", "ALLOW or DENY"),
        Column("id", "string", "id of the entry"),
    ),
)
QUOTA = RowSchema(
    "quota",
    (
        Column("entity", "any", "user, client-id or ip, null for the default of the kind"),
        Column("key", "string", "the quota"),
        Column("value", "any", "its value"),
    ),
)
CREDENTIAL = RowSchema(
    "credential",
    (
        Column("kind", "string", "scram or delegation_token"),
        Column("principal", "string", "user, or owner of the token"),
        Column("mechanism", "string", "SCRAM mechanism"),
        Column("iterations", "int", "SCRAM iterations"),
        Column("expires", "timestamp", "when the token expires"),
    ),
)
METADATA_CHANGE = RowSchema(
    "metadata_change",
    (
        Column("offset", "int", "offset of the record"),
        Column("timestamp", "timestamp", "its time"),
        Column("record_type", "string", "Kafka's name of the record type; `type` is the name of the row"),
        Column("subject", "string", "what changed: topic, partition, broker, config, ..."),
        Column("before", "any", "the changed fields before the record; null if the subject did not exist"),
        Column("after", "any", "the changed fields after the record; null if the subject no longer exists"),
    ),
)
