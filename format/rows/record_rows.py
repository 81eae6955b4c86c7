"""From columns to rows: the rows of the output for batches and for records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from format.columns import BATCH, RECORD, RowSchema
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.record_table import RecordTable
from format.rows.column_values import RowValues, rows_of

Row = tuple[Any, ...]


class RowBlock(msgspec.Struct, frozen=True):
    """Rows of one schema, in order, to be read once; ``records`` and ``batches`` are the tables they are made from."""

    schema: RowSchema
    rows: Iterable[Row]
    location: Location | None = None
    records: RecordTable | None = None
    batches: BatchTable | None = None
    log_start_offset: int | None = None

    def of_records(self, records: RecordTable) -> RowBlock:
        """A block of the same kind with other records of the same log."""
        if self.location is None:
            raise ValueError("the block has rows without columns behind them")
        return record_block(records, self.location, self.schema, self.log_start_offset)

    def __reduce__(self) -> tuple[type[RowBlock], tuple[object, ...]]:
        """The state for a pickle: the rows without the tables. This reads the rows of the block."""
        return RowBlock, (self.schema, list(self.rows), self.location)

    def first(self, count: int) -> tuple[RowBlock, int]:
        """A block of the first rows, at most ``count``, and their number."""
        if self.records is not None:
            records = self.records.rows(slice(0, count))
            return replace(self, rows=islice(self.rows, count), records=records), len(records)
        if self.batches is not None:
            batches = self.batches.rows(slice(0, count))
            return replace(self, rows=islice(self.rows, count), batches=batches), len(batches)
        rows = list(islice(self.rows, count))
        return replace(self, rows=rows), len(rows)


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
