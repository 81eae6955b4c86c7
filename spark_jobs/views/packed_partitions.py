"""The tasks of a read as Spark's input partitions, which are made one by one while Spark takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from spark_jobs.work.packed import PackedList


class PackedPartitions(list[InputPartition]):
    """A list to Spark, which goes through it and writes one partition after the other to the JVM.

    It holds no partitions: each is made from the bytes of a task when it is requested. ``last`` follow them.
    """

    def __init__(
        self,
        tasks: PackedList[Any],
        partition_of: Callable[[bytes], InputPartition],
        last: Sequence[InputPartition] = (),
    ) -> None:
        super().__init__()
        self._tasks = tasks
        self._partition_of = partition_of
        self._last = last

    def __len__(self) -> int:
        return len(self._tasks) + len(self._last)

    def __iter__(self) -> Iterator[InputPartition]:
        for number in range(len(self)):
            yield self[number]

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        place = range(len(self))[number] - len(self._tasks)
        return self._last[place] if place >= 0 else self._partition_of(self._tasks.content(place + len(self._tasks)))
