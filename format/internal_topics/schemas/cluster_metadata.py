"""Records of __cluster_metadata, the KRaft log, its snapshots and bootstrap.checkpoint.

Source: metadata common/metadata. The records have no key; the value starts with a frame version, the type and the
version (AbstractApiMessageSerde).
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# Brokers and controllers.
REGISTER_BROKER_RECORD = message(
    "RegisterBrokerRecord",
    field("brokerId", "int32"),
    field("isMigratingZkBroker", "bool", versions="2+"),
    field("incarnationId", "uuid"),
    field("brokerEpoch", "int64"),
    field(
        "endPoints",
        "[]struct",
        field("name", "string"),
        field("host", "string"),
        field("port", "uint16"),
        field("securityProtocol", "int16"),
    ),
    field(
        "features",
        "[]struct",
        field("name", "string"),
        field("minSupportedVersion", "int16"),
        field("maxSupportedVersion", "int16"),
    ),
    field("rack", "string", nullable="0+"),
    field("fenced", "bool"),
    field("inControlledShutdown", "bool", versions="1+"),
    field("logDirs", "[]uuid", versions="3+", tag=0),
    field("cordonedLogDirs", "[]uuid", versions="4+", nullable="4+", tag=1, default=None),
    valid="0-4",
)
UNREGISTER_BROKER_RECORD = message(
    "UnregisterBrokerRecord",
    field("brokerId", "int32"),
    field("brokerEpoch", "int64"),
)
BROKER_REGISTRATION_CHANGE_RECORD = message(
    "BrokerRegistrationChangeRecord",
    field("brokerId", "int32"),
    field("brokerEpoch", "int64"),
    field("fenced", "int8", tag=0),
    field("inControlledShutdown", "int8", versions="1+", tag=1),
    field("logDirs", "[]uuid", versions="2+", tag=2),
    field("cordonedLogDirs", "[]uuid", versions="3+", nullable="3+", tag=3, default=None),
    valid="0-3",
)
FENCE_BROKER_RECORD = message("FenceBrokerRecord", field("id", "int32"), field("epoch", "int64"))
UNFENCE_BROKER_RECORD = message("UnfenceBrokerRecord", field("id", "int32"), field("epoch", "int64"))
REGISTER_CONTROLLER_RECORD = message(
    "RegisterControllerRecord",
    field("controllerId", "int32"),
    field("incarnationId", "uuid"),
    field("zkMigrationReady", "bool"),
    field(
        "endPoints",
        "[]struct",
        field("name", "string"),
        field("host", "string"),
        field("port", "uint16"),
        field("securityProtocol", "int16"),
    ),
    field(
        "features",
        "[]struct",
        field("name", "string"),
        field("minSupportedVersion", "int16"),
        field("maxSupportedVersion", "int16"),
    ),
)
UNREGISTER_CONTROLLER_RECORD = message("UnregisterControllerRecord", field("controllerId", "int32"))

# Topics and partitions.
TOPIC_RECORD = message("TopicRecord", field("name", "string"), field("topicId", "uuid"))
REMOVE_TOPIC_RECORD = message("RemoveTopicRecord", field("topicId", "uuid"))
PARTITION_RECORD = message(
    "PartitionRecord",
    field("partitionId", "int32"),
    field("topicId", "uuid"),
    field("replicas", "[]int32"),
    field("isr", "[]int32"),
    field("removingReplicas", "[]int32"),
    field("addingReplicas", "[]int32"),
    field("leader", "int32"),
    field("leaderRecoveryState", "int8", tag=0),
    field("leaderEpoch", "int32"),
    field("partitionEpoch", "int32"),
    field("directories", "[]uuid", versions="1+"),
    field("eligibleLeaderReplicas", "[]int32", versions="2+", nullable="2+", tag=1, default=None),
    field("lastKnownElr", "[]int32", versions="2+", nullable="2+", tag=2, default=None),
    valid="0-2",
)
PARTITION_CHANGE_RECORD = message(
    "PartitionChangeRecord",
    field("partitionId", "int32"),
    field("topicId", "uuid"),
    field("isr", "[]int32", nullable="0+", tag=0, default=None),
    field("leader", "int32", tag=1, default=-2),
    field("replicas", "[]int32", nullable="0+", tag=2, default=None),
    field("removingReplicas", "[]int32", nullable="0+", tag=3, default=None),
    field("addingReplicas", "[]int32", nullable="0+", tag=4, default=None),
    field("leaderRecoveryState", "int8", tag=5, default=-1),
    field("directories", "[]uuid", versions="1+", nullable="1+", tag=8, default=None),
    field("eligibleLeaderReplicas", "[]int32", versions="2+", nullable="2+", tag=6, default=None),
    field("lastKnownElr", "[]int32", versions="2+", nullable="2+", tag=7, default=None),
    valid="0-2",
)
CLEAR_ELR_RECORD = message("ClearElrRecord", field("topicName", "string"))

# Settings.
CONFIG_RECORD = message(
    "ConfigRecord",
    field("resourceType", "int8"),
    field("resourceName", "string"),
    field("name", "string"),
    field("value", "string", nullable="0+"),
)
FEATURE_LEVEL_RECORD = message("FeatureLevelRecord", field("name", "string"), field("featureLevel", "int16"))
CLIENT_QUOTA_RECORD = message(
    "ClientQuotaRecord",
    field("entity", "[]struct", field("entityType", "string"), field("entityName", "string", nullable="0+")),
    field("key", "string"),
    field("value", "float64"),
    field("remove", "bool"),
)

# Security.
ACCESS_CONTROL_ENTRY_RECORD = message(
    "AccessControlEntryRecord",
    field("id", "uuid"),
    field("resourceType", "int8"),
    field("resourceName", "string"),
    field("patternType", "int8"),
    field("principal", "string"),
    field("host", "string"),
    field("operation", "int8"),
    field("permissionType", "int8"),
)
REMOVE_ACCESS_CONTROL_ENTRY_RECORD = message("RemoveAccessControlEntryRecord", field("id", "uuid"))
USER_SCRAM_CREDENTIAL_RECORD = message(
    "UserScramCredentialRecord",
    field("name", "string"),
    field("mechanism", "int8"),
    field("salt", "bytes"),
    field("storedKey", "bytes"),
    field("serverKey", "bytes"),
    field("iterations", "int32"),
)
REMOVE_USER_SCRAM_CREDENTIAL_RECORD = message(
    "RemoveUserScramCredentialRecord",
    field("name", "string"),
    field("mechanism", "int8"),
)
DELEGATION_TOKEN_RECORD = message(
    "DelegationTokenRecord",
    field("owner", "string"),
    field("requester", "string"),
    field("renewers", "[]string"),
    field("issueTimestamp", "int64"),
    field("maxTimestamp", "int64"),
    field("expirationTimestamp", "int64"),
    field("tokenId", "string"),
)
REMOVE_DELEGATION_TOKEN_RECORD = message("RemoveDelegationTokenRecord", field("tokenId", "string"))

# Records about the log itself.
PRODUCER_IDS_RECORD = message(
    "ProducerIdsRecord",
    field("brokerId", "int32"),
    field("brokerEpoch", "int64"),
    field("nextProducerId", "int64"),
)
NO_OP_RECORD = message("NoOpRecord")
ZK_MIGRATION_STATE_RECORD = message("ZkMigrationStateRecord", field("zkMigrationState", "int8"))
BEGIN_TRANSACTION_RECORD = message(
    "BeginTransactionRecord",
    field("name", "string", nullable="0+", tag=0, default=None),
)
END_TRANSACTION_RECORD = message("EndTransactionRecord")
ABORT_TRANSACTION_RECORD = message(
    "AbortTransactionRecord",
    field("reason", "string", nullable="0+", tag=0, default=None),
)

# ACL entries and removed features of the first KRaft releases; the numbers 6 and 16 have not been used since.
ACCESS_CONTROL_RECORD = message(
    "AccessControlRecord",
    field("resourceType", "int8"),
    field("resourceName", "string", nullable="0+"),
    field("patternType", "int8"),
    field("principal", "string"),
    field("host", "string"),
    field("operation", "int8"),
    field("permissionType", "int8"),
)
REMOVE_FEATURE_LEVEL_RECORD = message("RemoveFeatureLevelRecord", field("name", "string"))

RECORD_TYPES = (
    RecordType(0, "REGISTER_BROKER_RECORD", None, REGISTER_BROKER_RECORD),
    RecordType(1, "UNREGISTER_BROKER_RECORD", None, UNREGISTER_BROKER_RECORD),
    RecordType(2, "TOPIC_RECORD", None, TOPIC_RECORD),
    RecordType(3, "PARTITION_RECORD", None, PARTITION_RECORD),
    RecordType(4, "CONFIG_RECORD", None, CONFIG_RECORD),
    RecordType(5, "PARTITION_CHANGE_RECORD", None, PARTITION_CHANGE_RECORD),
    RecordType(6, "ACCESS_CONTROL_RECORD", None, ACCESS_CONTROL_RECORD, gone_in="3.5"),
    RecordType(7, "FENCE_BROKER_RECORD", None, FENCE_BROKER_RECORD),
    RecordType(8, "UNFENCE_BROKER_RECORD", None, UNFENCE_BROKER_RECORD),
    RecordType(9, "REMOVE_TOPIC_RECORD", None, REMOVE_TOPIC_RECORD),
    RecordType(10, "DELEGATION_TOKEN_RECORD", None, DELEGATION_TOKEN_RECORD),
    RecordType(11, "USER_SCRAM_CREDENTIAL_RECORD", None, USER_SCRAM_CREDENTIAL_RECORD),
    RecordType(12, "FEATURE_LEVEL_RECORD", None, FEATURE_LEVEL_RECORD),
    RecordType(14, "CLIENT_QUOTA_RECORD", None, CLIENT_QUOTA_RECORD),
    RecordType(15, "PRODUCER_IDS_RECORD", None, PRODUCER_IDS_RECORD),
    RecordType(16, "REMOVE_FEATURE_LEVEL_RECORD", None, REMOVE_FEATURE_LEVEL_RECORD, gone_in="3.3"),
    RecordType(17, "BROKER_REGISTRATION_CHANGE_RECORD", None, BROKER_REGISTRATION_CHANGE_RECORD),
    RecordType(18, "ACCESS_CONTROL_ENTRY_RECORD", None, ACCESS_CONTROL_ENTRY_RECORD),
    RecordType(19, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", None, REMOVE_ACCESS_CONTROL_ENTRY_RECORD),
    RecordType(20, "NO_OP_RECORD", None, NO_OP_RECORD),
    RecordType(21, "ZK_MIGRATION_STATE_RECORD", None, ZK_MIGRATION_STATE_RECORD),
    RecordType(22, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", None, REMOVE_USER_SCRAM_CREDENTIAL_RECORD),
    RecordType(23, "BEGIN_TRANSACTION_RECORD", None, BEGIN_TRANSACTION_RECORD),
    RecordType(24, "END_TRANSACTION_RECORD", None, END_TRANSACTION_RECORD),
    RecordType(25, "ABORT_TRANSACTION_RECORD", None, ABORT_TRANSACTION_RECORD),
    RecordType(26, "REMOVE_DELEGATION_TOKEN_RECORD", None, REMOVE_DELEGATION_TOKEN_RECORD),
    RecordType(27, "REGISTER_CONTROLLER_RECORD", None, REGISTER_CONTROLLER_RECORD),
    RecordType(28, "CLEAR_ELR_RECORD", None, CLEAR_ELR_RECORD),
    RecordType(29, "UNREGISTER_CONTROLLER_RECORD", None, UNREGISTER_CONTROLLER_RECORD),
)
