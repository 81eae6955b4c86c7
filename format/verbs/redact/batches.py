"""Replaces the records of batches, and reads them back; offsets, timestamps, producers and boundaries stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import compress, decompress
from format.codecs.checksums import crc32_of
from format.errors import CorruptDataError, InvalidRecord, KafkaLogError, OutputError, UnknownVersion
from format.findings import FINDING_CODES
from format.internal_topics.decoder import decode_control_value
from format.kernel.tables import BATCH_COLUMNS
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BATCH_COLUMN, BatchTable, batch_location
from format.log.control_records import decode_control_record
from format.log.encode_batches import batch_spans, reseal
from format.log.read_records import record_tables
from format.log.record_table import RecordProblem, RecordTable, located
from format.rewriting.read_back import Became, ReadBackMismatch, output_chunks
from format.verbs.redact.fields import FieldRedaction
from format.verbs.redact.replacements import Redactor

Int64Column = NDArray[np.int64]
#: Returns the new key and value of a record (None for null), each as long as before.
ReplaceRecord = Callable[[bytes | None, bytes | None], tuple[bytes | None, bytes | None]]

_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_CRC_START = layout.MESSAGE_V0.offset_of("magic")
_CONTROL_INVALID = "control-record-invalid"
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_LENGTH_AT = layout.LOG_ENTRY.offset_of("length")
_OVERHEAD = layout.LOG_ENTRY.size_bytes
#: The header fields that a redacted batch keeps: all but its position, size and CRC.
_KEPT_COLUMNS = [number for number, name in enumerate(BATCH_COLUMNS) if name not in ("position", "size_bytes", "crc")]


class ReplacedWhole(msgspec.Struct, frozen=True):
    """A key or a value (``field``) that was replaced as a whole, though fields were to be kept.

    ``reason`` says why it does not decode, None where nothing says that it could. ``batch`` is its row in a table.
    """

    field: str
    schema_id: int | str | None
    reason: str | None
    batch: int
    offset: int


class RecordRedaction(msgspec.Struct, frozen=True):
    """How to redact records: ``replace_record`` is for those of coordinators, ``fields`` where fields are kept.

    With neither, keys and values are replaced as a whole.
    """

    redactor: Redactor
    with_header_names: bool = False
    replace_record: ReplaceRecord | None = None
    fields: FieldRedaction | None = None

    def apply(self, table: RecordTable, target: bytearray) -> list[ReplacedWhole]:
        """Replace keys, values and headers of the table's records in ``target``, a copy of the table's buffer.

        v0 and v1 messages get the CRC of their new content; a wrong CRC stays wrong by the same difference. Returns
        what had no fields to keep.
        """
        wrong_by = self._legacy_checksums(table, target)
        whole: list[ReplacedWhole] = []
        kept_headers: dict[int, set[bytes]] = {}
        if self.replace_record is not None:
            self._replace_records(table, target, self.replace_record)
        elif self.fields is not None:
            self._replace_fields(table, target, self.fields, whole, kept_headers)
        else:
            self._replace(table.buffer, target, table.key_start, table.key_length)
            self._replace(table.buffer, target, table.value_start, table.value_length)
        for row in np.flatnonzero(table.header_count > 0).tolist():
            self._replace_headers(table, target, row, kept_headers.get(row, set()))
        for start, size_bytes, difference in wrong_by:
            crc = crc32_of(memoryview(target)[start + _CRC_START : start + size_bytes]) ^ difference
            target[start + _CRC_AT : start + _CRC_AT + 4] = crc.to_bytes(4, "big")
        return whole

    def _replace(self, buffer: memoryview, target: bytearray, starts: Int64Column, lengths: Int64Column) -> None:
        replaced = self.redactor.replaced
        rows = lengths > 0
        for start, length in zip(starts[rows].tolist(), lengths[rows].tolist(), strict=True):
            end = start + length
            target[start:end] = replaced(bytes(buffer[start:end]))

    def _replace_records(self, table: RecordTable, target: bytearray, replace_record: ReplaceRecord) -> None:
        for row in range(len(table)):
            replaced = replace_record(table.key(row), table.value(row))
            starts = (int(table.key_start[row]), int(table.value_start[row]))
            lengths = (int(table.key_length[row]), int(table.value_length[row]))
            for new, start, length in zip(replaced, starts, lengths, strict=True):
                if length > 0:
                    if new is None or len(new) != length:
                        raise ValueError("a replaced key or value has to keep its length")
                    target[start : start + length] = new

    @staticmethod
    def _replace_fields(
        table: RecordTable,
        target: bytearray,
        fields: FieldRedaction,
        whole: list[ReplacedWhole],
        kept_headers: dict[int, set[bytes]],
    ) -> None:
        """Replace all but the fields to keep; adds what has none, and by row the headers that a reader needs."""
        places = (("key", table.key_start, table.key_length), ("value", table.value_start, table.value_length))
        for row, (batch, offset) in enumerate(zip(table.batch.tolist(), table.offset.tolist(), strict=True)):
            headers = [(name.decode("utf-8", "replace"), value) for name, value in table.headers(row) or ()]
            for field, starts, lengths in places:
                start, length = int(starts[row]), int(lengths[row])
                if length < 0:
                    continue
                new = fields.replaced(field, bytes(table.buffer[start : start + length]), headers)
                if len(new.content) != length:
                    raise ValueError("a replaced key or value has to keep its length")
                target[start : start + length] = new.content
                if new.is_whole and length:
                    whole.append(ReplacedWhole(field, new.schema_id, new.reason, batch, offset))
                if new.headers:
                    kept_headers.setdefault(row, set()).update(name.encode() for name in new.headers)

    def _replace_headers(self, table: RecordTable, target: bytearray, row: int, kept: set[bytes]) -> None:
        """Replace headers but the last one of each name to keep, which is the one that is read."""
        for key_start, key_length, value_start, value_length in reversed(table.header_spans(row)):
            name = bytes(table.buffer[key_start : key_start + key_length])
            if name in kept and value_length > 0:
                kept.remove(name)
                continue
            if self.with_header_names:
                target[key_start : key_start + key_length] = self.redactor.replaced_text(name)
            if value_length > 0:
                value = bytes(table.buffer[value_start : value_start + value_length])
                target[value_start : value_start + value_length] = self.redactor.replaced(value)

    @staticmethod
    def _legacy_checksums(table: RecordTable, target: bytearray) -> list[tuple[int, int, int]]:
        """Start and size of each v0 or v1 message, and the bits in which its stored CRC differs from the right one."""
        rows = table.batches.magic[table.batch] < 2
        found = []
        view = memoryview(target)
        for start, size_bytes in zip(table.start[rows].tolist(), table.size_bytes[rows].tolist(), strict=True):
            stored = int.from_bytes(view[start + _CRC_AT : start + _CRC_AT + 4], "big")
            found.append((start, size_bytes, stored ^ crc32_of(view[start + _CRC_START : start + size_bytes])))
        return found


class RedactedChunk(msgspec.Struct):
    """The redacted batches of a chunk: ``table`` has the rows that could be redacted, with the sizes of ``batches``.

    ``payloads`` are the uncompressed records of each batch, as ``payload_of`` reads them. ``problems`` are about the
    batches that cannot be read to their last byte. ``whole`` are keys and values that had no fields to keep.
    """

    table: BatchTable
    batches: list[bytes]
    payloads: list[bytes | memoryview]
    problems: list[RecordProblem] = msgspec.field(default_factory=list)
    whole: list[ReplacedWhole] = msgspec.field(default_factory=list)


def redact_chunk(
    chunk: BatchChunk,
    which: NDArray[np.bool_],
    redaction: RecordRedaction,
    *,
    limits: Limits = DEFAULT_LIMITS,
    location: Location,
) -> RedactedChunk:
    """The batches ``which`` of a chunk, redacted; the chunk was read with bodies, and its wrappers were opened."""
    is_control = chunk.table.is_control & which
    work = _Work(chunk, chunk.bodies)
    for table in record_tables(chunk, which=which & ~is_control, limits=limits, location=location):
        work.take(table, redaction)
    for table in record_tables(chunk, which=is_control, limits=limits, location=location):
        work.take_control(table, location)
    work.finish()
    rows = np.flatnonzero(which)
    rows = rows[[row not in work.problems for row in rows.tolist()]] if work.problems else rows
    made = [work.made(row, redaction, is_kept=bool(is_control[row])) for row in rows.tolist()]
    columns = chunk.table.columns[rows]
    columns[:, BATCH_COLUMN["size_bytes"]] = [len(batch) for batch, _ in made]
    batches = BatchTable(columns, chunk.table.crc_valid[rows])
    problems = [work.problems[row] for row in sorted(work.problems)]
    payloads = [payload for _, payload in made]
    return RedactedChunk(batches, [batch for batch, _ in made], payloads, problems, work.whole)


class _Work:
    """The redaction of one chunk: ``_image`` has uncompressed batches, ``_payloads`` decompressed ones by row."""

    def __init__(self, chunk: BatchChunk, buffer: memoryview) -> None:
        self._chunk = chunk
        self._buffer = buffer
        self._image = bytearray(buffer)
        self._codecs = chunk.table.codec.tolist()
        self._payloads: dict[int, bytes] = {}
        self.problems: dict[int, RecordProblem] = {}
        self.whole: list[ReplacedWhole] = []
        self._unpacked: memoryview | None = None  # the decompressed buffer that tables come from now
        self._target = bytearray()
        self._extents: dict[int, tuple[int, int]] = {}

    def take(self, table: RecordTable, redaction: RecordRedaction) -> None:
        """Redact the next record table; tables come in order."""
        for problem in table.problems:
            self.problems.setdefault(problem.batch, problem)
        if table.buffer is self._buffer:
            self.whole += redaction.apply(table, self._image)
            return
        if table.buffer is not self._unpacked:
            self.finish()
            self._unpacked, self._target = table.buffer, bytearray(table.buffer)
        if not len(table):  # no batch of it could be read
            return
        self.whole += redaction.apply(table, self._target)
        batches, first = np.unique(table.batch, return_index=True)
        last = np.append(first[1:], len(table)) - 1
        starts, ends = table.start[first], table.start[last] + table.size_bytes[last]
        for row, start, end in zip(batches.tolist(), starts.tolist(), ends.tolist(), strict=True):
            self._extents[row] = (self._extents.get(row, (start, end))[0], end)  # a long batch may span several tables

    def finish(self) -> None:
        """Store the payloads of the current buffer, from which no more tables come."""
        for row, (start, end) in self._extents.items():
            self._payloads[row] = bytes(self._target[start:end])
        self._extents, self._unpacked, self._target = {}, None, bytearray()

    def take_control(self, table: RecordTable, location: Location) -> None:
        """Check the control records of the next table: they are kept, so they must hold only what brokers write."""
        for problem in table.problems:
            self.problems.setdefault(problem.batch, problem)
        for row, batch in enumerate(table.batch.tolist()):
            try:
                _check_control_record(table, row)
            except KafkaLogError as error:
                place = batch_location(location, self._chunk.table, batch)
                self.problems.setdefault(batch, RecordProblem(batch, located(error, place)))

    def made(self, row: int, redaction: RecordRedaction, *, is_kept: bool) -> tuple[bytes, bytes | memoryview]:
        table = self._chunk.table
        start = int(table.position[row]) - self._chunk.buffer_position
        end = start + int(table.size_bytes[row])
        if is_kept:
            batch = bytes(self._buffer[start:end])
            return batch, memoryview(batch)[_HEADER_BYTES:]
        codec, magic = self._codecs[row], int(table.magic[row])
        payload = self._payloads.get(row)
        if magic == 2:
            if payload is None and not codec:
                batch = reseal(self._image[start:end])
                return batch, memoryview(batch)[_HEADER_BYTES:]
            payload = payload or b""
            packed = compress(codec, payload) if codec else payload
            return _v2_batch(self._buffer[start : start + _HEADER_BYTES], packed), payload
        if not codec:  # the CRC was computed with the content
            batch = bytes(self._image[start:end])
            return batch, batch
        if payload is None:
            raise ValueError("a compressed message that was not opened")
        return _wrapper(bytes(self._buffer[start:end]), compress(codec, payload, magic=magic), redaction), payload


def _check_control_record(table: RecordTable, row: int) -> None:
    """Raise KafkaLogError where a control record may hold more than the broker's own numbers."""
    control = decode_control_record(table.key(row), table.value(row))
    if table.header_count[row] > 0 or table.key_length[row] != layout.CONTROL_KEY.size_bytes:
        raise InvalidRecord("a control record holds more than a broker writes", code=_CONTROL_INVALID)
    try:
        problems = decode_control_value(control.type_number, table.value(row)).problems
    except CorruptDataError as error:
        raise InvalidRecord(error.message, code=_CONTROL_INVALID) from error
    if problems:
        if FINDING_CODES[problems[0].code].incomplete:
            raise UnknownVersion(problems[0].message)
        raise InvalidRecord(problems[0].message, code=_CONTROL_INVALID)


def _v2_batch(header: memoryview, packed: bytes) -> bytes:
    length = _HEADER_BYTES - _OVERHEAD + len(packed)
    return reseal(bytes(header[:_LENGTH_AT]) + length.to_bytes(4, "big") + bytes(header[_OVERHEAD:]) + packed)


def _wrapper(message: bytes, packed: bytes, redaction: RecordRedaction) -> bytes:
    """A compressed v0 or v1 message with another value; its own key, which few writers set, is replaced, too."""
    key_at, key, _ = _wrapper_fields(message)
    if key:
        key = redaction.redactor.replaced(key)
    body = message[_OVERHEAD : key_at + 4] + (key or b"") + len(packed).to_bytes(4, "big") + packed
    return reseal(message[:_LENGTH_AT] + len(body).to_bytes(4, "big") + body)


def _wrapper_fields(message: bytes) -> tuple[int, bytes | None, int]:
    """Where a v0 or v1 message's key length lies, its key, and where its value starts."""
    magic = message[layout.MESSAGE_V0.offset_of("magic")]
    key_at = (layout.MESSAGE_V1 if magic == 1 else layout.MESSAGE_V0).size_bytes
    key_length = int.from_bytes(message[key_at : key_at + 4], "big", signed=True)
    key_end = key_at + 4 + max(key_length, 0)
    return key_at, None if key_length < 0 else message[key_at + 4 : key_end], key_end + 4


def payload_of(batch: bytes, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The decompressed content of a batch or message. Raises CorruptDataError, LimitExceeded, UnsupportedError.

    For an uncompressed message it is the message itself; control batches are returned as they are.
    """

    magic = batch[layout.RECORD_BATCH.offset_of("magic")]
    if magic < 2:
        codec = batch[layout.MESSAGE_V0.offset_of("attributes")] & layout.CODEC_MASK
        if not codec:
            return batch
        return decompress(codec, batch[_wrapper_fields(batch)[2] :], magic=magic, limits=limits)
    at = layout.RECORD_BATCH.offset_of("attributes")
    attributes = int.from_bytes(batch[at : at + 2], "big")
    codec = attributes & layout.CODEC_MASK
    if not codec or attributes & layout.CONTROL_BIT or len(batch) == _HEADER_BYTES:
        return batch[_HEADER_BYTES:]
    return decompress(codec, batch[_HEADER_BYTES:], magic=magic, limits=limits)


class ContentDigest:
    """A digest of batches: the header fields that redaction keeps, and the records as they are uncompressed."""

    def __init__(self) -> None:
        self._headers = blake2b()
        self._payloads = blake2b()
        self.batches = 0

    def update(self, table: BatchTable, payloads: Iterable[bytes | memoryview]) -> None:
        """Add the next batches."""
        self._headers.update(np.ascontiguousarray(table.columns[:, _KEPT_COLUMNS]))
        for payload in payloads:
            self._payloads.update(len(payload).to_bytes(8, "big"))
            self._payloads.update(payload)
        self.batches += len(table)

    def value(self) -> bytes:
        """The digest of all batches that were added."""
        return blake2b(self._headers.digest() + self._payloads.digest() + self.batches.to_bytes(8, "big")).digest()


def read_back(became: Became, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Compare the output with the digest of what was to be written. Raises ReadBackMismatch."""
    found = ContentDigest()
    path = became.outputs[0].path if became.outputs else Path()
    location = Location(str(path))
    try:
        for chunk in output_chunks(became.outputs, limits):
            starts, ends = batch_spans(chunk, np.arange(len(chunk.table)))
            buffer = chunk.bodies
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            found.update(chunk.table, (payload_of(bytes(buffer[start:end]), limits) for start, end in spans))
    except OutputError:
        raise
    except KafkaLogError as error:
        raise ReadBackMismatch(f"what was written cannot be read back: {error.message}", location) from error
    if found.value() != (became.digest or ContentDigest().value()):
        raise ReadBackMismatch("what was read back is not what was written", location)
