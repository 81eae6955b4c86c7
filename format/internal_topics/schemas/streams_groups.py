"""Records of __consumer_offsets for streams groups (KIP-1071).

Source: group-coordinator common/message.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# The group's epoch, the hash of its topics' metadata, the configuration of its last assignment, and the epochs of the
# topology whose description the broker's plugin has, or refused.
STREAMS_GROUP_METADATA_KEY = message("StreamsGroupMetadataKey", field("groupId", "string"), flexible="none")
STREAMS_GROUP_METADATA_VALUE = message(
    "StreamsGroupMetadataValue",
    field("epoch", "int32"),
    field("metadataHash", "int64"),
    field("validatedTopologyEpoch", "int32", tag=0, default=-1),
    field(
        "lastAssignmentConfigs",
        "[]struct",
        field("key", "string"),
        field("value", "string"),
        nullable="0+",
        tag=1,
    ),
    field("storedDescriptionTopologyEpoch", "int32", tag=2, default=-1),
    field("failedDescriptionTopologyEpoch", "int32", tag=3, default=-1),
)

# The metadata that a member reported.
STREAMS_GROUP_MEMBER_METADATA_KEY = message(
    "StreamsGroupMemberMetadataKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
STREAMS_GROUP_MEMBER_METADATA_VALUE = message(
    "StreamsGroupMemberMetadataValue",
    field("instanceId", "string", nullable="0+"),
    field("rackId", "string", nullable="0+"),
    field("clientId", "string"),
    field("clientHost", "string"),
    field("rebalanceTimeoutMs", "int32"),
    field("topologyEpoch", "int32"),
    field("processId", "string"),
    field("userEndpoint", "struct", field("host", "string"), field("port", "uint16"), nullable="0+"),
    field("clientTags", "[]struct", field("key", "string"), field("value", "string")),
)

# The epoch of the target assignment.
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = message(
    "StreamsGroupTargetAssignmentMetadataKey",
    field("groupId", "string"),
    flexible="none",
)
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = message(
    "StreamsGroupTargetAssignmentMetadataValue",
    field("assignmentEpoch", "int32"),
    field("assignmentTimestamp", "int64", tag=0),
)

# The target assignment of a member.
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = message(
    "StreamsGroupTargetAssignmentMemberKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = message(
    "StreamsGroupTargetAssignmentMemberValue",
    field("activeTasks", "[]struct", field("subtopologyId", "string"), field("partitions", "[]int32")),
    field("standbyTasks", "[]struct", field("subtopologyId", "string"), field("partitions", "[]int32")),
    field("warmupTasks", "[]struct", field("subtopologyId", "string"), field("partitions", "[]int32")),
)

# The current assignment of a member, and the tasks that it is about to revoke.
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = message(
    "StreamsGroupCurrentMemberAssignmentKey",
    field("groupId", "string"),
    field("memberId", "string"),
    flexible="none",
)
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = message(
    "StreamsGroupCurrentMemberAssignmentValue",
    field("memberEpoch", "int32"),
    field("previousMemberEpoch", "int32"),
    field("state", "int8"),
    field(
        "activeTasks",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "standbyTasks",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "warmupTasks",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "activeTasksPendingRevocation",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "standbyTasksPendingRevocation",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
    field(
        "warmupTasksPendingRevocation",
        "[]struct",
        field("subtopologyId", "string"),
        field("partitions", "[]int32"),
        field("assignmentEpochs", "[]int32", nullable="0+", tag=0),
    ),
)

# The subtopologies of the application and the topics that each needs.
STREAMS_GROUP_TOPOLOGY_KEY = message("StreamsGroupTopologyKey", field("groupId", "string"), flexible="none")
STREAMS_GROUP_TOPOLOGY_VALUE = message(
    "StreamsGroupTopologyValue",
    field("epoch", "int32"),
    field(
        "subtopologies",
        "[]struct",
        field("subtopologyId", "string"),
        field("sourceTopics", "[]string"),
        field("sourceTopicRegex", "[]string"),
        field(
            "stateChangelogTopics",
            "[]struct",
            field("name", "string"),
            field("partitions", "int32"),
            field("replicationFactor", "int16"),
            field("topicConfigs", "[]struct", field("key", "string"), field("value", "string")),
        ),
        field("repartitionSinkTopics", "[]string"),
        field(
            "repartitionSourceTopics",
            "[]struct",
            field("name", "string"),
            field("partitions", "int32"),
            field("replicationFactor", "int16"),
            field("topicConfigs", "[]struct", field("key", "string"), field("value", "string")),
        ),
        field(
            "copartitionGroups",
            "[]struct",
            field("sourceTopics", "[]int16"),
            field("sourceTopicRegex", "[]int16"),
            field("repartitionSourceTopics", "[]int16"),
        ),
    ),
)

RECORD_TYPES = (
    RecordType(17, "STREAMS_GROUP_METADATA", STREAMS_GROUP_METADATA_KEY, STREAMS_GROUP_METADATA_VALUE),
    RecordType(
        19, "STREAMS_GROUP_MEMBER_METADATA", STREAMS_GROUP_MEMBER_METADATA_KEY, STREAMS_GROUP_MEMBER_METADATA_VALUE
    ),
    RecordType(
        20,
        "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA",
        STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    RecordType(
        21,
        "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER",
        STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    RecordType(
        22,
        "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    RecordType(23, "STREAMS_GROUP_TOPOLOGY", STREAMS_GROUP_TOPOLOGY_KEY, STREAMS_GROUP_TOPOLOGY_VALUE),
)
