"""Rows about side files: the entries of indexes, snapshots, checkpoints and properties files."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, PATH_COLUMN, SEGMENT_COLUMN, TOPIC_COLUMN, Column, RowSchema

OFFSET_INDEX_ENTRY = RowSchema(
    "offset_index_entry",
    (
        SEGMENT_COLUMN,
        Column("relative_offset", "int", "offset minus the segment's base offset"),
        Column("offset", "int", "the absolute offset"),
        Column("position", "int", "byte position in the segment"),
    ),
)
TIME_INDEX_ENTRY = RowSchema(
    "time_index_entry",
    (
        SEGMENT_COLUMN,
        Column("timestamp", "timestamp", "ms"),
        Column("relative_offset", "int", "offset minus the segment's base offset"),
        Column("offset", "int", "the absolute offset"),
    ),
)
ABORTED_TXN = RowSchema(
    "aborted_txn",
    (
        SEGMENT_COLUMN,
        Column("version", "int", "version of the entry"),
        Column("producer_id", "int", "the producer"),
        Column("first_offset", "int", "offset of the transaction's first record"),
        Column("last_offset", "int", "offset of the abort marker"),
        Column("last_stable_offset", "int", "last stable offset when the marker was appended"),
    ),
)
PRODUCER_SNAPSHOT_ENTRY = RowSchema(
    "producer_snapshot_entry",
    (
        Column("snapshot_offset", "int", "the snapshot's offset, from the file's name; exclusive"),
        Column("producer_id", "int", "the producer"),
        Column("producer_epoch", "int", "its epoch"),
        Column("last_sequence", "int", "sequence of the last record it wrote, -1 for none"),
        Column("last_offset", "int", "offset of the last record it wrote, -1 for none"),
        Column("offset_delta", "int", "last offset minus first offset of its last batch"),
        Column("timestamp", "timestamp", "ms; of its last batch or marker"),
        Column("coordinator_epoch", "int", "of the last marker, -1 for none"),
        Column("current_txn_first_offset", "int", "first offset of its open transaction, null for none"),
    ),
)
LEADER_EPOCH = RowSchema(
    "leader_epoch",
    (
        PATH_COLUMN,
        Column("epoch", "int", "leader epoch"),
        Column("start_offset", "int", "first offset of that epoch"),
    ),
)
CHECKPOINT_OFFSET = RowSchema(
    "checkpoint_offset",
    (
        PATH_COLUMN,
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("offset", "int", "high watermark, recovery point, log start offset or first dirty offset, by the file's name"),
    ),
)
PROPERTY = RowSchema(
    "property",
    (
        PATH_COLUMN,
        Column("name", "string", "the property's name"),
        Column("value", "any", "its value"),
    ),
)
