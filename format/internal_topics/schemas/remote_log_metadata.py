"""Records of __remote_log_metadata: the segments copied to remote storage (KIP-405).

Source: storage message (server.log.remote.metadata.storage). The records have no key.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# A segment that is being copied or was copied.
REMOTE_LOG_SEGMENT_METADATA_RECORD = message(
    "RemoteLogSegmentMetadataRecord",
    field(
        "remoteLogSegmentId",
        "struct",
        field(
            "topicIdPartition",
            "struct",
            field("name", "string"),
            field("id", "uuid"),
            field("partition", "int32"),
        ),
        field("id", "uuid"),
    ),
    field("startOffset", "int64"),
    field("endOffset", "int64"),
    field("brokerId", "int32"),
    field("maxTimestampMs", "int64"),
    field("eventTimestampMs", "int64"),
    field("segmentLeaderEpochs", "[]struct", field("leaderEpoch", "int32"), field("offset", "int64")),
    field("segmentSizeInBytes", "int32"),
    field("customMetadata", "bytes", nullable="0+"),
    field("remoteLogSegmentState", "int8"),
    field("txnIndexEmpty", "bool", tag=0),
)

# A segment's new state.
REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD = message(
    "RemoteLogSegmentMetadataUpdateRecord",
    field(
        "remoteLogSegmentId",
        "struct",
        field(
            "topicIdPartition",
            "struct",
            field("name", "string"),
            field("id", "uuid"),
            field("partition", "int32"),
        ),
        field("id", "uuid"),
    ),
    field("brokerId", "int32"),
    field("eventTimestampMs", "int64"),
    field("customMetadata", "bytes", nullable="0+"),
    field("remoteLogSegmentState", "int8"),
)

# The deletion of a whole partition's remote log.
REMOTE_PARTITION_DELETE_METADATA_RECORD = message(
    "RemotePartitionDeleteMetadataRecord",
    field(
        "topicIdPartition",
        "struct",
        field("name", "string"),
        field("id", "uuid"),
        field("partition", "int32"),
    ),
    field("brokerId", "int32"),
    field("eventTimestampMs", "int64"),
    field("remotePartitionDeleteState", "int8"),
)

# A segment in a broker's local snapshot file of this topic.
REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD = message(
    "RemoteLogSegmentMetadataSnapshotRecord",
    field("segmentId", "uuid"),
    field("startOffset", "int64"),
    field("endOffset", "int64"),
    field("brokerId", "int32"),
    field("maxTimestampMs", "int64"),
    field("eventTimestampMs", "int64"),
    field("segmentLeaderEpochs", "[]struct", field("leaderEpoch", "int32"), field("offset", "int64")),
    field("segmentSizeInBytes", "int32"),
    field("customMetadata", "bytes", nullable="0+"),
    field("remoteLogSegmentState", "int8"),
    field("txnIndexEmpty", "bool", tag=0),
)

RECORD_TYPES = (
    RecordType(0, "REMOTE_LOG_SEGMENT_METADATA_RECORD", None, REMOTE_LOG_SEGMENT_METADATA_RECORD),
    RecordType(1, "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD", None, REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD),
    RecordType(2, "REMOTE_PARTITION_DELETE_METADATA_RECORD", None, REMOTE_PARTITION_DELETE_METADATA_RECORD),
    RecordType(3, "REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD", None, REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD),
)
