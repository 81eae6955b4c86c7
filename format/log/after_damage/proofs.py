"""Proofs from the bytes of a damaged batch: where it ends, and whether an intact batch is a value inside it."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.io.source import Source
from format.kernel.records import index_records
from format.kernel.tables import RECORD_COLUMNS, RESULT_COLUMNS, SPAN_COLUMNS
from format.log.after_damage.candidates import CandidateSearch
from format.log.batch_header import HEADER_BYTES, MAGIC_AT

#: Damaged records are decoded, to find their ends, in at most this many bytes.
_DECODED_BYTES = 1024 * 1024
_LENGTH_BYTES = 4
_LAST_DELTA_AT = layout.RECORD_BATCH.offset_of("last_offset_delta")
#: The sizes of varints that prove a length; one byte may have the right value by chance.
_VARINT_BYTES = range(2, 6)

#: The position of the key's length in a v0 and in a v1 message.
_KEY_LENGTHS_AT = (layout.MESSAGE_V0.size_bytes, layout.MESSAGE_V1.size_bytes)
#: The least distance of a record's value from the start of its v2 batch.
_VALUE_OF_RECORD_AT = HEADER_BYTES + layout.MIN_RECORD_BYTES - 1
_NO_SPANS: NDArray[np.int64] = np.empty((0, 3), np.int64)


class DamagedBatch:
    """The bytes from a position on at which a batch should start but no intact batch does."""

    def __init__(self, source: Source, position: int, end: int, search: CandidateSearch) -> None:
        self._position = position
        self._end = end
        self._source = source
        self._search = search
        self._spans = _record_spans(source, position + HEADER_BYTES, end)
        self._ends = frozenset(self._spans[:, 1].tolist())

    def proof_of_end(self, position: int) -> str:
        """The proof that the batch ends at ``position``, for a message; empty for none."""
        wrong = wrong_field(self._source, self._search, self._position, position)
        if wrong is not None:
            return wrong.words
        if position in self._ends:
            return "its header is damaged; its records end where the next batch starts"
        return ""

    def covers(self, start: int, end: int) -> bool:
        """Whether these bytes are in a record, or are a value, by the lengths before them.

        A record counts if a record with the next offset follows it, or if it ends with the batch.
        """
        if self._is_value(start, end):
            return True
        row = int(np.searchsorted(self._spans[:, 0], start, "right")) - 1
        if row < 0 or int(self._spans[row, 1]) < end:
            return False
        if row + 1 == len(self._spans):
            return int(self._spans[row, 1]) == self._end
        return int(self._spans[row + 1, 2]) == int(self._spans[row, 2]) + 1

    def _is_value(self, start: int, end: int) -> bool:
        if value_end_in_message(self._source, self._position, start) == end:
            return True
        return start - self._position >= _VALUE_OF_RECORD_AT and _is_value_of_record(self._source, start, end)


class WrongField(msgspec.Struct, frozen=True):
    """The length or the magic of a batch whose CRC is right with another value, and the offsets of the batch.

    For a compressed v0 or v1 message both offsets are its last one.
    """

    field: str
    wrong: int
    right: int
    first_offset: int
    last_offset: int

    @property
    def words(self) -> str:
        """The proof for a message."""
        how = f"for a length of {self.right}" if self.field == "length" else f"for a magic of {self.right}"
        return f"only its {self.field} is wrong: its CRC is right {how}"

    @property
    def readable(self) -> tuple[int, int] | None:
        """The offsets of the batch, whose records are intact; None if its header contradicts itself."""
        return None if self.last_offset < self.first_offset else (self.first_offset, self.last_offset)


def wrong_field(source: Source, search: CandidateSearch, position: int, end: int) -> WrongField | None:
    """The one wrong field of a damaged batch from ``position`` to ``end``, proven by its CRC; None for no proof."""
    header = source.read_at(position, HEADER_BYTES)
    if len(header) <= MAGIC_AT:
        return None
    magic = int.from_bytes(header[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
    is_old = magic in (0, 1) and search.is_crc_right(position, end)  # which covers the magic
    if not is_old and (len(header) < HEADER_BYTES or not search.is_crc_right(position, end, is_v2=True)):
        return None
    first, length = layout.LOG_ENTRY.struct.unpack_from(header)
    right_length = end - position - layout.LOG_ENTRY.size_bytes
    delta = 0 if is_old else int.from_bytes(header[_LAST_DELTA_AT : _LAST_DELTA_AT + _LENGTH_BYTES], "big", signed=True)
    if (is_old or magic == 2) and length != right_length:
        return WrongField("length", length, right_length, first, first + delta)
    if not is_old and magic != 2 and length == right_length:
        return WrongField("magic", magic, 2, first, first + delta)
    return None  # both are wrong, or none is


def _record_spans(source: Source, start: int, end: int) -> NDArray[np.int64]:
    """Start, end and offset delta of consecutive v2 records from a position on: int64 of shape (n, 3)."""
    if start >= end:
        return _NO_SPANS
    content = source.read_at(start, min(HEADER_BYTES, end - start))
    found = _decoded(content, len(content))
    if not len(found) and not _may_be_record(content, end - start):
        return _NO_SPANS
    content = source.read_at(start, min(_DECODED_BYTES, end - start))
    found = _decoded(content, len(content))
    found[:, :2] += start
    return found


def _may_be_record(content: bytes, room: int) -> bool:
    """Whether a record longer than ``content`` may start with these bytes: with its length, and attributes of 0."""
    length, at = _varint(content)
    return 0 < length <= room and at < len(content) and content[at] == 0


def _decoded(content: bytes, size: int) -> NDArray[np.int64]:
    most = size // layout.MIN_RECORD_BYTES + 1
    spans = np.zeros((1, len(SPAN_COLUMNS)), np.int64)
    spans[0, SPAN_COLUMNS.index("end")], spans[0, SPAN_COLUMNS.index("record_count")] = size, most
    columns = np.empty((most, len(RECORD_COLUMNS)), np.int64)
    results = np.zeros((1, len(RESULT_COLUMNS)), np.int64)
    count = index_records(memoryview(content), memoryview(spans), 0, 1, memoryview(columns), 0, memoryview(results))
    start, length, offset = (RECORD_COLUMNS.index(name) for name in ("start", "size_bytes", "offset"))
    rows = columns[:count]
    return np.column_stack((rows[:, start], rows[:, start] + rows[:, length], rows[:, offset]))


def value_end_in_message(source: Source, message_start: int, position: int) -> int:
    """The end of the value that starts at ``position`` in a v0 or v1 message; -1 if no value starts there.

    The length of the key must lead there too, since any four bytes may look like the length of a value.
    """
    for key_length_at in _KEY_LENGTHS_AT:
        key_length = _int32(source, message_start + key_length_at)
        if key_length_at + 2 * _LENGTH_BYTES + max(key_length, 0) == position - message_start:
            return position + _int32(source, position - _LENGTH_BYTES)
    return -1


def _int32(source: Source, position: int) -> int:
    return int.from_bytes(source.read_at(position, _LENGTH_BYTES), "big", signed=True)


def _is_value_of_record(source: Source, start: int, end: int) -> bool:
    """Whether these bytes follow their length, as a v2 record's value does, and a header count of 0 follows them."""
    first = max(0, start - _VARINT_BYTES[-1])
    before = source.read_at(first, start - first)
    for count in _VARINT_BYTES:
        if count <= len(before) and before[-1] and _varint(before[-count:]) == (end - start, count):
            return source.read_at(end, 1) == b"\x00"
    return False


def _varint(content: bytes) -> tuple[int, int]:
    """The zigzag varint at the start of the bytes, and its size in bytes; (-1, 0) for none."""
    value = 0
    for number, byte in enumerate(content[: _VARINT_BYTES[-1]]):
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), number + 1
    return -1, 0
