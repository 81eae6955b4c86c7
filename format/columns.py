"""The typed row schemas, from which tables, text, JSON lines, CSV, Parquet, Spark and the documentation are derived.

Names and their order are promises of the command line's contract. A column of batches or records also has a ``Fill``, the
source of its values for rows, lines of text and JSON, CSV, Arrow and Spark. A new column is one line in its row type, and one
expression in ``format.rows.record_rows`` if no existing kind of ``Fill`` fits.

Column types:

``int``        a signed integer of 64 bits
``bool``       true or false
``string``     text that comes from this program or obeys Kafka's naming rules
``timestamp``  epoch milliseconds, an integer
``bytes``      lossless bytes: in JSON a string when valid UTF-8, else ``{"base64": …}``
``headers``    a list of (key bytes, value bytes or None), in order
``any``        a JSON value, for fields whose type depends on the finding or the file
``json``       JSON text: in JSON lines the value itself
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from format import layout


class Fill(msgspec.Struct, frozen=True):
    """The source of the values of a column of batches or records.

    ``kind`` is the name of an expression in ``format.rows.record_rows``, and of a field in the kernel's writer of lines
    (``FIELDS``). ``source`` is what the expression reads: a column of the batch or record table, a bit of the attributes,
    or a field of the location.
    """

    kind: str
    source: str | int = ""


#: The kind of the columns of decoded keys and values.
DECODED = "record-decoded"


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its type (see above), its description, and for batches and records the source of values."""

    name: str
    type: str
    meaning: str
    fill: Fill | None = None


class RowSchema(msgspec.Struct, frozen=True):
    """The columns of one row type; ``type`` is the value of JSON's ``"type"`` key."""

    type: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def row_of(self, item: object, /, **values: Any) -> tuple[Any, ...]:
        """The row of an object with attributes of the columns' names, but for the values given."""
        return tuple(values[name] if name in values else getattr(item, name) for name in self.names)


def row_schema(name: str, *columns: Column) -> RowSchema:
    """The row type with this name and these columns."""
    return RowSchema(name, columns)


#: Columns of many row types.
TOPIC_COLUMN = Column("topic", "string", "topic, from the directory's name", Fill("constant", "topic"))
PARTITION_COLUMN = Column(
    "partition", "int", "partition number, from the directory's name", Fill("constant", "partition")
)
SEGMENT_COLUMN = Column(
    "segment_base_offset", "int", "base offset in the segment's file name", Fill("constant", "base_offset")
)
PATH_COLUMN = Column("path", "string", "the file")
LOG_DIR = row_schema(
    "log_dir",
    Column("path", "string", "the log directory"),
    Column("cluster_id", "string", "from meta.properties"),
    Column("node_id", "int", "node or broker id from meta.properties"),
    Column("directory_id", "string", "from meta.properties"),
    Column("partition_count", "int", "partition directories, including marked ones"),
    Column("size_bytes", "int", "bytes of all files"),
    Column("clean_shutdown", "bool", "whether the clean-shutdown mark is there"),
    Column("lock_held", "bool", "whether a running process holds .lock; null if unknown"),
    Column("notes", "string", "what does not belong here"),
)
PARTITION = row_schema(
    "partition",
    Column("path", "string", "the partition's directory"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("mark", "string", "delete, future or stray; null for a live partition"),
    Column("topic_id", "string", "topic id from partition.metadata, null for none"),
    Column("segment_count", "int", "segments"),
    Column("size_bytes", "int", "bytes of all files in the directory"),
    Column("log_size_bytes", "int", "bytes of the .log files of its segments: indexes may be preallocated"),
    Column("log_start_offset", "int", "from the log-start-offset-checkpoint, else the first segment's base offset"),
    Column("first_offset", "int", "base offset of the first batch, null for an empty log"),
    Column("log_end_offset", "int", "offset after the last batch"),
    Column("high_watermark", "int", "from the replication-offset-checkpoint, null for none"),
    Column("recovery_point", "int", "from the recovery-point-offset-checkpoint, null for none"),
    Column("cleaner_offset", "int", "first dirty offset, from the cleaner-offset-checkpoint, null for none"),
    Column("first_timestamp", "timestamp", "base timestamp of the first batch"),
    Column("max_timestamp", "timestamp", "largest timestamp in the log"),
    Column("leader_epoch", "int", "latest leader epoch of the checkpoint"),
    Column("batch_count", "int", "record batches, and outermost messages of v0 and v1"),
    Column("magics", "string", "the formats in use, such as 0,1,2"),
    Column("codecs", "string", "the codecs in use, with the number of batches of each"),
    Column(
        "notes",
        "string",
        "leftovers, orphans, damage met while listing, and whether the metadata log does not assign it to the node",
    ),
    Column(
        "configs",
        "any",
        "configs that are set for the topic itself, from the metadata log; null without a metadata log",
    ),
)
SEGMENT = row_schema(
    "segment",
    PATH_COLUMN,
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    SEGMENT_COLUMN,
    Column("leftover", "string", "deleted, cleaned or swap; null for a live segment"),
    Column("size_bytes", "int", "bytes of the .log file"),
    Column("first_offset", "int", "base offset of the first batch, null for an empty segment"),
    Column("last_offset", "int", "last offset of the last batch, null for an empty segment"),
    Column("first_timestamp", "timestamp", "base timestamp of the first batch"),
    Column("max_timestamp", "timestamp", "largest timestamp of the segment"),
    Column("batch_count", "int", "record batches, and outermost messages of v0 and v1"),
    Column("magics", "string", "the formats in use, such as 0,1,2"),
    Column("codecs", "string", "the codecs in use, with the number of batches of each"),
    Column("index_entries", "int", "entries of the .index, null when it is missing"),
    Column("time_index_entries", "int", "entries of the .timeindex, null when it is missing"),
    Column("aborted_txns", "int", "entries of the .txnindex, null when it is missing"),
    Column("snapshot_producers", "int", "producers in the .snapshot of this base offset, null when it is missing"),
    Column("notes", "string", "what is missing or damaged"),
)
BATCH = row_schema(
    "batch",
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
    Column(
        "base_timestamp",
        "timestamp",
        "the first record's timestamp in ms; null if it was replaced by a delete horizon",
        Fill("base-timestamp", "base_timestamp"),
    ),
    Column("max_timestamp", "timestamp", "the largest timestamp in ms", Fill("timed", "max_timestamp")),
    Column("leader_epoch", "int", "partition leader epoch", Fill("v2", "leader_epoch")),
    Column("producer_id", "int", "-1 for none", Fill("v2", "producer_id")),
    Column("producer_epoch", "int", "-1 for none", Fill("v2", "producer_epoch")),
    Column("base_sequence", "int", "sequence of the first record, -1 for none", Fill("v2", "base_sequence")),
    Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
    Column("is_control", "bool", "contains control records", Fill("bit", layout.CONTROL_BIT)),
    Column(
        "delete_horizon_ms",
        "timestamp",
        "when compaction may remove the batch's tombstones and markers; null for none",
        Fill("delete-horizon", "base_timestamp"),
    ),
    Column("crc", "int", "the CRC as stored", Fill("number", "crc")),
    Column("crc_valid", "bool", "whether the CRC matches the bytes; null if it was not computed", Fill("crc-valid")),
)
RECORD = row_schema(
    "record",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("offset", "int", "the record's offset", Fill("record-number", "offset")),
    Column(
        "timestamp",
        "timestamp",
        "the record's timestamp in ms, null if the format has none",
        Fill("record-timestamp", "timestamp"),
    ),
    Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType", Fill("timestamp-type")),
    Column("magic", "int", "0, 1 or 2", Fill("number", "magic")),
    Column("codec", "string", "codec of the batch or wrapper: none, gzip, snappy, lz4 or zstd", Fill("codec")),
    Column("key", "bytes", "the key", Fill("record-bytes", "key_start")),
    Column("value", "bytes", "the value", Fill("record-bytes", "value_start")),
    Column(
        "headers",
        "headers",
        "the headers, in order; null if the format has none",
        Fill("record-headers", "headers_start"),
    ),
    Column("leader_epoch", "int", "partition leader epoch of the batch", Fill("v2", "leader_epoch")),
    Column("producer_id", "int", "producer id of the batch, -1 for none", Fill("v2", "producer_id")),
    Column("producer_epoch", "int", "producer epoch of the batch, -1 for none", Fill("v2", "producer_epoch")),
    Column("sequence", "int", "the record's sequence, -1 for none", Fill("record-sequence")),
    Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
    Column("is_control", "bool", "a control record: a marker that clients never get", Fill("bit", layout.CONTROL_BIT)),
    Column("batch_base_offset", "int", "base offset of the batch", Fill("number", "base_offset")),
    SEGMENT_COLUMN,
    Column(
        "position", "int", "byte position in the file of the batch or outermost message", Fill("number", "position")
    ),
    Column("size_bytes", "int", "bytes of the record itself, uncompressed", Fill("record-number", "size_bytes")),
)
#: Further columns of record rows, on request, after the others.
EXTRA_RECORD_COLUMNS = (
    Column("path", "string", "the log file", Fill("constant", "path")),
    Column(
        "is_below_log_start",
        "bool",
        "below the log start offset: consumers never get it; null if that offset is unknown",
        Fill("record-below-log-start"),
    ),
)
#: Columns of record rows where keys and values are decoded, after all others of EXTRA_RECORD_COLUMNS.
DECODED_COLUMNS = tuple(
    Column(f"{field}_{name}", kind, meaning.format(field), Fill(DECODED, first + number))
    for first, field in ((0, "key"), (3, "value"))
    for number, (name, kind, meaning) in enumerate(
        (
            ("decoded", "json", "the {} as JSON; null where it is null, or stays raw"),
            ("schema_id", "any", "the id of the schema that the {} names or was decoded by: a number, or a UUID as text; null for none"),
            ("format", "string", "what the {} was decoded as: avro, protobuf, json-schema, json, string, int, long, double, uuid, raw, or the name of a topic of Kafka's tools"),
        )
    )
)
#: The last column of rows with context.
IS_MATCH = Column("is_match", "bool", "whether the record matches; false for context of a match")
OFFSET_INDEX_ENTRY = row_schema(
    "offset_index_entry",
    SEGMENT_COLUMN,
    Column("relative_offset", "int", "offset minus the segment's base offset"),
    Column("offset", "int", "the absolute offset"),
    Column("position", "int", "byte position in the segment"),
)
TIME_INDEX_ENTRY = row_schema(
    "time_index_entry",
    SEGMENT_COLUMN,
    Column("timestamp", "timestamp", "ms"),
    Column("relative_offset", "int", "offset minus the segment's base offset"),
    Column("offset", "int", "the absolute offset"),
)
ABORTED_TXN = row_schema(
    "aborted_txn",
    SEGMENT_COLUMN,
    Column("version", "int", "version of the entry"),
    Column("producer_id", "int", "the producer"),
    Column("first_offset", "int", "offset of the transaction's first record"),
    Column("last_offset", "int", "offset of the abort marker"),
    Column("last_stable_offset", "int", "last stable offset when the marker was appended"),
)
PRODUCER_SNAPSHOT_ENTRY = row_schema(
    "producer_snapshot_entry",
    Column("snapshot_offset", "int", "the snapshot's offset, from the file's name; exclusive"),
    Column("producer_id", "int", "the producer"),
    Column("producer_epoch", "int", "its epoch"),
    Column("last_sequence", "int", "sequence of the last record it wrote, -1 for none"),
    Column("last_offset", "int", "offset of the last record it wrote, -1 for none"),
    Column("offset_delta", "int", "last offset minus first offset of its last batch"),
    Column("timestamp", "timestamp", "ms; of its last batch or marker"),
    Column("coordinator_epoch", "int", "of the last marker, -1 for none"),
    Column("current_txn_first_offset", "int", "first offset of its open transaction, null for none"),
)
LEADER_EPOCH = row_schema(
    "leader_epoch",
    PATH_COLUMN,
    Column("epoch", "int", "leader epoch"),
    Column("start_offset", "int", "first offset of that epoch"),
)
CHECKPOINT_OFFSET = row_schema(
    "checkpoint_offset",
    PATH_COLUMN,
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column(
        "offset", "int", "high watermark, recovery point, log start offset or first dirty offset, by the file's name"
    ),
)
PROPERTY = row_schema(
    "property",
    PATH_COLUMN,
    Column("name", "string", "the property's name"),
    Column("value", "any", "its value"),
)
FINDING = row_schema(
    "finding",
    Column("code", "string", "stable code, see the table of finding codes"),
    Column("severity", "string", "info, warning, error or fatal"),
    Column("certainty", "string", "proven, likely, possible or reconstructed"),
    PATH_COLUMN,
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    SEGMENT_COLUMN,
    Column("position", "int", "first byte in the file"),
    Column("length", "int", "bytes"),
    Column("offset", "int", "record offset"),
    Column("message", "string", "description of what was found"),
    Column("expected", "any", "what should be there"),
    Column("actual", "any", "what is there"),
    Column("next_step", "string", "what to do about it"),
    Column("lost_offsets", "any", "[first, last] of the offsets that cannot be read, null for none"),
    Column(
        "caused_by",
        "any",
        "code, path, position and offset of the finding that is the cause of this one, null for none",
    ),
)
STEP = row_schema(
    "step",
    Column("stage", "string", "segment, time_index, offset_index, scan or match"),
    PATH_COLUMN,
    Column("position", "int", "byte position in that file"),
    Column("offset", "int", "the offset that the step found"),
    Column("detail", "string", "description of the step"),
)
MATCH = row_schema(
    "match",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("offset", "int", "the record's offset"),
    Column("timestamp", "timestamp", "the record's timestamp in ms"),
    SEGMENT_COLUMN,
    Column("position", "int", "byte position of its batch in the segment"),
    Column("leader_epoch", "int", "partition leader epoch of its batch"),
    Column(
        "visibility",
        "string",
        "which consumers get the offset, as far as this replica says: visible, read_uncommitted_only, aborted, control, not_replicated, below_log_start, compacted, damaged or past_end",
    ),
    Column("is_control", "bool", "a control record: a marker that clients never get"),
    Column("is_transactional", "bool", "part of a transaction"),
    Column("transaction_state", "string", "open, committed or aborted; null outside transactions"),
    Column("producer_id", "int", "producer id of its batch, -1 for none"),
    Column("producer_epoch", "int", "producer epoch of its batch, -1 for none"),
    Column("batch_base_offset", "int", "base offset of its batch"),
    Column("crc_valid", "bool", "whether the CRC of its batch matches the bytes"),
    Column(
        "is_leader",
        "bool",
        "whether this node leads the partition, by the newest metadata at hand; null if that is not known, and for a look-up by time",
    ),
    Column("node_id", "int", "the node of this replica, from meta.properties; null as is_leader"),
    Column("leader", "int", "node id of the leader by the same metadata, null for none"),
    Column("isr", "any", "node ids of the replicas that are in sync, by the same metadata"),
    Column("eligible_leader_replicas", "any", "replicas that can become leader without loss (KIP-966), by the same metadata"),
    Column("path", "string", "the log file, or for an offset without a record the partition directory"),
)
FILE_MATCH = row_schema(
    "file_match",
    PATH_COLUMN,
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    SEGMENT_COLUMN,
    Column("record_count", "int", "matching records in the file, null if the search stopped at the first"),
)
WRITTEN_SEGMENT = row_schema(
    "written_segment",
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
)
MERGED_RANGE = row_schema(
    "merged_range",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    SEGMENT_COLUMN,
    Column("path", "string", "the file that the range was copied from"),
    Column("node_id", "int", "the node of that replica, null if it is not known"),
    Column("is_base", "bool", "whether that replica is the base of the partition"),
    Column("position", "int", "where the range starts in that file"),
    Column("size_bytes", "int", "its bytes"),
    Column("first_offset", "int", "offset of its first record"),
    Column("last_offset", "int", "offset of its last record"),
    Column("record_count", "int", "records in it"),
)
EXTRACTED_FILE = row_schema(
    "extracted_file",
    Column("path", "string", "the file in the output"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("record_count", "int", "records in it"),
    Column("size_bytes", "int", "its bytes"),
    Column("first_offset", "int", "offset of its first record"),
    Column("last_offset", "int", "offset of its last record"),
)
ESTIMATE = row_schema(
    "estimate",
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
)
BATCH_DECISION = row_schema(
    "batch_decision",
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
    Column(
        "broker", "string", "what a broker with that compression.type would do with the batch when a producer sends it"
    ),
)
REBUILT_CONTROLLER = row_schema(
    "rebuilt_controller",
    Column("node_id", "int", "the node id of the controller"),
    Column("directory_id", "string", "the id of its metadata log directory, null where it gets one at its first start"),
    Column("endpoints", "any", "its addresses, LISTENER://HOST:PORT, by the voter set or the registration"),
    Column("path", "string", "the directory that is written for it"),
)
REBUILD_CHANGE = row_schema(
    "rebuild_change",
    Column(
        "action",
        "string",
        "lost: later metadata, which is not in the copy; at_risk: records that only nodes had whose disks are not here; "
        "or set: written beside the copy",
    ),
    Column("subject", "string", "topic, partition, config, acl, … with its name"),
    Column("before", "any", "its state in the copy, null for none; of fields, only those that differ"),
    Column("after", "any", "its later state, or what is set"),
    Column("reason", "string", "what shows the change"),
    Column("path", "string", "the directory that shows it"),
)
BOOT_STEP = row_schema(
    "boot_step",
    Column(
        "action",
        "string",
        "refuse, offline, unknown, truncate, recover, rename, delete, create, rebuild_index, rebuild_snapshot or keep",
    ),
    Column("path", "string", "the file or directory"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column(
        "offset", "int", "the offset at which it is done: where a log is truncated, a segment starts or a snapshot ends"
    ),
    Column("position", "int", "byte position in the file at which it is done"),
    Column("bytes", "int", "bytes that are read, truncated or deleted"),
    Column("reason", "string", "why"),
    Column("broker_message", "string", "the log message of the broker, without parts that change from start to start"),
    Column("kafka_class", "string", "the class, or class and method, of Kafka that does it"),
    Column(
        "lost_offsets",
        "any",
        "[first, last] of the offsets below the high watermark that consumers lose, null for none",
    ),
    Column("new_path", "string", "the new name; UNIQUE stands for 32 characters that the broker chooses"),
    Column("log_start_offset", "int", "the log start offset after the start, in rows of partitions"),
    Column("log_end_offset", "int", "the log end offset after the start, in rows of partitions"),
)
TRANSACTION = row_schema(
    "transaction",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("producer_id", "int", "the producer"),
    Column(
        "producer_epoch",
        "int",
        "its epoch in the transaction's batches; for an end marker alone, the epoch of the marker",
    ),
    Column("transactional_id", "string", "its transactional id, from __transaction_state; null without that topic"),
    Column("state", "string", "open, aborted or committed, by the end marker in this partition"),
    Column(
        "coordinator_state",
        "string",
        "state of the transactional id, such as Ongoing; of the ended transactions, only the producer's last one here has it",
    ),
    Column("first_offset", "int", "offset of its first record; null for an end marker alone"),
    Column("last_offset", "int", "offset of the end marker; for an open transaction, of its last record"),
    Column("start_timestamp", "timestamp", "ms; base timestamp of its first batch, null if that is no longer there"),
    Column("last_timestamp", "timestamp", "ms; of the end marker, or of the last batch of an open transaction"),
    Column("timeout_ms", "int", "transaction.timeout.ms, from __transaction_state; 2147483647 for a two-phase commit"),
    Column("record_count", "int", "its records in this partition"),
    Column("size_bytes", "int", "bytes of its batches in this partition, without the end marker"),
    Column(
        "is_hanging",
        "bool",
        "idle for longer than --max-timeout, and not known to its coordinator here; null if that is unknown",
    ),
    Column(
        "abort_command",
        "string",
        "Kafka's command that aborts it on this partition; null if it is not open, or is known not to hang",
    ),
    Column(
        "duration_ms",
        "int",
        "from its first batch to its end, or to --at or now; null where that time is before its first batch",
    ),
    Column("holds_last_stable_offset", "bool", "the oldest open transaction of the partition"),
    Column("last_stable_offset", "int", "last stable offset of the partition, where read_committed consumers stop"),
    Column(
        "waiting_record_count",
        "int",
        "records from its first record on, of all producers; null for an ended transaction",
    ),
    Column("waiting_bytes", "int", "bytes of the batches with these records"),
    Column("coordinator_epoch", "int", "of its end marker; for an open transaction, of the producer's previous marker"),
    Column("path", "string", "the partition's directory"),
    Column(
        "segment_base_offset", "int", "of the segment with the first batch; for an ended transaction, with the marker"
    ),
    Column(
        "position", "int", "byte position of its first batch, or of an end marker alone, in the segment of that batch"
    ),
)
PRODUCER = row_schema(
    "producer",
    Column("producer_id", "int", "the producer; -1 for all producers without an id"),
    Column(
        "transactional_id",
        "string",
        "its transactional id, from __transaction_state; null for none, or without that topic",
    ),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("epochs", "string", "the epochs of its batches, such as 0-3,7; null without an id"),
    Column("first_offset", "int", "offset of its first record in the log"),
    Column("last_offset", "int", "offset of its last record"),
    Column("first_sequence", "int", "sequence of its first record in the log, -1 for none"),
    Column("last_sequence", "int", "sequence of its last record, -1 for none"),
    Column(
        "gap_count",
        "int",
        "batches with a gap between the sequence of the previous batch and theirs, or with a new epoch that does not start at 0; null without an id",
    ),
    Column(
        "duplicate_count", "int", "batches whose sequence repeats or goes back, in the same epoch; null without an id"
    ),
    Column("batch_count", "int", "its batches, without end markers"),
    Column("record_count", "int", "records in them"),
    Column("mean_batch_bytes", "int", "mean size of its batches in bytes"),
    Column("codecs", "string", "the codecs in use, with the number of batches of each"),
    Column("first_timestamp", "timestamp", "ms; base timestamp of its first batch, null if it has none"),
    Column("last_timestamp", "timestamp", "ms; largest timestamp of its last batch"),
    Column("size_bytes", "int", "bytes of its batches"),
    Column("transactional_batch_count", "int", "batches that are part of transactions"),
    Column("magics", "string", "the formats in use, such as 0,1,2"),
    Column("path", "string", "the partition's directory"),
    Column(
        "repeated_batch_count",
        "int",
        "batches without an id that have the CRC, size, times and record count of one of the 4,096 before them; null with an id",
    ),
)
REPEATED_RECORDS = row_schema(
    "repeated_records",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column(
        "kind",
        "string",
        "sequence, batch, new_producer, new_epoch, same_producer, other_producer or unknown_producer: see producers.md",
    ),
    Column("is_duplicate", "bool", "whether the sequence proves it: the same producer, epoch and sequence"),
    Column("record_count", "int", "consecutive records that repeat consecutive earlier ones: equal keys and values"),
    Column("first_offset", "int", "offset of the first repeat"),
    Column("last_offset", "int", "offset of the last repeat"),
    Column("earlier_first_offset", "int", "offset of the record that the first one repeats"),
    Column("earlier_last_offset", "int", "offset of the record that the last one repeats"),
    Column(
        "time_apart_ms",
        "int",
        "from the timestamp of the earlier record to that of the first repeat; null if either has none",
    ),
    Column("producer_id", "int", "producer of the repeats, -1 for none"),
    Column("producer_epoch", "int", "its epoch, -1 for none"),
    Column("first_sequence", "int", "sequence of the first repeat, -1 for none"),
    Column("transactional_id", "string", "its transactional id, from __transaction_state; null without that topic"),
    Column("first_timestamp", "timestamp", "timestamp of the first repeat"),
    Column("earlier_producer_id", "int", "producer of the earlier records, -1 for none"),
    Column("earlier_producer_epoch", "int", "its epoch, -1 for none"),
    Column("earlier_first_sequence", "int", "sequence of the first earlier record, -1 for none"),
    Column("earlier_transactional_id", "string", "its transactional id"),
    Column("earlier_first_timestamp", "timestamp", "timestamp of the first earlier record"),
    Column("path", "string", "the partition's directory"),
    Column("command", "string", "the command that shows the records"),
)
IMAGE = row_schema(
    "image",
    Column("path", "string", "the metadata partition that was read"),
    Column("cluster_id", "string", "from meta.properties"),
    Column("node_id", "int", "node id of the log directory, from meta.properties"),
    Column("last_offset", "int", "offset of the last record that was read"),
    Column("last_timestamp", "timestamp", "timestamp of that record"),
    Column("snapshot", "string", "the snapshot with which the image starts, null for none"),
    Column("start_offset", "int", "offset from which on the log was replayed"),
    Column("record_count", "int", "records of the log that were replayed"),
    Column("leader", "int", "the active controller: node id of the quorum's leader, null if no record names it"),
    Column("leader_epoch", "int", "its epoch"),
    Column("voters", "any", "node ids of the voters, null if they are in the controllers' configuration"),
    Column("next_producer_id", "int", "the first producer id that is not assigned to a broker yet"),
)
QUORUM_LOG = row_schema(
    "quorum_log",
    Column("node_id", "int", "the node of a metadata log, or a voter without a log here"),
    Column("is_voter", "bool", "whether the node votes; null if the voters are not known"),
    Column("can_lead", "bool", "whether the node can be elected; null where that depends on voters that are not here"),
    Column("last_epoch", "int", "leader epoch of the last record"),
    Column("log_end_offset", "int", "the offset after the last record; null for a log that is not here"),
    Column("shared_end_offset", "int", "before this offset, the log is the same as the best one"),
    Column("leader", "int", "the leader in quorum-state"),
    Column("leader_epoch", "int", "the epoch in quorum-state"),
    Column("voted_for", "int", "the node that this one voted for in that epoch, by quorum-state"),
    Column("path", "string", "the metadata partition"),
    Column("roles", "any", "broker, controller or both, by the metadata"),
    Column("directory_id", "string", "id of the log directory, from meta.properties"),
    Column("snapshot_end_offset", "int", "end offset of the newest snapshot, null for none; what it holds is committed"),
    Column("snapshot_epoch", "int", "its epoch"),
    Column("dropped_from", "int", "the offset from which on a start truncates the log, for damage; null for none"),
    Column("refusal", "string", "why the node does not start on this log; null if nothing is known"),
)
QUORUM = row_schema(
    "quorum",
    Column("cluster_id", "string", "from meta.properties"),
    Column("is_intact", "bool", "whether a majority of the voters starts on its logs; null where absent ones decide it"),
    Column("is_dynamic", "bool", "whether the voters are in the metadata log (KIP-853), and not in configurations"),
    Column("voters", "any", "node ids of the voters, null if they are not known"),
    Column("absent_voters", "any", "those whose logs are not at the paths"),
    Column("can_lead", "any", "node ids of the voters here that can be elected without the absent ones"),
    Column("majority_end_offset", "int", "before this offset, a majority of the voters has the records of the best copy"),
    Column("possible_end_offset", "int", "before this offset, a majority may have them, with absent voters"),
    Column("log_end_offset", "int", "the end of the best copy"),
    Column("path", "string", "the best copy: that with the latest leader epoch, and then the furthest end"),
    Column("reasons", "any", "why it is the best"),
)
QUORUM_VOTER = row_schema(
    "quorum_voter",
    Column("node_id", "int", "the voter"),
    Column("directory_id", "string", "the directory id in the voter set; null in a static quorum"),
    Column("endpoints", "any", "its listeners, each as NAME://HOST:PORT; of a static quorum by its registration"),
    Column("kraft_versions", "any", "the lowest and highest kraft.version that it supports; null in a static quorum"),
    Column("is_dynamic", "bool", "whether the voters are in the metadata log (KIP-853), and not in configurations"),
    Column("is_here", "bool", "whether its log is at the paths"),
)
LOST_CHANGE = row_schema(
    "lost_change",
    Column("kind", "string", "what the metadata lacks: a leader_epoch, a partition, a replica, or a topic"),
    Column("topic", "string", "the topic"),
    Column("partition", "int", "partition number"),
    Column("topic_id", "string", "the topic id in partition.metadata; null without one"),
    Column("epoch_on_disk", "int", "the last leader epoch in the directory; null without one"),
    Column("epoch_in_metadata", "int", "the leader epoch in the metadata; null if it has none"),
    Column("node_id", "int", "the node of the directory"),
    Column("certainty", "string", "proven, or possible: the topic may have been deleted, or the metadata is damaged"),
    Column("path", "string", "the partition's directory"),
)
TOPIC = row_schema(
    "topic",
    Column("topic", "string", "the topic"),
    Column("topic_id", "string", "its id"),
    Column("partition_count", "int", "partitions"),
    Column("replication_factor", "int", "the largest number of replicas of a partition"),
    Column("internal", "bool", "a topic of Kafka's own"),
    Column("marked_deleted", "bool", "deleted from the cluster, but its directories here are not deleted yet"),
    Column("configs", "any", "configs that are set for the topic itself"),
)
ASSIGNMENT = row_schema(
    "assignment",
    Column("topic", "string", "the topic"),
    Column("topic_id", "string", "its id"),
    Column("partition", "int", "partition number"),
    Column("leader", "int", "node id of the leader, null for none"),
    Column("leader_epoch", "int", "leader epoch"),
    Column("partition_epoch", "int", "counts the changes of the partition"),
    Column("replicas", "any", "node ids of the replicas, the preferred leader first"),
    Column("isr", "any", "node ids of the replicas that are in sync"),
    Column("adding_replicas", "any", "replicas that a reassignment adds"),
    Column("removing_replicas", "any", "replicas that a reassignment removes"),
    Column(
        "eligible_leader_replicas",
        "any",
        "replicas that can become leader without loss (KIP-966), null if the cluster does not record them",
    ),
    Column("last_known_elr", "any", "the last known eligible leader replicas"),
    Column("leader_recovery_state", "string", "RECOVERED, or RECOVERING after an unclean election"),
    Column("directories", "any", "id of the log directory of each replica, null if none is assigned"),
)
BROKER = row_schema(
    "broker",
    Column("node_id", "int", "node id"),
    Column("role", "string", "broker or controller; a node that is both has two rows"),
    Column("rack", "string", "its rack"),
    Column("fenced", "bool", "registered, but not serving"),
    Column("in_controlled_shutdown", "bool", "stopping"),
    Column("broker_epoch", "int", "offset of the record that registered it"),
    Column("incarnation_id", "string", "id of this run of its process"),
    Column("voter", "bool", "votes in the quorum; null if the voters are in the controllers' configuration"),
    Column("leader", "bool", "leads the quorum: the active controller"),
    Column("endpoints", "any", "its listeners"),
    Column("log_dirs", "any", "ids of its log directories"),
    Column("cordoned_log_dirs", "any", "ids of those that get no new partitions"),
)
CONFIG = row_schema(
    "config",
    Column("resource_type", "string", "topic, broker, client-metrics or group"),
    Column("resource_name", "string", "topic, node id, or other name; null for the default of all brokers"),
    Column("name", "string", "the config"),
    Column("value", "string", "its value, (hidden) for a secret"),
    Column("is_sensitive", "bool", "whether the value is a secret, or may be one"),
)
FEATURE = row_schema(
    "feature",
    Column("name", "string", "the feature, such as metadata.version"),
    Column("level", "int", "its finalized level"),
    Column("release", "string", "the release of a metadata.version, such as 4.3-IV0"),
)
ACL = row_schema(
    "acl",
    Column("resource_type", "string", "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
    Column("resource_name", "string", "the resource"),
    Column("pattern_type", "string", "LITERAL or PREFIXED"),
    Column("principal", "string", "who"),
    Column("host", "string", "from where"),
    Column("operation", "string", "what"),
    Column("permission_type", "string", "ALLOW or DENY"),
    Column("id", "string", "id of the entry"),
)
QUOTA = row_schema(
    "quota",
    Column("entity", "any", "user, client-id or ip, null for the default of the kind"),
    Column("key", "string", "the quota"),
    Column("value", "any", "its value"),
)
CREDENTIAL = row_schema(
    "credential",
    Column("kind", "string", "scram or delegation_token"),
    Column("principal", "string", "user, or owner of the token"),
    Column("mechanism", "string", "SCRAM mechanism"),
    Column("iterations", "int", "SCRAM iterations"),
    Column("expires", "timestamp", "when the token expires"),
)
METADATA_CHANGE = row_schema(
    "metadata_change",
    Column("offset", "int", "offset of the record"),
    Column("timestamp", "timestamp", "its time"),
    Column("record_type", "string", "Kafka's name of the record type; `type` is the name of the row"),
    Column("subject", "string", "what changed: topic, partition, broker, config, ..."),
    Column("before", "any", "the changed fields before the record; null if the subject did not exist"),
    Column("after", "any", "the changed fields after the record; null if the subject no longer exists"),
)
SCHEMA_VERSION = row_schema(
    "schema_version",
    Column("subject", "string", "subject in the schema registry"),
    Column("version", "int", "version of the subject"),
    Column("id", "int", "id of the schema, as frames name it"),
    Column("kind", "string", "avro, protobuf or json-schema, or what else the registry has"),
    Column("state", "string", "active; deleted, but still there for its id; purged, but still in the log"),
    Column("compatibility", "string", "compatibility that is set for the subject or for all; null if none is"),
    Column("timestamp", "timestamp", "when it got that state"),
    Column("offset", "int", "offset of the record that set it"),
    Column("guid", "string", "id of the schema in every registry, as headers name it"),
    Column("references", "any", "schemas that it needs: name, subject, version"),
    Column("registry", "string", "cluster id, or directory of the topic"),
    Column("schema", "string", "the schema itself"),
)
SEGMENT_RETENTION = row_schema(
    "segment_retention",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    SEGMENT_COLUMN,
    Column("size_bytes", "int", "bytes of the .log file"),
    Column(
        "largest_timestamp",
        "timestamp",
        "the segment's largest timestamp, to which retention.ms applies; null if no record has one",
    ),
    Column("largest_timestamp_offset", "int", "the first record with that timestamp"),
    Column(
        "retained_by",
        "string",
        "what keeps the segment: time, size, future_timestamp, preceding_segment, high_watermark, active, compact, unlimited, no_policy or snapshots; null if the broker's next check deletes it",
    ),
    Column("deletable_at", "timestamp", "the earliest time at which retention.ms allows its deletion; null for never"),
    Column(
        "config_source", "string", "where each config comes from: topic, broker, cluster, properties, option, default, internal_topic or cleaner_checkpoint"
    ),
    Column(
        "deletable_by", "string", "why the next check deletes it: time, size or log_start_offset; null if it is kept"
    ),
    Column("held_by", "int", "for preceding_segment, base offset of the earlier segment that keeps it"),
    Column(
        "bytes_until_deletable",
        "int",
        "how many bytes the log must grow until retention.bytes allows its deletion; null without a limit",
    ),
    Column(
        "modified", "timestamp", "the file's modification time, which is used if no record has a timestamp; else null"
    ),
    Column("retention_ms", "int", "retention.ms in force, -1 for none"),
    Column("retention_bytes", "int", "retention.bytes in force, -1 for none"),
    Column("cleanup_policy", "string", "cleanup.policy in force"),
    Column("log_start_offset", "int", "log start offset of the partition"),
    Column("high_watermark", "int", "high watermark of the partition, null if unknown"),
    PATH_COLUMN,
)
RETENTION_TOTAL = row_schema(
    "retention_total",
    TOPIC_COLUMN,
    Column("partition_count", "int", "partitions"),
    Column("segment_count", "int", "segments"),
    Column("size_bytes", "int", "bytes of their .log files"),
    Column("deletable_count", "int", "segments that the broker's next check deletes"),
    Column("deletable_bytes", "int", "their bytes"),
    Column("next_deletable_at", "timestamp", "when retention.ms allows the deletion of the next segment after these"),
    Column("retained", "any", "bytes that are kept, by the value of retained_by"),
)
SCRUB_DIRECTORY = row_schema(
    "scrub_directory",
    PATH_COLUMN,
    Column("node_id", "int", "node id of meta.properties; null without one"),
    Column("partition_count", "int", "partitions"),
    Column("segment_count", "int", "segments"),
    Column("size_bytes", "int", "bytes of their .log files"),
    Column("overdue_count", "int", "segments that were not verified within the period"),
    Column("overdue_bytes", "int", "their bytes"),
    Column("oldest_verified_at", "timestamp", "when the longest unverified of the verified segments was verified"),
    Column("finding_count", "int", "open findings"),
)
SCRUBBED_FINDING = row_schema(
    "scrubbed_finding",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("code", "string", "stable code, see finding-codes.md"),
    Column("severity", "string", "info, warning, error or fatal"),
    PATH_COLUMN,
    Column("position", "int", "byte position in the log; null if the whole of it is meant"),
    Column("offset", "int", "record offset, if there is one"),
    Column("found_at", "timestamp", "when it was found"),
    Column("seen_at", "timestamp", "when it was found the last time"),
    Column("gone_at", "timestamp", "when it was not found again; null while it is open"),
    Column("message", "string", "what is wrong"),
)
SCRUB_DIFFERENCE = row_schema(
    "scrub_difference",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("first_offset", "int", "first offset of the range whose batches differ"),
    Column("last_offset", "int", "last offset of the range"),
    Column("path_1", "string", "log with the first offset, of the first state"),
    Column("path_2", "string", "log with the first offset, of the second state"),
)
CLEANER = row_schema(
    "cleaner",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column(
        "cleaner_offset",
        "int",
        "first dirty offset, from the cleaner-offset-checkpoint; null if the log was never cleaned",
    ),
    Column("dirty_bytes", "int", "bytes of the segments that can be cleaned and have not been"),
    Column("clean_bytes", "int", "bytes of the segments before them"),
    Column("dirty_ratio", "any", "dirty bytes as a fraction of dirty and clean bytes"),
    Column(
        "would_keep_bytes",
        "int",
        "bytes that a run now would keep of the segments that it rewrites; null if nothing is dirty",
    ),
    Column("would_free_bytes", "int", "bytes that it would free"),
    Column("tombstone_count", "int", "tombstones that it would keep"),
    Column(
        "delete_horizon",
        "timestamp",
        "the earliest time at which a later run may remove tombstones or markers; null for none yet",
    ),
    Column(
        "blocked_by",
        "string",
        "why the cleaner does not clean the log: dirty_ratio, active_segment, last_stable_offset, high_watermark, min_compaction_lag, damaged_batch or cleanup_policy; null for nothing",
    ),
    Column("first_dirty_offset", "int", "offset at which a run would start"),
    Column("first_uncleanable_offset", "int", "offset at which it would end at the latest"),
    Column("bound_by", "string", "what limits the range to that offset"),
    Column("uncleanable_bytes", "int", "bytes of the segments from that offset on"),
    Column("last_stable_offset", "int", "last stable offset, or the high watermark"),
    Column("would_clean_to", "int", "the first dirty offset after the run"),
    Column("record_count", "int", "records in the segments that it rewrites"),
    Column("would_keep_records", "int", "records that it would keep"),
    Column("key_count", "int", "keys in the dirty part"),
    Column("is_map_full", "bool", "the cleaner's buffer has no room for all keys, so it needs more than one run"),
    Column("is_estimate", "bool", "the bytes to keep are an estimate: compressed batches would be rebuilt"),
    Column(
        "config_source", "string", "where each config comes from: topic, broker, cluster, properties, option, default, internal_topic or cleaner_checkpoint"
    ),
    Column("path", "string", "the partition's directory"),
)
DIVERGENCE = row_schema(
    "divergence",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column(
        "kind",
        "string",
        "identical, behind, diverged, or different_bytes: the same records in other bytes, compacted away, or unreadable in one replica",
    ),
    Column("offset", "int", "the first offset where the replicas differ in this way, null for identical ones"),
    Column(
        "leader_epoch",
        "any",
        "for each replica the leader epoch at that offset, null if it has none; for identical replicas, the latest epoch",
    ),
    Column("log_end_offset", "any", "for each replica the offset after the last batch"),
    Column("unique_from", "any", "for each replica the first offset whose record no other replica has, null for none"),
    Column("unique_to", "any", "the last of these offsets"),
    Column(
        "lost_if_elected",
        "int",
        "the number of offsets of the other replicas here that are lost if the replica to elect is elected; null if none here can be elected",
    ),
    Column("damaged", "any", "for each replica the ranges [first, last] of offsets that cannot be read"),
    Column("replicas", "any", "the directories of the replicas, in the order of all lists of this row"),
    Column("node_ids", "any", "the node ids from meta.properties"),
    Column("topic_id", "string", "topic id from partition.metadata, null for none"),
    Column("log_start_offset", "any", "for each replica the first offset that a broker would serve"),
    Column("high_watermark", "any", "for each replica the high watermark of its checkpoint, null for none"),
    Column(
        "truncate_to",
        "any",
        "for each replica, if it is the leader, the offsets to which Kafka truncates the others, null for itself",
    ),
    Column(
        "elect_node_id",
        "int",
        "the node whose election loses least of the replicas here; null if its id is not known, if none here is assigned, and for the metadata log, whose controllers elect by themselves",
    ),
    Column(
        "missing_node_ids",
        "any",
        "the nodes that should have a replica, by the newest metadata at hand, and have none here; null if that is not known",
    ),
    Column("leader", "int", "node id of the leader by the same metadata, null for none"),
    Column("isr", "any", "node ids of the replicas that are in sync, by the same metadata"),
    Column("eligible_leader_replicas", "any", "replicas that can become leader without loss (KIP-966), by the same metadata"),
)
REPLICA = row_schema(
    "replica",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("path", "string", "the replica's directory"),
    Column("node_id", "int", "node id from meta.properties, null for none"),
    Column(
        "kind",
        "string",
        "behind, diverged, different_bytes or identical, compared with the best replica, the one to elect; null for that one",
    ),
    Column("offset", "int", "the first offset of that difference"),
    Column("elect", "bool", "whether this replica can be elected, and its election loses least of those here"),
    Column("log_start_offset", "int", "the first offset that a broker would serve"),
    Column("log_end_offset", "int", "the offset after the last batch"),
    Column("high_watermark", "int", "from the replication-offset-checkpoint, null for none"),
    Column("leader_epoch", "int", "the latest leader epoch"),
    Column("epochs", "any", "[leader epoch, start offset] of each epoch, from the checkpoint and from the batches"),
    Column("unique_from", "int", "the first offset whose record no other replica has, null for none"),
    Column("unique_to", "int", "the last of these offsets"),
    Column("unique_count", "int", "the number of these offsets"),
    Column(
        "lost_if_elected",
        "int",
        "the number of offsets of the other replicas here that are lost if this one is elected; null if it cannot be elected",
    ),
    Column("lost_from", "int", "the first offset whose record another replica has and this one lacks, null for none"),
    Column("lost_to", "int", "the last of these offsets"),
    Column("lost_count", "int", "the number of these offsets"),
    Column(
        "lost_committed",
        "any",
        "[first, last] of those of them that are committed: offsets below the high watermark of a replica that has them",
    ),
    Column("lost_committed_count", "int", "the number of these offsets"),
    Column(
        "truncate_to",
        "int",
        "the offset to which Kafka truncates this replica when the one to elect leads; null for that one",
    ),
    Column("damaged", "any", "ranges [first, last] of offsets that cannot be read"),
    Column("compacted_count", "int", "records of others that compaction removed here"),
    Column("size_bytes", "int", "bytes of the .log files"),
    Column("topic_id", "string", "topic id from partition.metadata, null for none"),
)
GROUP = row_schema(
    "group",
    Column("group", "string", "the group's id"),
    Column("protocol", "string", "classic, consumer, share or streams"),
    Column("state", "string", "Empty, Stable, Assigning, Reconciling, NotReady or Dead, as far as the log shows it"),
    Column("generation", "int", "generation of a classic group, epoch of other groups; null for none"),
    Column("member_count", "int", "members of the group in the log"),
    Column("leader", "string", "member id of the leader of a classic group, null for none"),
    Column(
        "committed_partitions", "int", "partitions with a committed offset, or with a start offset of a share group"
    ),
    Column("total_lag", "int", "sum of the known lags, without those below 0; null if none is known"),
    Column("partitions_without_lag", "int", "committed partitions whose lag is not known"),
    Column(
        "partitions_out_of_range", "int", "committed partitions whose offset is outside their log, see group_offset"
    ),
    Column("pending_partitions", "int", "partitions with an offset in a transaction that has not ended"),
    Column("last_commit_timestamp", "timestamp", "time of the last commit in the log, including aborted commits"),
    Column("commit_count", "int", "commits in the log"),
    Column("commits_per_hour", "int", "rate of commits from the first to the last, null for fewer than two"),
    Column("record_count", "int", "records of the group in the log, of all kinds"),
    Column("size_bytes", "int", "bytes of these records, uncompressed"),
    Column("coordinator_partition", "int", "partition of __consumer_offsets that holds the group"),
    Column(
        "deleted_timestamp", "timestamp", "when a Dead group was deleted: its last tombstone; null for other groups"
    ),
)
_GROUP = Column("group", "string", "the group's id")
_COMMIT_PLACE = (
    Column("path", "string", "the log with the commit"),
    Column("position", "int", "byte position of its batch in the log"),
    Column("record_offset", "int", "offset of the commit's record in the coordinator's partition"),
)
GROUP_OFFSET = row_schema(
    "group_offset",
    _GROUP,
    Column("topic", "string", "topic; for a share group the topic id, if its name is not known from the paths"),
    Column("partition", "int", "partition number"),
    Column("offset", "int", "committed offset, or start offset of a share group; null if there is only a pending one"),
    Column("leader_epoch", "int", "leader epoch of the last consumed record, null for none"),
    Column("metadata", "string", "metadata that the consumer committed with the offset"),
    Column("commit_timestamp", "timestamp", "time of the commit"),
    Column("expire_timestamp", "timestamp", "when it expires; null unless an old client set it"),
    Column("log_end_offset", "int", "log end offset of the partition, null if its log is not at the paths"),
    Column(
        "high_watermark",
        "int",
        "high watermark of the partition, from the replication-offset-checkpoint; null for none",
    ),
    Column(
        "lag",
        "int",
        "log end offset minus offset; below 0 for an offset past the log end; for a share group, without the records that it delivered past the offset",
    ),
    Column(
        "out_of_range",
        "string",
        "past_log_end or before_log_start for an offset outside the log at the paths, at which a consumer gets OffsetOutOfRange; null for others",
    ),
    Column("pending_offset", "int", "offset committed in a transaction that has not ended, null for none"),
    Column("pending_producer_id", "int", "producer of that transaction"),
    *_COMMIT_PLACE,
)
GROUP_COMMIT = row_schema(
    "group_commit",
    _GROUP,
    Column("topic", "string", "topic"),
    Column("partition", "int", "partition number"),
    Column("offset", "int", "committed offset, null for a tombstone"),
    Column("leader_epoch", "int", "leader epoch of the last consumed record, null for none"),
    Column("metadata", "string", "metadata that the consumer committed with the offset"),
    Column("commit_timestamp", "timestamp", "time of the commit"),
    Column(
        "outcome",
        "string",
        "committed, aborted or open for a commit in a transaction; plain; or deleted for a tombstone",
    ),
    Column("producer_id", "int", "producer of the transaction, null for none"),
    *_COMMIT_PLACE,
)
DISK_USAGE = row_schema(
    "disk_usage",
    Column("by", "string", "topic, codec or age"),
    Column(
        "name", "string", "the topic, the codec, or the age of a segment's largest timestamp; null for all other files"
    ),
    Column("allocated_bytes", "int", "bytes that the file system has allocated, as du counts them"),
    Column("percent", "int", "of the allocated bytes of all rows"),
    Column(
        "size_bytes",
        "int",
        "the lengths of the files, which are larger than the allocated bytes for sparse files such as preallocated indexes",
    ),
    Column("log_bytes", "int", "bytes of the .log files of its segments; for a codec, bytes of its batches"),
    Column(
        "leftover_bytes",
        "int",
        "allocated bytes of files marked .deleted, .cleaned or .swap and directories marked -delete, which a broker deletes, and of directories marked -stray, which it keeps",
    ),
    Column("partition_count", "int", "partitions; replicas on several nodes count once"),
    Column("segment_count", "int", "segments; for a codec, segments with a batch of that codec"),
    Column(
        "estimated_bytes", "int", "with --estimate: log_bytes after recompression; null if nothing can be recompressed"
    ),
    Column(
        "saved_bytes",
        "int",
        "with --estimate: allocated bytes that recompression would free, negative if logs would grow",
    ),
)
REPORT_PARTITION = row_schema(
    "report_partition",
    *PARTITION.columns,
    Column("node_id", "int", "node id from meta.properties, null for none"),
    Column("record_count", "int", "records in the live segments"),
    Column(
        "state",
        "string",
        "fatal, error or warning: the most severe finding; marked: a directory that a broker will delete or replace; differs: the replicas of the partition differ; empty; else sound",
    ),
    Column("finding_count", "int", "findings about it, of all severities"),
)
TOPIC_USAGE = row_schema(
    "topic_usage",
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
    Column(
        "skew", "any", "its records divided by the mean of all partitions here: 1 is even; null for a single partition"
    ),
    Column("finding_count", "int", "findings about it, of all severities"),
    Column(
        "next_deletable_at", "timestamp", "when retention.ms allows the deletion of the next segment; null for never"
    ),
    Column("deletable_bytes", "int", "bytes that the broker's next check deletes"),
)
FINDING_SUMMARY = row_schema(
    "finding_summary",
    Column("severity", "string", "info, warning, error or fatal"),
    Column("code", "string", "stable code, see the table of finding codes"),
    Column("count", "int", "findings with this code"),
    Column("partition_count", "int", "partition directories with such findings"),
    Column("meaning", "string", "what it means"),
    Column("broker", "string", "what a broker does in this case"),
    Column("next_step", "string", "what to do about it"),
    Column("places", "string", "the first partitions or files with such findings, each with what is lost there"),
)
DIAGNOSIS = row_schema(
    "diagnosis",
    Column("rank", "int", "1 for the most urgent, and so on"),
    Column("severity", "string", "warning, error or fatal"),
    Column("question", "string", "the command that shows more about it"),
    Column("subject", "string", "the partition, node, group or file"),
    Column("sentence", "string", "what is wrong"),
    Column("evidence_path", "string", "the file or directory that shows it"),
    Column("evidence_offset", "int", "the record offset there"),
    Column("command", "string", "what to run next"),
    Column("code", "string", "stable code of the diagnosis"),
)
TIMELINE_EVENT = row_schema(
    "timeline_event",
    Column("timestamp", "timestamp", "when; for damage, the timestamp of the batch at or before it"),
    Column("kind", "string", "damage, transaction, leader_epoch, metadata or segment"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("offset", "int", "offset of the first record, null for none"),
    Column("detail", "string", "description of the event"),
    Column("severity", "string", "info, warning, error or fatal"),
    PATH_COLUMN,
)
BYTES_BY_TIME = row_schema(
    "bytes_by_time",
    TOPIC_COLUMN,
    Column("timestamp", "timestamp", "start of the interval"),
    Column("duration_ms", "int", "length of the interval"),
    Column("size_bytes", "int", "bytes of the batches whose largest timestamp is in it"),
    Column("record_count", "int", "their records"),
)
BYTES_BY_OFFSET = row_schema(
    "bytes_by_offset",
    Column("path", "string", "the partition's directory"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("first_offset", "int", "first offset of the range"),
    Column("last_offset", "int", "last offset of the range"),
    Column("size_bytes", "int", "bytes of the batches that start in it"),
)
DAMAGED_PLACE = row_schema(
    "damaged_place",
    Column("path", "string", "the partition's directory"),
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("code", "string", "the finding's code"),
    Column("severity", "string", "warning, error or fatal"),
    Column("first_offset", "int", "the finding's offset, or the offset of the batch at or before it"),
    Column("last_offset", "int", "the last lost offset, else the same as first_offset"),
    Column("timestamp", "timestamp", "the timestamp of the batch at or before it"),
)
BATCH_SIZES = row_schema(
    "batch_sizes",
    Column("codec", "string", "none, gzip, snappy, lz4 or zstd"),
    Column("least_bytes", "int", "the smallest size of the class; the next class starts at twice this size"),
    Column("batch_count", "int", "batches"),
    Column("size_bytes", "int", "their bytes"),
    Column("record_count", "int", "their records"),
)
TRANSACTION_TOTAL = row_schema(
    "transaction_total",
    TOPIC_COLUMN,
    PARTITION_COLUMN,
    Column("open_count", "int", "open transactions"),
    Column("hanging_count", "int", "open transactions that no coordinator will end"),
    Column("committed_count", "int", "transactions that committed"),
    Column("aborted_count", "int", "transactions that aborted"),
    Column("last_stable_offset", "int", "last stable offset, where read_committed consumers stop"),
    Column("log_end_offset", "int", "the offset after the last batch"),
)
FILE_BYTES = row_schema(
    "file_bytes",
    PATH_COLUMN,
    Column("position", "int", "first byte"),
    Column("hex", "string", "the bytes in hexadecimal"),
    Column("text", "string", "the same as ASCII, with a dot for each other byte"),
    Column("code", "string", "the finding's code"),
)
#: A run of a command, in the table ``runs`` of a report set.
RUN = row_schema(
    "run",
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
)
#: The names of the DECODED_COLUMNS.
DECODED_NAMES = frozenset(column.name for column in DECODED_COLUMNS)
TABLE_COLUMN = row_schema(
    "table_column",
    Column("table", "string", "a table of sql"),
    Column("name", "string", "the column"),
    Column("sql_type", "string", "its type"),
    Column("meaning", "string", "what it holds"),
)
#: All row types, in the order of the documentation.
SCHEMAS = tuple(each for each in tuple(globals().values()) if isinstance(each, RowSchema))


@cache
def record_schema(extra: frozenset[str] = frozenset()) -> RowSchema:
    """RECORD with the EXTRA_RECORD_COLUMNS and DECODED_COLUMNS whose names are in ``extra``."""
    added = tuple(column for column in (*EXTRA_RECORD_COLUMNS, *DECODED_COLUMNS) if column.name in extra)
    return RowSchema(RECORD.type, RECORD.columns + added) if added else RECORD
