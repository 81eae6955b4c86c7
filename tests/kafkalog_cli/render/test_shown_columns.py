"""Which columns a table of records shows."""

from __future__ import annotations

from format.columns import RECORD
from kafkalog_cli.render.table import RECORD_COLUMNS, ShownColumns


def test_columns_of_records_are_there_and_the_first_to_go_are_among_them() -> None:
    assert set(RECORD_COLUMNS) <= set(RECORD.names)
    assert set(RECORD_COLUMNS.first_to_go) < set(RECORD_COLUMNS)
    assert {"offset", "key", "value"}.isdisjoint(RECORD_COLUMNS.first_to_go)


def test_it_is_a_tuple_of_names() -> None:
    assert ShownColumns(("a", "b")) == ("a", "b")
    assert ShownColumns(("a", "b")).first_to_go == ()
