"""Values of a plan as compressed bytes."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from pyspark.sql.datasource import InputPartition

from spark_jobs import planning
from spark_jobs.planning import PackedList, PackedStream, unpacked
from spark_jobs.view_reader import PackedPartitions

ROWS = [["/var/kafka/orders-0", number] * 50 for number in range(40)]


def test_a_list() -> None:
    values = PackedList(iter(ROWS))
    assert list(values) == ROWS
    assert len(values) == 40
    assert [unpacked(each) for each in values.contents] == ROWS


def test_a_long_list_is_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_MOST_BYTES_IN_MEMORY", 300)
    values = PackedList(iter(ROWS))
    assert values._file.fileno() > 0  # a SpooledTemporaryFile has a descriptor once it is on disk
    assert list(values) == list(values) == ROWS


def test_a_stream_can_be_read_again() -> None:
    """Values of several groups come in their order, each time."""
    values = [*ROWS * 10, [None]]
    stream = PackedStream(iter(values))
    assert list(stream) == values
    assert list(stream) == values
    assert list(PackedStream([])) == []


def test_partitions_are_made_while_spark_goes_through_them() -> None:
    made: list[bytes] = []

    def partition_of(task: bytes) -> InputPartition:
        made.append(task)
        return InputPartition(unpacked(task))

    last = InputPartition("last")
    partitions = PackedPartitions(PackedList(ROWS), partition_of, [last])
    assert isinstance(partitions, list)
    assert (len(partitions), made) == (41, [])
    assert [each.value for each in partitions] == [*ROWS, "last"]
    assert all(isinstance(each, InputPartition) for each in partitions)
    assert len(made) == 80
    assert not PackedPartitions(PackedList[str](), InputPartition)


def test_they_are_smaller_than_what_they_hold() -> None:
    values = PackedList(ROWS)
    assert sum(map(len, values.contents)) < sum(len(pickle.dumps(each, protocol=5)) for each in ROWS) // 2
