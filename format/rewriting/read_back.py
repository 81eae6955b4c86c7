"""Reads written logs back and compares them with their sources, batch by batch and where needed record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from format.codecs import decompress
from format.errors import KafkaLogError, OutputError
from format.io.source import FileSource, PatchedSource, Source
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange
from format.log.batch_table import BatchTable
from format.log.encode_batches import HEADER_BYTES, batch_spans
from format.log.read_records import record_tables
from format.log.record_table import OF_BATCH, RecordTable, differ_in_numbers, next_other_bytes
from format.log.walker import batch_chunks
from format.rewriting.intact_batches import SegmentScan
from format.scan.progress import Advance
from format.wording import counted_plainly

_FIELDS = ("offset", "timestamp", "sequence", *(name.replace("_", " ") for name in OF_BATCH), "key", "value", "headers")
_COMPARE_BYTES = 1024 * 1024


class ReadBackMismatch(OutputError):
    """What was read back differs from the source."""

    code = "output-failed"


class ChunkRows(NamedTuple):
    """Batches of one chunk, in order, by their row numbers."""

    chunk: BatchChunk
    rows: NDArray[np.intp]

    @property
    def table(self) -> BatchTable:
        return self.chunk.table.rows(self.rows)


class _Side:
    """The batches of the source or of the output, taken from one chunk after the other."""

    def __init__(self, chunks: Iterator[ChunkRows]) -> None:
        self._chunks = chunks
        self._next = 0
        self._rows: ChunkRows | None = None
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

    def take_to(self, last_offset: int) -> ChunkRows:
        """The batches of the current chunk up to this offset."""
        if self._rows is None:
            raise ValueError("no chunk is open")
        first = self._next
        self._next += int(np.searchsorted(self.ends, last_offset, "right"))
        return ChunkRows(self._rows.chunk, self._rows.rows[first : self._next])


def paired(
    source: Iterator[ChunkRows], output: Iterator[ChunkRows], location: Location
) -> Iterator[tuple[list[ChunkRows], list[ChunkRows]]]:
    """The batches of both sides in pairs that end at the same offset. Raises ReadBackMismatch where there is none."""
    left, right = _Side(source), _Side(output)
    while left.has_more() | right.has_more():
        from_source: list[ChunkRows] = []
        from_output: list[ChunkRows] = []
        common: int | None = None
        while common is None:
            if not (left.has_more() and right.has_more()):
                raise ReadBackMismatch("the output and the source do not end at the same offset", location)
            common = _last_common(left.ends, right.ends)
            # Without a common offset the chunk that ends first is taken whole, and the next chunk is searched.
            end = min(int(left.ends[-1]), int(right.ends[-1])) if common is None else common
            from_source.append(left.take_to(end))
            from_output.append(right.take_to(end))
        yield from_source, from_output


def _last_common(left: NDArray[np.int64], right: NDArray[np.int64]) -> int | None:
    """The highest number that is in both rising arrays; None for none."""
    nearest = np.minimum(np.searchsorted(right, left), len(right) - 1)
    common = left[right[nearest] == left]
    return int(common[-1]) if len(common) else None


def compare(source: Sequence[ChunkRows], output: Sequence[ChunkRows], limits: Limits, location: Location) -> None:
    """Compare batches of both sides that end at the same offset. Raises ReadBackMismatch at the first that differs."""
    unlike = _without_alike(source, output, limits)
    if any(len(each.rows) for side in unlike for each in side):
        _compare_records(*unlike, limits, location)


def _without_alike(
    source: Sequence[ChunkRows], output: Sequence[ChunkRows], limits: Limits
) -> tuple[list[ChunkRows], list[ChunkRows]]:
    """Both sides without the batches that are the same byte for byte, or under another codec.

    The former may have records that cannot be read.
    """
    tables = [BatchTable.concatenated([each.table for each in side]) for side in (source, output)]
    ends = [each.last_offset for each in tables]
    rows = new_rows = np.arange(len(ends[0]))
    if not np.array_equal(ends[0], ends[1]):
        _, rows, new_rows = np.intersect1d(ends[0], ends[1], return_indices=True)
    left, right = tables[0].rows(rows), tables[1].rows(new_rows)
    have_same_headers = left.same_headers(right) & (left.magic == 2) & (right.magic == 2)
    contents = [[content for each in side for content in _contents(each)] for side in (source, output)]
    are_left = [np.ones(len(each), bool) for each in ends]
    for number, new_number, has_same_header, codec, new_codec in zip(
        *(each.tolist() for each in (rows, new_rows, have_same_headers, left.codec, right.codec)), strict=True
    ):
        content, new_content = contents[0][number], contents[1][new_number]
        # Compared as bytes: memoryviews compare element by element, which takes longer than a copy.
        is_alike = len(content) == len(new_content) and bytes(content) == bytes(new_content)
        if not is_alike and has_same_header:
            is_alike = _have_same_records(content, codec, new_content, new_codec, limits)
        are_left[0][number] = are_left[1][new_number] = not is_alike
    return _picked(source, are_left[0]), _picked(output, are_left[1])


def _contents(rows: ChunkRows) -> Iterator[memoryview]:
    buffer = rows.chunk.bodies
    starts, ends = batch_spans(*rows)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield buffer[start:end]


def _picked(side: Sequence[ChunkRows], which: NDArray[np.bool_]) -> list[ChunkRows]:
    """The batches of a side that a mask over all of them selects."""
    parts = np.split(which, np.cumsum([len(each.rows) for each in side])[:-1])
    return [ChunkRows(each.chunk, each.rows[part]) for each, part in zip(side, parts, strict=True)]


def _have_same_records(content: memoryview, codec: int, other: memoryview, other_codec: int, limits: Limits) -> bool:
    """Whether two v2 batches decompress to the same bytes; False where one cannot be decompressed."""
    try:
        plain, other_plain = (
            decompress(number, batch[HEADER_BYTES:], magic=2, limits=limits) if number else bytes(batch[HEADER_BYTES:])
            for number, batch in ((codec, content), (other_codec, other))
        )
    except KafkaLogError:
        return False
    return plain == other_plain


def _compare_records(
    source: Sequence[ChunkRows], output: Sequence[ChunkRows], limits: Limits, location: Location
) -> None:
    """Compare every record, many at once."""
    sources, outputs = _tables(source, limits), _tables(output, limits)
    compared = 0
    try:
        left, right = next(sources, None), next(outputs, None)
        while left is not None and right is not None:
            count = min(len(left), len(right))
            _compare_tables(left.rows(slice(0, count)), right.rows(slice(0, count)), location)
            compared += count
            left = left.rows(slice(count, None)) if len(left) > count else next(sources, None)
            right = right.rows(slice(count, None)) if len(right) > count else next(outputs, None)
        counts = [
            compared + sum(map(len, rest)) + (0 if table is None else len(table))
            for table, rest in ((left, sources), (right, outputs))
        ]
    except ReadBackMismatch:
        raise
    except KafkaLogError as error:
        raise ReadBackMismatch(f"cannot be read back: {error.message}", error.location or location) from error
    if counts[0] != counts[1]:
        first = min(each.table.base_offset[0] for each in (*source, *output) if len(each.rows))
        raise ReadBackMismatch(
            f"{counted_plainly(counts[0], 'record')} became {counts[1]}, from offset {first} on", location
        )


def _tables(batches: Iterable[ChunkRows], limits: Limits) -> Iterator[RecordTable]:
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


def _values(table: RecordTable, row: int) -> tuple[object, ...]:
    of_record = int(table.offset[row]), int(table.timestamp[row]), int(table.sequence[row])
    batch = int(table.batch[row])
    of_batch = (int(getattr(table.batches, name)[batch]) for name in OF_BATCH)
    return (*of_record, *of_batch, table.key(row), table.value(row), table.headers(row) or [])


class OutputRange(NamedTuple):
    """A range of bytes of a written log."""

    path: Path
    start: int
    end: int


class Became(NamedTuple):
    """The bytes of a source log from ``start`` to ``end``, and the ranges of the output that were written for them.

    ``digest`` is that of the written content, where this is not the content of the source.
    """

    start: int
    end: int
    outputs: tuple[OutputRange, ...]
    digest: bytes | None = None


class Rewritten(NamedTuple):
    """What adjoining ranges of a source became, in order, for a comparison.

    ``kept`` is the scan of the whole log, which says what was kept; None where all was, as all CRCs were right.
    """

    source: FileSource | PatchedSource
    became: Sequence[Became]
    kept: SegmentScan | None
    location: Location


def compare_with_source(written: Rewritten, limits: Limits, chunk_bytes: int, advance: Advance) -> None:
    """Compare the records of the source with those of the output. Raises ReadBackMismatch, UnreadableFile."""
    source, became, kept, location = written
    if not became:
        return
    if kept is not None:
        chunks = batch_chunks(source, limits=limits, chunk_bytes=chunk_bytes, offsets=kept.offsets)
    else:
        whole = BatchRange(became[0].start, became[-1].end)
        chunks = batch_chunks(source, whole, check_crc=False, limits=limits, chunk_bytes=chunk_bytes)
    is_kept = None if kept is None else kept.is_kept
    outputs = (ChunkRows(chunk, np.arange(len(chunk.table))) for chunk in output_chunks(joined_ranges(became), limits))
    for from_source, from_output in paired(_source_rows(chunks, is_kept, advance), outputs, location):
        compare(from_source, from_output, limits, location)


def joined_ranges(became: Sequence[Became]) -> list[OutputRange]:
    """The ranges of the output; adjoining ranges of a file become one."""
    joined: list[OutputRange] = []
    for each in (each for one in became for each in one.outputs):
        if joined and (joined[-1].path, joined[-1].end) == (each.path, each.start):
            joined[-1] = joined[-1]._replace(end=each.end)
        else:
            joined.append(each)
    return joined


def _source_rows(
    chunks: Iterator[BatchChunk], is_kept: NDArray[np.bool_] | None, advance: Advance
) -> Iterator[ChunkRows]:
    """The kept batches, read once more; a batch that has changed since then differs from the output."""
    first = 0
    for chunk in chunks:
        rows = np.arange(len(chunk.table))
        yield ChunkRows(chunk, rows if is_kept is None else np.flatnonzero(is_kept[first : first + len(rows)]))
        first += len(rows)
        advance(chunk.covered_bytes)


def output_chunks(outputs: Sequence[OutputRange], limits: Limits) -> Iterator[BatchChunk]:
    """The chunks of what was written. Raises ReadBackMismatch for a wrong CRC, or bytes that are no batch."""
    for path, start, end in outputs:
        with FileSource(path) as output:
            for chunk in batch_chunks(output, BatchRange(start, end), limits=limits):
                if chunk.damage is not None or (chunk.table.crc_valid != 1).any():
                    raise ReadBackMismatch("what was written is damaged", Location(str(path)))
                yield chunk


def compare_bytes(source: Source, position: int, outputs: Sequence[OutputRange], advance: Advance) -> None:
    """Compare a source from ``position`` on with its copy, byte for byte. Raises ReadBackMismatch, UnreadableFile."""
    for path, start, end in outputs:
        with FileSource(path) as output:
            while start < end:
                length = min(_COMPARE_BYTES, end - start)
                content = source.read_at(position, length)
                if not content or content != output.read_at(start, length):
                    raise ReadBackMismatch("what was read back is not what was written", Location(str(path)))
                start, position = start + length, position + length
                advance(length)
