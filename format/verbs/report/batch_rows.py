"""Converts rows of the table of batches into batch tables, with the columns that histograms need."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.columns import BATCH, Column
from format.location import Location
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column

if TYPE_CHECKING:
    import pyarrow as pa

_READ = (
    *("topic", "partition", "position", "codec", "size_bytes", "base_offset", "last_offset", "record_count", "magic"),
    *("base_timestamp", "max_timestamp", "leader_epoch", "crc_valid"),
)
#: The columns of rows that are read.
BATCH_ROWS = (Column("path", "string", "the file"), *(each for each in BATCH.columns if each.name in _READ))
#: Columns with the same name and meaning in both; a null in a row becomes -1.
_SAME = (
    *("position", "size_bytes", "base_offset", "record_count", "magic", "base_timestamp", "max_timestamp"),
    "leader_epoch",
)


def batch_tables(batch: pa.RecordBatch) -> Iterator[tuple[Location, BatchTable]]:
    """The path, topic and partition of each log, and its batches, from rows with the columns BATCH_ROWS."""
    if not batch.num_rows or not {column.name for column in BATCH_ROWS} <= set(batch.schema.names):
        return
    columns = np.full((batch.num_rows, len(BATCH_COLUMN)), -1, np.int64)
    for name in _SAME:
        columns[:, BATCH_COLUMN[name]] = _numbers(batch, name)
    columns[:, BATCH_COLUMN["last_offset_delta"]] = (
        _numbers(batch, "last_offset") - columns[:, BATCH_COLUMN["base_offset"]]
    )
    columns[:, BATCH_COLUMN["attributes"]] = _codecs(batch)
    crc_valid = _numbers(batch, "crc_valid").astype(np.int8)
    paths = batch.column("path").dictionary_encode()
    numbers: NDArray[np.int32] = paths.indices.to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)])).tolist()
    for start, end in pairwise(starts):
        path = str(paths[start].as_py())
        topic, partition = batch.column("topic")[start].as_py(), batch.column("partition")[start].as_py()
        yield Location(path, topic, partition), BatchTable(columns[start:end], crc_valid[start:end])


def _numbers(batch: pa.RecordBatch, name: str) -> Int64Column:
    values: Int64Column = batch.column(name).cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return values


def _codecs(batch: pa.RecordBatch) -> Int64Column:
    """The number of each row's codec; 0 for one that is unknown."""
    names = batch.column("codec").dictionary_encode()
    known = {name: number for number, name in enumerate(layout.CODEC_BITS_NAMES)}
    numbers = np.array([known.get(name, 0) for name in names.dictionary.to_pylist()] or [0], np.int64)
    rows: NDArray[np.int64] = names.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers[rows]
