"""The cluster driver for Spark: parts and folds of scans on executors, and results in order on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding
from format.limits import MIB
from format.scan.cluster import ResultT, UnitScan, UnitT
from format.scan.progress import Advance
from format.scan.serial import SerialDriver
from spark_jobs.executors import check_executors
from spark_jobs.masters import is_elsewhere
from spark_jobs.requests import Where
from spark_jobs.session import close_session, is_session_running, open_session, parallelism_of
from spark_jobs.watching import watched
from spark_jobs.work.log_parts import FINISHED, ReplayedParts, results_of_part, settled
from spark_jobs.work.packed import unpacked
from spark_jobs.work.planning import LogPart
from spark_jobs.work.tasks import LATE, LEFT_OUT, ORDER, Bound, Result, merged_frame, results_frame, shared_with_tasks
from spark_jobs.work.units import Item, UnitPlan, WholeUnit, plan_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
#: The number of findings that are put into one result.
_FINDINGS_IN_A_RESULT = 500


class SparkCluster:
    """The cluster for scans: a Spark session, which starts with the first scan that has something to read.

    It is a context, at whose end the session is closed if it was started here.
    """

    def __init__(self, where: Where) -> None:
        self._where = where
        self._session: SparkSession | None = None
        self._is_ours = False

    @property
    def session(self) -> SparkSession:
        """The session; raises SparkMissing where Spark cannot start."""
        if self._session is None:
            self._is_ours = not is_session_running()
            where = self._where
            self._session = open_session(where.master, where.conf, where.archive)
            if is_elsewhere(where.master):
                check_executors(self._session)
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
        plans = plan_units(
            scan,
            chain(first, rest),
            parallelism=parallelism_of(self.session),
            range_bytes=self.range_bytes,
            is_elsewhere=is_elsewhere(self._where.master),
        )
        # The next plan is made when this one has been given up: the driver holds one at a time.
        yield from chain.from_iterable(map(partial(self._results_of, scan, advance), plans))

    def _results_of(self, scan: UnitScan[Any, Any], advance: Advance, made: UnitPlan) -> Iterator[Any]:
        session = self.session
        description = f"kafkalog {self._where.name}: {made.total_bytes} bytes in {len(made.tasks)} tasks"
        share = _share_of(made.total_bytes, advance)
        if made.total_bytes <= _SMALL_SCAN_BYTES and len(made.tasks) <= _FEW_TASKS:
            frame = _frame(session, scan, made, Bound(_MOST_BYTES_OF_A_TASK, is_rest_kept=False))
            rows = watched(session, description, frame.collect, share)
            if all(row[0] != LEFT_OUT for row in rows):
                yield from _values(_sorted(rows))
                return
        bound = Bound(_share_of_a_task(made), is_rest_kept=True)
        yield from _fetched(session, _frame(session, scan, made, bound), description, share)

    def close(self) -> None:
        """Close a session that was started here."""
        if self._session is not None and self._is_ours:
            close_session(self._session)
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


def _merger_count(made: UnitPlan) -> int:
    """The number of tasks that bring the parts of split units together."""
    return min(len(made.split), _MERGERS_FOR_EACH_CORE * made.parallelism)


def _share_of_a_task(made: UnitPlan) -> int:
    """The bytes of results that the driver fetches of each task with the job."""
    return _MOST_BYTES_AT_ONCE // (_merger_count(made) or len(made.tasks))


def _frame(session: SparkSession, scan: UnitScan[Any, Any], made: UnitPlan, bound: Bound) -> DataFrame:
    """The results of the scan as rows. Split units are folded in a second stage, which brings their parts together."""

    def work(item: Item) -> Iterator[Result]:
        if isinstance(item, LogPart):
            yield from results_of_part(item, _walk_of(scan))
        else:
            yield from _finished(item.number, _results_of_unit(scan, item))

    if not made.split:
        return results_frame(session, made.tasks, made.surroundings, work, bound)
    shared = shared_with_tasks(session, made.split.contents)

    def merge(number: int, rows: Iterator[Result]) -> Iterator[Result]:
        unit = unpacked(shared.value[number])
        driver = ReplayedParts(_walk_of(scan), unit, rows)
        yield from _finished(number, chain(driver.changes(), scan.results(unit.unit, driver)))

    results = results_frame(session, made.tasks, made.surroundings, work)
    return merged_frame(session, results, frozenset(made.split), made.surroundings, merge, _merger_count(made), bound)


def _results_of_unit(scan: UnitScan[Any, Any], item: WholeUnit) -> Iterator[Any]:
    yield from item.changes()
    yield from scan.results(item.unit, _NO_DRIVER if scan.walk is None else SerialDriver(scan.walk))


def _walk_of(scan: UnitScan[Any, Any]) -> Any:
    if scan.walk is None:
        raise ValueError("the scan has no walk")
    return scan.walk


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


def _finished(number: int, values: Iterable[Any]) -> Iterator[Result]:
    """The results of a unit in order, with many findings in one result."""
    step = 0
    held: list[Finding] = []
    for value in _with_error(values):
        if isinstance(value, Finding):
            held.append(value)
            if len(held) < _FINDINGS_IN_A_RESULT:
                continue
        if held:
            yield Result(number, FINISHED, 0, 0, step, _Findings(held))
            step, held = step + 1, []
        if not isinstance(value, Finding):
            yield Result(number, FINISHED, 0, 0, step, settled(value))
            step += 1
    if held:
        yield Result(number, FINISHED, 0, 0, step, _Findings(held))


# -- on the driver -------------------------------------------------------------------------------------------


def _fetched(
    session: SparkSession, frame: DataFrame, description: str, report_share: Callable[[float], None]
) -> Iterator[Any]:
    """The values of all results in order. Large results are fetched partition by partition."""
    from pyspark import StorageLevel

    results = frame.persist(StorageLevel.DISK_ONLY)
    try:
        at_once = results.where(f"phase < {LATE}")
        rows: Iterable[Any] = _sorted(watched(session, description, at_once.collect, report_share))
        if any(row[0] == LEFT_OUT for row in rows):
            every = results.where(f"unit != {LEFT_OUT}")
            count = -(-_bytes_of(results) // _MOST_BYTES_AT_ONCE)
            rows = _sorted(every.collect()) if count <= 1 else _in_order(every, count).toLocalIterator()
        yield from _values(rows)
    finally:
        results.unpersist()


def _in_order(results: DataFrame, count: int) -> DataFrame:
    """The results in order, in so many partitions, each of which the driver fetches with a job."""
    return results.repartitionByRange(count, *ORDER).sortWithinPartitions(*ORDER)


def _sorted(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row[:5])


def _values(rows: Iterable[Any]) -> Iterator[Any]:
    """The values in the rows, in their order. Raises the error that ended the scan."""
    for row in rows:
        value = pickle.loads(row[5])
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


class _NoDriver:
    """The driver of scans that read without one."""

    def parts(self, log: Any) -> Any:
        """Raises ValueError."""
        raise ValueError("the scan has no walk")

    def close(self) -> None:
        """Nothing is left open."""


_NO_DRIVER = _NoDriver()
