"""Records of __consumer_offsets that every kind of group shares, and those of classic groups.

Source: group-coordinator common/message; the broker's classic coordinator before Kafka 4.0 wrote the same bytes.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# An offset committed by an old broker (key version 0 before types had names).
LEGACY_OFFSET_COMMIT_KEY = message(
    "LegacyOffsetCommitKey",
    field("group", "string"),
    field("topic", "string"),
    field("partition", "int32"),
    flexible="none",
)
LEGACY_OFFSET_COMMIT_VALUE = message(
    "LegacyOffsetCommitValue",
    field("offset", "int64"),
    field("metadata", "string"),
    field("commitTimestamp", "int64"),
    flexible="none",
)

# The offset that a group committed for a partition; a tombstone when it expired or was deleted.
OFFSET_COMMIT_KEY = message(
    "OffsetCommitKey",
    field("group", "string"),
    field("topic", "string"),
    field("partition", "int32"),
    flexible="none",
)
OFFSET_COMMIT_VALUE = message(
    "OffsetCommitValue",
    field("offset", "int64"),
    field("leaderEpoch", "int32", versions="3+"),
    field("metadata", "string"),
    field("commitTimestamp", "int64"),
    field("expireTimestamp", "int64", versions="1"),
    field("topicId", "uuid", versions="4+", tag=0),
    valid="0-4",
    flexible="4+",
)

# The generation and members of a classic group. Subscription and assignment are bytes in the format of its protocol.
GROUP_METADATA_KEY = message("GroupMetadataKey", field("group", "string"), flexible="none")
GROUP_METADATA_VALUE = message(
    "GroupMetadataValue",
    field("protocolType", "string"),
    field("generation", "int32"),
    field("protocol", "string", nullable="0+"),
    field("leader", "string", nullable="0+"),
    field("currentStateTimestamp", "int64", versions="2+"),
    field(
        "members",
        "[]struct",
        field("memberId", "string"),
        field("groupInstanceId", "string", versions="3+", nullable="3+"),
        field("clientId", "string"),
        field("clientHost", "string"),
        field("rebalanceTimeout", "int32", versions="1+"),
        field("sessionTimeout", "int32"),
        field("subscription", "bytes"),
        field("assignment", "bytes"),
    ),
    valid="0-4",
    flexible="4+",
)

RECORD_TYPES = (
    RecordType(0, "LEGACY_OFFSET_COMMIT", LEGACY_OFFSET_COMMIT_KEY, LEGACY_OFFSET_COMMIT_VALUE),
    RecordType(1, "OFFSET_COMMIT", OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    RecordType(2, "GROUP_METADATA", GROUP_METADATA_KEY, GROUP_METADATA_VALUE),
)
