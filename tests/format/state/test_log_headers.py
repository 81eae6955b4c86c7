"""Totals over hand-made batches: sums, segments put together, and batches whose offsets cannot be."""

from __future__ import annotations

from format.state.log_headers import LogTotals
from tests.format.state.tables import SIZE, row, table_of


def test_offsets_that_a_segment_cannot_hold_are_left_out() -> None:
    totals = LogTotals()
    rows = [row(10, -1), row(3, -1), row(11, -1, last_offset_delta=-1), row(12, -1, last_offset_delta=4)]
    impossible = totals.add(table_of(rows), 10)
    assert impossible is not None
    assert impossible.base_offset.tolist() == [3, 11]
    assert impossible.position.tolist() == [3 * SIZE, 11 * SIZE]
    assert (totals.first_offset, totals.last_offset, totals.batch_count) == (10, 16, 4)
    assert totals.add(table_of([row(17, -1)]), 10) is None
    assert totals.last_offset == 17


def test_segments_are_put_together() -> None:
    first, second = LogTotals(), LogTotals(is_whole=False)
    first.add(table_of([row(0, -1)]), 0)
    second.add(table_of([row(5, -1, magic=1, attributes=1)]), 5)
    first.merge(second)
    assert (first.first_offset, first.last_offset, first.max_timestamp) == (0, 5, 5)
    assert (first.magics_text, first.codecs_text, first.is_whole) == ("1,2", "none:1,gzip:1", False)
