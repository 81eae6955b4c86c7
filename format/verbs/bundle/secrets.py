"""Finds what a bundle must not contain of the cluster's metadata and of meta.properties, and overwrites it.

With KRaft, brokers keep passwords of their dynamic configs as plain text in the metadata log and its snapshots, and
also salted SCRAM passwords. They are overwritten with the same number of bytes, and so is everything that is not fully
understood, since it may be a secret: records of unknown types and versions, unknown tagged fields, bytes after a value,
keys, headers, and properties that Kafka does not have. The batch gets a new CRC, so that everything else can be read as
before.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from format import layout
from format.codecs.checksums import crc32c_of
from format.errors import KafkaLogError
from format.files import clean_shutdown, leader_epoch_checkpoint, meta_properties, partition_metadata, quorum_state
from format.files.side_file import lines
from format.findings import FINDING_CODES
from format.internal_topics.decoder import INTERNAL_TOPICS, Decoder, decode_control_value, decoder_for
from format.internal_topics.encoder import unsigned_varint
from format.internal_topics.reader import Cursor
from format.io.bundles.schemas import LAYOUTS, WHOLE_TOPICS
from format.io.source import FileSource
from format.limits import Limits
from format.log.batch_chunk import BatchChunk, Damage
from format.log.control_records import decode_control_record
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.node.log_dir import Kind, kind_of_file
from format.node.partition import is_temporary, location_of_file, parse_partition_dir
from format.rows.side_file_rows import read_side_file
from format.verbs.metadata.metadata import is_secret

#: Names that Kafka itself gives, which reveal nothing.
_KAFKAS_TOPICS = frozenset((*WHOLE_TOPICS, *INTERNAL_TOPICS, "__remote_log_metadata"))
_KAFKAS_FILES = frozenset(
    (
        *layout.LOG_DIR_FILES,
        layout.LEADER_EPOCH_CHECKPOINT,
        layout.PARTITION_METADATA,
        layout.QUORUM_STATE,
        layout.REMOTE_INDEX_CACHE,
    )
)
_DIGEST_BYTES = 6


class Names:
    """Replaces the names of topics, directories and files that are not Kafka's own. ``key`` is secret."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=blake2b.MAX_KEY_SIZE, person=b"kafkalog bundle").digest()
        self.replaced = lru_cache(4096)(self._replaced)

    @property
    def key_fingerprint(self) -> str:
        """A number that is equal for equal keys and does not show the key."""
        return blake2b(b"", key=self._key, digest_size=8, person=b"fingerprint").hexdigest()

    def _replaced(self, kind: str, name: str) -> str:
        digest = blake2b(f"{kind} {name}".encode(errors="surrogateescape"), key=self._key, digest_size=_DIGEST_BYTES)
        return f"{kind}-{digest.hexdigest()}"

    def topic(self, name: str) -> str:
        """The new name of a topic; Kafka's own topics keep their names."""
        return name if name in _KAFKAS_TOPICS else self.replaced("topic", name)

    def file(self, name: str) -> str:
        """The new name of a file or directory in a source."""
        parsed = parse_partition_dir(name)
        if parsed is not None:
            topic, number, _ = parsed
            return f"{self.topic(topic)}{name.removeprefix(topic)}" if number is not None else name
        if name in _KAFKAS_FILES or is_temporary(name):
            return name
        if layout.SEGMENT_FILE.match(name) or layout.KRAFT_SNAPSHOT_FILE.match(name):
            return name
        suffix = Path(name).suffix if kind_of_file(name) is not None else ""
        return self.replaced("file", name) + suffix

    def finding(self, values: dict[str, Any]) -> dict[str, Any]:
        """A finding with the meaning of its code in place of its message, which may have names in it."""
        entry = FINDING_CODES[values["code"]]
        kept = {name: value for name, value in values.items() if name in _PLAIN_VALUES or isinstance(value, int)}
        if "topic" in values:
            kept["topic"] = self.topic(values["topic"])
        return {**kept, "message": entry.meaning, "next_step": entry.next_step}


_PLAIN_VALUES = ("code", "severity", "certainty", "path", "lost_offsets", "caused_by")


_ID = re.compile(r"[\w.-]{0,64}", re.ASCII)
#: The kinds of text files that have only numbers and ids, and of these the ones whose problems do not matter.
_WRITERS: dict[Kind, Callable[[Any], bytes]] = {
    Kind.LEADER_EPOCH_CHECKPOINT: leader_epoch_checkpoint.write,
    Kind.PARTITION_METADATA: partition_metadata.write,
    Kind.QUORUM_STATE: quorum_state.write,
    Kind.CLEAN_SHUTDOWN: clean_shutdown.write,
}
_LENIENT = frozenset(_WRITERS) - {Kind.CLEAN_SHUTDOWN}


def understood(path: Path, names: Names, limits: Limits) -> bytes | None:
    """The content of a side file without comments, unknown fields and names; None where it cannot be understood."""
    kind = kind_of_file(path.name)
    try:
        if kind is Kind.LOCK:
            return b""
        if kind is Kind.OFFSET_CHECKPOINT:
            return _checkpoint(path, names, limits)
        if kind is Kind.META_PROPERTIES:
            return _properties(path, limits)
        return None if kind is None else _plain(path, kind, limits)
    except KafkaLogError:
        return None


def _checkpoint(path: Path, names: Names, limits: Limits) -> bytes:
    found = read_side_file(path, Kind.OFFSET_CHECKPOINT, 0, limits).by_partition()
    lines = sorted(f"{names.topic(topic)} {number} {offset}" for (topic, number), offset in found.items())
    return "\n".join(("0", str(len(lines)), *lines, "")).encode()


def _properties(path: Path, limits: Limits) -> bytes | None:
    """The properties that Kafka has, with their values as they were understood."""
    found = meta_properties.read(path, limits)
    if _ID.fullmatch(found.cluster_id or "") is None:
        return None
    known = {
        "version": str(found.version),
        "cluster.id": found.cluster_id,
        "node.id" if found.version else "broker.id": None if found.node_id is None else str(found.node_id),
        "directory.id": found.directory_id,
    }
    there = {name for name, _ in found.properties}
    return meta_properties.write((name, value) for name, value in known.items() if name in there and value is not None)


def _plain(path: Path, kind: Kind, limits: Limits) -> bytes | None:
    """The content of a file that has only numbers and ids: a text is written anew, others must have no problems."""
    with FileSource(path) as source:
        found = read_side_file(source, kind, location_of_file(path).base_offset or 0, limits)
        if isinstance(found, quorum_state.QuorumState) and _ID.fullmatch(found.cluster_id or "") is None:
            return None
        if found.problems and kind not in _LENIENT:
            return None
        if kind in _WRITERS:
            content: bytes = _WRITERS[kind](found)
            return content
        return source.read_at(0, source.size_bytes)


_HEADER_BYTES = {number: one.size_bytes for number, one in enumerate(LAYOUTS)}
_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
_CRC_AT, _CRC_END = layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes")
#: The version before the value of a control record.
_VERSION_BYTES = 2
_SCRAM_FIELDS = ("salt", "storedKey", "serverKey")
#: Parts of the names of files with metadata records: logs and snapshots, also unfinished and deleted ones.
_WITH_RECORDS = (layout.LOG_SUFFIX, layout.CHECKPOINT_SUFFIX)
#: A line of meta.properties as brokers write it: empty, a comment that is a time, or a property of Kafka's.
_PLAIN_LINE = re.compile(
    rb"\s*|#\s*|#\w{3} \w{3} [0-9]{2} [0-9:]{8} [\w:+-]{1,9} [0-9]{4}\s*"
    rb"|\s*(?:version|cluster\.id|node\.id|broker\.id|directory\.id)\s*[=:]\s*[\w.-]{0,64}\s*"
)
_NAMED_LINE = re.compile(rb"\s*[\w.-]{1,249}\s*[=:]")
#: A range of a batch, by its start and length.
_Span = tuple[int, int]


class Overwritten(msgspec.Struct, frozen=True):
    """A range of a file that is overwritten in the bundle: with ``content``, or with zeros where that is None."""

    position: int
    size_bytes: int
    content: bytes | None = None

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes


def may_hold_secrets(path: Path) -> bool:
    """Whether a file has records of the cluster's metadata, or properties."""
    if path.name == layout.BOOTSTRAP_CHECKPOINT or _has_properties(path.name):
        return True
    parsed = parse_partition_dir(path.parent.name)
    is_metadata = parsed is not None and parsed[0] == layout.CLUSTER_METADATA_TOPIC
    return is_metadata and any(suffix in path.name for suffix in _WITH_RECORDS)


def _has_properties(name: str) -> bool:
    return name.removesuffix(layout.TEMPORARY_SUFFIX) == layout.META_PROPERTIES


def secrets_of(source: FileSource, limits: Limits) -> list[Overwritten]:
    """The ranges of a log or snapshot of the cluster's metadata, or of meta.properties, that are overwritten.

    They are in order of their positions. Of a batch that cannot be read, or is cut off, only the header stays, and
    nothing of bytes that are no batch. Raises KafkaLogError where the file cannot be read.
    """
    if _has_properties(Path(source.path).name):
        return _in_properties(source, limits)
    decoder = decoder_for(layout.CLUSTER_METADATA_TOPIC)
    found: list[Overwritten] = []
    for chunk in batch_chunks(source, limits=limits):
        for row, spans in enumerate(_spans_of(chunk, decoder, limits)):
            found += _in_batch(chunk, row, spans)
        if chunk.damage is not None:
            found += _in_damage(source, chunk.damage)
    return found


def _in_properties(source: FileSource, limits: Limits) -> list[Overwritten]:
    """What follows the names of properties that are not Kafka's, and all of other lines."""
    found: list[Overwritten] = []
    for line in lines(source, limits):
        if _PLAIN_LINE.fullmatch(line.content) is None:
            named = _NAMED_LINE.match(line.content)
            start = 0 if named is None else named.end()
            size_bytes = len(line.content) - start
            found.append(Overwritten(line.position + start, size_bytes, b"*" * size_bytes))
    return found


def _in_damage(source: FileSource, damage: Damage) -> Iterator[Overwritten]:
    """The bytes of damage; a header that may be that of a batch, or its beginning, stays: it has only numbers."""
    head = source.read_at(damage.position, min(damage.length, _MAGIC_AT + 1))
    is_header = head.startswith(bytes(2)) and head[_MAGIC_AT:] in (b"", b"\2")
    kept = _HEADER_BYTES[2] if is_header else 0
    if damage.length > kept:
        yield Overwritten(damage.position + kept, damage.length - kept)


def _spans_of(chunk: BatchChunk, decoder: Decoder, limits: Limits) -> list[list[_Span] | None]:
    """The secrets of each batch, as ranges of the chunk's buffer; None for a batch that cannot be read."""
    table = chunk.table
    is_readable = (table.crc_valid != 0) & (table.magic == 2) & (table.codec == 0)
    found: list[list[_Span] | None] = [[] if each else None for each in is_readable.tolist()]
    try:
        for records in record_tables(chunk, which=is_readable, limits=limits):
            for row, batch in enumerate(records.batch.tolist()):
                spans = found[batch]
                if spans is not None:
                    spans += _in_record(records, row, bool(table.is_control[batch]), decoder)
            for problem in records.problems:
                found[problem.batch] = None
    except KafkaLogError:
        return [None] * len(table)
    return found


def _in_record(records: RecordTable, row: int, is_control: bool, decoder: Decoder) -> Iterator[_Span]:
    """The key, the headers, and what is secret or not understood of the value of a record."""
    key, value = records.key(row), records.value(row)
    known_bytes = layout.CONTROL_KEY.size_bytes if is_control else 0
    if key is not None and len(key) > known_bytes:
        yield int(records.key_start[row]) + known_bytes, len(key) - known_bytes
    for key_start, key_length, value_start, value_length in records.header_spans(row):
        yield key_start, key_length
        yield value_start, max(value_length, 0)
    if value is not None:
        start = int(records.value_start[row])
        spans = _in_control(key, value) if is_control else _in_value(value, decoder)
        yield from ((start + first, length) for first, length in spans)


def _in_control(key: bytes | None, value: bytes) -> list[_Span]:
    try:
        decoded = decode_control_value(decode_control_record(key, value).type_number, value)
    except KafkaLogError:
        return [(0, len(value))]
    is_known = decoded.data is not None and not decoded.problems
    return [] if is_known else [(_VERSION_BYTES, max(len(value) - _VERSION_BYTES, 0))]


def _in_value(value: bytes, decoder: Decoder) -> list[_Span]:
    """The secret bytes of a record; all after its type and version where it is not fully understood."""
    start = _frame_bytes(value)
    try:
        decoded = decoder.decode_value(None, value)
    except KafkaLogError:
        return [(start, len(value) - start)]
    data: dict[str, Any] | None = decoded.data
    if data is None or decoded.problems:
        return [(start, len(value) - start)]
    secrets: list[bytes] = []
    if decoded.record_type == "USER_SCRAM_CREDENTIAL_RECORD":
        secrets = [base64.b64decode(data[name]) for name in _SCRAM_FIELDS]
    elif decoded.record_type == "CONFIG_RECORD" and data["value"] and is_secret(data["resourceType"], data["name"]):
        secrets = [data["value"].encode()]
    # Fields that follow each other, and come after the name. One alone, as a short salt, may stand elsewhere too.
    fields = [unsigned_varint(len(each) + 1) + each for each in secrets]
    at, spans = value.rfind(b"".join(fields)), []
    for field, secret in zip(fields, secrets, strict=True):
        at += len(field)
        spans.append((at - len(secret), len(secret)))
    return spans


def _frame_bytes(value: bytes) -> int:
    """The bytes of the frame version, the record type and the version; 0 where they are not there."""
    cursor = Cursor(value, "value")
    try:
        for _ in range(3):
            cursor.read_unsigned_varint()
    except KafkaLogError:
        return 0
    return cursor.position


def _in_batch(chunk: BatchChunk, row: int, spans: list[_Span] | None) -> Iterator[Overwritten]:
    """The ranges of one batch that are overwritten, with its CRC."""
    table = chunk.table
    position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
    if spans is None or chunk.buffer is None:
        header_bytes = _HEADER_BYTES[int(table.magic[row])]
        if size_bytes > header_bytes:
            yield Overwritten(position + header_bytes, size_bytes - header_bytes)
        return
    if not spans:
        return
    start = position - chunk.buffer_position
    content = bytearray(chunk.buffer[start : start + size_bytes])
    for first, length in spans:
        content[first - start : first - start + length] = b"*" * length
    content[_CRC_AT:_CRC_END] = crc32c_of(memoryview(content)[_CRC_END:]).to_bytes(_CRC_END - _CRC_AT, "big")
    yield Overwritten(position, size_bytes, bytes(content))


def without(secrets: Sequence[Overwritten], position: int, piece: bytes) -> bytes:
    """A piece of a file from ``position`` on, with its secrets overwritten."""
    end = position + len(piece)
    first = bisect_right(secrets, position, key=lambda each: each.end_position)
    if first == len(secrets) or secrets[first].position >= end:
        return piece
    changed = bytearray(piece)
    for each in secrets[first:]:
        low, high = max(each.position, position), min(each.end_position, end)
        if low >= high:
            break
        content = bytes(high - low)
        if each.content is not None:
            content = each.content[low - each.position : high - each.position]
        changed[low - position : high - position] = content
    return bytes(changed)
