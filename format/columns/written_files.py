"""Rows about files that a verb wrote or would write, and its decision about each batch."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, SEGMENT_COLUMN, TOPIC_COLUMN, Column, RowSchema

WRITTEN_SEGMENT = RowSchema(
    "written_segment",
    (
        Column("path", "string", "the segment's file in the output"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("source_bytes", "int", "bytes of the source's .log file that it was made from, including lost bytes"),
        Column("size_bytes", "int", "bytes of the .log file that was written, 0 if only indexes were written"),
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
        Column("codec", "string", "codec that was tried; the first row of a topic has its present codecs"),
        Column("level", "int", "its level, null if the codec has no levels and for the present codecs"),
        Column("log_bytes", "int", "bytes of the topic's .log files now"),
        Column("sampled_bytes", "int", "of these, bytes that were compressed as a sample"),
        Column("estimated_bytes", "int", "estimated bytes of the .log files"),
        Column("saved_bytes", "int", "bytes that this would save; negative if the files would grow"),
        Column("saved_percent", "int", "the same in percent"),
        Column("compress_mb_per_s", "int", "speed of compressing, in 10^6 uncompressed bytes a second, one thread"),
        Column("decompress_mb_per_s", "int", "speed of decompressing, in the same unit"),
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
        Column("codec", "string", "the codec of the batch"),
        Column("decision", "string", "copied, recompressed, rebuilt or refused"),
        Column("reason", "string", "reason for the decision, as a stable word"),
        Column("broker", "string", "what a broker with that compression.type would do with the batch when a producer sends it"),
    ),
)
