"""Records of __consumer_offsets for share groups (KIP-932).

Source: group-coordinator common/message. Kafka 4.0 had share groups as early access, with some other fields under
the same version numbers; those values cannot be decoded by these tables.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# The metadata that a member reported.
SHARE_GROUP_MEMBER_METADATA_KEY = message(
    "ShareGroupMemberMetadataKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
SHARE_GROUP_MEMBER_METADATA_VALUE = message(
    "ShareGroupMemberMetadataValue",
    field("rackId", "string", nullable="0+"),
    field("clientId", "string"),
    field("clientHost", "string"),
    field("subscribedTopicNames", "[]string"),
)

# The group's epoch and the hash of its topics' metadata.
SHARE_GROUP_METADATA_KEY = message("ShareGroupMetadataKey", field("groupId", "string"), flexible="none")
SHARE_GROUP_METADATA_VALUE = message(
    "ShareGroupMetadataValue",
    field("epoch", "int32"),
    field("metadataHash", "int64"),
)

# The epoch of the target assignment.
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = message(
    "ShareGroupTargetAssignmentMetadataKey",
    field("groupId", "string"),
    flexible="none",
)
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = message(
    "ShareGroupTargetAssignmentMetadataValue",
    field("assignmentEpoch", "int32"),
    field("assignmentTimestamp", "int64", tag=0),
)

# The target assignment of a member.
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = message(
    "ShareGroupTargetAssignmentMemberKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = message(
    "ShareGroupTargetAssignmentMemberValue",
    field("topicPartitions", "[]struct", field("topicId", "uuid"), field("partitions", "[]int32")),
)

# The current assignment of a member.
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = message(
    "ShareGroupCurrentMemberAssignmentKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = message(
    "ShareGroupCurrentMemberAssignmentValue",
    field("memberEpoch", "int32"),
    field("previousMemberEpoch", "int32"),
    field("state", "int8"),
    field("assignedPartitions", "[]struct", field("topicId", "uuid"), field("partitions", "[]int32")),
)

# The topics whose share state is being set up, is set up, or is being deleted.
SHARE_GROUP_STATE_PARTITION_METADATA_KEY = message(
    "ShareGroupStatePartitionMetadataKey",
    field("groupId", "string"),
    flexible="none",
)
SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = message(
    "ShareGroupStatePartitionMetadataValue",
    field(
        "initializingTopics",
        "[]struct",
        field("topicId", "uuid"),
        field("topicName", "string"),
        field("partitions", "[]int32"),
    ),
    field(
        "initializedTopics",
        "[]struct",
        field("topicId", "uuid"),
        field("topicName", "string"),
        field("partitions", "[]int32"),
    ),
    field("deletingTopics", "[]struct", field("topicId", "uuid"), field("topicName", "string")),
)

# The partitions of a share group's topics, as the early access of Kafka 4.0 kept them.
SHARE_GROUP_PARTITION_METADATA_KEY = message(
    "ShareGroupPartitionMetadataKey", field("groupId", "string"), flexible="none"
)
SHARE_GROUP_PARTITION_METADATA_VALUE = message(
    "ShareGroupPartitionMetadataValue",
    field(
        "topics",
        "[]struct",
        field("topicId", "uuid"),
        field("topicName", "string"),
        field("numPartitions", "int32"),
        field("partitionMetadata", "[]struct", field("partition", "int32"), field("racks", "[]string")),
    ),
)

RECORD_TYPES = (
    RecordType(
        9,
        "SHARE_GROUP_PARTITION_METADATA",
        SHARE_GROUP_PARTITION_METADATA_KEY,
        SHARE_GROUP_PARTITION_METADATA_VALUE,
        gone_in="4.1",
    ),
    RecordType(10, "SHARE_GROUP_MEMBER_METADATA", SHARE_GROUP_MEMBER_METADATA_KEY, SHARE_GROUP_MEMBER_METADATA_VALUE),
    RecordType(11, "SHARE_GROUP_METADATA", SHARE_GROUP_METADATA_KEY, SHARE_GROUP_METADATA_VALUE),
    RecordType(
        12,
        "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA",
        SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    RecordType(
        13,
        "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER",
        SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    RecordType(
        14,
        "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    RecordType(
        15,
        "SHARE_GROUP_STATE_PARTITION_METADATA",
        SHARE_GROUP_STATE_PARTITION_METADATA_KEY,
        SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
    ),
)
