"""Rows about records and batches, and the results of look-ups and searches."""

from __future__ import annotations

from functools import cache

from format import layout
from format.columns.schema import PARTITION_COLUMN, PATH_COLUMN, SEGMENT_COLUMN, TOPIC_COLUMN, Column, Fill, RowSchema

RECORD = RowSchema(
    "record",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("offset", "int", "the record's offset", Fill("record-number", "offset")),
        Column("timestamp", "timestamp", "the record's timestamp in ms, null if the format has none", Fill("record-timestamp", "timestamp")),
        Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType", Fill("timestamp-type")),
        Column("magic", "int", "0, 1 or 2", Fill("number", "magic")),
        Column("codec", "string", "codec of the batch or wrapper: none, gzip, snappy, lz4 or zstd", Fill("codec")),
        Column("key", "bytes", "the key", Fill("record-bytes", "key_start")),
        Column("value", "bytes", "the value", Fill("record-bytes", "value_start")),
        Column("headers", "headers", "the headers, in order; null if the format has none", Fill("record-headers", "headers_start")),
        Column("leader_epoch", "int", "partition leader epoch of the batch", Fill("v2", "leader_epoch")),
        Column("producer_id", "int", "producer id of the batch, -1 for none", Fill("v2", "producer_id")),
        Column("producer_epoch", "int", "producer epoch of the batch, -1 for none", Fill("v2", "producer_epoch")),
        Column("sequence", "int", "the record's sequence, -1 for none", Fill("record-sequence")),
        Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
        Column("is_control", "bool", "a control record: a marker that clients never get", Fill("bit", layout.CONTROL_BIT)),
        Column("batch_base_offset", "int", "base offset of the batch", Fill("number", "base_offset")),
        SEGMENT_COLUMN,
        Column("position", "int", "byte position in the file of the batch or outermost message", Fill("number", "position")),
        Column("size_bytes", "int", "bytes of the record itself, uncompressed", Fill("record-number", "size_bytes")),
    ),
)
#: Further columns of record rows, on request, after the others.
EXTRA_RECORD_COLUMNS = (
    Column("path", "string", "the log file", Fill("constant", "path")),
    Column("is_below_log_start", "bool", "below the log start offset: consumers never get it; null if that offset is unknown", Fill("record-below-log-start")),
)
#: The last column of rows with context.
IS_MATCH = Column("is_match", "bool", "whether the record matches; false for context of a match")


@cache
def record_schema(extra: frozenset[str] = frozenset()) -> RowSchema:
    """RECORD with the EXTRA_RECORD_COLUMNS whose names are in ``extra``."""
    added = tuple(column for column in EXTRA_RECORD_COLUMNS if column.name in extra)
    return RowSchema(RECORD.type, RECORD.columns + added) if added else RECORD


BATCH = RowSchema(
    "batch",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("position", "int", "byte position in the file", Fill("number", "position")),
        Column("size_bytes", "int", "bytes on disk, the header included", Fill("number", "size_bytes")),
        Column("base_offset", "int", "offset of the first record", Fill("number", "base_offset")),
        Column("last_offset", "int", "offset of the last record, even if compaction removed it", Fill("last-offset")),
        Column("record_count", "int", "records in the batch", Fill("count", "record_count")),
        Column("magic", "int", "0, 1 or 2", Fill("number", "magic")),
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd", Fill("codec")),
        Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType", Fill("timestamp-type")),
        Column("base_timestamp", "timestamp", "the first record's timestamp in ms; null if it was replaced by a delete horizon", Fill("base-timestamp", "base_timestamp")),
        Column("max_timestamp", "timestamp", "the largest timestamp in ms", Fill("timed", "max_timestamp")),
        Column("leader_epoch", "int", "partition leader epoch", Fill("v2", "leader_epoch")),
        Column("producer_id", "int", "-1 for none", Fill("v2", "producer_id")),
        Column("producer_epoch", "int", "-1 for none", Fill("v2", "producer_epoch")),
        Column("base_sequence", "int", "sequence of the first record, -1 for none", Fill("v2", "base_sequence")),
        Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
        Column("is_control", "bool", "contains control records", Fill("bit", layout.CONTROL_BIT)),
        Column("delete_horizon_ms", "timestamp", "when compaction may remove the batch's tombstones and markers; null for none", Fill("delete-horizon", "base_timestamp")),
        Column("crc", "int", "the CRC as stored", Fill("number", "crc")),
        Column("crc_valid", "bool", "whether the CRC matches the bytes; null if it was not computed", Fill("crc-valid")),
    ),
)
STEP = RowSchema(
    "step",
    (
        Column("stage", "string", "segment, time_index, offset_index, scan or match"),
        PATH_COLUMN,
        Column("position", "int", "byte position in that file"),
        Column("offset", "int", "the offset that the step found"),
        Column("detail", "string", "description of the step"),
    ),
)
MATCH = RowSchema(
    "match",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("offset", "int", "the record's offset"),
        Column("timestamp", "timestamp", "the record's timestamp in ms"),
        SEGMENT_COLUMN,
        Column("position", "int", "byte position of its batch in the segment"),
        Column("leader_epoch", "int", "partition leader epoch of its batch"),
        Column("visibility", "string", "which consumers get the offset, as far as this replica says: visible, read_uncommitted_only, aborted, control, not_replicated, below_log_start, compacted, damaged or past_end"),
        Column("is_control", "bool", "a control record: a marker that clients never get"),
        Column("is_transactional", "bool", "part of a transaction"),
        Column("transaction_state", "string", "open, committed or aborted; null outside transactions"),
        Column("producer_id", "int", "producer id of its batch, -1 for none"),
        Column("producer_epoch", "int", "producer epoch of its batch, -1 for none"),
        Column("batch_base_offset", "int", "base offset of its batch"),
        Column("crc_valid", "bool", "whether the CRC of its batch matches the bytes"),
        Column("is_leader", "bool", "whether this node leads the partition, by the newest metadata at hand; null if that is not known, and for a look-up by time"),
    ),
)
FILE_MATCH = RowSchema(
    "file_match",
    (
        PATH_COLUMN,
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("record_count", "int", "matching records in the file, null if the search stopped at the first"),
    ),
)
