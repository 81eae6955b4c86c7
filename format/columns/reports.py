"""Rows of reports and bundles: totals, timelines and charts, and the run that made them."""

from __future__ import annotations

from format.columns.partitions import PARTITION
from format.columns.schema import PARTITION_COLUMN, PATH_COLUMN, TOPIC_COLUMN, Column, RowSchema

REPORT_PARTITION = RowSchema(
    "report_partition",
    (
        *PARTITION.columns,
        Column("node_id", "int", "node id from meta.properties, null for none"),
        Column("record_count", "int", "records in the live segments"),
        Column("state", "string", "fatal, error or warning: the most severe finding; marked: a directory that a broker will delete or replace; differs: the replicas of the partition differ; empty; else sound"),
        Column("finding_count", "int", "findings about it, of all severities"),
    ),
)
TOPIC_USAGE = RowSchema(
    "topic_usage",
    (
        TOPIC_COLUMN,
        Column("partition_count", "int", "partitions here; replicas on several nodes count once"),
        Column("replica_count", "int", "partition directories"),
        Column("size_bytes", "int", "bytes of all files in these directories"),
        Column("log_size_bytes", "int", "bytes of the .log files of their segments"),
        Column("record_count", "int", "records in their live segments"),
        Column("batch_count", "int", "record batches, and outermost messages of v0 and v1"),
        Column("mean_batch_bytes", "int", "mean size of a batch in bytes"),
        Column("codecs", "string", "the codecs in use, with the bytes of each"),
        Column("first_timestamp", "timestamp", "base timestamp of the first batch"),
        Column("max_timestamp", "timestamp", "largest timestamp"),
        Column("age_ms", "int", "age of the largest timestamp, negative in the future"),
        Column("largest_partition", "int", "the partition with most records"),
        Column("skew", "any", "its records divided by the mean of all partitions here: 1 is even; null for a single partition"),
        Column("finding_count", "int", "findings about it, of all severities"),
        Column("next_deletable_at", "timestamp", "when retention.ms allows the deletion of the next segment; null for never"),
        Column("deletable_bytes", "int", "bytes that the broker's next check deletes"),
    ),
)
FINDING_SUMMARY = RowSchema(
    "finding_summary",
    (
        Column("severity", "string", "info, warning, error or fatal"),
        Column("code", "string", "stable code, see the table of finding codes"),
        Column("count", "int", "findings with this code"),
        Column("partition_count", "int", "partition directories with such findings"),
        Column("meaning", "string", "what it means"),
        Column("broker", "string", "what a broker does in this case"),
        Column("next_step", "string", "what to do about it"),
        Column("places", "string", "the first partitions or files with such findings, each with what is lost there"),
    ),
)
TIMELINE_EVENT = RowSchema(
    "timeline_event",
    (
        Column("timestamp", "timestamp", "when; for damage, the timestamp of the batch at or before it"),
        Column("kind", "string", "damage, transaction, leader_epoch, metadata or segment"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("offset", "int", "offset of the first record, null for none"),
        Column("detail", "string", "description of the event"),
        Column("severity", "string", "info, warning, error or fatal"),
        PATH_COLUMN,
    ),
)
BYTES_BY_TIME = RowSchema(
    "bytes_by_time",
    (
        TOPIC_COLUMN,
        Column("timestamp", "timestamp", "start of the interval"),
        Column("duration_ms", "int", "length of the interval"),
        Column("size_bytes", "int", "bytes of the batches whose largest timestamp is in it"),
        Column("record_count", "int", "their records"),
    ),
)
BYTES_BY_OFFSET = RowSchema(
    "bytes_by_offset",
    (
        Column("path", "string", "the partition's directory"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("first_offset", "int", "first offset of the range"),
        Column("last_offset", "int", "last offset of the range"),
        Column("size_bytes", "int", "bytes of the batches that start in it"),
    ),
)
DAMAGED_PLACE = RowSchema(
    "damaged_place",
    (
        Column("path", "string", "the partition's directory"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("code", "string", "the finding's code"),
        Column("severity", "string", "warning, error or fatal"),
        Column("first_offset", "int", "the finding's offset, or the offset of the batch at or before it"),
        Column("last_offset", "int", "the last lost offset, else the same as first_offset"),
        Column("timestamp", "timestamp", "the timestamp of the batch at or before it"),
    ),
)
BATCH_SIZES = RowSchema(
    "batch_sizes",
    (
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd"),
        Column("least_bytes", "int", "the smallest size of the class; the next class starts at twice this size"),
        Column("batch_count", "int", "batches"),
        Column("size_bytes", "int", "their bytes"),
        Column("record_count", "int", "their records"),
    ),
)
TRANSACTION_TOTAL = RowSchema(
    "transaction_total",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("open_count", "int", "open transactions"),
        Column("hanging_count", "int", "open transactions that no coordinator will end"),
        Column("committed_count", "int", "transactions that committed"),
        Column("aborted_count", "int", "transactions that aborted"),
        Column("last_stable_offset", "int", "last stable offset, where read_committed consumers stop"),
        Column("log_end_offset", "int", "the offset after the last batch"),
    ),
)
#: A run of a command, in the table ``runs`` of a report set.
RUN = RowSchema(
    "run",
    (
        Column("command", "string", "the command"),
        Column("version", "string", "version of kafkalog"),
        Column("started", "timestamp", "when the run began"),
        Column("finished", "timestamp", "when the run ended"),
        Column("exit_code", "int", "its exit status"),
        Column("complete", "bool", "whether everything could be read"),
        Column("conditions", "string", "why the exit status is not 0, separated by commas"),
        Column("not_checked", "string", "what was not checked, separated by semicolons"),
        Column("counts", "string", "the counts of the summary, as a JSON object"),
        Column("broker_id", "int", "the broker that was examined"),
    ),
)
FILE_BYTES = RowSchema(
    "file_bytes",
    (
        PATH_COLUMN,
        Column("position", "int", "first byte"),
        Column("hex", "string", "the bytes in hexadecimal"),
        Column("text", "string", "the same as ASCII, with a dot for each other byte"),
        Column("code", "string", "the finding's code"),
    ),
)
