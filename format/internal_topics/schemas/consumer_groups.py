"""Records of __consumer_offsets for groups of the consumer protocol (KIP-848).

Source: group-coordinator common/message.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# The group's epoch.
CONSUMER_GROUP_METADATA_KEY = message("ConsumerGroupMetadataKey", field("groupId", "string"), flexible="none")
CONSUMER_GROUP_METADATA_VALUE = message(
    "ConsumerGroupMetadataValue",
    field("epoch", "int32"),
    field("metadataHash", "int64", tag=0),
)

# The partitions of the topics that the group reads; newer brokers keep a hash in the group's metadata instead.
CONSUMER_GROUP_PARTITION_METADATA_KEY = message(
    "ConsumerGroupPartitionMetadataKey",
    field("groupId", "string"),
    flexible="none",
)
CONSUMER_GROUP_PARTITION_METADATA_VALUE = message(
    "ConsumerGroupPartitionMetadataValue",
    field(
        "topics",
        "[]struct",
        field("topicId", "uuid"),
        field("topicName", "string"),
        field("numPartitions", "int32"),
        field("partitionMetadata", "[]struct", field("partition", "int32"), field("racks", "[]string")),
    ),
)

# The metadata that a member reported; the tagged part is for members that use the classic protocol.
CONSUMER_GROUP_MEMBER_METADATA_KEY = message(
    "ConsumerGroupMemberMetadataKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
CONSUMER_GROUP_MEMBER_METADATA_VALUE = message(
    "ConsumerGroupMemberMetadataValue",
    field("instanceId", "string", nullable="0+"),
    field("rackId", "string", nullable="0+"),
    field("clientId", "string"),
    field("clientHost", "string"),
    field("subscribedTopicNames", "[]string"),
    field("subscribedTopicRegex", "string", nullable="0+"),
    field("rebalanceTimeoutMs", "int32"),
    field("serverAssignor", "string", nullable="0+"),
    field(
        "classicMemberMetadata",
        "struct",
        field("sessionTimeoutMs", "int32"),
        field("supportedProtocols", "[]struct", field("name", "string"), field("metadata", "bytes")),
        nullable="0+",
        tag=0,
    ),
)

# The epoch of the target assignment.
CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = message(
    "ConsumerGroupTargetAssignmentMetadataKey",
    field("groupId", "string"),
    flexible="none",
)
CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = message(
    "ConsumerGroupTargetAssignmentMetadataValue",
    field("assignmentEpoch", "int32"),
    field("assignmentTimestamp", "int64", tag=0),
)

# The target assignment of a member.
CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = message(
    "ConsumerGroupTargetAssignmentMemberKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = message(
    "ConsumerGroupTargetAssignmentMemberValue",
    field("topicPartitions", "[]struct", field("topicId", "uuid"), field("partitions", "[]int32")),
)

# The current assignment of a member, and the partitions that it is about to revoke.
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = message(
    "ConsumerGroupCurrentMemberAssignmentKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = message(
    "ConsumerGroupCurrentMemberAssignmentValue",
    field("memberEpoch", "int32"),
    field("previousMemberEpoch", "int32"),
    field("state", "int8"),
    field(
        "assignedPartitions",
        "[]struct",
        field("topicId", "uuid"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "partitionsPendingRevocation",
        "[]struct",
        field("topicId", "uuid"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
)

# The topics that a subscribed regular expression matched.
CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = message(
    "ConsumerGroupRegularExpressionKey",
    field("groupId", "string"),
    field("regularExpression", "string"),
    flexible="none",
)
CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = message(
    "ConsumerGroupRegularExpressionValue",
    field("topics", "[]string"),
    field("version", "int64"),
    field("timestamp", "int64"),
)

RECORD_TYPES = (
    RecordType(3, "CONSUMER_GROUP_METADATA", CONSUMER_GROUP_METADATA_KEY, CONSUMER_GROUP_METADATA_VALUE),
    RecordType(
        4,
        "CONSUMER_GROUP_PARTITION_METADATA",
        CONSUMER_GROUP_PARTITION_METADATA_KEY,
        CONSUMER_GROUP_PARTITION_METADATA_VALUE,
    ),
    RecordType(
        5, "CONSUMER_GROUP_MEMBER_METADATA", CONSUMER_GROUP_MEMBER_METADATA_KEY, CONSUMER_GROUP_MEMBER_METADATA_VALUE
    ),
    RecordType(
        6,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA",
        CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    RecordType(
        7,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER",
        CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    RecordType(
        8,
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    RecordType(
        16,
        "CONSUMER_GROUP_REGULAR_EXPRESSION",
        CONSUMER_GROUP_REGULAR_EXPRESSION_KEY,
        CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE,
    ),
)
