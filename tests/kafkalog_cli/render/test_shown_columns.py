"""Which columns a table of records shows."""

from __future__ import annotations

from kafkalog_cli.render.table import ShownColumns


def test_it_is_a_tuple_of_names() -> None:
    assert ShownColumns(("a", "b")) == ("a", "b")
    assert ShownColumns(("a", "b")).first_to_go == ()
