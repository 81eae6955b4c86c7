"""Files that a verb wrote or would write, and why batches are left as they are."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, SEGMENT_COLUMN, TOPIC_COLUMN, Column, RowSchema

WRITTEN_SEGMENT = RowSchema(
    "written_segment",
    (
        Column("path", "string", "the segment's file in the output"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("source_bytes", "int", "bytes of the source's .log file that went into it, the lost ones too"),
        Column("size_bytes", "int", "bytes of the .log file that was written, 0 where only indexes were"),
        Column("batch_count", "int", "record batches, and outermost messages of v0 and v1, in it"),
        Column("copied_count", "int", "of these, copied byte for byte"),
        Column("recompressed_count", "int", "of these, recompressed one by one"),
        Column("rebuilt_count", "int", "of these, merged, converted or unpacked"),
        Column("lost_bytes", "int", "bytes of the source that belong to no intact batch"),
        Column("index_entries", "int", "entries of the new .index"),
        Column("time_index_entries", "int", "entries of the new .timeindex"),
        Column("aborted_txns", "int", "entries of the new .txnindex"),
    ),
)
EXTRACTED_FILE = RowSchema(
    "extracted_file",
    (
        Column("path", "string", "the file in the output"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("record_count", "int", "records in it"),
        Column("size_bytes", "int", "its bytes"),
        Column("first_offset", "int", "offset of its first record"),
        Column("last_offset", "int", "offset of its last record"),
    ),
)
ESTIMATE = RowSchema(
    "estimate",
    (
        Column("topic", "string", "the topic"),
        Column("codec", "string", "codec that was tried; the first row of a topic is what it has now"),
        Column("level", "int", "its level, null where the codec has none or for what is there now"),
        Column("log_bytes", "int", "bytes of the topic's .log files now"),
        Column("sampled_bytes", "int", "of these, what was measured"),
        Column("estimated_bytes", "int", "what the .log files would take"),
        Column("saved_bytes", "int", "what that saves; negative where it grows"),
        Column("saved_percent", "int", "the same in percent"),
        Column("compress_mb_per_s", "int", "speed of compressing, in 10^6 uncompressed bytes a second, one thread"),
        Column("decompress_mb_per_s", "int", "speed of decompressing, likewise"),
        Column("compress_ms", "int", "time to compress all of it, one thread"),
    ),
)
BATCH_DECISION = RowSchema(
    "batch_decision",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("position", "int", "byte position in the file"),
        Column("base_offset", "int", "offset of the first record"),
        Column("last_offset", "int", "offset of the last record"),
        Column("size_bytes", "int", "bytes on disk"),
        Column("magic", "int", "0, 1 or 2"),
        Column("codec", "string", "the codec it has"),
        Column("decision", "string", "copied, recompressed, rebuilt or refused"),
        Column("reason", "string", "stable word for why"),
        Column("broker", "string", "what a broker with that compression.type would do with it when a producer sends it"),
    ),
)
