"""Batches as columns: a HeaderTable has what headers say, a BatchTable the batches with compressed messages opened.

Each v2 record batch, and each outermost v0 or v1 message, is a row. The header of a compressed v0 or v1 message (a
wrapper) has the offset of its last inner message, but neither that of its first one nor their number. So a HeaderTable
has no base offsets and no counts. ``format.log.read_records.open_wrappers`` makes a BatchTable from the bytes. Tables
never change.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import CorruptDataError
from format.kernel.headers import hop, sum_table
from format.kernel.tables import BATCH_COLUMNS, T_CODEC_BYTES, T_CODEC_COUNTS, TABLE_SUMS
from format.location import Location

Int64Column = NDArray[np.int64]

#: The index of each column of a table, by name.
BATCH_COLUMN = {name: number for number, name in enumerate(BATCH_COLUMNS)}
_COLUMN = BATCH_COLUMN
_MAY_DIFFER = [_COLUMN[name] for name in ("position", "size_bytes", "crc")]
_BASE_OFFSET, _LAST_OFFSET_DELTA = _COLUMN["base_offset"], _COLUMN["last_offset_delta"]
_RECORD_COUNT = _COLUMN["record_count"]
_WRAP = 2**63
_NO_SUMS = bytes(8 * len(TABLE_SUMS))


class TableSums(NamedTuple):
    """What the rows of a table add up to, see ``kernel.tables.TABLE_SUMS``; codec sums are lists of 8."""

    magics: int
    record_count: int
    size_bytes: int
    least_offset: int
    greatest_offset: int
    least_delta: int
    greatest_delta: int
    max_timestamp: int
    lowest_epoch: int
    highest_epoch: int
    rises: int
    follows: int
    right_crcs: int
    wrong_crcs: int
    wrappers: int
    controls: int
    transactionals: int
    with_producer: int
    in_transactions: int
    producer_changes: int
    codec_counts: list[int]
    codec_bytes: list[int]


class HasColumns(Protocol):
    """A table with a row for each item."""

    @property
    def columns(self) -> Int64Column: ...


class TableColumn:
    """A column (int64) of a table of batches or of records, as an attribute."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get__(self, table: HasColumns, owner: object = None) -> Int64Column:
        return table.columns[:, self._number]


class _Table:
    """What is known of batches by their headers alone; the properties are columns, one value for each batch."""

    __slots__ = ("_sums", "columns", "crc_valid")

    def __init__(self, columns: Int64Column, crc_valid: NDArray[np.int8] | None = None) -> None:
        self.columns = columns
        self.crc_valid = np.full(len(columns), -1, np.int8) if crc_valid is None else crc_valid
        self.columns.flags.writeable = self.crc_valid.flags.writeable = False
        self._sums: TableSums | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Int64Column, NDArray[np.int8]]]:
        return type(self), (self.columns, self.crc_valid)

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def empty(cls) -> Self:
        return cls(np.empty((0, len(_COLUMN)), np.int64))

    @classmethod
    def concatenated(cls, tables: Sequence[Self]) -> Self:
        if not tables:
            return cls.empty()
        return cls(np.concatenate([t.columns for t in tables]), np.concatenate([t.crc_valid for t in tables]))

    def rows(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """A table of the rows that a slice, mask or index array selects."""
        return type(self)(self.columns[which], self.crc_valid[which])

    def with_crcs(self, crc_valid: NDArray[np.int8]) -> Self:
        """The batches with other results of the CRC check."""
        return type(self)(self.columns, crc_valid)

    position = TableColumn(_COLUMN["position"])
    size_bytes = TableColumn(_COLUMN["size_bytes"])  # on disk, the header included
    magic = TableColumn(_COLUMN["magic"])
    attributes = TableColumn(_COLUMN["attributes"])
    crc = TableColumn(_COLUMN["crc"])
    leader_epoch = TableColumn(_COLUMN["leader_epoch"])  # -1 for v0 and v1, which have none
    base_timestamp = TableColumn(_COLUMN["base_timestamp"])  # ms; the delete horizon if has_delete_horizon; -1 for v0
    max_timestamp = TableColumn(_COLUMN["max_timestamp"])
    producer_id = TableColumn(_COLUMN["producer_id"])
    producer_epoch = TableColumn(_COLUMN["producer_epoch"])
    base_sequence = TableColumn(_COLUMN["base_sequence"])

    @property
    def last_offset(self) -> Int64Column:
        """The last offset; wraps for a forged base offset near 2**63 (checked elsewhere)."""
        return self.columns[:, _BASE_OFFSET] + self.columns[:, _LAST_OFFSET_DELTA]

    def last_offset_of(self, row: int) -> int:
        """The last offset of one row. Loops over rows use this: ``last_offset`` computes a whole column each time."""
        offset: int = self.columns.item(row, _BASE_OFFSET) + self.columns.item(row, _LAST_OFFSET_DELTA)
        return offset if -_WRAP <= offset < _WRAP else (offset + _WRAP) % (2 * _WRAP) - _WRAP

    @property
    def end_position(self) -> Int64Column:
        """The byte after the batch."""
        return self.position + self.size_bytes

    def row_at(self, position: int) -> int:
        """The row of the last batch that starts at or before a position, -1 for none; positions must be in order."""
        return int(np.searchsorted(self.position, position, side="right")) - 1

    @property
    def codec(self) -> Int64Column:
        """Codec ids, 0 to 7; layout.CODEC_NAMES has their names."""
        return self.attributes & layout.CODEC_MASK

    @property
    def is_append_time(self) -> NDArray[np.bool_]:
        return self._has(layout.TIMESTAMP_TYPE_BIT, 1)

    @property
    def is_transactional(self) -> NDArray[np.bool_]:
        return self._has(layout.TRANSACTIONAL_BIT, 2)

    @property
    def is_control(self) -> NDArray[np.bool_]:
        return self._has(layout.CONTROL_BIT, 2)

    @property
    def has_delete_horizon(self) -> NDArray[np.bool_]:
        return self._has(layout.DELETE_HORIZON_BIT, 2)

    @property
    def is_wrapper(self) -> NDArray[np.bool_]:
        """Which rows are compressed v0/v1 messages."""
        wrapper: NDArray[np.bool_] = (self.magic < 2) & (self.codec > 0)
        return wrapper

    def _has(self, bit: int, least_magic: int) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = ((self.attributes & bit) != 0) & (self.magic >= least_magic)
        return has


class HeaderTable(_Table):
    """Batch headers in log order, as they lie in the file: ``columns`` is int64, with a row for each (BATCH_COLUMNS).

    ``crc_valid`` is int8: 1 valid, 0 wrong, -1 not computed. Positions are bytes in the file.
    """

    __slots__ = ()

    header_offset = TableColumn(_BASE_OFFSET)  # the first field of the header: the first offset, of a wrapper the last

    def unopened(self) -> BatchTable:
        """The batches, with wrappers left closed: with their last offset for the first, and -1 records."""
        return BatchTable(self.columns, self.crc_valid)


class BatchTable(_Table):
    """Batches in log order: ``columns`` is int64, with a row for each batch (BATCH_COLUMNS).

    ``crc_valid`` is int8: 1 valid, 0 wrong, -1 not computed. Offsets are those of records, positions are bytes in the
    file. A wrapper that could not be opened, and so is closed, has its last offset for its first one, and -1 records.
    """

    __slots__ = ()

    base_offset = TableColumn(_BASE_OFFSET)
    last_offset_delta = TableColumn(_LAST_OFFSET_DELTA)
    record_count = TableColumn(_COLUMN["record_count"])  # -1 for a wrapper that is closed

    def value(self, name: str, row: int) -> int:
        number: int = self.columns.item(row, _COLUMN[name])
        return number

    def with_contents(
        self,
        rows: NDArray[np.intp] | Int64Column,
        first_offsets: Int64Column,
        last_offsets: Int64Column,
        counts: Int64Column,
        base_timestamps: Int64Column | None = None,
    ) -> BatchTable:
        """The batches with what is in the wrappers of some rows: offsets, number and first timestamp of messages."""
        columns = self.columns.copy()
        columns[rows, _BASE_OFFSET] = first_offsets
        columns[rows, _LAST_OFFSET_DELTA] = last_offsets - first_offsets
        columns[rows, _RECORD_COUNT] = counts
        if base_timestamps is not None:
            columns[rows, _COLUMN["base_timestamp"]] = base_timestamps
        return BatchTable(columns, self.crc_valid)

    @property
    def sums(self) -> TableSums:
        """The sums over all rows, which are kept."""
        if self._sums is None:
            found = array("q", _NO_SUMS)
            sum_table(memoryview(np.ascontiguousarray(self.columns)), memoryview(self.crc_valid), memoryview(found))
            values = found.tolist()
            codecs = values[T_CODEC_COUNTS:T_CODEC_BYTES], values[T_CODEC_BYTES:]
            self._sums = TableSums._make([*values[:T_CODEC_COUNTS], *codecs])
        return self._sums

    def same_headers(self, other: BatchTable) -> NDArray[np.bool_]:
        """Which rows of two tables of equal length are equal except for position, codec, size and CRC."""
        differ = self.columns != other.columns
        differ[:, _MAY_DIFFER] = False
        differ[:, _COLUMN["attributes"]] = (self.attributes ^ other.attributes) & ~layout.CODEC_MASK != 0
        same: NDArray[np.bool_] = ~differ.any(axis=1)
        return same

    def higher_epochs(self, highest: int) -> list[int]:
        """The rows whose leader epoch is higher than all before it, and than ``highest``."""
        if self.sums.highest_epoch <= highest:
            return []
        is_one = self.sums.lowest_epoch == self.sums.highest_epoch
        return [0] if is_one else new_highest(self.leader_epoch, highest)

    def rises_from(self, offset: int | None) -> bool:
        """Whether each batch starts after the last offset of the previous one, and the first one after ``offset``.

        No batch may end before it starts.
        """
        base, last = self.base_offset, self.last_offset
        rises = bool((base[1:] > last[:-1]).all()) and bool((last >= base).all())
        return rises and (offset is None or not len(base) or int(base[0]) > offset)

    @property
    def is_sparse(self) -> NDArray[np.bool_]:
        """Which batches have fewer records than offsets: compaction makes such batches, and producers do not."""
        sparse: NDArray[np.bool_] = (self.magic == 2) & (self.record_count >= 0)
        return sparse & (self.record_count <= self.last_offset_delta)

    def has_delete_horizon_at(self, row: int) -> bool:
        return self.value("magic", row) >= 2 and self.value("attributes", row) & layout.DELETE_HORIZON_BIT != 0


def batch_location(where: Location, table: BatchTable, row: int) -> Location:
    """The location of one batch of a table."""
    return where.at(
        position=int(table.position[row]), length=int(table.size_bytes[row]), offset=int(table.base_offset[row])
    )


def whole_batches(content: bytes | bytearray | memoryview, position: int, count: int) -> BatchTable:
    """The table of the ``count`` consecutive batches in ``content``, the first at ``position``; CRCs are not checked.

    Raises CorruptDataError if the headers do not describe exactly so many batches.
    """
    columns, status = np.empty((count, len(_COLUMN)), np.int64), np.array((0, 0, -1), np.int64)
    found = hop(memoryview(content), 0, len(content), position, memoryview(columns), 0, memoryview(status))
    if (found, status[1]) != (count, len(content)):
        raise CorruptDataError(f"these bytes are not {count} batches: the headers lead to byte {status[1]}")
    return BatchTable(columns)


def new_highest(values: Int64Column, highest: int) -> list[int]:
    """The rows whose value is larger than all before it, and than ``highest``."""
    largest = int(values.max()) if len(values) else highest
    if largest <= highest:
        return []
    if values[0] == largest:  # the usual case: all have the same leader epoch
        return [0]
    found: list[int] = np.flatnonzero(values > np.maximum.accumulate(np.concatenate(([highest], values[:-1])))).tolist()
    return found
