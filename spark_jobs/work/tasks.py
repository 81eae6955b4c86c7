"""Tasks on executors: each reads its share of a plan and returns results as bytes, a few for many records.

A result is a row of RESULT_DDL: its unit, its place in the order, and a pickled object. Only objects that this
package's workers made are unpickled.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from format.limits import MIB
from spark_jobs.session import is_remote_session
from spark_jobs.work.packed import PackedList, unpacked
from spark_jobs.work.workers import Surroundings, begin_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ItemT = TypeVar("ItemT")

#: ``phase``, ``segment``, ``part`` and ``step`` order the results of a unit.
RESULT_DDL = "unit INT, phase INT, segment INT, part INT, step INT, payload BINARY"
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int32()) for name in ("unit", "phase", "segment", "part", "step")),
        pa.field("payload", pa.binary()),
    ]
)
#: The unit number of the result of a task that has more results than it may return at once.
LEFT_OUT = -1
#: The phase of these further results, after all others.
LATE = 3
#: Results are put together until they have this many bytes.
_BATCH_BYTES = 4 * MIB
ORDER = ("unit", "phase", "segment", "part", "step")


class Result(msgspec.Struct, frozen=True):
    """One result of a task, about one unit. Results are sorted by their numbers."""

    unit: int
    phase: int
    segment: int
    part: int
    step: int
    value: Any


class _InClosure(msgspec.Struct, frozen=True):
    """A value that travels with the function of a task, where there is no broadcast."""

    value: Any


def shared_with_tasks(session: SparkSession, value: Any) -> Any:
    """The value for all tasks, as ``value`` of the result: a broadcast; on a Connect server, which has none, a copy."""
    return _InClosure(value) if is_remote_session(session) else session.sparkContext.broadcast(value)


def _known_to_tasks(session: SparkSession, surroundings: Surroundings) -> Any:
    """The same for what is small, unless there are remote segments."""
    return _InClosure(surroundings) if surroundings.tier is None else shared_with_tasks(session, surroundings)


class Bound(msgspec.Struct, frozen=True):
    """The bytes of results that a task returns at once.

    The result LEFT_OUT follows them, and then, with ``is_rest_kept``, the others in the phase LATE.
    """

    most_bytes: int
    is_rest_kept: bool


RowsOf = Callable[[ItemT], Iterator[pa.RecordBatch]]
Work = Callable[[ItemT], Iterator[Result]]
#: Folds the results of a unit whose parts other tasks read.
Merge = Callable[[int, Iterator[Result]], Iterator[Result]]


def rows_frame(
    session: SparkSession,
    tasks: Sequence[list[ItemT]],
    surroundings: Surroundings,
    rows_of: RowsOf[ItemT],
    ddl: str,
    bound: Bound | None = None,
) -> DataFrame:
    """A frame of the rows of all items: one Spark task for each of ``tasks``, which reach the executors as a broadcast.

    A worker unpacks only its own tasks, as a plan of many units is large. ``bound`` is for rows of RESULT_DDL.
    """
    known = _known_to_tasks(session, surroundings)
    held = tasks if isinstance(tasks, PackedList) else PackedList(tasks)
    shared = shared_with_tasks(session, held.contents)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(known.value)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                items = unpacked(shared.value[number])
                _log_items(items)
                yield from _bounded((rows for item in items for rows in rows_of(item)), bound)

    return session.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(run, ddl)


def _log_items(items: list[Any]) -> None:
    """Write a line with the files that the task reads to the executor's log."""
    names = [each.name for each in items]
    more = f" to {names[-1]}: {len(names)} pieces" if len(names) > 1 else ""
    sys.stderr.write(f"kafkalog: this task reads {names[0] if names else 'nothing'}{more}\n")


def results_frame(
    session: SparkSession,
    tasks: Sequence[list[ItemT]],
    surroundings: Surroundings,
    work: Work[ItemT],
    bound: Bound | None = None,
) -> DataFrame:
    """A frame of results, with one Spark task for each of ``tasks``."""
    return rows_frame(session, tasks, surroundings, lambda item: as_batches(work(item)), RESULT_DDL, bound)


def merged_frame(
    session: SparkSession,
    results: DataFrame,
    split: frozenset[int],
    surroundings: Surroundings,
    merge: Merge,
    merger_count: int,
    bound: Bound | None = None,
) -> DataFrame:
    """The results, with those of each unit in ``split`` brought together, in order, and merged, by so many tasks."""
    known = _known_to_tasks(session, surroundings)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(known.value)
        yield from _bounded(merged(batches), bound)

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, of_unit in groupby(results_in(batches), key=lambda each: each.unit):
            yield from as_batches(merge(number, of_unit) if number in split else of_unit)  # noqa: B031

    return results.repartition(merger_count, "unit").sortWithinPartitions(*ORDER).mapInArrow(run, RESULT_DDL)


def as_batches(results: Iterable[Result]) -> Iterator[pa.RecordBatch]:
    """Results as rows, in batches of some mebibytes, or of one row where its payload is larger."""
    held: list[Result] = []
    payloads: list[bytes] = []
    held_bytes = 0
    for each in results:
        held.append(each)
        payloads.append(pickle.dumps(each.value, protocol=5))
        held_bytes += len(payloads[-1])
        if held_bytes >= _BATCH_BYTES:
            yield _batch(held, payloads)
            held, payloads, held_bytes = [], [], 0
    if held:
        yield _batch(held, payloads)


def _bounded(batches: Iterator[pa.RecordBatch], bound: Bound | None) -> Iterator[pa.RecordBatch]:
    """The batches up to the bound, and then what it says of the rest."""
    given_bytes = 0
    is_late = False
    for batch in batches:
        given_bytes += batch.nbytes
        if bound is not None and not is_late and given_bytes > bound.most_bytes:
            is_late = True
            yield from as_batches([Result(LEFT_OUT, 0, 0, 0, 0, None)])
            if not bound.is_rest_kept:
                return
        yield _late(batch) if is_late else batch


def _late(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The results of a batch in the phase LATE."""
    phases = pa.py_buffer(np.full(batch.num_rows, LATE, np.int32))
    columns = [batch.column(0), pa.Array.from_buffers(pa.int32(), batch.num_rows, [None, phases]), *batch.columns[2:]]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _batch(results: list[Result], payloads: list[bytes]) -> pa.RecordBatch:
    """One batch, made from buffers: ``pyarrow.array`` would import pandas, which takes half a second in each worker."""
    order = np.array([(each.unit, each.phase, each.segment, each.part, each.step) for each in results], np.int32)
    ends = np.cumsum([0, *map(len, payloads)], dtype=np.int32)
    columns = [
        pa.Array.from_buffers(pa.int32(), len(results), [None, pa.py_buffer(np.ascontiguousarray(column))])
        for column in order.T
    ]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(payloads))]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.Array.from_buffers(pa.binary(), len(results), buffers)], schema=_SCHEMA
    )


def results_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Result]:
    """The results in batches of rows."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns[:5]]
        for unit, phase, segment, part, step, payload in zip(*columns, batch.column(5), strict=True):
            yield Result(unit, phase, segment, part, step, pickle.loads(payload.as_buffer()))
