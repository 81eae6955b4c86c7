"""Sums by time and offset in bounded memory: nothing is lost when ranges are joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.log.batch_table import BATCH_COLUMN, BatchTable
from format.verbs.report import survey
from format.verbs.report.survey import OFFSET_RANGES, BatchSizes, BytesByOffset, BytesByTime

pytestmark = pytest.mark.slow


def _table(rows: list[tuple[int, int, int]]) -> BatchTable:
    """Batches of (base offset, largest timestamp, size)."""
    columns = np.zeros((len(rows), len(BATCH_COLUMN)), np.int64)
    for name, number in (("base_offset", 0), ("max_timestamp", 1), ("size_bytes", 2)):
        columns[:, BATCH_COLUMN[name]] = [row[number] for row in rows]
    columns[:, BATCH_COLUMN["record_count"]] = 1
    return BatchTable(columns)


_ROWS = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**62), st.integers(1, 2**31)), min_size=1, max_size=60
)


@given(st.lists(_ROWS, max_size=4))
def test_nothing_is_lost(chunks: list[list[tuple[int, int, int]]]) -> None:
    by_time, by_size = BytesByTime(), BatchSizes()
    for rows in chunks:
        by_time.add(0, _table(rows))
        by_size.add(_table(rows))
    every = [row for rows in chunks for row in rows]
    assert sum(pair[0] for pair in by_time.sums.values()) == sum(row[2] for row in every if row[1] >= 0)
    assert sum(row[3] for row in by_size.rows()) == sum(row[2] for row in every)
    for _, least, _, size_bytes, records in by_size.rows():
        assert least * records <= size_bytes < 2 * least * records


@given(_ROWS)
def test_ranges_of_offsets_grow_with_the_log(rows: list[tuple[int, int, int]]) -> None:
    rows.sort()
    by_offset = BytesByOffset()
    for row in rows:
        by_offset.add(_table([row]), 0)
    ranges = by_offset.ranges()
    assert len(ranges) <= OFFSET_RANGES
    assert ranges[0][0] == rows[0][0]
    for first, last, size_bytes in ranges:
        assert size_bytes == sum(row[2] for row in rows if first <= row[0] <= last)
    assert ranges[-1][1] >= rows[-1][0]


def test_times_are_joined_where_there_are_too_many() -> None:
    by_time = BytesByTime()
    step = 10 * by_time.width_ms
    count = 2 * survey._MOST_TIMES
    for first in range(0, count, 1000):
        by_time.add(0, _table([(0, number * step, 7) for number in range(first, first + 1000)]))
    assert len(by_time.sums) <= survey._MOST_TIMES
    assert by_time.width_ms > step
    assert sum(pair[0] for pair in by_time.sums.values()) == 7 * count
