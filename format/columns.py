"""The typed row schemas that tables, text, JSON lines, CSV, the documentation, Parquet and Spark all derive from.

Names and their order are promises of the command line's contract. Column types:

``int``        an integer that fits in 64 bits, signed
``bool``       true or false
``string``     text that this program or Kafka's own naming rules made
``timestamp``  epoch milliseconds, an integer
``bytes``      lossless bytes: in JSON a string when valid UTF-8, else ``{"base64": …}``
``headers``    a list of (key bytes, value bytes or None), in order
``any``        a JSON value, for fields whose type depends on the finding or the file

A column of batches or records also says how it is filled. Rows, lines of text and JSON, CSV, Arrow and Spark all take
its values from that: a new column is one line here, and one expression in ``format.rows.column_values`` where none of
the kinds that exist fits.
"""

from __future__ import annotations

from functools import cache

from format import layout
from format.value_class import value_class


@value_class
class Fill:
    """Where a column of batches or records gets its values.

    ``kind`` names an expression of ``format.rows.column_values``; the compiled writer of lines knows the same kinds
    (``FIELDS`` of the kernel). ``source`` is the column of the batch or record table, the bit of the attributes, or the
    field of the location that the expression reads.
    """

    kind: str
    source: str | int = ""


@value_class
class Column:
    """One column: its name, its type (see the module's list), what it holds, and for batches and records its values."""

    name: str
    type: str
    meaning: str
    fill: Fill | None = None


@value_class
class RowSchema:
    """The columns of one row type; ``type`` is the value of JSON's ``"type"`` key."""

    type: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


_TOPIC = Column("topic", "string", "topic, from the directory's name", Fill("constant", "topic"))
_PARTITION = Column("partition", "int", "partition number, from the directory's name", Fill("constant", "partition"))
_SEGMENT = Column("segment_base_offset", "int", "base offset in the segment's file name", Fill("constant", "base_offset"))
_PATH = Column("path", "string", "the file")

RECORD = RowSchema(
    "record",
    (
        _TOPIC,
        _PARTITION,
        Column("offset", "int", "the record's offset", Fill("record-number", "offset")),
        Column("timestamp", "timestamp", "the record's timestamp in ms, null where the format has none", Fill("record-timestamp", "timestamp")),
        Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType", Fill("timestamp-type")),
        Column("magic", "int", "0, 1 or 2", Fill("number", "magic")),
        Column("codec", "string", "codec of the batch or wrapper: none, gzip, snappy, lz4 or zstd", Fill("codec")),
        Column("key", "bytes", "the key", Fill("record-bytes", "key_start")),
        Column("value", "bytes", "the value", Fill("record-bytes", "value_start")),
        Column("headers", "headers", "the headers, in order; null where the format has none", Fill("record-headers", "headers_start")),
        Column("leader_epoch", "int", "partition leader epoch of the batch", Fill("v2", "leader_epoch")),
        Column("producer_id", "int", "producer id of the batch, -1 for none", Fill("v2", "producer_id")),
        Column("producer_epoch", "int", "producer epoch of the batch, -1 for none", Fill("v2", "producer_epoch")),
        Column("sequence", "int", "the record's sequence, -1 for none", Fill("record-sequence")),
        Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
        Column("is_control", "bool", "a control record: a marker that clients never see", Fill("bit", layout.CONTROL_BIT)),
        Column("batch_base_offset", "int", "base offset of the batch", Fill("number", "base_offset")),
        _SEGMENT,
        Column("position", "int", "byte position in the file of the batch or outermost message", Fill("number", "position")),
        Column("size_bytes", "int", "bytes of the record itself, uncompressed", Fill("record-number", "size_bytes")),
    ),
)

#: Columns that rows of records have on request, behind the others.
EXTRA_RECORD_COLUMNS = (
    Column("path", "string", "the log file", Fill("constant", "path")),
    Column("is_below_log_start", "bool", "below the log start offset: consumers never see it; null where that offset is not known", Fill("record-below-log-start")),
)
#: The last column of rows with context.
IS_MATCH = Column("is_match", "bool", "whether the record matches, or is shown as it stands near one that does")


@cache
def record_schema(extra: frozenset[str] = frozenset()) -> RowSchema:
    """The columns of RECORD, and those of EXTRA_RECORD_COLUMNS that are named."""
    added = tuple(column for column in EXTRA_RECORD_COLUMNS if column.name in extra)
    return RowSchema(RECORD.type, RECORD.columns + added) if added else RECORD


BATCH = RowSchema(
    "batch",
    (
        _TOPIC,
        _PARTITION,
        _SEGMENT,
        Column("position", "int", "byte position in the file", Fill("number", "position")),
        Column("size_bytes", "int", "bytes on disk, the header included", Fill("number", "size_bytes")),
        Column("base_offset", "int", "offset of the first record", Fill("number", "base_offset")),
        Column("last_offset", "int", "offset of the last record, also where compaction dropped it", Fill("last-offset")),
        Column("record_count", "int", "records in the batch", Fill("count", "record_count")),
        Column("magic", "int", "0, 1 or 2", Fill("number", "magic")),
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd", Fill("codec")),
        Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType", Fill("timestamp-type")),
        Column("base_timestamp", "timestamp", "the first record's timestamp in ms; null when a delete horizon took its place", Fill("base-timestamp", "base_timestamp")),
        Column("max_timestamp", "timestamp", "the largest timestamp in ms", Fill("timed", "max_timestamp")),
        Column("leader_epoch", "int", "partition leader epoch", Fill("v2", "leader_epoch")),
        Column("producer_id", "int", "-1 for none", Fill("v2", "producer_id")),
        Column("producer_epoch", "int", "-1 for none", Fill("v2", "producer_epoch")),
        Column("base_sequence", "int", "sequence of the first record, -1 for none", Fill("v2", "base_sequence")),
        Column("is_transactional", "bool", "part of a transaction", Fill("bit", layout.TRANSACTIONAL_BIT)),
        Column("is_control", "bool", "holds control records", Fill("bit", layout.CONTROL_BIT)),
        Column("delete_horizon_ms", "timestamp", "when compaction may drop the batch's tombstones and markers; null for none", Fill("delete-horizon", "base_timestamp")),
        Column("crc", "int", "the CRC as stored", Fill("number", "crc")),
        Column("crc_valid", "bool", "whether the CRC matches the bytes; null where it was not computed", Fill("crc-valid")),
    ),
)

OFFSET_INDEX_ENTRY = RowSchema(
    "offset_index_entry",
    (
        _SEGMENT,
        Column("relative_offset", "int", "offset minus the segment's base offset"),
        Column("offset", "int", "the absolute offset"),
        Column("position", "int", "byte position in the segment"),
    ),
)
TIME_INDEX_ENTRY = RowSchema(
    "time_index_entry",
    (
        _SEGMENT,
        Column("timestamp", "timestamp", "ms"),
        Column("relative_offset", "int", "offset minus the segment's base offset"),
        Column("offset", "int", "the absolute offset"),
    ),
)
ABORTED_TXN = RowSchema(
    "aborted_txn",
    (
        _SEGMENT,
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
        _PATH,
        Column("epoch", "int", "leader epoch"),
        Column("start_offset", "int", "first offset of that epoch"),
    ),
)
CHECKPOINT_OFFSET = RowSchema(
    "checkpoint_offset",
    (
        _PATH,
        _TOPIC,
        _PARTITION,
        Column("offset", "int", "high watermark, recovery point, log start offset or first dirty offset, by the file's name"),
    ),
)
PROPERTY = RowSchema(
    "property",
    (
        _PATH,
        Column("name", "string", "the property's name"),
        Column("value", "any", "its value"),
    ),
)

FINDING = RowSchema(
    "finding",
    (
        Column("code", "string", "stable code, see the table of finding codes"),
        Column("severity", "string", "info, warning, error or fatal"),
        Column("certainty", "string", "proven, likely or possible"),
        _PATH,
        _TOPIC,
        _PARTITION,
        _SEGMENT,
        Column("position", "int", "first byte in the file"),
        Column("length", "int", "bytes"),
        Column("offset", "int", "record offset"),
        Column("message", "string", "what was found, in words"),
        Column("expected", "any", "what should be there"),
        Column("actual", "any", "what is there"),
        Column("next_step", "string", "what to do about it"),
        Column("lost_offsets", "any", "[first, last] of the offsets that cannot be read, null for none"),
        Column("caused_by", "any", "code, path, position and offset of the finding that this one follows from, null for none"),
    ),
)
STEP = RowSchema(
    "step",
    (
        Column("stage", "string", "segment, time_index, offset_index, scan or match"),
        _PATH,
        Column("position", "int", "byte position in that file"),
        Column("offset", "int", "the offset that the step found"),
        Column("detail", "string", "what the step did, in words"),
    ),
)
MATCH = RowSchema(
    "match",
    (
        _TOPIC,
        _PARTITION,
        Column("offset", "int", "the record's offset"),
        Column("timestamp", "timestamp", "the record's timestamp in ms"),
        _SEGMENT,
        Column("position", "int", "byte position of its batch in the segment"),
        Column("leader_epoch", "int", "partition leader epoch of its batch"),
        Column("visibility", "string", "who sees an offset: visible, read_uncommitted_only, aborted, control, not_replicated, below_log_start, compacted, damaged or past_end"),
        Column("is_control", "bool", "a control record: a marker that clients never see"),
        Column("is_transactional", "bool", "part of a transaction"),
        Column("transaction_state", "string", "open, committed or aborted; null outside transactions"),
        Column("producer_id", "int", "producer id of its batch, -1 for none"),
        Column("producer_epoch", "int", "producer epoch of its batch, -1 for none"),
        Column("batch_base_offset", "int", "base offset of its batch"),
        Column("crc_valid", "bool", "whether the CRC of its batch is that of the bytes"),
    ),
)
FILE_MATCH = RowSchema(
    "file_match",
    (
        _PATH,
        _TOPIC,
        _PARTITION,
        _SEGMENT,
        Column("record_count", "int", "records found in the file, null where the search stopped at the first"),
    ),
)
PARTITION = RowSchema(
    "partition",
    (
        _PATH,
        _TOPIC,
        _PARTITION,
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
        Column("notes", "string", "leftovers, orphans, damage seen on the way, and what the metadata log does not assign to the node"),
        Column("configs", "any", "configs that are set for the topic itself, from the metadata log; null where none is here"),
    ),
)
SEGMENT = RowSchema(
    "segment",
    (
        _PATH,
        _TOPIC,
        _PARTITION,
        _SEGMENT,
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
    ),
)
LOG_DIR = RowSchema(
    "log_dir",
    (
        _PATH,
        Column("cluster_id", "string", "from meta.properties"),
        Column("node_id", "int", "node or broker id from meta.properties"),
        Column("directory_id", "string", "from meta.properties"),
        Column("partition_count", "int", "partition directories, marked ones too"),
        Column("size_bytes", "int", "bytes of all files"),
        Column("clean_shutdown", "bool", "whether the clean-shutdown mark is there"),
        Column("lock_held", "bool", "whether a running process holds .lock; null where that cannot be known"),
        Column("notes", "string", "what does not belong here"),
    ),
)

WRITTEN_SEGMENT = RowSchema(
    "written_segment",
    (
        Column("path", "string", "the segment's file in the output"),
        _TOPIC,
        _PARTITION,
        _SEGMENT,
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
        _TOPIC,
        _PARTITION,
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
        _TOPIC,
        _PARTITION,
        _SEGMENT,
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

BOOT_STEP = RowSchema(
    "boot_step",
    (
        Column("action", "string", "refuse, offline, unknown, truncate, recover, rename, delete, create, rebuild_index, rebuild_snapshot or keep"),
        Column("path", "string", "the file or directory"),
        _TOPIC,
        _PARTITION,
        Column("offset", "int", "the offset at which it is done: where a log is cut, a segment begins or a snapshot stands"),
        Column("position", "int", "byte position in the file at which it is done"),
        Column("bytes", "int", "bytes that are read, cut or deleted"),
        Column("reason", "string", "why"),
        Column("broker_message", "string", "what the broker prints, as far as it does not change from start to start"),
        Column("kafka_class", "string", "the class, or class and method, of Kafka that decides"),
        Column("lost_offsets", "any", "[first, last] of the offsets below the high watermark that consumers lose, null for none"),
        Column("new_path", "string", "what it is renamed to; UNIQUE stands for 32 characters that the broker picks"),
        Column("log_start_offset", "int", "the log start offset after the start, in rows of partitions"),
        Column("log_end_offset", "int", "the log end offset after the start, in rows of partitions"),
    ),
)

TRANSACTION = RowSchema(
    "transaction",
    (
        _TOPIC,
        _PARTITION,
        Column("producer_id", "int", "the producer"),
        Column("producer_epoch", "int", "its epoch in the transaction's batches; of a lone marker, the marker's"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null where that is not there"),
        Column("state", "string", "open, aborted or committed, by the end marker in this partition"),
        Column("coordinator_state", "string", "state of the transactional id by name, such as Ongoing; of ended transactions only the producer's last one here has it"),
        Column("first_offset", "int", "offset of its first record; null for an end marker without records before it"),
        Column("last_offset", "int", "offset of the end marker; of an open transaction, of its last record"),
        Column("start_timestamp", "timestamp", "ms; base timestamp of its first batch, null where that is gone"),
        Column("last_timestamp", "timestamp", "ms; of the end marker, or of the last batch of an open transaction"),
        Column("timeout_ms", "int", "transaction.timeout.ms, from __transaction_state"),
        Column("record_count", "int", "its records in this partition"),
        Column("size_bytes", "int", "bytes of its batches in this partition, the end marker aside"),
        Column("is_hanging", "bool", "silent for longer than --max-timeout, and its coordinator does not know of it here; null where that cannot be said"),
        Column("abort_command", "string", "Kafka's command that aborts an open transaction on this partition"),
        Column("duration_ms", "int", "from its first batch to its end, or to --at or now"),
        Column("holds_last_stable_offset", "bool", "the oldest open transaction of the partition"),
        Column("last_stable_offset", "int", "where consumers of committed records stop in this partition"),
        Column("waiting_record_count", "int", "records from its first one on, those of others too; null where it ended"),
        Column("waiting_bytes", "int", "bytes of the batches that hold them"),
        Column("coordinator_epoch", "int", "of its end marker; of an open transaction, of the producer's marker before it"),
        Column("path", "string", "the partition's directory"),
        Column("segment_base_offset", "int", "of the segment with the first batch; of an ended transaction, with the marker"),
        Column("position", "int", "byte position of its first batch, or of a lone marker, in that batch's segment"),
    ),
)
IMAGE = RowSchema(
    "image",
    (
        Column("path", "string", "the metadata partition that was read"),
        Column("cluster_id", "string", "from meta.properties"),
        Column("node_id", "int", "the node that the metadata log lies on, from meta.properties"),
        Column("last_offset", "int", "offset of the last record that was read"),
        Column("last_timestamp", "timestamp", "its time"),
        Column("snapshot", "string", "the snapshot that the image starts from, null for none"),
        Column("start_offset", "int", "the log was replayed from this offset on"),
        Column("record_count", "int", "records of the log that were replayed"),
        Column("leader", "int", "the active controller: node id of the quorum's leader, null where no record says"),
        Column("leader_epoch", "int", "its epoch"),
        Column("voters", "any", "node ids of the voters, null where they are in the controllers' configuration"),
        Column("next_producer_id", "int", "the first producer id that no broker has got yet"),
    ),
)
TOPIC = RowSchema(
    "topic",
    (
        Column("topic", "string", "the topic"),
        Column("topic_id", "string", "its id"),
        Column("partition_count", "int", "partitions"),
        Column("replication_factor", "int", "replicas of the partition that has most"),
        Column("internal", "bool", "a topic of Kafka's own"),
        Column("marked_deleted", "bool", "removed from the cluster, but directories here are still to be deleted"),
        Column("configs", "any", "configs that are set for the topic itself"),
    ),
)
ASSIGNMENT = RowSchema(
    "assignment",
    (
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
        Column("eligible_leader_replicas", "any", "replicas that may lead without loss, null where the cluster keeps none"),
        Column("last_known_elr", "any", "the last of them that were known"),
        Column("leader_recovery_state", "string", "RECOVERED, or RECOVERING after an unclean election"),
        Column("directories", "any", "id of the log directory of each replica, null where none is assigned"),
    ),
)
BROKER = RowSchema(
    "broker",
    (
        Column("node_id", "int", "node id"),
        Column("role", "string", "broker or controller; a node that is both has two rows"),
        Column("rack", "string", "its rack"),
        Column("fenced", "bool", "registered, but not serving"),
        Column("in_controlled_shutdown", "bool", "stopping"),
        Column("broker_epoch", "int", "offset of the record that registered it"),
        Column("incarnation_id", "string", "id of this run of its process"),
        Column("voter", "bool", "votes in the quorum; null where the voters are in the controllers' configuration"),
        Column("leader", "bool", "leads the quorum: the active controller"),
        Column("endpoints", "any", "its listeners"),
        Column("log_dirs", "any", "ids of its log directories"),
        Column("cordoned_log_dirs", "any", "ids of those that take no new partitions"),
    ),
)
CONFIG = RowSchema(
    "config",
    (
        Column("resource_type", "string", "topic, broker, client-metrics or group"),
        Column("resource_name", "string", "topic, node id, or other name; null for the default of all brokers"),
        Column("name", "string", "the config"),
        Column("value", "string", "its value, (hidden) for a secret"),
        Column("is_sensitive", "bool", "whether the value is a secret, or may be one"),
    ),
)
FEATURE = RowSchema(
    "feature",
    (
        Column("name", "string", "the feature, such as metadata.version"),
        Column("level", "int", "its finalized level"),
        Column("release", "string", "the release of a metadata.version, such as 4.3-IV0"),
    ),
)
ACL = RowSchema(
    "acl",
    (
        Column("resource_type", "string", "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
        Column("resource_name", "string", "the resource"),
        Column("pattern_type", "string", "LITERAL or PREFIXED"),
        Column("principal", "string", "who"),
        Column("host", "string", "from where"),
        Column("operation", "string", "what"),
        Column("permission_type", "string", "ALLOW or DENY"),
        Column("id", "string", "id of the entry"),
    ),
)
QUOTA = RowSchema(
    "quota",
    (
        Column("entity", "any", "user, client-id or ip, null for the default of the kind"),
        Column("key", "string", "the quota"),
        Column("value", "any", "its value"),
    ),
)
CREDENTIAL = RowSchema(
    "credential",
    (
        Column("kind", "string", "scram or delegation_token"),
        Column("principal", "string", "user, or owner of the token"),
        Column("mechanism", "string", "SCRAM mechanism"),
        Column("iterations", "int", "SCRAM iterations"),
        Column("expires", "timestamp", "when the token expires"),
    ),
)
METADATA_CHANGE = RowSchema(
    "metadata_change",
    (
        Column("offset", "int", "offset of the record"),
        Column("timestamp", "timestamp", "its time"),
        Column("record_type", "string", "Kafka's name of the record type; `type` is the name of the row"),
        Column("subject", "string", "what changed: topic, partition, broker, config, ..."),
        Column("before", "any", "what differs, as it was; null for nothing"),
        Column("after", "any", "what differs, as it is since; null for nothing"),
    ),
)
SEGMENT_RETENTION = RowSchema(
    "segment_retention",
    (
        _TOPIC,
        _PARTITION,
        _SEGMENT,
        Column("size_bytes", "int", "bytes of the .log file"),
        Column("largest_timestamp", "timestamp", "the segment's largest timestamp, from which its time counts; null where no record has one"),
        Column("largest_timestamp_offset", "int", "the first record with that timestamp"),
        Column("retained_by", "string", "what keeps the segment: time, size, future_timestamp, preceding_segment, high_watermark, active, compact, unlimited, no_policy or snapshots; null where the broker's next check deletes it"),
        Column("deletable_at", "timestamp", "when it goes at the earliest by its time; null for never by time"),
        Column("config_source", "string", "where each config comes from: topic, broker, cluster, properties, option or default"),
        Column("deletable_by", "string", "why the next check deletes it: time, size or log_start_offset; null where it stays"),
        Column("held_by", "int", "base offset of the segment before it that keeps it, for preceding_segment"),
        Column("bytes_until_deletable", "int", "by how much the log must grow until it goes for the log's size; null without a limit"),
        Column("modified", "timestamp", "the file's modification time, which counts where no record has a timestamp; else null"),
        Column("retention_ms", "int", "retention.ms in force, -1 for none"),
        Column("retention_bytes", "int", "retention.bytes in force, -1 for none"),
        Column("cleanup_policy", "string", "cleanup.policy in force"),
        Column("log_start_offset", "int", "log start offset of the partition"),
        Column("high_watermark", "int", "high watermark of the partition, null where it is not known"),
        _PATH,
    ),
)
RETENTION_TOTAL = RowSchema(
    "retention_total",
    (
        _TOPIC,
        Column("partition_count", "int", "partitions"),
        Column("segment_count", "int", "segments"),
        Column("size_bytes", "int", "bytes of their .log files"),
        Column("deletable_count", "int", "segments that the broker's next check deletes"),
        Column("deletable_bytes", "int", "their bytes"),
        Column("next_deletable_at", "timestamp", "when the next segment after these goes by its time"),
        Column("retained", "any", "bytes by what keeps them"),
    ),
)
DIVERGENCE = RowSchema(
    "divergence",
    (
        _TOPIC,
        _PARTITION,
        Column("kind", "string", "identical, behind, diverged, or different_bytes: the same records in other bytes, compacted away, or unreadable in one replica"),
        Column("offset", "int", "the first offset where the replicas differ in this way, null for identical ones"),
        Column("leader_epoch", "any", "for each replica the leader epoch at that offset, null where it has none; of identical ones the latest"),
        Column("log_end_offset", "any", "for each replica the offset after the last batch"),
        Column("unique_from", "any", "for each replica the first offset whose record it alone has, null for none"),
        Column("unique_to", "any", "the last of these"),
        Column("lost_if_elected", "any", "for each replica the [first, last] of the offsets of others that are lost if it is elected, null for none"),
        Column("damaged", "any", "for each replica the ranges [first, last] of offsets that cannot be read"),
        Column("replicas", "any", "the directories of the replicas, in the order of all lists of this row"),
        Column("node_ids", "any", "the node ids from meta.properties"),
        Column("topic_id", "string", "topic id from partition.metadata, null for none"),
        Column("log_start_offset", "any", "for each replica the first offset that a broker would serve"),
        Column("high_watermark", "any", "for each replica the high watermark of its checkpoint, null for none"),
        Column("truncate_to", "any", "for each replica as the leader the offsets to which Kafka truncates each of the others, null for itself"),
        Column("elect", "int", "the number of the replica, from 0, whose election loses least"),
    ),
)
REPLICA = RowSchema(
    "replica",
    (
        _TOPIC,
        _PARTITION,
        Column("path", "string", "the replica's directory"),
        Column("node_id", "int", "node id from meta.properties, null for none"),
        Column("kind", "string", "behind, diverged, different_bytes or identical, against the replica to elect; null for that one"),
        Column("offset", "int", "the first offset of that difference"),
        Column("elect", "bool", "whether the election of this replica loses least"),
        Column("log_start_offset", "int", "the first offset that a broker would serve"),
        Column("log_end_offset", "int", "the offset after the last batch"),
        Column("high_watermark", "int", "from the replication-offset-checkpoint, null for none"),
        Column("leader_epoch", "int", "the latest leader epoch"),
        Column("epochs", "any", "[leader epoch, start offset] of each epoch, of the checkpoint and of the batches"),
        Column("unique_from", "int", "the first offset whose record this replica alone has, null for none"),
        Column("unique_to", "int", "the last of these"),
        Column("unique_count", "int", "how many offsets these are"),
        Column("lost_if_elected", "any", "[first, last] of the offsets of others that are lost if this replica is elected, null for none"),
        Column("lost_count", "int", "how many offsets these are"),
        Column("lost_committed", "any", "the same below the high watermark of a replica that has them"),
        Column("lost_committed_count", "int", "how many offsets these are"),
        Column("truncate_to", "int", "the offset to which Kafka truncates this replica when the one to elect leads; null for that one"),
        Column("damaged", "any", "ranges [first, last] of offsets that cannot be read"),
        Column("compacted_count", "int", "records of others that compaction removed here"),
        Column("size_bytes", "int", "bytes of the .log files"),
        Column("topic_id", "string", "topic id from partition.metadata, null for none"),
    ),
)
DISK_USAGE = RowSchema(
    "disk_usage",
    (
        Column("by", "string", "topic, codec or age"),
        Column("name", "string", "the topic, the codec, or how far back a segment's largest timestamp lies; null for all other files"),
        Column("allocated_bytes", "int", "bytes that the file system has allocated, as du counts them"),
        Column("percent", "int", "of the allocated bytes of all rows"),
        Column("size_bytes", "int", "the lengths of the files: more where they are sparse, as preallocated indexes are"),
        Column("log_bytes", "int", "bytes of the .log files of its segments; by codec, of its batches"),
        Column("leftover_bytes", "int", "allocated bytes of what a broker will delete: files marked .deleted, .cleaned or .swap, directories marked -delete or -stray"),
        Column("partition_count", "int", "partitions; replicas on several nodes count once"),
        Column("segment_count", "int", "segments; by codec, those with a batch of it"),
        Column("estimated_bytes", "int", "with --estimate: what recompression would make of log_bytes; null where nothing can be recompressed"),
        Column("saved_bytes", "int", "with --estimate: allocated bytes that this would free, negative where logs would grow"),
    ),
)

GROUP = RowSchema(
    "group",
    (
        Column("group", "string", "the group's id"),
        Column("protocol", "string", "classic, consumer, share or streams"),
        Column("state", "string", "Empty, Stable, Assigning, Reconciling, NotReady or Dead, as far as the log says it"),
        Column("generation", "int", "generation of a classic group, epoch of any other; null for none"),
        Column("member_count", "int", "members that the log names"),
        Column("leader", "string", "member id of the leader of a classic group, null for none"),
        Column("committed_partitions", "int", "partitions with a committed offset, or with a start offset of a share group"),
        Column("total_lag", "int", "sum of the lags that are known, null where none is"),
        Column("partitions_without_lag", "int", "committed partitions whose lag is not known"),
        Column("pending_partitions", "int", "partitions with an offset in a transaction that has not ended"),
        Column("last_commit_timestamp", "timestamp", "time of the last commit in the log, aborted ones too"),
        Column("commit_count", "int", "commits in the log"),
        Column("commits_per_hour", "int", "their rate from the first to the last, null for fewer than two"),
        Column("record_count", "int", "records of the group in the log, of all kinds"),
        Column("size_bytes", "int", "bytes of these records, uncompressed"),
        Column("coordinator_partition", "int", "partition of __consumer_offsets that holds the group"),
    ),
)
_GROUP = Column("group", "string", "the group's id")
_COMMIT_PLACE = (
    Column("path", "string", "the log with the commit"),
    Column("position", "int", "byte position of its batch in the log"),
    Column("record_offset", "int", "offset of the commit's record in the coordinator's partition"),
)
GROUP_OFFSET = RowSchema(
    "group_offset",
    (
        _GROUP,
        Column("topic", "string", "topic; the topic id of a share group where no path has the topic's name"),
        Column("partition", "int", "partition number"),
        Column("offset", "int", "committed offset, or start offset of a share group; null where only a pending one is there"),
        Column("leader_epoch", "int", "leader epoch of the last record that was consumed, null for none"),
        Column("metadata", "string", "what the consumer noted with it"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("expire_timestamp", "timestamp", "when it expires; null unless an old client said so"),
        Column("log_end_offset", "int", "log end of the partition at the paths, null where it is not there"),
        Column("high_watermark", "int", "from the replication-offset-checkpoint there, null for none"),
        Column("lag", "int", "log end offset minus offset; of a share group also minus what is delivered past it"),
        Column("pending_offset", "int", "offset committed in a transaction that has not ended, null for none"),
        Column("pending_producer_id", "int", "producer of that transaction"),
        *_COMMIT_PLACE,
    ),
)
GROUP_COMMIT = RowSchema(
    "group_commit",
    (
        _GROUP,
        Column("topic", "string", "topic"),
        Column("partition", "int", "partition number"),
        Column("offset", "int", "committed offset, null for a tombstone"),
        Column("leader_epoch", "int", "leader epoch of the last record that was consumed, null for none"),
        Column("metadata", "string", "what the consumer noted with it"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("outcome", "string", "committed, aborted or open for a commit in a transaction; plain; or deleted for a tombstone"),
        Column("producer_id", "int", "producer of the transaction, null for none"),
        *_COMMIT_PLACE,
    ),
)

PRODUCER = RowSchema(
    "producer",
    (
        Column("producer_id", "int", "the producer; -1 for all that wrote without an id"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null for none, or where that is not there"),
        _TOPIC,
        _PARTITION,
        Column("epochs", "string", "the epochs of its batches, such as 0-3,7; null without an id"),
        Column("first_offset", "int", "offset of its first record that is there"),
        Column("last_offset", "int", "offset of its last record"),
        Column("first_sequence", "int", "sequence of its first record that is there, -1 for none"),
        Column("last_sequence", "int", "sequence of its last record, -1 for none"),
        Column("gap_count", "int", "batches whose sequence leaves some out after the batch before, or begins a new epoch above 0"),
        Column("duplicate_count", "int", "batches whose sequence repeats or goes back, in the same epoch"),
        Column("batch_count", "int", "its batches, end markers aside"),
        Column("record_count", "int", "records in them"),
        Column("mean_batch_bytes", "int", "bytes of its batches, by their number"),
        Column("codecs", "string", "the codecs in use, with the number of batches of each"),
        Column("first_timestamp", "timestamp", "ms; base timestamp of its first batch, null where it has none"),
        Column("last_timestamp", "timestamp", "ms; largest timestamp of its last batch"),
        Column("size_bytes", "int", "bytes of its batches"),
        Column("transactional_batch_count", "int", "batches that are part of transactions"),
        Column("magics", "string", "the formats in use, such as 0,1,2"),
        Column("path", "string", "the partition's directory"),
    ),
)
CLEANER = RowSchema(
    "cleaner",
    (
        _TOPIC,
        _PARTITION,
        Column("cleaner_offset", "int", "first dirty offset, from the cleaner-offset-checkpoint; null where the cleaner was never here"),
        Column("dirty_bytes", "int", "bytes of the segments that can be cleaned and have not been"),
        Column("clean_bytes", "int", "bytes of the segments before them"),
        Column("dirty_ratio", "any", "dirty bytes of dirty and clean ones"),
        Column("would_keep_bytes", "int", "what a run now would leave of the segments that it rewrites; null where nothing is dirty"),
        Column("would_free_bytes", "int", "what it would free"),
        Column("tombstone_count", "int", "tombstones that it would leave"),
        Column("delete_horizon", "timestamp", "the earliest time at which a run may drop tombstones or markers that it meets again; null for none yet"),
        Column("blocked_by", "string", "what keeps the cleaner from the log: dirty_ratio, active_segment, last_stable_offset, high_watermark, min_compaction_lag, damaged_batch or cleanup_policy; null for nothing"),
        Column("first_dirty_offset", "int", "where a run would begin"),
        Column("first_uncleanable_offset", "int", "where it would end at the latest"),
        Column("bound_by", "string", "what ends the range there"),
        Column("uncleanable_bytes", "int", "bytes of the segments from there on"),
        Column("last_stable_offset", "int", "last stable offset, or the high watermark"),
        Column("would_clean_to", "int", "the first dirty offset after the run"),
        Column("record_count", "int", "records in the segments that it rewrites"),
        Column("would_keep_records", "int", "records that it would keep"),
        Column("key_count", "int", "keys in the dirty part"),
        Column("is_map_full", "bool", "the cleaner's buffer has no room for all keys, so that it needs more than one run"),
        Column("is_estimate", "bool", "the bytes to keep are an estimate: compressed batches would be made anew"),
        Column("config_source", "string", "where each config comes from: topic, broker, cluster, properties, option or default"),
        Column("path", "string", "the partition's directory"),
    ),
)

REPORT_PARTITION = RowSchema(
    "report_partition",
    (
        *PARTITION.columns,
        Column("node_id", "int", "node id from meta.properties, null for none"),
        Column("record_count", "int", "records in the live segments"),
        Column("state", "string", "fatal, error or warning: the gravest finding; marked: of a directory that a broker will delete or replace; empty; else sound"),
        Column("finding_count", "int", "findings about it, of all severities"),
    ),
)
TOPIC_USAGE = RowSchema(
    "topic_usage",
    (
        _TOPIC,
        Column("partition_count", "int", "partitions here; replicas on several nodes count once"),
        Column("replica_count", "int", "partition directories"),
        Column("size_bytes", "int", "bytes of all files in these directories"),
        Column("log_size_bytes", "int", "bytes of the .log files of their segments"),
        Column("record_count", "int", "records in their live segments"),
        Column("batch_count", "int", "record batches, and outermost messages of v0 and v1"),
        Column("mean_batch_bytes", "int", "bytes of batches, by their number"),
        Column("codecs", "string", "the codecs in use, with the bytes of each"),
        Column("first_timestamp", "timestamp", "base timestamp of the first batch"),
        Column("max_timestamp", "timestamp", "largest timestamp"),
        Column("age_ms", "int", "how far the largest timestamp lies back, negative in the future"),
        Column("largest_partition", "int", "the partition with most records"),
        Column("skew", "any", "its records by the mean of all partitions here: 1 is even; null for a single one"),
        Column("finding_count", "int", "findings about it, of all severities"),
        Column("next_deletable_at", "timestamp", "when retention takes the next segment by its time; null for none"),
        Column("deletable_bytes", "int", "bytes that the broker's next check deletes"),
    ),
)
FINDING_SUMMARY = RowSchema(
    "finding_summary",
    (
        Column("severity", "string", "info, warning, error or fatal"),
        Column("code", "string", "stable code, see the table of finding codes"),
        Column("count", "int", "how often"),
        Column("partition_count", "int", "in how many partition directories"),
        Column("meaning", "string", "what it means"),
        Column("broker", "string", "what a broker does on meeting it"),
        Column("next_step", "string", "what to do about it"),
    ),
)
TIMELINE_EVENT = RowSchema(
    "timeline_event",
    (
        Column("timestamp", "timestamp", "when; of damage, the timestamp of the batch at or before it"),
        Column("kind", "string", "damage, transaction, leader_epoch, metadata or segment"),
        _TOPIC,
        _PARTITION,
        Column("offset", "int", "offset of the first record, null for none"),
        Column("detail", "string", "what happened, in words"),
        Column("severity", "string", "info, warning, error or fatal"),
        _PATH,
    ),
)
BYTES_BY_TIME = RowSchema(
    "bytes_by_time",
    (
        _TOPIC,
        Column("timestamp", "timestamp", "begin of the span"),
        Column("duration_ms", "int", "length of the span"),
        Column("size_bytes", "int", "bytes of the batches whose largest timestamp lies in it"),
        Column("record_count", "int", "their records"),
    ),
)
BYTES_BY_OFFSET = RowSchema(
    "bytes_by_offset",
    (
        Column("path", "string", "the partition's directory"),
        _TOPIC,
        _PARTITION,
        Column("first_offset", "int", "first offset of the range"),
        Column("last_offset", "int", "last offset of the range"),
        Column("size_bytes", "int", "bytes of the batches that begin in it"),
    ),
)
DAMAGED_PLACE = RowSchema(
    "damaged_place",
    (
        Column("path", "string", "the partition's directory"),
        _TOPIC,
        _PARTITION,
        Column("code", "string", "the finding's code"),
        Column("severity", "string", "warning, error or fatal"),
        Column("first_offset", "int", "the finding's offset, or that of the batch at or before it"),
        Column("last_offset", "int", "the last offset that is lost, else the same"),
        Column("timestamp", "timestamp", "the timestamp of the batch at or before it"),
    ),
)
BATCH_SIZES = RowSchema(
    "batch_sizes",
    (
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd"),
        Column("least_bytes", "int", "the least size of the class; the next class begins at twice as much"),
        Column("batch_count", "int", "batches"),
        Column("size_bytes", "int", "their bytes"),
        Column("record_count", "int", "their records"),
    ),
)
TRANSACTION_TOTAL = RowSchema(
    "transaction_total",
    (
        _TOPIC,
        _PARTITION,
        Column("open_count", "int", "open transactions"),
        Column("hanging_count", "int", "those among them that no coordinator will end"),
        Column("committed_count", "int", "transactions that committed"),
        Column("aborted_count", "int", "transactions that aborted"),
        Column("last_stable_offset", "int", "where consumers that read committed data stop"),
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
        Column("finished", "timestamp", "when it ended"),
        Column("exit_code", "int", "its exit status"),
        Column("complete", "bool", "whether everything could be read"),
        Column("conditions", "string", "why the exit status is not 0, separated by commas"),
        Column("not_checked", "string", "what was not checked, separated by semicolons"),
        Column("counts", "string", "the counts of the summary, as a JSON object"),
        Column("broker_id", "int", "the broker that it was about"),
    ),
)
FILE_BYTES = RowSchema(
    "file_bytes",
    (
        _PATH,
        Column("position", "int", "first byte"),
        Column("hex", "string", "the bytes in hexadecimal"),
        Column("text", "string", "the same as ASCII, with a dot for each other byte"),
        Column("code", "string", "the finding's code"),
    ),
)

SCHEMAS = (
    LOG_DIR,
    PARTITION,
    SEGMENT,
    BATCH,
    RECORD,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    ABORTED_TXN,
    PRODUCER_SNAPSHOT_ENTRY,
    LEADER_EPOCH,
    CHECKPOINT_OFFSET,
    PROPERTY,
    FINDING,
    STEP,
    MATCH,
    FILE_MATCH,
    WRITTEN_SEGMENT,
    EXTRACTED_FILE,
    ESTIMATE,
    BATCH_DECISION,
    BOOT_STEP,
    TRANSACTION,
    PRODUCER,
    IMAGE,
    TOPIC,
    ASSIGNMENT,
    BROKER,
    CONFIG,
    FEATURE,
    ACL,
    QUOTA,
    CREDENTIAL,
    METADATA_CHANGE,
    SEGMENT_RETENTION,
    RETENTION_TOTAL,
    CLEANER,
    DIVERGENCE,
    REPLICA,
    GROUP,
    GROUP_OFFSET,
    GROUP_COMMIT,
    DISK_USAGE,
    REPORT_PARTITION,
    TOPIC_USAGE,
    FINDING_SUMMARY,
    TIMELINE_EVENT,
    BYTES_BY_TIME,
    BYTES_BY_OFFSET,
    DAMAGED_PLACE,
    BATCH_SIZES,
    TRANSACTION_TOTAL,
    FILE_BYTES,
    RUN,
)
