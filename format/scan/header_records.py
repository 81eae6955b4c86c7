"""Records by the headers of their batches: their offsets, and what they have from the batch, without a body."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.columns import EXTRA_RECORD_COLUMNS, RECORD
from format.log.batch_table import BatchTable
from format.log.record_table import RECORD_COLUMN, RecordTable
from format.scan.selection import Selection

#: The columns of records that take more than the header of the batch.
_OF_BODIES = frozenset({"timestamp", "key", "value", "headers", "size_bytes"})
#: The columns of records that headers answer.
HEADER_COLUMNS = frozenset(column.name for column in (*RECORD.columns, *EXTRA_RECORD_COLUMNS)) - _OF_BODIES
#: A batch whose header names more records is read: that many do not come from a producer.
_MOST_RECORDS = 1_000_000
_SMALLEST_RECORD_BYTES = 7
_RECORDS_AT_ONCE = 64 * 1024


def answered_by_headers(table: BatchTable, selection: Selection) -> NDArray[np.bool_]:
    """Which batches, of those that are selected, have rows that follow from their headers (bool)."""
    count = table.record_count
    plain: NDArray[np.bool_] = (count > 0) & (count == table.last_offset_delta + 1) & (count <= _MOST_RECORDS)
    if selection.from_timestamp is not None or selection.to_timestamp is not None:
        return np.zeros(len(table), np.bool_)
    if selection.from_offset is not None:
        plain = plain & (table.base_offset >= selection.from_offset)
    if selection.to_offset is not None:
        plain = plain & (table.last_offset < selection.to_offset)
    room = (table.size_bytes - layout.RECORD_BATCH.size_bytes) // _SMALLEST_RECORD_BYTES
    has_room = (table.codec > 0) | (table.magic < 2) | (count <= room)
    return plain & has_room


def records_of_headers(table: BatchTable) -> Iterator[RecordTable]:
    """The records of batches that headers answer, in bounded tables, in which only ``batch`` and ``offset`` are set."""
    ends = np.cumsum(table.record_count)
    first = 0
    while first < len(table):
        done = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, done + _RECORDS_AT_ONCE, side="right")), first + 1)
        yield _records(table.rows(slice(first, last)))
        first = last


def _records(table: BatchTable) -> RecordTable:
    counts = table.record_count
    columns = np.zeros((int(counts.sum()), len(RECORD_COLUMN)), np.int64)
    columns[:, RECORD_COLUMN["batch"]] = np.repeat(np.arange(len(table)), counts)
    firsts = table.base_offset - (np.cumsum(counts) - counts)
    columns[:, RECORD_COLUMN["offset"]] = np.repeat(firsts, counts) + np.arange(len(columns))
    return RecordTable(table, memoryview(b""), columns)
