"""Rows of the output for batches and records, from columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.columns import BATCH, DECODED, RECORD, Fill, RowSchema
from format.location import Location
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column
from format.log.record_table import RECORD_COLUMN, RecordTable

BoolColumn = NDArray[np.bool_]

TIMESTAMP_TYPES = (*layout.TIMESTAMP_TYPE_NAMES, layout.NO_TIMESTAMP_TYPE)


#: Values, one for each row, and which of them are null; None if none is.
Nullable = tuple[NDArray[Any], BoolColumn | None]
#: The kind of the column that marks records below the log start offset, which is known for each log.
BELOW_LOG_START = "record-below-log-start"
#: A field of the location, the same in every row; bytes of a record; the headers of a record.
CONSTANT, BYTES, HEADERS = "constant", "record-bytes", "record-headers"
Row = tuple[Any, ...]
#: About as many bytes of records are taken at once, unless one has more.
PART_BYTES = 16 * 1024 * 1024
_ROWS_AT_ONCE = 20_000


def in_lists(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists that Arrow data is made from: of 20,000, the last of fewer."""
    rows = iter(rows)
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        yield block


class RowValues:
    """What the rows of one table are made from: batches, and records of them where rows are records."""

    def __init__(
        self,
        batches: BatchTable,
        location: Location,
        records: RecordTable | None = None,
        log_start_offset: int | None = None,
    ) -> None:
        """``batches`` are the rows; with ``records``, those that the records are of."""
        self.batches = batches
        self.location = location
        self.log_start_offset = log_start_offset
        self._records = records

    @classmethod
    def of_records(cls, table: RecordTable, location: Location, log_start_offset: int | None = None) -> RowValues:
        return cls(table.batches, location, table, log_start_offset)

    def __len__(self) -> int:
        return len(self.batches if self._records is None else self._records)

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """The value of each row, from one for each batch."""
        return values if self._records is None else values[self._records.batch]

    @property
    def records(self) -> RecordTable:
        if self._records is None:
            raise ValueError("these rows are batches, which have no values of records")
        return self._records

    @cached_property
    def is_before_v2(self) -> BoolColumn:
        before: BoolColumn = self.of_rows(self.batches.magic < 2)
        return before

    @cached_property
    def is_v0(self) -> BoolColumn:
        v0: BoolColumn = self.of_rows(self.batches.magic == 0)
        return v0

    def of_decoded(self, number: str | int) -> list[Any]:
        """One of columns.DECODED_COLUMNS; nulls where nothing is decoded."""
        decoded = self.records.decoded
        listed: list[Any] = [None] * len(self) if decoded is None else decoded[:, int(number)].tolist()
        return listed

    def of_batch(self, column: str | int) -> Int64Column:
        return self.of_rows(self.batches.columns[:, BATCH_COLUMN[str(column)]])

    def of_record(self, column: str | int) -> Int64Column:
        return self.records.columns[:, RECORD_COLUMN[str(column)]]


def _below(offsets: Int64Column, log_start_offset: int | None) -> Nullable:
    if log_start_offset is None:
        return np.zeros(len(offsets), np.bool_), np.ones(len(offsets), np.bool_)
    return offsets < log_start_offset, None


#: Integers by the kind of expression.
NUMBERS: dict[str, Callable[[RowValues, str | int], Nullable]] = {
    "number": lambda rows, source: (rows.of_batch(source), None),
    "v2": lambda rows, source: (rows.of_batch(source), rows.is_before_v2),
    "timed": lambda rows, source: (rows.of_batch(source), rows.is_v0),
    "count": lambda rows, source: (rows.of_batch(source), (rows.of_batch(source) < 0) & rows.is_before_v2),
    "last-offset": lambda rows, source: (rows.batches.last_offset, None),
    "base-timestamp": lambda rows, source: (rows.of_batch(source), rows.batches.has_delete_horizon | rows.is_v0),
    "delete-horizon": lambda rows, source: (rows.of_batch(source), ~rows.batches.has_delete_horizon),
    "record-number": lambda rows, source: (rows.of_record(source), None),
    "record-timestamp": lambda rows, source: (rows.of_record(source), rows.is_v0),
    "record-sequence": lambda rows, source: (rows.records.sequence, rows.is_before_v2),
}
#: Booleans.
TRUTHS: dict[str, Callable[[RowValues, str | int], Nullable]] = {
    "bit": lambda rows, source: ((rows.of_batch("attributes") & int(source)) != 0, rows.is_before_v2),
    BELOW_LOG_START: lambda rows, source: _below(rows.records.offset, rows.log_start_offset),
    "crc-valid": lambda rows, source: (rows.batches.crc_valid > 0, rows.batches.crc_valid < 0),
}
#: Numbers of words, and the words.
WORDS: dict[str, Callable[[RowValues], tuple[NDArray[Any], Sequence[str]]]] = {
    "codec": lambda rows: (rows.of_rows(rows.batches.codec), layout.CODEC_BITS_NAMES),
    "timestamp-type": lambda rows: (
        np.where(rows.is_v0, len(TIMESTAMP_TYPES) - 1, rows.of_rows(rows.batches.is_append_time)),
        TIMESTAMP_TYPES,
    ),
}


def length_column(start_column: str | int) -> str:
    """The name of the column of lengths that belongs to a column of positions: ``key_length`` for ``key_start``."""
    return str(start_column).removesuffix("_start") + "_length"


def python_values(fill: Fill, rows: RowValues) -> Iterable[Any]:
    """The values of one column as Python objects, one for each row, None for null."""
    kind, source = fill.kind, fill.source
    if kind == CONSTANT:
        return repeat(getattr(rows.location, str(source)), len(rows))
    if kind == "last-offset":  # not the column: a forged base offset plus its delta may not fit in 64 bits
        pairs = zip(rows.batches.base_offset.tolist(), rows.batches.last_offset_delta.tolist(), strict=True)
        return (base_offset + delta for base_offset, delta in pairs)
    if kind in NUMBERS:
        return _listed(*NUMBERS[kind](rows, source))
    if kind in TRUTHS:
        return _listed(*TRUTHS[kind](rows, source))
    if kind in WORDS:
        numbers, words = WORDS[kind](rows)
        return (words[number] for number in numbers.tolist())
    if kind == BYTES:
        starts, lengths = rows.of_record(source).tolist(), rows.of_record(length_column(source)).tolist()
        buffer = rows.records.buffer
        return (
            None if length < 0 else bytes(buffer[start : start + length])
            for start, length in zip(starts, lengths, strict=True)
        )
    if kind == HEADERS:
        counts, old = rows.records.header_count.tolist(), rows.is_before_v2.tolist()
        return (
            None if is_old else rows.records.headers(row) if count else []
            for row, (count, is_old) in enumerate(zip(counts, old, strict=True))
        )
    if kind == DECODED:
        return rows.of_decoded(source)
    raise ValueError(f"no expression of the kind {kind} exists")


def _listed(values: NDArray[Any], is_null: BoolColumn | None) -> list[Any]:
    listed: list[Any]
    if is_null is None or not is_null.any():
        listed = values.tolist()
    else:
        with_nulls = values.astype(object)
        with_nulls[is_null] = None
        listed = with_nulls.tolist()
    return listed


def rows_of(schema: RowSchema, rows: RowValues) -> Iterable[tuple[Any, ...]]:
    """Rows of a schema whose columns define how they are filled; generated one by one."""
    return zip(*(python_values(filled(schema, name), rows) for name in schema.names), strict=True)


def filled(schema: RowSchema, name: str) -> Fill:
    """How a column of a schema is filled; KeyError for a column that is not in the schema."""
    for column in schema.columns:
        if column.name == name:
            if column.fill is None:
                raise ValueError(f"the column {name} does not say how it is filled")
            return column.fill
    raise KeyError(name)


class RowBlock(msgspec.Struct, frozen=True):
    """Rows of one schema, in order, to be read once; ``records`` and ``batches`` are the tables they are made from."""

    schema: RowSchema
    rows: Iterable[Row]
    location: Location | None = None
    records: RecordTable | None = None
    batches: BatchTable | None = None
    log_start_offset: int | None = None

    @property
    def record_table(self) -> RecordTable:
        if self.records is None:
            raise ValueError("the block has no records")
        return self.records

    def of_records(self, records: RecordTable) -> RowBlock:
        """A block of the same kind with other records of the same log."""
        if self.location is None:
            raise ValueError("the block has rows without columns behind them")
        return record_block(records, self.location, self.schema, self.log_start_offset)

    def __reduce__(self) -> tuple[type[RowBlock], tuple[object, ...]]:
        """The state for a pickle: the rows without the tables. This reads the rows of the block."""
        return RowBlock, (self.schema, list(self.rows), self.location)

    def part(self, which: slice) -> RowBlock:
        """A block of some of the rows."""
        if self.records is not None:
            return self.of_records(self.records.rows(which))
        if self.batches is not None and self.location is not None:
            return batch_block(self.batches.rows(which), self.location)
        return replace(self, rows=list(islice(self.rows, which.start, which.stop)))

    @property
    def row_count(self) -> int:
        """The number of rows of a block that has tables, or a list of rows."""
        columns = self.batches if self.records is None else self.records
        return len(self.rows if columns is None else columns)  # type: ignore[arg-type]


def bounded_parts(table: RecordTable, most_bytes: int = PART_BYTES) -> Iterator[RecordTable]:
    """The table in parts whose records have at most ``most_bytes`` in sum, each at least one record."""
    ends = np.cumsum(table.size_bytes)
    first = 0
    while first < len(table):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most_bytes, side="right")), first + 1)
        yield table if first == 0 and last >= len(table) else table.rows(slice(first, last))
        first = last


def batch_rows(table: BatchTable, location: Location) -> Iterator[Row]:
    """One row of columns.BATCH per batch; fields that its format does not have are None."""
    yield from rows_of(BATCH, RowValues(table, location))


def record_rows(
    table: RecordTable, location: Location, schema: RowSchema = RECORD, log_start_offset: int | None = None
) -> Iterator[Row]:
    """One row of the schema per record; fields that its format does not have are None."""
    yield from rows_of(schema, RowValues.of_records(table, location, log_start_offset))


def batch_block(table: BatchTable, location: Location) -> RowBlock:
    return RowBlock(BATCH, batch_rows(table, location), location, batches=table)


def record_block(
    table: RecordTable, location: Location, schema: RowSchema = RECORD, log_start_offset: int | None = None
) -> RowBlock:
    """Records as rows of RECORD, or of a schema with more columns."""
    rows = record_rows(table, location, schema, log_start_offset)
    return RowBlock(schema, rows, location, table, log_start_offset=log_start_offset)
