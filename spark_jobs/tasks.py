"""Tasks on executors: each takes its share of a plan and gives back results as bytes, a few for many records.

A result is a row of RESULT_DDL: which unit it is of, in which order, and a pickled object. Nothing is ever pickled but
what our own workers made.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from format import remote_files
from format.freed_memory import keep_freed_memory
from spark_jobs.planning import ItemT, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: ``phase``, ``segment``, ``part`` and ``step`` order the results of a unit.
RESULT_DDL = "unit INT, phase INT, segment INT, part INT, step INT, payload BINARY"
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int32()) for name in ("unit", "phase", "segment", "part", "step")),
        pa.field("payload", pa.binary()),
    ]
)
ORDER = ("unit", "phase", "segment", "part", "step")


@dataclass(frozen=True, slots=True)
class Result:
    """What a task gives back about a unit; results are put in the order of their numbers."""

    unit: int
    phase: int
    segment: int
    part: int
    step: int
    value: Any


Work = Callable[[ItemT], Iterator[Result]]
Merge = Callable[[Iterator[Result]], Iterator[Result]]


def results_frame(session: SparkSession, plan: Plan[ItemT], work: Work[ItemT]) -> DataFrame:
    """A frame of results: one Spark task for each task of the plan, which reaches the executors as a broadcast."""
    shared = session.sparkContext.broadcast(plan.tasks)
    addresses = plan.addresses

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_freed_memory()
        remote_files.know(addresses)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for item in shared.value[number]:
                    yield from as_batches(work(item))

    count = max(len(plan.tasks), 1)
    numbers = session.range(0, len(plan.tasks), 1, count)
    return numbers.mapInArrow(run, RESULT_DDL)


def merged_frame(frame: DataFrame, plan: Plan[Any], merge: Merge, partition_count: int) -> DataFrame:
    """The results of each unit brought together, in their order, and handed to ``merge`` as one stream of units."""
    addresses = plan.addresses

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_freed_memory()
        remote_files.know(addresses)
        yield from as_batches(merge(results_in(batches)))

    ordered = frame.repartition(partition_count, "unit").sortWithinPartitions(*ORDER)
    return ordered.mapInArrow(run, RESULT_DDL)


def as_batches(results: Iterable[Result]) -> Iterator[pa.RecordBatch]:
    """Results as rows, a batch each: their payloads may be large."""
    for each in results:
        yield pa.RecordBatch.from_arrays(
            [
                *(
                    pa.array([value], pa.int32())
                    for value in (each.unit, each.phase, each.segment, each.part, each.step)
                ),
                pa.array([pickle.dumps(each.value, protocol=5)], pa.binary()),
            ],
            schema=_SCHEMA,
        )


def results_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Result]:
    """The results in batches of rows."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns[:5]]
        for unit, phase, segment, part, step, payload in zip(*columns, batch.column(5), strict=True):
            yield Result(unit, phase, segment, part, step, pickle.loads(payload.as_buffer()))
