"""Records as columns: where each key, value and header lies in the decompressed bytes of its batch.

v2 records are decoded here (KIP-98, clients record/internal/DefaultRecord); v0 and v1 messages in
``format.legacy_messages``. Both come out as RecordTable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.batches import BatchChunk, BatchTable
from format.codecs import decompress
from format.errors import InvalidRecord, KafkaLogError
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

Int64Column = NDArray[np.int64]

_COLUMN = {name: number for number, name in enumerate(kernel.RECORD_COLUMNS)}
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
#: Batches are decompressed and indexed in groups of about this many bytes.
GROUP_BYTES = 4 * 1024 * 1024


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
    """

    batches: BatchTable
    buffer: memoryview
    columns: Int64Column
    problems: list[RecordProblem] = field(default_factory=list)

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
    from format.legacy_messages import is_wrapper, message_table, wrapper_table

    table = chunk.table
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    if which is None:
        which = table.crc_valid != 0
    where = location or Location("")
    # Three kinds of rows, each read its own way: v2 batches, plain v0/v1 messages, compressed wrappers.
    readers = (_v2_table, message_table, wrapper_table)
    kinds = np.where(table.magic == 2, 0, np.where(is_wrapper(table), 2, 1)).tolist()
    sizes = table.size_bytes.tolist()
    group: list[int] = []
    group_bytes = 0
    kind = 0
    for row in np.flatnonzero(which).tolist():
        if group and (kinds[row] != kind or group_bytes >= GROUP_BYTES):
            yield readers[kind](chunk, group, limits, where)
            group, group_bytes = [], 0
        kind = kinds[row]
        group.append(row)
        group_bytes += sizes[row]
    if group:
        yield readers[kind](chunk, group, limits, where)


def _v2_table(chunk: BatchChunk, group: list[int], limits: Limits, where: Location) -> RecordTable:
    """The records of some v2 batches of a chunk as one table."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    table = chunk.table.rows(np.asarray(group, np.intp))
    codecs = table.codec
    starts = table.position - chunk.buffer_position + _HEADER_BYTES
    ends = starts + table.size_bytes - _HEADER_BYTES
    problems: list[RecordProblem] = []
    counts = np.maximum(table.record_count, 0)
    if codecs.any():
        buffer, starts, ends = _decompressed(chunk.buffer, codecs, starts, ends, group, table, limits, where, problems)
    else:
        buffer = chunk.buffer
    spans = np.empty((len(group), len(kernel.SPAN_COLUMNS)), np.int64)
    spans[:, 0] = group
    spans[:, 1] = starts
    spans[:, 2] = ends
    spans[:, 3] = counts
    spans[:, 4] = table.base_offset
    spans[:, 5] = table.base_timestamp
    spans[:, 6] = table.max_timestamp
    spans[:, 7] = table.is_append_time
    # The header's count may be forged: no batch holds more records than its bytes allow.
    capacity = int(np.minimum(counts, (ends - starts) // layout.MIN_RECORD_BYTES + 1).sum())
    columns = np.empty((capacity, len(_COLUMN)), np.int64)
    results = np.zeros((len(group), len(kernel.RESULT_COLUMNS)), np.int64)
    read = kernel.index_records(
        buffer, memoryview(spans), 0, len(group), memoryview(columns), 0, memoryview(results)
    )
    failed = {problem.batch for problem in problems}
    for number in np.flatnonzero(
        (results[:, 0] != 0) | (results[:, 2] != table.record_count) | (results[:, 3] != ends)
    ).tolist():
        if group[number] not in failed:
            problems.append(_span_problem(group[number], number, table, results, starts, ends, where))
    problems.sort(key=lambda problem: problem.batch)
    return RecordTable(chunk.table, buffer, columns[:read], problems)


def _span_problem(
    batch: int,
    number: int,
    table: BatchTable,
    results: Int64Column,
    starts: Int64Column,
    ends: Int64Column,
    where: Location,
) -> RecordProblem:
    error, at, records, end = (int(value) for value in results[number])
    place = batch_location(where, table, number)
    count = int(table.record_count[number])
    if error:
        byte = at - int(starts[number])
        message = f"record {records} of {count}: {kernel.ERRORS[error]} (byte {byte} of the records)"
        return RecordProblem(batch, InvalidRecord(message, place), records)
    if records != count:
        message = f"the batch holds {records} records, its header says {count}"
        return RecordProblem(batch, InvalidRecord(message, place, code="record-count-mismatch"), records)
    left = int(ends[number]) - end
    message = f"{left} bytes are left after the last of {count} records"
    return RecordProblem(batch, InvalidRecord(message, place, code="record-trailing-bytes"), records)


def _decompressed(
    buffer: memoryview,
    codecs: Int64Column,
    starts: Int64Column,
    ends: Int64Column,
    group: list[int],
    table: BatchTable,
    limits: Limits,
    where: Location,
    problems: list[RecordProblem],
) -> tuple[memoryview, Int64Column, Int64Column]:
    """One buffer with every batch's records, decompressed; a batch that fails is empty there and in ``problems``."""
    parts: list[bytes | memoryview] = []
    new_starts = np.empty_like(starts)
    new_ends = np.empty_like(ends)
    at = 0
    for number, (codec, start, end) in enumerate(
        zip(codecs.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ):
        part: bytes | memoryview = buffer[start:end]
        if codec:
            try:
                part = decompress(codec, part, magic=2, limits=limits)
            except KafkaLogError as error:
                place = batch_location(where, table, number)
                problems.append(RecordProblem(group[number], located(error, place), 0))
                part = b""
        parts.append(part)
        new_starts[number] = at
        at += len(part)
        new_ends[number] = at
    if len(parts) == 1:
        return memoryview(parts[0]), new_starts, new_ends
    return memoryview(b"".join(parts)), new_starts, new_ends


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
