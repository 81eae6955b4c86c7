"""The cluster driver for Spark: parts and folds of scans on executors, and results in order on the driver."""

from __future__ import annotations

import contextlib
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pyarrow as pa

from format.errors import ClusterFailed, KafkaLogError
from format.findings import Finding
from format.io.session import is_remote
from format.io.store import ItemT, ValueT
from format.limits import MIB
from format.rows.arrow_columns import arrow_schema
from format.scan.cluster import ResultT, UnitScan, UnitT
from format.scan.drivers import SerialDriver
from format.scan.progress import Advance
from spark_jobs import planning, tasks
from spark_jobs import session as sessions
from spark_jobs.schemas import BATCHES, BROKER_ID, ddl
from spark_jobs.tasks import results_of_part

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession


_Result = TypeVar("_Result")
#: Progress is looked at after the first of these times, and then less and less often, as the JVM is asked each time.
_SHORTEST_S, _LONGEST_S = 0.1, 1.0


class JobFailed(ClusterFailed):
    """A Spark job that failed; the message is one line with the reason."""


def watched(
    session: SparkSession,
    description: str,
    action: Callable[[], _Result],
    report_share: Callable[[float], None] | None = None,
) -> _Result:
    """Run an action, and return its result. ``report_share`` is called repeatedly with the share of tasks done, 0 to 1.

    The action runs in a thread, under a job group of its own, so that an interruption of this thread stops its jobs. A
    Connect server has tags in their place, and says nothing of progress. Raises JobFailed where a job fails.
    """
    from pyspark import InheritableThread

    group = f"kafkalog-{uuid.uuid4()}"
    context = None if sessions.is_remote_session(session) else session.sparkContext
    outcome: list[_Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            if context is None:
                session.addTag(group)
            else:
                context.setJobGroup(group, description, interruptOnCancel=True)
            outcome.append(action())
        except BaseException as error:
            failure.append(error)

    thread = InheritableThread(target=run, daemon=True, session=session)
    thread.start()
    wait_s = _SHORTEST_S
    try:
        while thread.is_alive():
            thread.join(wait_s)
            wait_s = min(1.5 * wait_s, _LONGEST_S)
            if report_share is not None and context is not None:
                report_share(_share_done(context, group))
    except BaseException:
        with contextlib.suppress(Exception):
            if context is None:
                session.interruptTag(group)
            else:
                context.cancelJobGroup(group)
        thread.join(10)
        raise
    if failure:
        if isinstance(failure[0], (KafkaLogError, KeyboardInterrupt)):
            raise failure[0]
        raise JobFailed(f"the Spark job failed: {sessions.one_line_reason(failure[0])}") from failure[0]
    return outcome[0]


def _share_done(context: SparkContext, group: str) -> float:
    """The share of done tasks among those known so far, which grow when a stage ends and the next begins."""
    tracker = context.statusTracker()
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            stage_info = tracker.getStageInfo(stage)
            if stage_info is not None:
                done += stage_info.numCompletedTasks
                known += stage_info.numTasks
    return done / known if known else 0.0


def write_batches(cluster: SparkCluster, paths: Sequence[Path], output: Path, broker_id: int | None) -> None:
    """Write the table ``batches`` below ``output``, in place of the batches of the same brokers there."""
    from spark_jobs.view_reader import plan_logs

    session = cluster.session
    count = sessions.parallelism_of(session)
    made = plan_logs(paths, parallelism=count, range_bytes=cluster.range_bytes)
    rows = batches_frame(session, made, planning.Brokers.of(paths, broker_id))
    writer = rows.coalesce(count).write
    writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(BROKER_ID.name)
    watched(session, "kafkalog batches", lambda: writer.parquet(f"{output}/batches"))


def batches_frame(session: SparkSession, made: planning.TaskPlan, brokers: planning.Brokers) -> DataFrame:
    """A frame of the rows of the view batches, for all logs of a plan. The listing reports damage as findings."""
    from spark_jobs.log_views import batches
    from spark_jobs.view_options import ReadOptions

    def rows_of(item: planning.Item) -> Iterator[pa.RecordBatch]:
        broker_id = brokers.of_path(str(item.unit.path))
        with contextlib.suppress(KafkaLogError):  # the listing reports a file that cannot be read
            for batch in batches(item, ReadOptions(()), lambda found: None):
                ids = pa.repeat(pa.scalar(broker_id, pa.int64()), batch.num_rows)
                yield batch.replace_schema_metadata(None).append_column(BROKER_ID.name, ids)

    return tasks.rows_frame(session, made, rows_of, ddl(arrow_schema(BATCHES)))


#: The driver fetches results of at most this many bytes at once: first the same share of each task, with the job. If a
#: task has more, results are counted, and fetched again from the disks of the executors: at once, or by partition.
_MOST_BYTES_AT_ONCE = 16 * MIB
#: The results of a scan of at most so many bytes, in few tasks, are not kept on disk. If a task has more than
#: _MOST_BYTES_OF_A_TASK, as for a decompression bomb, the scan runs again.
_SMALL_SCAN_BYTES = 4 * MIB
_FEW_TASKS = 4
_MOST_BYTES_OF_A_TASK = 4 * MIB
#: Tasks that bring units together, for each core.
_MERGERS_FOR_EACH_CORE = 2
#: This process sizes so many units that are far away, before it leaves them to jobs.
_SIZED_HERE = 256
#: The calls that one task makes, and the most tasks whose results are fetched at once.
_CALLS_OF_A_TASK = 16
_MOST_TASKS_OF_CALLS = 64
#: The driver of scans that read without one.
_NO_DRIVER: Any = None
#: The number of findings that are put into one result.
_FINDINGS_IN_A_RESULT = 500


class SparkCluster:
    """The cluster for scans: a Spark session, which starts with the first scan that has something to read.

    It is a context, at whose end the session is closed if it was started here.
    """

    def __init__(self, where: sessions.Where) -> None:
        self._where = where
        self._session: SparkSession | None = None
        self._is_ours = False

    @property
    def session(self) -> SparkSession:
        """The session; raises SparkMissing where Spark cannot start."""
        if self._session is None:
            self._is_ours = not sessions.is_session_running()
            where = self._where
            self._session = sessions.open_session(where.master, where.conf, where.archive)
            if sessions.is_elsewhere(where.master):
                sessions.check_executors(self._session)
        return self._session

    @property
    def range_bytes(self) -> int | None:
        """The part of a large log that one task reads, None to choose by the total."""
        return self._where.range_bytes

    def results(self, scan: UnitScan[UnitT, ResultT], units: Iterable[UnitT], advance: Advance) -> Iterator[ResultT]:
        """The results of all units, in their order. Raises SparkMissing and JobFailed."""
        rest = iter(units)
        first: list[UnitT] = []  # up to the first unit with something to read
        for unit in rest:
            first.append(unit)
            if scan.place(unit) is not None:
                break
        else:
            for unit in first:
                yield from scan.results(unit, _NO_DRIVER)
            return
        plans = planning.plan_units(
            scan,
            chain(first, rest),
            parallelism=sessions.parallelism_of(self.session),
            range_bytes=self.range_bytes,
            is_elsewhere=sessions.is_elsewhere(self._where.master),
            sizer=self._sized,
        )
        # The next plan is made when this one has been given up: the driver holds one at a time.
        yield from chain.from_iterable(map(partial(self._results_of, scan, advance), plans))

    def _sized(self, sizing: planning.Sizing, units: Iterable[planning.Unit]) -> Iterator[planning.SizedUnit]:
        """The units with their sizes: many that are in a store or on other hosts by jobs, few of them here."""
        rest = iter(units)
        first = list(islice(rest, _SIZED_HERE + 1))
        is_stored = any(each.place and is_remote(each.place) for each in first)
        is_far = is_stored or sessions.is_elsewhere(self._where.master)
        if len(first) <= _SIZED_HERE or not is_far:
            yield from sizing.sized(chain(first, rest))
            return
        for group in self._mapped(
            sizing.sized_together, planning.groups_to_size(chain(first, rest)), calls_of_a_task=1
        ):
            yield from group

    def mapped(self, call: Callable[[ItemT], ValueT], items: Iterable[ItemT]) -> Iterator[ValueT]:
        """The results of a call for each item, in order."""
        return self._mapped(call, items, calls_of_a_task=_CALLS_OF_A_TASK)

    def _mapped(
        self, call: Callable[[ItemT], ValueT], items: Iterable[ItemT], *, calls_of_a_task: int
    ) -> Iterator[ValueT]:
        """The results, by jobs of more and more tasks, so that the first results are soon there."""
        task_count = sessions.parallelism_of(self.session)
        rest = (tasks.Argument(number, value) for number, value in enumerate(items))
        while calls := planning.PackedList(islice(iter(lambda: list(islice(rest, calls_of_a_task)), []), task_count)):
            frame = tasks.mapped_frame(self.session, calls, call)
            rows = watched(self.session, f"kafkalog {self._where.name}: {len(calls)} tasks of listings", frame.collect)
            yield from (planning.unpacked(pickle.loads(row[5])) for row in _sorted(rows))
            task_count = min(2 * task_count, max(task_count, _MOST_TASKS_OF_CALLS))

    def _results_of(self, scan: UnitScan[Any, Any], advance: Advance, made: planning.TaskPlan) -> Iterator[Any]:
        session = self.session
        description = f"kafkalog {self._where.name}: {made.total_bytes} bytes in {len(made.tasks)} tasks"
        share = _share_of(made.total_bytes, advance)
        if made.total_bytes <= _SMALL_SCAN_BYTES and len(made.tasks) <= _FEW_TASKS:
            frame = scan_frame(session, scan, made, tasks.Bound(_MOST_BYTES_OF_A_TASK, is_rest_kept=False))
            rows = watched(session, description, frame.collect, share)
            if all(row[0] != tasks.LEFT_OUT for row in rows):
                yield from values_of(row[5] for row in _sorted(rows))
                return
        bound = tasks.Bound(_share_of_a_task(made), is_rest_kept=True)
        yield from _fetched(session, scan_frame(session, scan, made, bound), description, share)

    def close(self) -> None:
        """Close a session that was started here."""
        if self._session is not None and self._is_ours:
            sessions.close_session(self._session)
        self._session = None

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _share_of(total_bytes: int, advance: Advance) -> Callable[[float], None]:
    """A function that makes progress in bytes from the share of work that is done. The share may fall."""
    done_bytes = 0

    def report(share: float) -> None:
        nonlocal done_bytes
        now_bytes = int(share * total_bytes)
        if now_bytes > done_bytes:
            advance(now_bytes - done_bytes)
            done_bytes = now_bytes

    return report


# -- on executors --------------------------------------------------------------------------------------------


def _merger_count(made: planning.TaskPlan) -> int:
    """The number of tasks that bring the parts of split units together."""
    return min(len(made.split), _MERGERS_FOR_EACH_CORE * made.parallelism)


def _share_of_a_task(made: planning.TaskPlan) -> int:
    """The bytes of results that the driver fetches of each task with the job."""
    return _MOST_BYTES_AT_ONCE // (_merger_count(made) or len(made.tasks))


def scan_frame(
    session: SparkSession, scan: UnitScan[Any, Any], made: planning.TaskPlan, bound: tasks.Bound | None = None
) -> DataFrame:
    """The results of the scan as rows. Split units are folded in a second stage, which brings their parts together."""

    walk: Any = scan.walk  # a scan without one has no parts of logs

    def work(item: planning.Item) -> Iterator[tasks.Result]:
        if isinstance(item, planning.LogPart):
            yield from results_of_part(item, walk)
        else:
            yield from _finished(item.number, _results_of_unit(scan, item))

    if not made.split:
        return tasks.results_frame(session, made, work, bound)
    shared = tasks.shared_with_tasks(session, made.split)

    def merge(number: int, rows: Iterator[tasks.Result]) -> Iterator[tasks.Result]:
        unit = planning.unpacked(shared.value[number])
        driver = tasks.ReplayedParts(walk, unit, rows)
        yield from _finished(number, chain(driver.changes(), scan.results(unit.unit, driver)))

    return tasks.merged_frame(
        session, tasks.results_frame(session, made, work), made, merge, _merger_count(made), bound
    )


def _results_of_unit(scan: UnitScan[Any, Any], item: planning.Unit) -> Iterator[Any]:
    yield from item.changes()
    yield from scan.results(item.unit, _NO_DRIVER if scan.walk is None else SerialDriver(scan.walk))


class _Findings(msgspec.Struct, frozen=True):
    """Several findings in one result."""

    found: list[Finding]


class _Raised(msgspec.Struct, frozen=True):
    """The error that ended a scan, as the last result of a unit. The driver raises it when it comes to it."""

    error: KafkaLogError


def _with_error(values: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from values
    except KafkaLogError as error:
        yield _Raised(error)


def _finished(number: int, values: Iterable[Any]) -> Iterator[tasks.Result]:
    """The results of a unit in order, with many findings in one result."""
    step = 0
    held: list[Finding] = []
    for value in _with_error(values):
        if isinstance(value, Finding):
            held.append(value)
            if len(held) < _FINDINGS_IN_A_RESULT:
                continue
        if held:
            yield tasks.Result(number, tasks.FINISHED, 0, 0, step, _Findings(held))
            step, held = step + 1, []
        if not isinstance(value, Finding):
            yield tasks.Result(number, tasks.FINISHED, 0, 0, step, tasks.settled(value))
            step += 1
    if held:
        yield tasks.Result(number, tasks.FINISHED, 0, 0, step, _Findings(held))


# -- on the driver -------------------------------------------------------------------------------------------


def _fetched(
    session: SparkSession, frame: DataFrame, description: str, report_share: Callable[[float], None]
) -> Iterator[Any]:
    """The values of all results in order. Large results are fetched partition by partition."""
    from pyspark import StorageLevel

    results = frame.persist(StorageLevel.DISK_ONLY)
    try:
        at_once = results.where(f"phase < {tasks.LATE}")
        rows: Iterable[Any] = _sorted(watched(session, description, at_once.collect, report_share))
        if any(row[0] == tasks.LEFT_OUT for row in rows):
            every = results.where(f"unit != {tasks.LEFT_OUT}")
            count = -(-_bytes_of(results) // _MOST_BYTES_AT_ONCE)
            if count <= 1:
                rows = _sorted(every.collect())
            else:  # in partitions that follow each other, each of which the driver fetches with a job
                rows = (
                    every.repartitionByRange(count, *tasks.ORDER).sortWithinPartitions(*tasks.ORDER).toLocalIterator()
                )
        yield from values_of(row[5] for row in rows)
    finally:
        results.unpersist()


def _sorted(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row[:5])


def values_of(payloads: Iterable[bytes]) -> Iterator[Any]:
    """The values in the payloads of rows, in their order. Raises the error that ended the scan."""
    for value in chain.from_iterable(map(tasks.values_in, payloads)):
        if isinstance(value, _Raised):
            raise value.error
        if isinstance(value, _Findings):
            yield from value.found
        else:
            yield value


def _bytes_of(results: DataFrame) -> int:
    """The bytes of all payloads."""
    from pyspark.sql.functions import length, sum

    first = results.select(sum(length("payload"))).first()
    return 0 if first is None or first[0] is None else int(first[0])
