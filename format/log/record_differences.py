"""Comparison of the records of two tables: offset, timestamp, key, value, headers, and fields of their batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format.kernel.search import find_other_record
from format.log.record_table import RecordTable

#: The fields of a record that are those of its batch.
OF_BATCH = ("is_append_time", "leader_epoch", "producer_id", "producer_epoch", "is_transactional", "is_control")


def differ_in_numbers(mine: RecordTable, theirs: RecordTable) -> NDArray[np.bool_]:
    """Which records differ in a number, a length, or a field of their batch; the tables must be of equal length."""
    are_other: NDArray[np.bool_] = (mine.offset != theirs.offset) | (mine.timestamp != theirs.timestamp)
    are_other |= (mine.key_length != theirs.key_length) | (mine.value_length != theirs.value_length)
    are_other |= np.maximum(mine.header_count, 0) != np.maximum(theirs.header_count, 0)
    are_other |= mine.sequence != theirs.sequence
    for name in OF_BATCH:
        are_other |= getattr(mine.batches, name)[mine.batch] != getattr(theirs.batches, name)[theirs.batch]
    return are_other


def next_other_bytes(mine: RecordTable, theirs: RecordTable, first: int) -> int:
    """The first row from ``first`` on whose key, value or headers differ in their bytes; -1 for none.

    The lengths of keys and values and the numbers of headers must be equal.
    """
    columns = memoryview(mine.columns), memoryview(theirs.columns)
    return find_other_record(mine.buffer, columns[0], theirs.buffer, columns[1], first)


def differing_records(mine: RecordTable, theirs: RecordTable) -> NDArray[np.bool_]:
    """Which records differ in content; the tables must be of equal length."""
    are_other = differ_in_numbers(mine, theirs)
    same = np.flatnonzero(~are_other)
    if not len(same):
        return are_other
    left, right = (mine, theirs) if len(same) == len(are_other) else (mine.rows(same), theirs.rows(same))
    row = -1
    while (row := next_other_bytes(left, right, row + 1)) >= 0:
        are_other[same[row]] = (left.key(row), left.value(row), left.headers(row) or []) != (
            right.key(row),
            right.value(row),
            right.headers(row) or [],
        )
    return are_other
