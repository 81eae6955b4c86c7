"""Rows of records that follow from batch headers, where a query has only such columns: nothing is decompressed.

A broker refuses a batch whose record count and last offset delta contradict each other (storage LogValidator), so the
offsets of a batch without gaps follow from its header. Where they may not, the records are read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from format import layout
from format.location import Location
from format.log.batch_table import BatchTable
from format.rows.arrow_columns import constant, ints
from format.rows.record_rows import BoolColumn
from format.scan.selection import Selection
from spark_jobs.schemas import BROKER_ID

#: The columns of the records view that headers answer.
HEADER_COLUMNS = frozenset({"topic", "partition", "offset", "timestampType", "path", BROKER_ID.name})
#: A batch whose header names more records is read: that many do not come from a producer.
_MOST_RECORDS = 1_000_000
_SMALLEST_RECORD_BYTES = 7
_ROWS_IN_A_BATCH = 64 * 1024


def answered_by_headers(table: BatchTable, selection: Selection) -> BoolColumn:
    """Which batches, of those that are selected, have rows that follow from their headers."""
    count = table.record_count
    plain: BoolColumn = (count > 0) & (count == table.last_offset_delta + 1) & (count <= _MOST_RECORDS)
    if selection.from_timestamp is not None or selection.to_timestamp is not None:
        return np.zeros(len(table), np.bool_)
    if selection.from_offset is not None:
        plain = plain & (table.base_offset >= selection.from_offset)
    if selection.to_offset is not None:
        plain = plain & (table.last_offset < selection.to_offset)
    room = (table.size_bytes - layout.RECORD_BATCH.size_bytes) // _SMALLEST_RECORD_BYTES
    has_room = (table.codec > 0) | (table.magic < 2) | (count <= room)
    return plain & has_room


def header_rows(table: BatchTable, location: Location, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of the records of some batches, in their order; ``schema`` has HEADER_COLUMNS."""
    ends = np.cumsum(table.record_count)
    first = 0
    while first < len(table):
        done = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, done + _ROWS_IN_A_BATCH, side="right")), first + 1)
        yield _rows(table.rows(slice(first, last)), location, schema)
        first = last


def _rows(table: BatchTable, location: Location, schema: pa.Schema) -> pa.RecordBatch:
    counts = table.record_count
    total = int(counts.sum())
    made: dict[str, pa.Array] = {}
    for name in schema.names:
        if name == "topic":
            made[name] = constant(location.topic, total, "string")
        elif name == "partition":
            made[name] = constant(location.partition, total, "int").cast(pa.int32())
        elif name == "path":
            made[name] = constant(location.path, total, "string")
        elif name == "offset":
            firsts = table.base_offset - (np.cumsum(counts) - counts)
            made[name] = ints(np.repeat(firsts, counts) + np.arange(total))
        elif name == "timestampType":
            made[name] = pa.array(np.repeat(timestamp_types(table), counts), pa.int32())
        else:
            made[name] = pa.nulls(total, schema.field(name).type)  # the broker's id, which the reader sets
    return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)


def timestamp_types(table: BatchTable) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Kafka's ids of the timestamp types of batches: 0 CreateTime, 1 LogAppendTime, -1 where the format has none."""
    return np.where(table.magic == 0, -1, table.is_append_time).astype(np.int32)
