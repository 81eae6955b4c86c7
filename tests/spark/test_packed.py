"""Values of a plan as compressed bytes."""

from __future__ import annotations

import pickle

import pytest

from spark_jobs.work.packed import PackedByNumber, PackedList, unpacked

ROWS = [["/var/kafka/orders-0", number] * 50 for number in range(40)]


def test_a_list() -> None:
    values = PackedList(iter(ROWS))
    assert list(values) == ROWS
    assert (len(values), values[-1], values[3:5]) == (40, ROWS[-1], ROWS[3:5])
    assert [unpacked(each) for each in values.contents] == ROWS
    with pytest.raises(IndexError):
        values[40]


def test_by_number() -> None:
    values: PackedByNumber[list[object]] = PackedByNumber()
    for number in (7, 3):
        values.add(number, ROWS[number])
    assert dict(values) == {7: ROWS[7], 3: ROWS[3]}
    assert unpacked(values.contents[3]) == ROWS[3]
    with pytest.raises(KeyError):
        values[4]


def test_they_are_smaller_than_what_they_hold() -> None:
    values = PackedList(ROWS)
    assert sum(map(len, values.contents)) < sum(len(pickle.dumps(each, protocol=5)) for each in ROWS) // 2
