"""Compares batches that were written and read back with the source batches that they were made from.

Batches that end at the same offset are compared. A pair of v2 batches with equal headers (except codec, length and CRC)
and the same decompressed bytes holds equal records. Otherwise every record is compared: its offset, timestamp, key,
value, headers, and the fields of its batch that apply to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.codecs import decompress
from format.errors import KafkaLogError, OutputError
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.encode_batches import HEADER_BYTES, batch_spans
from format.log.read_records import record_tables
from format.log.record_table import OF_BATCH, RecordTable, differ_in_numbers, next_other_bytes
from format.wording import counted_plainly


class ReadBackMismatch(OutputError):
    """What was read back differs from the source."""

    code = "output-failed"


class Rows(NamedTuple):
    """Batches of one chunk, in order, by their row numbers."""

    chunk: BatchChunk
    rows: NDArray[np.intp]

    @property
    def table(self) -> BatchTable:
        return self.chunk.table.rows(self.rows)


class Pair(msgspec.Struct, frozen=True):
    """Neighbouring batches of the source and of the output that end at the same offset."""

    source: tuple[Rows, ...]
    output: tuple[Rows, ...]

    def is_one_to_one(self) -> bool:
        """Whether every source batch became one output batch with the same last offset, and all are v2."""
        if len(self.source) > 1 or len(self.output) > 1 or len(self.source[0].rows) != len(self.output[0].rows):
            return False
        source, output = self.source[0].table, self.output[0].table
        are_v2 = (source.magic == 2).all() and (output.magic == 2).all()
        return bool(are_v2 and (source.last_offset == output.last_offset).all())


class _Side:
    """The batches of the source or of the output, taken from one chunk after the other."""

    def __init__(self, chunks: Iterator[Rows]) -> None:
        self._chunks = chunks
        self._next = 0
        self._rows: Rows | None = None
        self._ends: NDArray[np.int64] = np.empty(0, np.int64)

    def has_more(self) -> bool:
        """Whether a batch is left; makes its chunk the current one."""
        while self._next >= len(self._ends):
            self._rows = next(self._chunks, None)
            if self._rows is None:
                return False
            self._next, self._ends = 0, self._rows.table.last_offset
        return True

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last offsets of the batches left in the current chunk."""
        return self._ends[self._next :]

    def take_to(self, last_offset: int) -> Rows:
        """The batches of the current chunk up to this offset."""
        if self._rows is None:
            raise ValueError("no chunk is open")
        first = self._next
        self._next += int(np.searchsorted(self.ends, last_offset, "right"))
        return Rows(self._rows.chunk, self._rows.rows[first : self._next])


def paired(source: Iterator[Rows], output: Iterator[Rows], location: Location) -> Iterator[Pair]:
    """The batches of both sides in pairs that end at the same offset. Raises ReadBackMismatch where there is none."""
    left, right = _Side(source), _Side(output)
    while left.has_more() | right.has_more():
        from_source: list[Rows] = []
        from_output: list[Rows] = []
        common: int | None = None
        while common is None:
            if not (left.has_more() and right.has_more()):
                raise ReadBackMismatch("the output and the source do not end at the same offset", location)
            common = _last_common(left.ends, right.ends)
            # Without a common offset the chunk that ends first is taken whole, and the next chunk is searched.
            end = min(int(left.ends[-1]), int(right.ends[-1])) if common is None else common
            from_source += _taken(left, end)
            from_output += _taken(right, end)
        yield Pair(tuple(from_source), tuple(from_output))


def _last_common(left: NDArray[np.int64], right: NDArray[np.int64]) -> int | None:
    """The highest number that is in both rising arrays; None for none."""
    nearest = np.minimum(np.searchsorted(right, left), len(right) - 1)
    common = left[right[nearest] == left]
    return int(common[-1]) if len(common) else None


def _taken(side: _Side, last_offset: int) -> list[Rows]:
    rows = side.take_to(last_offset)
    return [rows] if len(rows.rows) else []


def compare(pair: Pair, limits: Limits, location: Location) -> None:
    """Compare a pair. Raises ReadBackMismatch at the first record that differs."""
    if pair.is_one_to_one():
        _compare_run(pair.source[0], pair.output[0], limits, location)
    else:
        _compare_records(*_without_copies(pair), limits, location)


def _without_copies(pair: Pair) -> tuple[tuple[Rows, ...], tuple[Rows, ...]]:
    """Both sides without the batches that were copied byte for byte, whose records may be unreadable."""
    ends = [np.concatenate([each.table.last_offset for each in side]) for side in (pair.source, pair.output)]
    spans = [[span for each in side for span in _contents(each)] for side in (pair.source, pair.output)]
    are_left = [np.ones(len(each), bool) for each in ends]
    _, source_rows, output_rows = np.intersect1d(ends[0], ends[1], assume_unique=True, return_indices=True)
    for left, right in zip(source_rows.tolist(), output_rows.tolist(), strict=True):
        if len(spans[0][left]) == len(spans[1][right]) and bytes(spans[0][left]) == bytes(spans[1][right]):
            are_left[0][left] = are_left[1][right] = False
    return _picked(pair.source, are_left[0]), _picked(pair.output, are_left[1])


def _contents(rows: Rows) -> Iterator[memoryview]:
    buffer = rows.chunk.bodies
    starts, ends = batch_spans(*rows)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield buffer[start:end]


def _picked(side: tuple[Rows, ...], which: NDArray[np.bool_]) -> tuple[Rows, ...]:
    """The batches of a side that a mask over all of them selects."""
    parts = np.split(which, np.cumsum([len(each.rows) for each in side])[:-1])
    return tuple(Rows(each.chunk, each.rows[part]) for each, part in zip(side, parts, strict=True) if part.any())


def _compare_run(source: Rows, output: Rows, limits: Limits, location: Location) -> None:
    """Compare all headers at once, then the decompressed bytes of each batch, and records only where these differ."""
    spans = (each.tolist() for side in (source, output) for each in batch_spans(*side))
    bytes_of_source, bytes_of_output = source.chunk.bodies, output.chunk.bodies
    codecs = source.table.codec.tolist(), output.table.codec.tolist()
    are_same = source.table.same_headers(output.table).tolist()
    for number, (is_same, codec, new_codec, start, end, new_start, new_end) in enumerate(
        zip(are_same, *codecs, *spans, strict=True)
    ):
        payload = bytes_of_source[start + HEADER_BYTES : end]
        new_payload = bytes_of_output[new_start + HEADER_BYTES : new_end]
        if not (is_same and _is_same_payload(payload, codec, new_payload, new_codec, limits)):
            one = slice(number, number + 1)
            _compare_records((_part(source, one),), (_part(output, one),), limits, location)


def _part(rows: Rows, which: slice) -> Rows:
    return Rows(rows.chunk, rows.rows[which])


def _is_same_payload(payload: memoryview, codec: int, new_payload: memoryview, new_codec: int, limits: Limits) -> bool:
    """Whether two payloads decompress to the same bytes; False where one cannot be decompressed."""
    # Compared as bytes: memoryviews compare element by element, which takes longer than a copy.
    if codec == new_codec and len(payload) == len(new_payload) and bytes(payload) == bytes(new_payload):
        return True
    try:
        plain = decompress(codec, payload, magic=2, limits=limits) if codec else bytes(payload)
        new_plain = decompress(new_codec, new_payload, magic=2, limits=limits) if new_codec else bytes(new_payload)
    except KafkaLogError:
        return False
    return plain == new_plain


def _compare_records(source: tuple[Rows, ...], output: tuple[Rows, ...], limits: Limits, location: Location) -> None:
    """Compare every record, many at once."""
    left, right = _Records(source, limits), _Records(output, limits)
    try:
        while count := min(left.available(), right.available()):
            _compare_tables(left.take(count), right.take(count), location)
        counts = left.rest() + left.taken, right.rest() + right.taken
    except ReadBackMismatch:
        raise
    except KafkaLogError as error:
        raise ReadBackMismatch(f"cannot be read back: {error.message}", error.location or location) from error
    if counts[0] != counts[1]:
        first = (source or output)[0].table.base_offset[0]
        raise ReadBackMismatch(
            f"{counted_plainly(counts[0], 'record')} became {counts[1]}, from offset {first} on", location
        )


class _Records:
    """The records of some batches, in order, as tables over one buffer each."""

    def __init__(self, batches: Iterable[Rows], limits: Limits) -> None:
        self._tables = _tables(batches, limits)
        self._table: RecordTable | None = None
        self._next = 0
        self.taken = 0

    def available(self) -> int:
        """How many records are left of the current table, 0 after the last one.

        Raises CorruptDataError, LimitExceeded.
        """
        while self._table is None or self._next >= len(self._table):
            self._table, self._next = next(self._tables, None), 0
            if self._table is None:
                return 0
        return len(self._table) - self._next

    def take(self, count: int) -> RecordTable:
        """The next ``count`` records of the current table."""
        if self._table is None:
            raise ValueError("nothing is available")
        rows = slice(self._next, self._next + count)
        self._next += count
        self.taken += count
        return self._table.rows(rows)

    def rest(self) -> int:
        """Count the records that are left, and consume them."""
        left = self.available()
        return left + sum(map(len, self._tables))


def _tables(batches: Iterable[Rows], limits: Limits) -> Iterator[RecordTable]:
    for chunk, rows in batches:
        which = np.zeros(len(chunk.table), bool)
        which[rows] = True
        for table in record_tables(chunk, which=which, limits=limits):
            if table.problems:
                raise table.problems[0].error
            yield table


def _compare_tables(source_part: RecordTable, output_part: RecordTable, location: Location) -> None:
    """Compare two tables of equally many records. Raises ReadBackMismatch."""
    are_other = differ_in_numbers(source_part, output_part)
    if are_other.any():
        _raise_difference(source_part, output_part, int(are_other.argmax()), location)
    row = -1
    while (row := next_other_bytes(source_part, output_part, row + 1)) >= 0:
        _raise_difference(source_part, output_part, row, location)


def _raise_difference(source_part: RecordTable, output_part: RecordTable, row: int, location: Location) -> None:
    """Raise ReadBackMismatch for a record that differs in a value, not only in how its headers are encoded."""
    sides = _values(source_part, row), _values(output_part, row)
    names = [name for name, a, b in zip(_FIELDS, *sides, strict=True) if a != b]
    if names:
        raise ReadBackMismatch(f"the record of offset {sides[0][0]} differs in {', '.join(names)}", location)


_FIELDS = (
    "offset",
    "timestamp",
    "sequence",
    *(name.replace("_", " ") for name in OF_BATCH),
    "key",
    "value",
    "headers",
)


def _values(table: RecordTable, row: int) -> tuple[object, ...]:
    of_record = int(table.offset[row]), int(table.timestamp[row]), int(table.sequence[row])
    batch = int(table.batch[row])
    of_batch = (int(getattr(table.batches, name)[batch]) for name in OF_BATCH)
    return (*of_record, *of_batch, table.key(row), table.value(row), table.headers(row) or [])
