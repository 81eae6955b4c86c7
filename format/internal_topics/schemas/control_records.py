"""Values of control records: transaction markers, and the records of the raft layer in the KRaft log.

Source: clients common/message (EndTxnMarker, KIP-595 LeaderChangeMessage, KIP-630 snapshots, KIP-853 voters).
Each value starts with its version.
"""

from __future__ import annotations

from format.internal_topics.schema import field, message

# The value of ABORT and COMMIT; its version precedes it.
END_TXN_MARKER = message("EndTxnMarker", field("coordinatorEpoch", "int32"), flexible="none")

# A new leader and the voters that granted it their vote.
LEADER_CHANGE_MESSAGE = message(
    "LeaderChangeMessage",
    field("version", "int16"),
    field("leaderId", "int32"),
    field("voters", "[]struct", field("voterId", "int32"), field("voterDirectoryId", "uuid", versions="1+")),
    field(
        "grantingVoters",
        "[]struct",
        field("voterId", "int32"),
        field("voterDirectoryId", "uuid", versions="1+"),
    ),
    valid="0-1",
)

# The first and the last record of a snapshot.
SNAPSHOT_HEADER_RECORD = message(
    "SnapshotHeaderRecord",
    field("version", "int16"),
    field("lastContainedLogTimestamp", "int64"),
)
SNAPSHOT_FOOTER_RECORD = message("SnapshotFooterRecord", field("version", "int16"))

# The version of the raft protocol, and the voters if they are in the log (KIP-853).
KRAFT_VERSION_RECORD = message("KRaftVersionRecord", field("version", "int16"), field("kRaftVersion", "int16"))
VOTERS_RECORD = message(
    "VotersRecord",
    field("version", "int16"),
    field(
        "voters",
        "[]struct",
        field("voterId", "int32"),
        field("voterDirectoryId", "uuid"),
        field(
            "endpoints",
            "[]struct",
            field("name", "string"),
            field("host", "string"),
            field("port", "uint16"),
        ),
        field(
            "kRaftVersionFeature",
            "struct",
            field("minSupportedVersion", "int16"),
            field("maxSupportedVersion", "int16"),
        ),
    ),
)
