"""The binary structures that Kafka writes, field by field, with byte offsets, flags and file names.

This is the only module with byte offsets: decoders, the byte tables of the documentation and the tests take them from
here. Binary fields are big-endian. ``kafka_name`` is the name in Kafka's own source, which ``Layout.source`` cites.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from struct import Struct, calcsize

import msgspec

_STRUCT_CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
_SIZES = {name: calcsize(">" + code) for name, code in _STRUCT_CODES.items()}


class Field(msgspec.Struct, frozen=True):
    """One fixed-width field; ``type`` is one of i8 u8 i16 u16 i32 u32 i64 u64."""

    name: str
    type: str
    kafka_name: str
    meaning: str

    @property
    def size_bytes(self) -> int:
        return _SIZES[self.type]


@dataclass(slots=True)
class Layout:
    """A structure of fixed-width fields, as it is on disk; ``struct`` is the big-endian struct of all in order."""

    name: str
    source: str
    fields: tuple[Field, ...]
    tail: str = ""  # a description of the bytes after the fixed fields
    struct: Struct = field(init=False, repr=False, compare=False)
    _offsets: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        at = 0
        for each in self.fields:
            self._offsets[each.name] = at
            at += each.size_bytes
        codes = ">" + "".join(_STRUCT_CODES[each.type] for each in self.fields)
        object.__setattr__(self, "struct", Struct(codes))

    @property
    def size_bytes(self) -> int:
        return self.struct.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)

    def offset_of(self, name: str) -> int:
        """The byte offset of a field from the start of the structure."""
        return self._offsets[name]

    def numpy_dtype(self) -> list[tuple[str, str]]:
        """The description that ``numpy.dtype`` takes for an array of these structures."""
        return [(each.name, ">" + each.type[0] + str(each.size_bytes)) for each in self.fields]


# -- .log ----------------------------------------------------------------------------------------------------

LOG_ENTRY = Layout(
    "log entry",
    "clients record/internal/Records (LOG_OVERHEAD)",
    (
        Field("base_offset", "i64", "baseOffset", "offset of the batch's first record (v2), of the message (v0, v1)"),
        Field("length", "i32", "length", "bytes that follow this field"),
    ),
    "a record batch (magic 2) or a message (magic 0 and 1); the magic byte is at the same place, 16, in all three",
)

RECORD_BATCH = Layout(
    "record batch, magic 2",
    "clients record/internal/DefaultRecordBatch (KIP-98)",
    (
        Field("base_offset", "i64", "baseOffset", "offset of the first record; outside the CRC"),
        Field("length", "i32", "length", "bytes that follow this field; outside the CRC"),
        Field("leader_epoch", "i32", "partitionLeaderEpoch", "set by the broker that appended it; outside the CRC"),
        Field("magic", "i8", "magic", "2; outside the CRC"),
        Field("crc", "u32", "crc", "CRC-32C of everything from the attributes to the end of the batch"),
        Field(
            "attributes",
            "i16",
            "attributes",
            "bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon",
        ),
        Field(
            "last_offset_delta",
            "i32",
            "lastOffsetDelta",
            "last offset minus base offset; kept when compaction drops the last record",
        ),
        Field(
            "base_timestamp", "i64", "baseTimestamp", "ms; the first record's, or the delete horizon when bit 6 is set"
        ),
        Field("max_timestamp", "i64", "maxTimestamp", "ms; the records' largest, or the append time for LogAppendTime"),
        Field("producer_id", "i64", "producerId", "-1 without idempotence"),
        Field("producer_epoch", "i16", "producerEpoch", "-1 without idempotence"),
        Field("base_sequence", "i32", "baseSequence", "sequence of the first record, -1 without idempotence"),
        Field("record_count", "i32", "recordsCount", "records in the batch"),
    ),
    "the records, compressed as one block when the codec bits are not 0",
)

_MESSAGE_START = (
    Field(
        "base_offset",
        "i64",
        "offset",
        "offset of the message; for a compressed wrapper, the offset of its last inner message",
    ),
    Field("length", "i32", "size", "bytes that follow this field"),
    Field("crc", "u32", "crc", "CRC-32 of everything after this field"),
)

MESSAGE_V0 = Layout(
    "message, magic 0",
    "clients record/internal/LegacyRecord",
    (
        *_MESSAGE_START,
        Field("magic", "i8", "magic", "0"),
        Field("attributes", "i8", "attributes", "bits 0-2 codec"),
    ),
    "key and value, each an i32 length (-1 for null) and its bytes; a wrapper's value is a compressed message set with absolute offsets",
)

MESSAGE_V1 = Layout(
    "message, magic 1",
    "clients record/internal/LegacyRecord (KIP-31, KIP-32)",
    (
        *_MESSAGE_START,
        Field("magic", "i8", "magic", "1"),
        Field("attributes", "i8", "attributes", "bits 0-2 codec, 3 timestamp type"),
        Field("timestamp", "i64", "timestamp", "ms, -1 for none"),
    ),
    "key and value, each an i32 length (-1 for null) and its bytes; a wrapper's value is a compressed message set with relative offsets",
)

#: Bits of a batch's or message's attributes (clients DefaultRecordBatch, LegacyRecord).
CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_ATTRIBUTES_V2 = 0x7F
KNOWN_ATTRIBUTES_V1 = 0x0F
KNOWN_ATTRIBUTES_V0 = 0x07

#: Codec ids of the attributes' bits 0-2 (clients record/internal/CompressionType).
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
#: Names for the values 0 to 7 of the codec bits; no Kafka version knows a codec past zstd.
CODEC_BITS_NAMES = (*CODEC_NAMES, "unknown-5", "unknown-6", "unknown-7")
TIMESTAMP_TYPE_NAMES = ("CreateTime", "LogAppendTime")
NO_TIMESTAMP_TYPE = "NoTimestampType"
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

#: A v2 record's smallest size: length, attributes, two deltas, key length, value length, header count.
MIN_RECORD_BYTES = 7
#: A message's smallest length field: crc, magic, attributes, key length, value length (LegacyRecord.RECORD_OVERHEAD_V0).
MIN_MESSAGE_LENGTH = 14
#: The same for a v1 message, which also has a timestamp.
MIN_V1_MESSAGE_LENGTH = MIN_MESSAGE_LENGTH + 8
#: The bytes of a batch, or message, up to its magic. Where no more than these are left, a broker ends the log without
#: an error (FileLogInputStream).
UP_TO_MAGIC_BYTES = RECORD_BATCH.offset_of("magic") + 1
#: The largest relative offset: a segment's index has offsets relative to the base offset, as an int32.
MAX_RELATIVE_OFFSET = 2**31 - 1

CONTROL_KEY = Layout(
    "control record key",
    "clients record/internal/ControlRecordType",
    (
        Field("version", "i16", "version", "0 or higher; a reader ignores what newer versions add"),
        Field("type", "i16", "type", "see the control record types"),
    ),
)
END_TRANSACTION_MARKER = Layout(
    "end transaction marker",
    "clients record/internal/EndTransactionMarker",
    (
        Field("version", "i16", "version", "0 or higher"),
        Field(
            "coordinator_epoch", "i32", "coordinatorEpoch", "epoch of the transaction coordinator that wrote the marker"
        ),
    ),
)
#: Control record types by their number (ControlRecordType).
CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)

# -- indexes -------------------------------------------------------------------------------------------------

OFFSET_INDEX_ENTRY = Layout(
    "offset index entry",
    "storage internals/log/OffsetIndex",
    (
        Field(
            "relative_offset",
            "i32",
            "relativeOffset",
            "an offset of the batch at that position, minus the segment's base offset",
        ),
        Field("position", "i32", "position", "byte position of a batch in the segment"),
    ),
    "the file is preallocated with zeros while its segment is active and trimmed when it is closed",
)
TIME_INDEX_ENTRY = Layout(
    "time index entry",
    "storage internals/log/TimeIndex (KIP-33)",
    (
        Field("timestamp", "i64", "timestamp", "ms; the largest seen in the segment up to that offset"),
        Field(
            "relative_offset",
            "i32",
            "relativeOffset",
            "offset of a batch that has that timestamp, minus the segment's base offset",
        ),
    ),
    "the file is preallocated with zeros while its segment is active and trimmed when it is closed",
)
ABORTED_TXN = Layout(
    "aborted transaction",
    "storage internals/log/AbortedTxn",
    (
        Field("version", "i16", "version", "0"),
        Field("producer_id", "i64", "producerId", "the producer whose transaction was aborted"),
        Field("first_offset", "i64", "firstOffset", "offset of the transaction's first record in this partition"),
        Field("last_offset", "i64", "lastOffset", "offset of its abort marker"),
        Field("last_stable_offset", "i64", "lastStableOffset", "last stable offset when the marker was appended"),
    ),
)

# -- producer snapshot ---------------------------------------------------------------------------------------

PRODUCER_SNAPSHOT_HEADER = Layout(
    "producer snapshot header",
    "storage internals/log/ProducerStateManager",
    (
        Field("version", "i16", "version", "1"),
        Field("crc", "u32", "crc", "CRC-32C of everything after this field"),
        Field("entry_count", "i32", "producer_entries", "producers that follow"),
    ),
    "one entry per producer",
)
PRODUCER_SNAPSHOT_ENTRY = Layout(
    "producer snapshot entry",
    "storage internals/log/ProducerStateManager",
    (
        Field("producer_id", "i64", "producer_id", "the producer"),
        Field("producer_epoch", "i16", "epoch", "its epoch"),
        Field("last_sequence", "i32", "last_sequence", "sequence of the last record it wrote, -1 for none"),
        Field("last_offset", "i64", "last_offset", "offset of the last record it wrote, -1 for none"),
        Field("offset_delta", "i32", "offset_delta", "last offset minus first offset of its last batch"),
        Field("timestamp", "i64", "timestamp", "ms; of its last batch or marker"),
        Field("coordinator_epoch", "i32", "coordinator_epoch", "of the last transaction marker, -1 for none"),
        Field(
            "current_txn_first_offset",
            "i64",
            "current_txn_first_offset",
            "first offset of its open transaction, -1 for none",
        ),
    ),
)

# -- names ---------------------------------------------------------------------------------------------------

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
CHECKPOINT_SUFFIX = ".checkpoint"
#: Marks that a broker adds to a file's name while it deletes, cleans or swaps segments (LogFileUtils).
LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".swap")

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
META_PROPERTIES = "meta.properties"
#: The manifest of a directory that kafkalog wrote.
MANIFEST = "manifest.json"
#: The manifest of a directory that is a data set: readers of data sets pass over names that begin with an underscore.
DATA_SET_MANIFEST = "_manifest.json"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (
    REPLICATION_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
#: Files of a log directory itself. A directory with one of these is not a partition, whatever its name is.
LOG_DIR_FILES = (*OFFSET_CHECKPOINTS, META_PROPERTIES, CLEAN_SHUTDOWN, LOCK, BOOTSTRAP_CHECKPOINT)
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
#: The directory of the metadata log.
METADATA_PARTITION = f"{CLUSTER_METADATA_TOPIC}-0"
TRANSACTION_STATE_TOPIC = "__transaction_state"
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
#: The topics in which coordinators keep their state. Brokers compact them whatever their configuration.
COORDINATOR_TOPICS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)
#: The prefix of the names of Kafka's own topics.
INTERNAL_TOPIC_PREFIX = "__"
#: The directory for indexes that a broker fetched from tiered storage (storage RemoteIndexCache); not a partition.
REMOTE_INDEX_CACHE = "remote-log-index-cache"
#: Files that a broker writes with ``.tmp`` added to the name, and then renames (CheckpointFile and similar classes).
TEMPORARY_SUFFIX = ".tmp"
ATOMICALLY_WRITTEN = (
    *OFFSET_CHECKPOINTS,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    META_PROPERTIES,
    QUORUM_STATE,
    CLEAN_SHUTDOWN,
)

#: A segment's file: base offset in 20 digits, a suffix, at most one leftover mark.
SEGMENT_FILE = re.compile(
    r"^(?P<base_offset>[0-9]{20})(?P<suffix>\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(?P<leftover>\.deleted|\.cleaned|\.swap)?\Z"
)
#: A KRaft snapshot: end offset in 20 digits, epoch in 10 (raft snapshot/Snapshots).
#: The name of a snapshot that is being written also has a number, and ends in ``.part``.
KRAFT_SNAPSHOT_FILE = re.compile(
    r"^(?P<end_offset>[0-9]{20})-(?P<epoch>[0-9]{10})(?:-[0-9]+(?=\.checkpoint\.part\Z))?\.checkpoint(?P<leftover>\.deleted|\.part)?\Z"
)
#: A partition's directory, with the marks of deletion, of a move between directories and of a stray replica.
PARTITION_DIR = re.compile(
    r"^(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})(?:\.(?P<unique>[0-9a-f]{32})-(?P<mark>delete|future|stray))?\Z"
)

LAYOUTS = (
    LOG_ENTRY,
    RECORD_BATCH,
    MESSAGE_V0,
    MESSAGE_V1,
    CONTROL_KEY,
    END_TRANSACTION_MARKER,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    ABORTED_TXN,
    PRODUCER_SNAPSHOT_HEADER,
    PRODUCER_SNAPSHOT_ENTRY,
)


def string_hash(text: str) -> int:
    """The hash of a string in Java, 32 bits: over UTF-16 units (java.lang.String.hashCode)."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def coordinator_partition(name: str, partition_count: int) -> int:
    """The partition of __consumer_offsets or __transaction_state that holds a group or a transactional id.

    It is the absolute value of the name's hash; the smallest number, whose absolute value does not fit, counts as 0.
    Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor, clients Utils.abs.
    """
    digest = string_hash(name)
    return min(digest, (1 << 32) - digest) % (1 << 31) % partition_count
