"""Columns take their values from what ``format.columns`` says of them: one line for a new column, in every output."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from format.columns import BATCH, RECORD, Column, Fill, RowSchema
from format.kernel.text import FIELDS
from format.location import Location
from format.log.batch_table import BATCH_COLUMN, BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.rows.record_rows import BYTES, CONSTANT, HEADERS, NUMBERS, TRUTHS, WORDS, RowValues, filled, rows_of
from tests.building import batch, wrapper
from tests.sources import BytesSource

WHERE = Location("x.log", "topic", 7, 0)


def tables_of(log: bytes) -> list[RecordTable]:
    return [table for chunk in batch_chunks(BytesSource(log)) for table in record_tables(chunk)]


@pytest.mark.parametrize("schema", [RECORD, BATCH], ids=["record", "batch"])
def test_every_column_says_how_it_is_filled(schema: RowSchema) -> None:
    kinds = {CONSTANT, BYTES, HEADERS, *NUMBERS, *TRUTHS, *WORDS}
    for column in schema.columns:
        assert filled(schema, column.name).kind in kinds, column.name


def test_the_writer_of_lines_knows_every_kind() -> None:
    known = set(FIELDS)
    for schema in (RECORD, BATCH):
        for column in schema.columns:
            kind = filled(schema, column.name).kind
            assert kind == CONSTANT or kind in known, (column.name, kind)


def test_a_new_column_is_one_line() -> None:
    """A column that no output knows of yet: rows and Arrow have it as soon as its schema does."""
    arrow_columns = pytest.importorskip("format.rows.arrow_columns", reason="pyarrow is not installed")
    added = replace(
        RECORD, columns=(*RECORD.columns, Column("batch_crc", "int", "the CRC of the batch", Fill("number", "crc")))
    )
    (table,) = tables_of(batch(0, [b"a", b"b"]) + batch(2, [b"c"]))
    rows = list(rows_of(added, RowValues.of_records(table, WHERE)))
    crcs = [int(table.batches.crc[of]) for of in table.batch]
    assert [row[-1] for row in rows] == crcs
    assert len(set(crcs)) == 2
    array = arrow_columns.column_array(filled(added, "batch_crc"), RowValues.of_records(table, WHERE))
    assert array.to_pylist() == crcs


def test_old_messages_have_no_fields_of_new_ones() -> None:
    (table,) = tables_of(wrapper(0, 5, 2))
    row = dict(zip(RECORD.names, next(iter(rows_of(RECORD, RowValues.of_records(table, WHERE)))), strict=True))
    nulls = {name for name, value in row.items() if value is None}
    assert nulls >= {"timestamp", "headers", "leader_epoch", "producer_id", "sequence", "is_transactional"}
    assert row["timestamp_type"] == "NoTimestampType"
    assert (row["topic"], row["partition"], row["segment_base_offset"]) == ("topic", 7, 0)


def test_a_last_offset_past_64_bits_is_not_wrapped() -> None:
    columns = np.zeros((1, len(BATCH_COLUMN)), np.int64)
    columns[0, BATCH_COLUMN["magic"]] = 2
    columns[0, BATCH_COLUMN["base_offset"]] = 2**63 - 1
    columns[0, BATCH_COLUMN["last_offset_delta"]] = 9
    (row,) = rows_of(BATCH, RowValues(BatchTable(columns), WHERE))
    assert row[BATCH.names.index("last_offset")] == 2**63 + 8


def test_batches_have_no_values_of_records() -> None:
    with pytest.raises(ValueError, match="no values of records"):
        list(rows_of(RECORD, RowValues(BatchTable.empty(), WHERE)))
