"""The bytes of a log by ranges of offsets: a batch lies on all its offsets, and no byte is lost or counted twice."""

from __future__ import annotations

import numpy as np

from format.log.batch_table import BATCH_COLUMN, BatchTable
from format.verbs.report.survey import OFFSET_RANGES, BytesByOffset


def table_of(rows: list[tuple[int, int, int]], crc_valid: int = 1) -> BatchTable:
    """Batches of (base offset, last offset, size)."""
    columns = np.zeros((len(rows), len(BATCH_COLUMN)), np.int64)
    columns[:, BATCH_COLUMN["base_offset"]] = [first for first, _, _ in rows]
    columns[:, BATCH_COLUMN["last_offset_delta"]] = [last - first for first, last, _ in rows]
    columns[:, BATCH_COLUMN["size_bytes"]] = [size for _, _, size in rows]
    return BatchTable(columns, np.full(len(rows), crc_valid, np.int8))


def test_a_log_without_gaps_has_no_holes() -> None:
    by_offset = BytesByOffset()
    for first in range(0, 9_000, 300):
        by_offset.add(table_of([(first, first + 299, 600)]), 0)
    ranges = by_offset.ranges()
    assert ranges[0][0] == 0
    assert ranges[-1][0] <= 8_999 <= ranges[-1][1]
    assert {size for _, _, size in ranges[:-1]} == {2 * by_offset.width}
    assert sum(size for _, _, size in ranges) == 30 * 600


def test_one_batch_is_spread_over_the_whole_axis() -> None:
    by_offset = BytesByOffset()
    by_offset.add(table_of([(10, 10 + 2**31 - 1, 2**31 - 1)]), 10)
    ranges = by_offset.ranges()
    assert len(ranges) == OFFSET_RANGES
    assert sum(size for _, _, size in ranges) == 2**31 - 1
    assert max(size for _, _, size in ranges) - min(size for _, _, size in ranges) <= 1


def test_the_sums_are_those_of_a_naive_count() -> None:
    source = np.random.default_rng(7)
    rows, offset = [], 0
    for _ in range(200):
        offset += int(source.integers(0, 50))
        count = int(source.integers(1, 400))
        rows.append((offset, offset + count - 1, count * int(source.integers(1, 9))))
        offset += count
    by_offset = BytesByOffset()
    for start in range(0, len(rows), 7):
        by_offset.add(table_of(rows[start : start + 7]), 0)
    for first, last, size in by_offset.ranges():
        expected = sum(
            bytes_ // (end - base + 1) * max(min(end, last) - max(base, first) + 1, 0) for base, end, bytes_ in rows
        )
        assert size == expected


def test_a_batch_whose_last_offset_is_not_proven_has_its_first_offset_alone() -> None:
    by_offset = BytesByOffset()
    by_offset.add(table_of([(0, 2**30, 70)], crc_valid=0), 0)
    assert by_offset.ranges() == [(0, 0, 70)]
