"""Records as columns: where each key, value and header lies in the decompressed bytes of its batch.

v2 records are decoded here (KIP-98, clients record/internal/DefaultRecord); v0 and v1 messages in
``format.log.legacy_messages``. Both come out as RecordTable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.codecs import decompress
from format.errors import InvalidRecord, KafkaLogError
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_groups import BatchGroup, BatchKind, batch_groups
from format.log.batch_table import BatchChunk, BatchTable

Int64Column = NDArray[np.int64]

_COLUMN = {name: number for number, name in enumerate(kernel.RECORD_COLUMNS)}
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_SPAN = {name: number for number, name in enumerate(kernel.SPAN_COLUMNS)}
_ERROR, _ERROR_AT, _RECORDS, _END = range(len(kernel.RESULT_COLUMNS))
#: Decompressed batches are indexed when they come to this many bytes, before more are decompressed.
_PORTION_BYTES = 8 * MIB
#: A table has no more rows than this, so that a batch of millions of tiny records costs no more memory than others.
MOST_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """A batch whose records cannot all be read: its row in the batch table, and the error that says why.

    The records before the error are in the RecordTable; ``records_read`` says how many.
    """

    batch: int
    error: KafkaLogError
    records_read: int


@dataclass(slots=True)
class RecordTable:
    """Records in log order: ``columns`` is int64, one row a record (kernel.RECORD_COLUMNS).

    Starts are positions in ``buffer``; ``batch`` is the record's row in ``batches``. Timestamps are ms, -1 for none.
    A batch of very many records spreads over several tables: ``is_cut`` tells that the last batch goes on in the next
    table, ``is_continued`` that the first one began in the table before.
    """

    batches: BatchTable
    buffer: memoryview
    columns: Int64Column
    problems: list[RecordProblem] = field(default_factory=list)
    is_continued: bool = False
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def batch(self) -> Int64Column:
        return self.columns[:, _COLUMN["batch"]]

    @property
    def offset(self) -> Int64Column:
        return self.columns[:, _COLUMN["offset"]]

    @property
    def timestamp(self) -> Int64Column:
        return self.columns[:, _COLUMN["timestamp"]]

    @property
    def attributes(self) -> Int64Column:
        """The record's own attributes byte (the message's, for v0 and v1)."""
        return self.columns[:, _COLUMN["attributes"]]

    @property
    def start(self) -> Int64Column:
        return self.columns[:, _COLUMN["start"]]

    @property
    def size_bytes(self) -> Int64Column:
        """Bytes of the record, uncompressed, its length field included."""
        return self.columns[:, _COLUMN["size_bytes"]]

    @property
    def key_start(self) -> Int64Column:
        return self.columns[:, _COLUMN["key_start"]]

    @property
    def key_length(self) -> Int64Column:
        """-1 for null."""
        return self.columns[:, _COLUMN["key_length"]]

    @property
    def value_start(self) -> Int64Column:
        return self.columns[:, _COLUMN["value_start"]]

    @property
    def value_length(self) -> Int64Column:
        """-1 for null."""
        return self.columns[:, _COLUMN["value_length"]]

    @property
    def headers_start(self) -> Int64Column:
        return self.columns[:, _COLUMN["headers_start"]]

    @property
    def header_count(self) -> Int64Column:
        """-1 for a format without headers."""
        return self.columns[:, _COLUMN["header_count"]]

    @property
    def sequence(self) -> Int64Column:
        """The record's sequence, -1 for none; wraps past 2**31-1 to 0 (DefaultRecordBatch.incrementSequence)."""
        base = self.batches.base_sequence[self.batch]
        delta = self.offset - self.batches.base_offset[self.batch]
        return np.where(base < 0, layout.NO_SEQUENCE, (base + delta) & layout.MAX_RELATIVE_OFFSET)

    def rows(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> RecordTable:
        """A table of the rows that a slice, mask or index array picks, over the same buffer; without problems."""
        return RecordTable(self.batches, self.buffer, self.columns[which])

    def key(self, row: int) -> bytes | None:
        return self._bytes(row, "key_start", "key_length")

    def value(self, row: int) -> bytes | None:
        return self._bytes(row, "value_start", "value_length")

    def headers(self, row: int) -> list[tuple[bytes, bytes | None]] | None:
        """The headers in order, None where the format has none."""
        count = int(self.columns[row, _COLUMN["header_count"]])
        if count < 0:
            return None
        if count == 0:
            return []
        start = int(self.columns[row, _COLUMN["headers_start"]])
        spans = np.empty((count, 4), np.int64)
        kernel.index_headers(self.buffer, start, len(self.buffer), count, memoryview(spans))
        return [
            (
                bytes(self.buffer[key_start : key_start + key_length]),
                None if value_length < 0 else bytes(self.buffer[value_start : value_start + value_length]),
            )
            for key_start, key_length, value_start, value_length in spans.tolist()
        ]

    def _bytes(self, row: int, start_name: str, length_name: str) -> bytes | None:
        length = int(self.columns[row, _COLUMN[length_name]])
        if length < 0:
            return None
        start = int(self.columns[row, _COLUMN[start_name]])
        return bytes(self.buffer[start : start + length])


def record_tables(
    chunk: BatchChunk,
    *,
    which: NDArray[np.bool_] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    location: Location | None = None,
) -> Iterator[RecordTable]:
    """The records of a chunk's batches in log order, in tables of bounded size.

    ``which`` picks batches by row; without it every batch is read except those whose CRC is known to be wrong.
    What cannot be read is in the tables' problems. The chunk must have been read with bodies.
    """
    from format.log.legacy_messages import message_table, wrapper_tables

    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    where = location or Location("")
    for group in batch_groups(chunk.table, chunk.table.crc_valid != 0 if which is None else which):
        if group.kind is BatchKind.V2:
            yield from _v2_tables(chunk, chunk.buffer, group, limits, where)
        elif group.kind is BatchKind.MESSAGE:
            yield message_table(chunk, group.rows.tolist(), limits, where)
        else:
            yield from wrapper_tables(chunk, group.rows, limits, where)


def _v2_tables(
    chunk: BatchChunk, buffer: memoryview, group: BatchGroup, limits: Limits, where: Location
) -> Iterator[RecordTable]:
    """The records of a group of v2 batches."""
    table = chunk.table.rows(group.rows)
    starts = table.position - chunk.buffer_position + _HEADER_BYTES
    ends = table.end_position - chunk.buffer_position
    if not table.codec.any():
        yield from _Spans(chunk.table, group.rows, table, buffer, starts, ends, where).tables([])
        return
    parts: list[bytes | memoryview] = []
    problems: list[RecordProblem] = []
    first = held_bytes = 0
    columns = zip(table.codec.tolist(), starts.tolist(), ends.tolist(), strict=True)
    for number, (codec, start, end) in enumerate(columns):
        part: bytes | memoryview = buffer[start:end]
        if codec:
            try:
                part = decompress(codec, part, magic=2, limits=limits)
            except KafkaLogError as error:
                place = batch_location(where, table, number)
                problems.append(RecordProblem(int(group.rows[number]), located(error, place), 0))
                part = b""
        parts.append(part)
        held_bytes += len(part)
        if held_bytes < _PORTION_BYTES and number + 1 < len(table):
            continue
        part_ends = np.cumsum([len(each) for each in parts], dtype=np.int64)
        part_starts = np.concatenate(([0], part_ends[:-1]))
        joined = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
        rows = slice(first, number + 1)
        parts, held_bytes, first = [], 0, number + 1
        spans = _Spans(chunk.table, group.rows[rows], table.rows(rows), joined, part_starts, part_ends, where)
        yield from spans.tables(problems)
        problems = []


class _Spans:
    """The decompressed records of some v2 batches in one buffer, on their way into record tables."""

    def __init__(
        self,
        batches: BatchTable,
        rows: NDArray[np.intp],
        table: BatchTable,
        buffer: memoryview,
        starts: Int64Column,
        ends: Int64Column,
        where: Location,
    ) -> None:
        self._batches = batches
        self._rows = rows
        self._table = table
        self._buffer = buffer
        self._starts = starts
        self._where = where
        spans = np.empty((len(rows), len(_SPAN)), np.int64)
        spans[:, _SPAN["batch"]] = rows
        spans[:, _SPAN["start"]] = starts
        spans[:, _SPAN["end"]] = ends
        spans[:, _SPAN["record_count"]] = np.maximum(table.record_count, 0)
        spans[:, _SPAN["base_offset"]] = table.base_offset
        spans[:, _SPAN["base_timestamp"]] = table.base_timestamp
        spans[:, _SPAN["append_timestamp"]] = table.max_timestamp
        spans[:, _SPAN["is_append_time"]] = table.is_append_time
        self._spans = spans
        self._results = np.zeros((len(rows), len(kernel.RESULT_COLUMNS)), np.int64)
        self._read_before = 0  # records of the batch that the last table was cut in

    def tables(self, problems: list[RecordProblem]) -> Iterator[RecordTable]:
        """The records, and what cannot be read of them, besides the problems that are known."""
        spans, results = self._spans, self._results
        counts, lengths = spans[:, _SPAN["record_count"]], spans[:, _SPAN["end"]] - spans[:, _SPAN["start"]]
        # The header's count may be forged: no batch holds more records than its bytes allow.
        capacity = int(np.minimum(counts, lengths // layout.MIN_RECORD_BYTES + 1).sum())
        first: int | None = 0
        is_continued = False
        while first is not None:
            columns = np.empty((min(capacity, MOST_ROWS), len(_COLUMN)), np.int64)
            read = kernel.index_records(
                self._buffer, memoryview(spans), first, len(spans), memoryview(columns), 0, memoryview(results)
            )
            cut = self._first_unfinished(first) if read < capacity and read == len(columns) else None
            problems += self._problems(first, len(spans) if cut is None else cut, {each.batch for each in problems})
            problems.sort(key=lambda problem: problem.batch)
            capacity -= read
            is_cut = False
            if cut is not None:
                self._read_before = int(results[cut, _RECORDS]) + (self._read_before if cut == first else 0)
                is_cut = self._read_before > 0
                spans[cut, _SPAN["start"]] = results[cut, _END]
                spans[cut, _SPAN["record_count"]] -= results[cut, _RECORDS]
            yield RecordTable(self._batches, self._buffer, columns[:read], problems, is_continued, is_cut)
            problems, first, is_continued = [], cut, is_cut

    def _first_unfinished(self, first: int) -> int | None:
        """The first span that a full table stopped."""
        spans, results = self._spans[first:], self._results[first:]
        stopped = (results[:, _ERROR] == 0) & (results[:, _RECORDS] < spans[:, _SPAN["record_count"]])
        stopped &= results[:, _END] < spans[:, _SPAN["end"]]
        found = np.flatnonzero(stopped)
        return first + int(found[0]) if len(found) else None

    def _problems(self, first: int, last: int, known: set[int]) -> list[RecordProblem]:
        """What is wrong with the spans that were read to their end."""
        results = self._results[first:last]
        records = results[:, _RECORDS].copy()
        if len(records):
            records[0] += self._read_before
        wrong = (results[:, _ERROR] != 0) | (records != self._table.record_count[first:last])
        wrong |= results[:, _END] != self._spans[first:last, _SPAN["end"]]
        return [
            self._problem(first + number, int(records[number]))
            for number in np.flatnonzero(wrong).tolist()
            if int(self._rows[first + number]) not in known
        ]

    def _problem(self, number: int, records: int) -> RecordProblem:
        batch = int(self._rows[number])
        error, at, _, end = (int(value) for value in self._results[number])
        place = batch_location(self._where, self._table, number)
        count = int(self._table.record_count[number])
        if error:
            byte = at - int(self._starts[number])
            message = f"record {records} of {count}: {kernel.ERRORS[error]} (byte {byte} of the records)"
            return RecordProblem(batch, InvalidRecord(message, place), records)
        if records != count:
            message = f"the batch holds {records} records, its header says {count}"
            return RecordProblem(batch, InvalidRecord(message, place, code="record-count-mismatch"), records)
        left = int(self._spans[number, _SPAN["end"]]) - end
        message = f"{left} bytes are left after the last of {count} records"
        return RecordProblem(batch, InvalidRecord(message, place, code="record-trailing-bytes"), records)


def located(error: KafkaLogError, place: Location) -> KafkaLogError:
    """The same error with a place, where it has none."""
    if error.location is None:
        error.location = place
    return error


def batch_location(where: Location, table: BatchTable, row: int) -> Location:
    """The place of one batch of a table."""
    return where.at(
        position=int(table.position[row]), length=int(table.size_bytes[row]), offset=int(table.base_offset[row])
    )
