"""Reads back what was written and compares it with its source, record by record.

Batches that hold the same offsets are held against each other. Where both are v2 with equal headers (codec, length and
CRC aside) and their records are the same bytes once decompressed, nothing can differ, and many are compared in one go;
otherwise every record's offset, timestamp, key, value and headers are compared, and what its batch says of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from format.batches import BatchChunk, BatchTable
from format.codecs import decompress
from format.errors import KafkaLogError, OutputError
from format.limits import Limits
from format.location import Location
from format.operations.batch_headers import HEADER_BYTES, batch_spans
from format.records import RecordTable, record_tables

#: A run ends where it has so many bytes of the source, unless told otherwise, or so many batches.
_MOST_RUN_BYTES = 2 * 1024 * 1024
_MOST_RUN_ROWS = 4096


class ReadBackMismatch(OutputError):
    """What was read back is not what the source says."""

    code = "output-failed"


class Rows(NamedTuple):
    """Batches of one chunk, in order, by their row numbers."""

    chunk: BatchChunk
    rows: NDArray[np.intp]


class PlacedBatch(NamedTuple):
    """One batch: its chunk, its row in it, its last offset and its bytes."""

    chunk: BatchChunk
    row: int
    last_offset: int
    content: memoryview


@dataclass(frozen=True, slots=True)
class Pair:
    """Neighbouring batches of the source and of the output that end at the same offset."""

    source: tuple[PlacedBatch, ...]
    output: tuple[PlacedBatch, ...]

    @property
    def source_bytes(self) -> int:
        return sum(len(each.content) for each in self.source)


@dataclass(frozen=True, slots=True)
class RunOfPairs:
    """As many v2 batches of the source as of the output, which end at the same offset one by one."""

    source: Rows
    output: Rows
    source_bytes: int


class _Side:
    """The batches of the source or of the output, taken one by one or as rows of a chunk."""

    def __init__(self, chunks: Iterator[Rows], location: Location) -> None:
        self._chunks = chunks
        self._location = location
        self._next = self._count = 0
        self._chunk: BatchChunk
        self._rows: NDArray[np.intp]
        self._last_offset: NDArray[np.int64]
        self._is_v2: NDArray[np.bool_]
        self._end_bytes: NDArray[np.int64]  # of the rows up to each and itself, the size

    def has_more(self) -> bool:
        """Whether a batch is left; makes its chunk the current one."""
        while self._next >= self._count:
            following = next(self._chunks, None)
            if following is None:
                return False
            self._chunk, self._rows = following
            table = self._chunk.table
            self._last_offset = table.last_offset[self._rows]
            self._is_v2 = table.magic[self._rows] == 2
            self._end_bytes = np.cumsum(table.size_bytes[self._rows])
            self._next, self._count = 0, len(self._rows)
        return True

    def same_ends(self, other: _Side, most_bytes: int) -> int:
        """How many of the next batches of both chunks are v2 and end alike one by one; of no more than a run has."""
        count = min(self._count - self._next, other._count - other._next, _MOST_RUN_ROWS)
        mine, theirs = slice(self._next, self._next + count), slice(other._next, other._next + count)
        before = int(self._end_bytes[self._next - 1]) if self._next else 0
        count = min(count, 1 + int(np.searchsorted(self._end_bytes[mine], before + most_bytes)))
        are_alike = self._last_offset[mine] == other._last_offset[theirs]
        are_alike &= self._is_v2[mine] & other._is_v2[theirs]
        return count if are_alike[:count].all() else int(are_alike.argmin())

    def take(self, count: int) -> tuple[Rows, int]:
        """So many batches of the current chunk, and their size in bytes."""
        before = int(self._end_bytes[self._next - 1]) if self._next else 0
        rows = self._rows[self._next : self._next + count]
        self._next += count
        return Rows(self._chunk, rows), int(self._end_bytes[self._next - 1]) - before

    def take_one(self) -> PlacedBatch:
        """The next batch; raises ReadBackMismatch where there is none."""
        if not self.has_more():
            raise ReadBackMismatch("the output and the source do not end at the same offset", self._location)
        self._next += 1
        return _placed(Rows(self._chunk, self._rows), self._next - 1)


def paired(
    source: Iterator[Rows], output: Iterator[Rows], location: Location, *, most_bytes: int = _MOST_RUN_BYTES
) -> Iterator[RunOfPairs | Pair]:
    """The batches of both sides, cut where both end at the same offset; raises ReadBackMismatch where none fit."""
    left, right = _Side(source, location), _Side(output, location)
    while left.has_more():
        count = left.same_ends(right, most_bytes) if right.has_more() else 0
        if count:
            rows, source_bytes = left.take(count)
            yield RunOfPairs(rows, right.take(count)[0], source_bytes)
            continue
        mine, theirs = [left.take_one()], [right.take_one()]
        while mine[-1].last_offset != theirs[-1].last_offset:
            if mine[-1].last_offset < theirs[-1].last_offset:
                mine.append(left.take_one())
            else:
                theirs.append(right.take_one())
        yield Pair(tuple(mine), tuple(theirs))
    if right.has_more():
        extra = right.take_one()
        raise ReadBackMismatch(f"the output goes on past the source, up to offset {extra.last_offset}", location)


def compare_run(run: RunOfPairs, limits: Limits, location: Location) -> None:
    """Compare each pair of a run: first all headers at once, then the records, uncompressed, as bytes.

    Raises ReadBackMismatch at a difference in what a record says.
    """
    source_spans, output_spans = batch_spans(*run.source), batch_spans(*run.output)
    source, output = _buffer_of(run.source.chunk), _buffer_of(run.output.chunk)
    mine, theirs = (each.chunk.table.rows(each.rows) for each in (run.source, run.output))
    codecs = mine.codec.tolist(), theirs.codec.tolist()
    are_same = mine.same_headers(theirs).tolist()
    spans = (each.tolist() for each in (*source_spans, *output_spans))
    for number, (is_same, codec, new_codec, start, end, new_start, new_end) in enumerate(
        zip(are_same, *codecs, *spans, strict=True)
    ):
        payload, new_payload = source[start + HEADER_BYTES : end], output[new_start + HEADER_BYTES : new_end]
        if not (is_same and _is_same_payload(payload, codec, new_payload, new_codec, limits)):
            compare_pair(Pair((_placed(run.source, number),), (_placed(run.output, number),)), limits, location)


def _is_same_payload(payload: memoryview, codec: int, new_payload: memoryview, new_codec: int, limits: Limits) -> bool:
    """Whether two payloads hold the same bytes; not where one cannot be decompressed."""
    # As bytes: memoryviews are compared element by element, which takes longer than a copy.
    if codec == new_codec and len(payload) == len(new_payload) and bytes(payload) == bytes(new_payload):
        return True
    try:
        plain = decompress(codec, payload, magic=2, limits=limits) if codec else bytes(payload)
        new_plain = decompress(new_codec, new_payload, magic=2, limits=limits) if new_codec else bytes(new_payload)
    except KafkaLogError:
        return False
    return plain == new_plain


def _placed(rows: Rows, number: int) -> PlacedBatch:
    row = int(rows.rows[number])
    table = rows.chunk.table
    start = int(table.position[row]) - rows.chunk.buffer_position
    content = _buffer_of(rows.chunk)[start : start + int(table.size_bytes[row])]
    return PlacedBatch(rows.chunk, row, int(table.last_offset[row]), content)


def _buffer_of(chunk: BatchChunk) -> memoryview:
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    return chunk.buffer


def compare_pair(pair: Pair, limits: Limits, location: Location) -> None:
    """Compare one pair, record by record where its bytes differ; raises ReadBackMismatch at a difference."""
    if len(pair.source) == len(pair.output) == 1:
        source, output = pair.source[0].content, pair.output[0].content
        if len(source) == len(output) and bytes(source) == bytes(output):
            return
    try:
        _compare_records(pair, limits, location)
    except KafkaLogError as error:
        if isinstance(error, ReadBackMismatch):
            raise
        raise ReadBackMismatch(f"cannot be read back: {error.message}", error.location or location) from error


def _compare_records(pair: Pair, limits: Limits, location: Location) -> None:
    sides = [_records(each, limits) for each in (pair.source, pair.output)]
    source, output = sides
    if len(source) != len(output):
        first = pair.source[0].chunk.table.base_offset[pair.source[0].row]
        raise ReadBackMismatch(f"{len(source)} records became {len(output)}, from offset {first} on", location)
    for mine, theirs in zip(source, output, strict=True):
        if mine != theirs:
            names = [name for name, a, b in zip(_FIELDS, mine, theirs, strict=True) if a != b]
            raise ReadBackMismatch(f"the record of offset {mine[0]} differs in {', '.join(names)}", location)


_FIELDS = (
    "offset", "timestamp", "timestamp type", "leader epoch", "producer id", "producer epoch", "sequence",
    "is_transactional", "is_control", "key", "value", "headers",
)  # fmt: skip


def _records(batches: tuple[PlacedBatch, ...], limits: Limits) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for batch in batches:
        which = np.zeros(len(batch.chunk.table), bool)
        which[batch.row] = True
        for table in record_tables(batch.chunk, which=which, limits=limits):
            if table.problems:
                raise table.problems[0].error
            found.extend(_rows(table, batch.chunk.table, batch.row))
    return found


def _rows(table: RecordTable, batches: BatchTable, row: int) -> Iterator[tuple[object, ...]]:
    of_batch = (
        bool(batches.is_append_time[row]),
        int(batches.leader_epoch[row]),
        int(batches.producer_id[row]),
        int(batches.producer_epoch[row]),
    )
    marks = (bool(batches.is_transactional[row]), bool(batches.is_control[row]))
    columns = zip(table.offset.tolist(), table.timestamp.tolist(), table.sequence.tolist(), strict=True)
    for number, (offset, timestamp, sequence) in enumerate(columns):
        key, value, headers = table.key(number), table.value(number), table.headers(number) or []
        yield (offset, timestamp, *of_batch, sequence, *marks, key, value, headers)
