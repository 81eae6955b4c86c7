"""Damaged batches: intact batches after or inside them, where they end, and whether their lengths can be trusted.

The CRC does not cover the length, so the length may be the damaged part; then it leads into the middle of another
batch, or past whole batches. The header at the end of the batch decides, not the bytes of the batch, which may be
anything.

CRCs are linear: the CRC of a part of a file follows from those of the file up to its start and up to its end. So the
file is read once, and the CRC up to every 4 KiB is kept. A header with a wrong length of many megabytes costs only a
few KiB.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32_of, crc32c_of, crc_tables
from format.errors import CorruptDataError
from format.io.source import Source
from format.kernel.headers import find_candidate
from format.kernel.records import index_records
from format.kernel.tables import RECORD_COLUMNS, RESULT_COLUMNS, SPAN_COLUMNS
from format.limits import Limits
from format.log.batch_header import CRC_BYTES, HEADER_BYTES, MAGIC_AT, Header, crc_fields, crc_in_file, read_header
from format.log.regions import zigzag_varint

#: Parts of at most this many bytes are read directly.
DIRECT_BYTES = 16 * 1024
_STEP_BYTES = 4 * 1024
_READ_BYTES = 1024 * 1024
_BYTE_VALUES = 256


class CrcIndex:
    """CRCs of parts of one file: CRC-32C for ``is_v2``, else CRC-32."""

    def __init__(self, source: Source, end: int, *, is_v2: bool) -> None:
        self._source = source
        self._end = end
        self._is_v2 = is_v2
        self._crc_of = crc32c_of if is_v2 else crc32_of
        self._runs: list[_Run] = []  # by their starts, and so by their ends too

    def crc(self, start: int, stop: int) -> int | None:
        """The CRC of the bytes from ``start`` to ``stop``; None if the file is shorter."""
        if stop - start <= DIRECT_BYTES:
            content = self._source.read_at(start, stop - start)
            return self._crc_of(content, 0) if len(content) == stop - start else None
        if stop > self._end:
            return crc_in_file(self._source, start, stop, is_v2=self._is_v2)
        run = self._run(start, stop)
        before, up_to = run.up_to(start), run.up_to(stop)
        at = self._runs.index(run) + 1
        while at < len(self._runs) and self._runs[at].end <= run.end:
            del self._runs[at]
        return None if before is None or up_to is None else up_to ^ _with_zeros(before, stop - start, self._is_v2)

    def _run(self, start: int, stop: int) -> _Run:
        """The run to compute the CRC of a part from: the one before it, unless that ends further away than it is long.

        So damaged places that are far apart cost nothing of the bytes between them.
        """
        at = bisect_right(self._runs, start, key=lambda run: run.start)
        if not at or start - self._runs[at - 1].end > max(stop - start, _READ_BYTES):
            self._runs.insert(at, _Run(self._source, start, self._crc_of))
            return self._runs[at]
        return self._runs[at - 1]


class _Run:
    """The CRCs from ``start`` up to each multiple of _STEP_BYTES, as far as they were needed."""

    def __init__(self, source: Source, start: int, crc_of: Callable[[bytes | memoryview, int], int]) -> None:
        self.start = start
        self._source = source
        self._crc_of = crc_of
        self._kept = array("I", [0])

    @property
    def end(self) -> int:
        return self.start + len(self._kept) * _STEP_BYTES

    def up_to(self, position: int) -> int | None:
        """The CRC from the start up to a position; None if the file is shorter."""
        step = (position - self.start) // _STEP_BYTES
        while len(self._kept) <= step:
            self._keep_more()
        rest = self.start + step * _STEP_BYTES
        content = self._source.read_at(rest, position - rest)
        return self._crc_of(content, self._kept[step]) if len(content) == position - rest else None

    def _keep_more(self) -> None:
        """Read on, and keep the CRCs of the next steps."""
        content = memoryview(self._source.read_at(self.end - _STEP_BYTES, _READ_BYTES))
        crc = self._kept[-1]
        for at in range(0, max(len(content), 1), _STEP_BYTES):
            crc = self._crc_of(content[at : at + _STEP_BYTES], crc)
            self._kept.append(crc)


def _with_zeros(crc: int, count: int, is_v2: bool) -> int:
    """The CRC after ``count`` more zero bytes, without the CRC of the zeros themselves."""
    power = 0
    while count:
        if count & 1:
            low, second, third, high = zeros_tables(power, is_v2)
            crc = low[crc & 0xFF] ^ second[crc >> 8 & 0xFF] ^ third[crc >> 16 & 0xFF] ^ high[crc >> 24]
        count >>= 1
        power += 1
    return crc


@cache
def zeros_tables(power: int, is_v2: bool) -> tuple[list[int], ...]:
    """Tables of the CRC after ``2 ** power`` more zero bytes: one for each byte of the CRC, by the byte's value."""
    if power:
        before = np.array(zeros_tables(power - 1, is_v2), np.uint32)
    else:
        first = 0 if is_v2 else len(crc_tables()) // 2
        byte_table = np.array(crc_tables()[first : first + _BYTE_VALUES], np.uint32)
        values = np.arange(_BYTE_VALUES, dtype=np.uint32)
        return tuple(
            ((crc >> np.uint32(8)) ^ byte_table[crc & np.uint32(0xFF)]).tolist()
            for crc in (values << np.uint32(8 * number) for number in range(4))
        )
    after = np.zeros_like(before)
    for number in range(4):
        after ^= before[number][before >> np.uint32(8 * number) & np.uint32(0xFF)]
    return tuple(after.tolist())


_FIRST_WINDOW_BYTES = 8 * 1024
_WINDOW_BYTES = 1024 * 1024
#: The CRCs of this many candidates larger than DIRECT_BYTES are computed, and of one more for each _BYTES_FOR_A_LOOK
#: bytes searched. In a hostile file every byte may look like the start of a batch; then some candidates are skipped.
_FIRST_LOOKS = 20_000
#: The values of the fields of large batches that may be searched for: the attributes have a byte to spare.
_MOST_ATTRIBUTES = 0xFF
_LEAST_VALUES = {
    "last_offset_delta": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "record_count": 0,
}  # fmt: skip
_BYTES_FOR_A_LOOK = 1024


class CandidateSearch:
    """Searches one file for intact batches, in a time that does not depend on the sizes in their headers."""

    def __init__(self, source: Source, end: int, limits: Limits) -> None:
        self._source = source
        self._end = end
        self._crcs = {is_v2: CrcIndex(source, end, is_v2=is_v2) for is_v2 in (False, True)}
        self._looks_left = _FIRST_LOOKS
        #: Larger batches are not read.
        self.most_bytes = limits.max_decompressed_bytes + HEADER_BYTES

    def intact_from(self, start: int, stop: int | None = None) -> Iterator[Header]:
        """Batches with a plausible header and a right CRC, by position; they may overlap."""
        stop = self._end if stop is None else stop
        position, window_bytes = start, _FIRST_WINDOW_BYTES
        while position < stop:
            data_start, data_end = self._source.data_range(position)
            if data_start >= stop:
                return
            # A header may start with the last zeros of a hole, and end with the first zeros of the next one.
            position = max(position, data_start - HEADER_BYTES)
            length = min(window_bytes, data_end - position)
            content = self._source.read_at(position, min(length + HEADER_BYTES, stop - position))
            if not content:
                return
            self._looks_left += length // _BYTES_FOR_A_LOOK
            if content.count(0) != len(content):  # not preallocated
                yield from self._intact_in(memoryview(content), position, length, stop)
            position += length
            window_bytes = min(4 * window_bytes, _WINDOW_BYTES)

    def _intact_in(self, window: memoryview, position: int, window_bytes: int, stop: int) -> Iterator[Header]:
        at = 0
        while at < window_bytes:
            room, end = min(self.most_bytes, stop - position - at), len(window)
            if self._looks_left <= 0:  # find_candidate counts the room from the start of the search
                room, end = min(room, DIRECT_BYTES), min(end, at + DIRECT_BYTES // 2 + HEADER_BYTES)
            next_at = find_candidate(window, at, end, 0, room)
            if next_at < 0 and end < len(window):
                at += DIRECT_BYTES // 2
                continue
            if next_at < 0 or next_at >= window_bytes:
                return
            at = next_at
            found = self.intact_at(position + at, stop)
            if found is not None:
                yield found
            at += 1

    def intact_at(self, position: int, stop: int | None = None) -> Header | None:
        """The header of the intact batch at a position, None for none."""
        header = read_header(self._source, position)
        if header is None or header.end_position > (self._end if stop is None else stop):
            return None
        return header if self.is_intact(header) else None

    def is_intact(self, header: Header) -> bool:
        """Whether the CRC of a batch is right; False for a batch of more than ``most_bytes``."""
        is_large = header.size_bytes > DIRECT_BYTES
        self._looks_left -= is_large
        if header.size_bytes > self.most_bytes or (is_large and not self._is_plausible(header)):
            return False
        return self.is_crc_right(header.position, header.end_position)

    def _is_plausible(self, header: Header) -> bool:
        """Whether the other fields of a large batch can be right. Its CRC is that of the rest of the file otherwise.

        Each damaged page has some headers by chance. A v0 or v1 message must end where its value does.
        """
        if header.magic == 2:
            fields = layout.RECORD_BATCH.struct.unpack(self._source.read_at(header.position, HEADER_BYTES))
            values = dict(zip((each.name for each in layout.RECORD_BATCH.fields), fields, strict=True))
            is_plausible = 0 <= values["attributes"] <= _MOST_ATTRIBUTES
            return is_plausible and all(values[name] >= least for name, least in _LEAST_VALUES.items())
        key_length_at = header.position + _KEY_LENGTHS_AT[header.magic]
        value_length_at = key_length_at + _LENGTH_BYTES + max(_int32(self._source, key_length_at), 0)
        value_length = _int32(self._source, value_length_at)
        return value_length_at + _LENGTH_BYTES + max(value_length, 0) == header.end_position

    def is_crc_right(self, start: int, stop: int, *, is_v2: bool = False) -> bool:
        """Whether the stored CRC of the batch at ``start`` is right if the batch ends at ``stop``.

        The format is that of its magic, or v2 for any magic if ``is_v2``.
        """
        header = self._source.read_at(start, HEADER_BYTES)
        if len(header) <= MAGIC_AT:
            return False
        stored_at, covered_from, is_v2 = crc_fields(2 if is_v2 else header[MAGIC_AT])
        stored = int.from_bytes(header[stored_at : stored_at + CRC_BYTES], "big")
        return stop > start + covered_from and self._crcs[is_v2].crc(start + covered_from, stop) == stored


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
    try:
        return zigzag_varint(content, 0, min(len(content), _VARINT_BYTES[-1]))
    except CorruptDataError:
        return -1, 0


#: This many consecutive damaged batches are followed; their lengths are trusted if there are more.
_LONGEST_LOOK = 16
#: A batch is not trusted if it ends more than this many bytes inside the zeros at the end of the file.
_MOST_ZEROS = 4096


class Trust(Enum):
    """Whether the length of a batch with a wrong CRC is right."""

    NO = 0
    YES = 1
    OPEN = 2  # a batch starts at its end, but intact batches are inside: values, or batches that a wrong length covers


class ChainTrust:
    """Judges the lengths of damaged batches in one file. A chain of damaged batches is followed once."""

    def __init__(self, source: Source, end: int, search: CandidateSearch) -> None:
        self._source = source
        self._end = end
        self._search = search
        self._zeros_from: int | None = None
        self._followed: set[int] = set()  # positions of the batches in the last chain

    def trust_in(self, position: int) -> Trust:
        """Whether the length of the batch at ``position``, whose CRC is wrong, is right."""
        batch = read_header(self._source, position)
        if batch is None or batch.end_position > self._end:
            return Trust.NO
        if position not in self._followed and not self.leads_on(batch):
            return Trust.NO
        following = read_header(self._source, batch.end_position) if batch.end_position < self._end else None
        damaged = DamagedBatch(self._source, position, batch.end_position, self._search)
        trust = Trust.YES
        for found in self._search.intact_from(position + 1, batch.end_position):
            if damaged.proof_of_end(found.position):
                return Trust.NO
            if found.end_position == batch.end_position and batch.magic == 2:
                return Trust.NO  # not a value: the number of headers follows the value of a record
            if _fits_between(found, batch, following) and not damaged.covers(found.position, found.end_position):
                trust = Trust.OPEN
        return trust

    def _zeros_start(self) -> int:
        """The position of the zero bytes at the end of the file, which were preallocated or left by a crash."""
        position = self._end if self._zeros_from is None else self._zeros_from
        window_bytes = _WINDOW_BYTES
        while self._zeros_from is None and position > 0:
            start = max(0, position - window_bytes)
            last = self._last_data(start, position)
            if last is None:  # a hole
                position = start
                window_bytes *= 2
                continue
            start, end = max(last[0], last[1] - _WINDOW_BYTES), last[1]
            content = self._source.read_at(start, end - start).rstrip(b"\0")
            position = start + len(content)
            window_bytes = _WINDOW_BYTES
            if content:
                break
        self._zeros_from = position
        return position

    def _last_data(self, start: int, stop: int) -> tuple[int, int] | None:
        """Start and end of the last bytes between two positions that are not in a hole; None for none."""
        last = None
        data_start, data_end = self._source.data_range(start)
        while data_start < stop:
            last = data_start, min(data_end, stop)
            data_start, data_end = self._source.data_range(data_end)
        return last

    def leads_on(self, batch: Header) -> bool:
        """Whether a batch starts, or the log ends, at the end of ``batch`` by its length."""
        if batch.end_position > self._end:
            return False
        at, followed = batch, {batch.position}
        for _ in range(_LONGEST_LOOK):
            if at.end_position >= self._end:
                break
            following = read_header(self._source, at.end_position)
            if following is None:
                if not 0 <= at.end_position - self._zeros_start() <= _MOST_ZEROS:
                    return False
                break
            if at.is_followed_by(following):
                break
            if following.end_position > self._end:
                return False
            if self._search.is_intact(following):
                break
            if following.base_offset <= at.base_offset:
                return False
            at = following
            followed.add(at.position)
        self._followed = followed
        return True


def _fits_between(found: Header, batch: Header, following: Header | None) -> bool:
    """Whether the offsets of a batch inside a damaged batch fit between those of the damaged batch and the next one.

    True if the offsets of these two contradict each other.
    """
    last = max(batch.last_offset, batch.base_offset)
    if following is None:
        return found.base_offset == last + 1 and found.end_position < batch.end_position
    return following.base_offset <= last or last < found.base_offset <= found.last_offset < following.base_offset
