"""Decompressing and indexing the records of batches: v2 records here, v0 and v1 messages in ``legacy_messages``.

Source: KIP-98, clients record/internal/DefaultRecord.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import decompress
from format.errors import InvalidRecord, KafkaLogError, LimitExceeded
from format.kernel.records import RECORD_ERRORS, index_records
from format.kernel.tables import RESULT_COLUMNS, SPAN_COLUMNS
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_groups import BatchGroup, BatchKind, batch_groups
from format.log.batch_table import BatchTable, Int64Column, batch_location
from format.log.legacy_messages import message_table, wrapper_tables
from format.log.record_table import RECORD_COLUMN, RecordProblem, RecordTable, located
from format.wording import counted_plainly

_COLUMN = RECORD_COLUMN
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_SPAN = {name: number for number, name in enumerate(SPAN_COLUMNS)}
_ERROR, _ERROR_AT, _RECORDS, _END = range(len(RESULT_COLUMNS))
#: Decompressed batches are indexed after this many bytes, before more are decompressed.
_PORTION_BYTES = 8 * MIB
#: The most rows of a table, so that a batch of millions of tiny records takes no more memory than others.
MOST_ROWS = 128 * 1024
#: The most headers of a record that is read: each header becomes several objects, however small it is.
MOST_HEADERS = 1_000_000


def record_tables(
    chunk: BatchChunk,
    *,
    which: NDArray[np.bool_] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    location: Location | None = None,
) -> Iterator[RecordTable]:
    """The records of a chunk's batches in log order, in tables of bounded size.

    ``which`` (bool) selects batches by row; without it, all batches are read except those with a wrong CRC. Records
    that cannot be read are in the problems of the tables. The chunk must have been read with bodies.
    """
    for group in batch_groups(chunk.table, chunk.table.crc_valid != 0 if which is None else which):
        yield from group_tables(chunk, group, limits, location or Location(""))


def group_tables(chunk: BatchChunk, group: BatchGroup, limits: Limits, where: Location) -> Iterator[RecordTable]:
    """The records of one group of a chunk's batches, as in ``record_tables``."""
    if group.kind is BatchKind.V2:
        yield from _v2_tables(chunk, chunk.bodies, group, limits, where)
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
    """The decompressed records of v2 batches in one buffer, and their conversion to record tables."""

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
        self._results = np.zeros((len(rows), len(RESULT_COLUMNS)), np.int64)
        self._limited: dict[int, int] = {}  # by batch, the row from which on its records are left out
        self._read_before = 0  # records in earlier tables of the batch that continues in the next table

    def tables(self, problems: list[RecordProblem]) -> Iterator[RecordTable]:
        """The records in tables; ``problems`` are the known ones, to which those of the records are added."""
        spans, results = self._spans, self._results
        counts, lengths = spans[:, _SPAN["record_count"]], spans[:, _SPAN["end"]] - spans[:, _SPAN["start"]]
        # The count in the header may be forged: the bytes of a batch limit the number of its records.
        capacity = int(np.minimum(counts, lengths // layout.MIN_RECORD_BYTES + 1).sum())
        known = {each.batch for each in problems}
        first: int | None = 0
        is_continued = False
        while first is not None:
            columns = np.empty((min(capacity, MOST_ROWS), len(_COLUMN)), np.int64)
            read = index_records(
                self._buffer, memoryview(spans), first, len(spans), memoryview(columns), 0, memoryview(results)
            )
            cut = self._first_unfinished(first) if read < capacity and read == len(columns) else None
            problems += self._problems(first, len(spans) if cut is None else cut, known)
            problems.sort(key=lambda problem: problem.batch)
            # The problems of a batch belong to the table that has its last records.
            later = [] if cut is None else [each for each in problems if each.batch >= self._rows[cut]]
            problems = problems[: len(problems) - len(later)]
            capacity -= read
            is_cut = False
            if cut is not None:
                self._read_before = int(results[cut, _RECORDS]) + (self._read_before if cut == first else 0)
                is_cut = self._read_before > 0
                spans[cut, _SPAN["start"]] = results[cut, _END]
                spans[cut, _SPAN["record_count"]] -= results[cut, _RECORDS]
            records = columns[:read]
            if (records[:, _COLUMN["header_count"]] > MOST_HEADERS).any() or self._limited:
                records = self._within_limits(records, problems)
            yield RecordTable(self._batches, self._buffer, records, problems, is_continued, is_cut)
            problems, first, is_continued = later, cut, is_cut

    def _within_limits(self, records: Int64Column, problems: list[RecordProblem]) -> Int64Column:
        """The records without those from a record with too many headers to the end of its batch."""
        batches = records[:, _COLUMN["batch"]]
        for row in np.flatnonzero(records[:, _COLUMN["header_count"]] > MOST_HEADERS).tolist():
            batch = int(batches[row])
            if batch not in self._limited:
                count = int(records[row, _COLUMN["header_count"]])
                message = f"a record has {count} headers, over the limit of {MOST_HEADERS}"
                place = batch_location(self._where, self._table, int(np.flatnonzero(self._rows == batch)[0]))
                before = int((batches[:row] == batch).sum())
                problems.append(RecordProblem(batch, LimitExceeded(message, place), before))
                self._limited[batch] = row
        first = np.array([self._limited.get(batch, len(records)) for batch in batches.tolist()])
        kept: Int64Column = records[np.arange(len(records)) < first]
        self._limited = dict.fromkeys(self._limited, 0)
        problems.sort(key=lambda problem: problem.batch)
        return kept

    def _first_unfinished(self, first: int) -> int | None:
        """The first span that was not read to its end because the table was full."""
        spans, results = self._spans[first:], self._results[first:]
        stopped = (results[:, _ERROR] == 0) & (results[:, _RECORDS] < spans[:, _SPAN["record_count"]])
        stopped &= results[:, _END] < spans[:, _SPAN["end"]]
        found = np.flatnonzero(stopped)
        return first + int(found[0]) if len(found) else None

    def _problems(self, first: int, last: int, known: set[int]) -> list[RecordProblem]:
        """The problems of the spans that were read to their end."""
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
            message = f"record {records} of {count}: {RECORD_ERRORS[error]} (byte {byte} of the records)"
            return RecordProblem(batch, InvalidRecord(message, place), records)
        if records != count:
            message = f"the batch has {counted_plainly(records, 'record')}, but its header says {count}"
            return RecordProblem(batch, InvalidRecord(message, place, code="record-count-mismatch"), records)
        left = int(self._spans[number, _SPAN["end"]]) - end
        message = f"{counted_plainly(left, 'byte')} after the last of {counted_plainly(count, 'record')}"
        return RecordProblem(batch, InvalidRecord(message, place, code="record-trailing-bytes"), records)
