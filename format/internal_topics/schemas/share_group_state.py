"""Records of __share_group_state: which records of a share-partition are acquired, acknowledged or archived (KIP-932).

Source: share-coordinator common/message. Kafka 4.0 (early access) wrote other fields under the same version number;
those values cannot be decoded by these tables.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# The whole state of a share-partition.
SHARE_SNAPSHOT_KEY = message(
    "ShareSnapshotKey",
    field("groupId", "string"),
    field("topicId", "uuid"),
    field("partition", "int32"),
    flexible="none",
)
SHARE_SNAPSHOT_VALUE = message(
    "ShareSnapshotValue",
    field("snapshotEpoch", "int32"),
    field("stateEpoch", "int32"),
    field("leaderEpoch", "int32"),
    field("startOffset", "int64"),
    field("deliveryCompleteCount", "int32", tag=0, default=-1),
    field("createTimestamp", "int64"),
    field("writeTimestamp", "int64"),
    field(
        "stateBatches",
        "[]struct",
        field("firstOffset", "int64"),
        field("lastOffset", "int64"),
        field("deliveryState", "int8"),
        field("deliveryCount", "int16"),
    ),
)

# A change since the last snapshot.
SHARE_UPDATE_KEY = message(
    "ShareUpdateKey",
    field("groupId", "string"),
    field("topicId", "uuid"),
    field("partition", "int32"),
    flexible="none",
)
SHARE_UPDATE_VALUE = message(
    "ShareUpdateValue",
    field("snapshotEpoch", "int32"),
    field("leaderEpoch", "int32"),
    field("startOffset", "int64"),
    field("deliveryCompleteCount", "int32", tag=0, default=-1),
    field(
        "stateBatches",
        "[]struct",
        field("firstOffset", "int64"),
        field("lastOffset", "int64"),
        field("deliveryState", "int8"),
        field("deliveryCount", "int16"),
    ),
)

RECORD_TYPES = (
    RecordType(0, "SHARE_SNAPSHOT", SHARE_SNAPSHOT_KEY, SHARE_SNAPSHOT_VALUE),
    RecordType(1, "SHARE_UPDATE", SHARE_UPDATE_KEY, SHARE_UPDATE_VALUE),
)
