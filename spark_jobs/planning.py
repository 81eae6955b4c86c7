"""Plans: the units of scans and views, cut into tasks of about equal bytes, so that one large log is many tasks.

A plan reads only names, sizes and times. The task that reads a part of a log finds where it begins, from the segment's
index (``tasks.bounds_of``). Plans are kept as compressed bytes, and long ones in a temporary file, so that the driver
needs as much memory for a hundred thousand segments as for a thousand. Units are sized when their job is planned: many
units, which are on other hosts or in a store, by a job of Spark (``spark_cluster``).
"""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import finalize

import lz4.block
import msgspec
from msgspec.structs import replace

from format.errors import InputError, KafkaLogError
from format.files.meta_properties import node_id_in
from format.findings import Finding, finding
from format.io.read_policy import keep_freed_memory
from format.io.session import Session, Tier, entries_of, is_remote, is_there
from format.io.store import has_listings
from format.layout import META_PROPERTIES, SEGMENT_FILE
from format.limits import MIB
from format.location import Location
from format.node.log_dir import Kind
from format.node.target import Target
from format.scan.cluster import UnitScan
from format.scan.drivers import may_be_shared
from format.scan.protocol import LogUnit
from format.scan.selection import CommittedView
from format.wording import counted

ValueT = TypeVar("ValueT")

_MOST_BYTES_IN_MEMORY = MIB  # of one list
_IN_A_GROUP = 128
#: The bounds of a range's size, so that a hundred terabytes do not become millions of tasks.
SMALLEST_RANGE_BYTES = 64 * MIB
LARGEST_RANGE_BYTES = 1024 * MIB
_WANTED_RANGES = 50_000
#: A job of ranges of a given size has at most so many: the driver would be busy with tasks that read hardly anything.
_MOST_RANGES = 200_000
#: Small items are put together until a task has this many bytes, or so many items: the more, the fewer cores there are.
#: A task takes the JVM and its worker some 100 ms of processor time besides its work.
SMALLEST_TASK_BYTES = 4 * MIB
#: Of a walk over headers, both a task and a range have this many at least: they take as long as the task's own costs.
_SMALLEST_BYTES_OF_HEADERS = 256 * MIB
_MOST_ITEMS_IN_A_TASK = 250
_MOST_ITEMS_ON_FEW_CORES = 1000
_TASKS_FOR_EACH_CORE = 8
#: A job of a scan reads about so many items, or so many tasks for each core: its plan is kept in memory, and its last
#: tasks leave cores idle.
_ITEMS_OF_A_JOB = 8192
#: The units that one task sizes, and how many of a log directory in a store are worth listing all that is below it.
_SIZED_TOGETHER = 256
_LISTED_AT_ONCE = 8


# -- values as bytes -----------------------------------------------------------------------------------------


def packed(value: Any) -> bytes:
    """The value as compressed bytes."""
    content: bytes = lz4.block.compress(pickle.dumps(value, protocol=5))  # zlib takes as long as the pickling
    return content


def unpacked(content: bytes) -> Any:
    """The value of ``packed``. Only what this package packed may be given."""
    return pickle.loads(lz4.block.decompress(content))


class PackedList(Generic[ValueT]):
    """Packed values."""

    def __init__(self, values: Iterable[ValueT] = ()) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MOST_BYTES_IN_MEMORY)  # noqa: SIM115
        finalize(self, self._file.close)
        self._ends = array("Q", [0])
        for value in values:
            self._ends.append(self._ends[-1] + self._file.write(packed(value)))

    @property
    def contents(self) -> Iterator[bytes]:
        """The bytes of each value."""
        for start, end in pairwise(self._ends):
            self._file.seek(start)
            yield self._file.read(end - start)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[ValueT]:
        return map(unpacked, self.contents)


class PackedStream(Generic[ValueT]):
    """Many small values that are read in their order, packed in groups, which need fewer bytes than single values."""

    def __init__(self, values: Iterable[ValueT]) -> None:
        rest = iter(values)
        self._groups: PackedList[list[ValueT]] = PackedList(iter(lambda: list(islice(rest, _IN_A_GROUP)), []))

    def __iter__(self) -> Iterator[ValueT]:
        for group in self._groups:
            yield from group


# -- workers, and the files that they read -------------------------------------------------------------------


class Process(msgspec.Struct):
    """What outlives the tasks of a process of Spark, the driver or a worker; Spark gives them no other place.

    ``committed`` is what read_committed consumers see of the partition that was read last, by query and directory.
    """

    session: Session
    committed: tuple[tuple[str, str], CommittedView] | None = None


PROCESS = Process(Session())


class PlanningState(msgspec.Struct, frozen=True):
    """State of the planning process that its tasks need: its session, which is sent as a description, and its tier."""

    session: Session = msgspec.field(default_factory=lambda: PROCESS.session)
    tier: Tier | None = msgspec.field(default_factory=lambda: PROCESS.session.tier)


def begin_task(surroundings: PlanningState) -> None:
    """Prepare this process for a task."""
    keep_freed_memory()
    PROCESS.session = surroundings.session
    PROCESS.session.tier = surroundings.tier


def path_of(path: str | os.PathLike[str]) -> Path:
    """The path for a text, in the session of this process."""
    return path if isinstance(path, Path) else PROCESS.session.path(path)


class FileStamp(msgspec.Struct, frozen=True):
    """Size and time of a file, or the sums of several, when the plan was made."""

    size_bytes: int
    mtime_ns: int


def stamp_of_file(path: str) -> FileStamp:
    """Size and time of a regular file; both 0 for anything else, and where there is no file."""
    try:
        status = path_of(path).lstat() if is_remote(path) else os.lstat(path)
    except OSError:
        return FileStamp(0, 0)  # reading it reports why it cannot be read
    return _stamp_of(status)


def _stamp_of(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else FileStamp(0, 0)


class Stamps:
    """Looks up the stamps of files, and of directories of logs. The last directory is listed once."""

    def __init__(self) -> None:
        self._listed: tuple[str, dict[str, FileStamp] | None] = "", None

    def of_place(self, path: str) -> FileStamp:
        """The stamp of a file, or that of a directory: the bytes of its logs, and the newest time."""
        place = path_of(path)
        if is_remote(path) and SEGMENT_FILE.match(place.name):
            return self.of_log(place)
        stamps = self._in_directory(path)
        if stamps is None:
            return stamp_of_file(path)
        newest = max((each.mtime_ns for each in stamps.values()), default=0)
        return FileStamp(sum(each.size_bytes for each in stamps.values()), newest)

    def of_log(self, path: Path) -> FileStamp:
        """The stamp of a log, from the listing of its directory where there are listings."""
        stamps = self._in_directory(str(path.parent)) if has_listings(path) else None
        known = None if stamps is None else stamps.get(path.name)
        return stamp_of_file(str(path)) if known is None else known

    def _in_directory(self, path: str) -> dict[str, FileStamp] | None:
        """The stamp of each ``.log`` file in a directory, by name; None where it cannot be listed."""
        if self._listed[0] == path:
            return self._listed[1]
        found = None
        with suppress(OSError), entries_of(path_of(path)) as entries:  # reading it reports why it cannot be read
            found = {
                entry.name: _stamp_of(entry.stat(follow_symlinks=False))
                for entry in entries
                if entry.name.endswith(".log")
            }
        self._listed = path, found
        return found


def words_for_change(path: str, planned: FileStamp, now: FileStamp) -> str | None:
    """The message about a file that differs from the plan; None where it does not, or has only grown.

    An object in a store is replaced as a whole, so an object with another time is another one even at the same size. A
    store that reports no times has 0 in the plan.
    """
    if now.size_bytes < planned.size_bytes:
        return (
            f"it has {now.size_bytes} bytes, and had {planned.size_bytes} when the work was planned: it shrank, or "
            "this host has another file of that path"
        )
    if now.mtime_ns < planned.mtime_ns:
        return (
            "it was last written earlier than the file for which the work was planned: it was replaced, or this host "
            "has another file of that path"
        )
    is_another = now.size_bytes == planned.size_bytes and now.mtime_ns != planned.mtime_ns
    if is_remote(path) and planned.mtime_ns and is_another:
        return "it was rewritten after the work was planned"
    return None


# -- units and parts of logs ---------------------------------------------------------------------------------


class PlannedLog(msgspec.Struct, frozen=True):
    """A log that is read in ``part_count`` parts: the log ``number`` of the unit with the number ``unit``."""

    unit: int
    number: int
    log: LogUnit
    stamp: FileStamp
    part_count: int


class LogPart(msgspec.Struct, frozen=True):
    """One of the parts in which a log is read; ``part`` is its number, from 0."""

    of: PlannedLog
    part: int

    @property
    def unit(self) -> LogUnit:
        return self.of.log

    @property
    def size_bytes(self) -> int:
        return self.of.stamp.size_bytes // self.of.part_count

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return f"{self.of.log.path} (part {self.part + 1} of {self.of.part_count})"


class Unit(msgspec.Struct, frozen=True):
    """A unit of a scan or a view, and the size and time of the files at its place when it was planned.

    It is read by one task, unless ``logs`` says which logs of it are read in parts.
    """

    number: int
    unit: Any
    place: str | None
    stamp: FileStamp
    logs: tuple[PlannedLog, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.stamp.size_bytes

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return self.place or "nothing"

    def changes(self) -> Iterator[Finding]:
        """A finding where the files are not those of the plan. Missing files are reported when they are opened."""
        if self.place is None:
            return
        words = words_for_change(self.place, self.stamp, Stamps().of_place(self.place))
        if words is not None and is_there(path_of(self.place)):
            location = self.unit.location if isinstance(self.unit, LogUnit) else Location(self.place)
            yield finding("file-changed", location, words)


Item = Unit | LogPart


def log_part_of(item: Item) -> LogPart:
    """An item of a plan of logs as a part: a log that one task reads is its only part."""
    return item if isinstance(item, LogPart) else LogPart(PlannedLog(item.number, 0, item.unit, item.stamp, 1), 0)


# -- plans ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TaskPlan:
    """The tasks of one job or of one query, and the units that several tasks read, packed, by number.

    ``parallelism`` is the number of tasks that run at once.
    """

    parallelism: int
    tasks: PackedList[list[Item]] = field(default_factory=PackedList)
    split: dict[int, bytes] = field(default_factory=dict)
    total_bytes: int = 0
    surroundings: PlanningState = field(default_factory=PlanningState)


class SizedUnit(msgspec.Struct, frozen=True):
    """A unit with its stamp, and where it is large its logs with theirs."""

    unit: Unit
    logs: tuple[tuple[LogUnit, FileStamp], ...] = ()


class Sizing(msgspec.Struct, frozen=True):
    """How units are sized: the logs of those from ``large_bytes`` on are listed, too, so that they can be cut."""

    logs_of: Callable[[Any], Sequence[LogUnit]]
    large_bytes: int

    def sized_together(self, units: Sequence[Unit]) -> list[SizedUnit]:
        """The units of a group with their stamps and logs. Of a log directory in a store all is listed at once."""
        found: list[SizedUnit] = []
        for log_dir, group in groupby(units, _log_dir_of):
            of_log_dir = list(group)
            if log_dir is not None and len(of_log_dir) >= _LISTED_AT_ONCE:
                with PROCESS.session.stores.listed_at_once(log_dir):
                    found += self.sized(of_log_dir)
            else:
                found += self.sized(of_log_dir)
        return found

    def sized(self, units: Iterable[Unit]) -> Iterator[SizedUnit]:
        """The units with their stamps and logs."""
        stamps = Stamps()
        for unit in units:
            if unit.place is None:
                yield SizedUnit(unit)
                continue
            stamp = stamps.of_place(unit.place)
            logs = self.logs_of(unit.unit) if stamp.size_bytes >= self.large_bytes else ()
            yield SizedUnit(replace(unit, stamp=stamp), tuple((each, stamps.of_log(each.path)) for each in logs))


def _log_dir_of(unit: Unit) -> str | None:
    """The log directory around a partition or a log in a store; None for any other unit."""
    if unit.place is None or not is_remote(unit.place) or not has_listings(unit.place):
        return None
    place = path_of(unit.place)
    return str(place.parent.parent if SEGMENT_FILE.match(place.name) else place.parent)


def groups_to_size(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    """Units in groups for one task each, with those of a log directory together if they are not too many."""
    group: list[Unit] = []
    last = None
    for unit in units:
        log_dir = _log_dir_of(unit)
        if len(group) >= (_SIZED_TOGETHER if log_dir == last else _SIZED_TOGETHER // 2):
            yield group
            group = []
        group.append(unit)
        last = log_dir
    if group:
        yield group


class Cut(msgspec.Struct, frozen=True):
    """How the logs of large units are cut: in ranges of ``range_bytes``, None to choose by the total.

    There are about ``least_tasks`` at least, if the logs have so many index entries. ``reads_headers``: hardly anything
    else is read, so that tasks are larger. With ``keeps_split`` the plan has the units that are cut, for the fold.
    """

    range_bytes: int | None = None
    least_tasks: int = 1
    reads_headers: bool = False
    keeps_split: bool = False

    @property
    def smallest_bytes(self) -> int:
        """The least bytes of a range whose size is not given."""
        return _SMALLEST_BYTES_OF_HEADERS if self.reads_headers else SMALLEST_RANGE_BYTES

    @property
    def smallest_task_bytes(self) -> int:
        """The bytes up to which items are put together."""
        of_headers = self.reads_headers and self.range_bytes is None
        return _SMALLEST_BYTES_OF_HEADERS if of_headers else SMALLEST_TASK_BYTES

    @property
    def large_bytes(self) -> int:
        """The bytes from which on a unit is cut."""
        return 2 * (self.range_bytes or self.smallest_bytes) if self.least_tasks == 1 else 1


_ANY_CUT = Cut()
#: Sizes the units of a plan.
Sizer = Callable[[Sizing, Iterable[Unit]], Iterator[SizedUnit]]


def plan_units(
    scan: UnitScan[Any, Any],
    units: Iterable[Any],
    *,
    parallelism: int,
    range_bytes: int | None = None,
    is_elsewhere: bool = False,
    sizer: Sizer = Sizing.sized,
) -> Iterator[TaskPlan]:
    """The plans of a scan, one for each job. Logs of large units are read in parts if the scan can be shared.

    The plan of a job is made when it is requested. ``is_elsewhere``: the tasks run on other hosts, with another working
    directory.
    """
    walk = scan.walk
    logs_of = scan.logs if walk is not None and may_be_shared(walk) else lambda unit: ()
    if is_elsewhere:
        units = (replace(each, path=each.path.absolute()) if isinstance(each, LogUnit) else each for each in units)
    cut = Cut(range_bytes, keeps_split=True)
    sized = sizer(Sizing(logs_of, cut.large_bytes), _numbered(units, scan.place))
    yield from _plans(sized, parallelism, cut, is_elsewhere, _ITEMS_OF_A_JOB)


def plan_view(
    units: Iterable[Any],
    place_of: Callable[[Any], Path | None],
    logs_of: Callable[[Any], Sequence[LogUnit]],
    *,
    parallelism: int = 2,
    cut: Cut = _ANY_CUT,
) -> TaskPlan:
    """The plan of a view, whose tasks Spark wants at once. ``logs_of`` are the logs of a large unit, to be cut."""
    sized = Sizing(logs_of, cut.large_bytes).sized(_numbered(units, place_of))
    return next(_plans(sized, parallelism, cut, True, None), TaskPlan(parallelism))


def _numbered(units: Iterable[Any], place_of: Callable[[Any], Path | None]) -> Iterator[Unit]:
    """Units with their numbers and places, which are not sized yet."""
    for number, unit in enumerate(units):
        place = place_of(unit)
        yield Unit(number, unit, None if place is None else str(place), FileStamp(0, 0))


class _Waiting:
    """Units that were sized and are not planned yet, packed."""

    def __init__(self, units: Iterable[SizedUnit]) -> None:
        self.count = self.total_bytes = self.bytes_to_cut = 0
        self.units = PackedStream(self._counted(units))

    def _counted(self, units: Iterable[SizedUnit]) -> Iterator[SizedUnit]:
        for each in units:
            self.count += 1
            self.total_bytes += each.unit.size_bytes
            self.bytes_to_cut += each.unit.size_bytes if each.logs else 0
            yield each


def _plans(
    sized: Iterator[SizedUnit], parallelism: int, cut: Cut, is_elsewhere: bool, items_of_a_job: int | None
) -> Iterator[TaskPlan]:
    """The plans of the jobs. Units are sized some jobs ahead; those of a view, which has one job, all at once."""

    def is_enough(item_count: int, task_count: float) -> bool:
        is_long = items_of_a_job is not None and item_count >= items_of_a_job
        return is_long and task_count >= _TASKS_FOR_EACH_CORE * parallelism

    seen_bytes, range_bytes, smallest_bytes = 0, cut.range_bytes, cut.smallest_task_bytes
    while True:
        waiting = _Waiting(_next_units(sized, is_enough, range_bytes or LARGEST_RANGE_BYTES))
        if not waiting.count:
            return
        seen_bytes += waiting.total_bytes
        cut_bytes = range_bytes or (
            max(_bytes_of_range(seen_bytes), cut.smallest_bytes)
            if is_elsewhere
            else _bytes_of_range(waiting.total_bytes, parallelism)
        )
        task_bytes = max(waiting.total_bytes // (_TASKS_FOR_EACH_CORE * parallelism), smallest_bytes)
        task_bytes = min(task_bytes, max(cut_bytes, smallest_bytes))
        most_items = max(waiting.count // (_TASKS_FOR_EACH_CORE * parallelism), _MOST_ITEMS_IN_A_TASK)
        most_items = min(most_items, _MOST_ITEMS_ON_FEW_CORES)
        if cut.least_tasks > 1:
            most_bytes = max(waiting.total_bytes // cut.least_tasks, 1)
            cut_bytes, task_bytes = min(cut_bytes, most_bytes), min(task_bytes, most_bytes)
        if range_bytes or cut.least_tasks > 1:
            _refuse_tiny(cut_bytes, waiting.bytes_to_cut)
        rest = iter(waiting.units)
        while True:
            made = TaskPlan(parallelism)
            items = _items_of_job(rest, made, cut_bytes, task_bytes, is_enough, keeps_split=cut.keeps_split)
            made.tasks = PackedList(_bundled(items, task_bytes, most_items))
            if not made.tasks:
                break
            yield made


def _refuse_tiny(range_bytes: int, total_bytes: int) -> None:
    """Raise InputError where ranges of a size that was given would be absurdly many."""
    if total_bytes // range_bytes > _MOST_RANGES:
        raise InputError(
            f"{counted(total_bytes, 'byte')} would be read in {total_bytes // range_bytes:,} ranges of "
            f"{counted(range_bytes, 'byte')}, and {_MOST_RANGES:,} are the most: give ranges (rangeBytes, "
            f"--range-size) of at least {counted(total_bytes // _MOST_RANGES + 1, 'byte')}, or fewer minPartitions"
        )


def _next_units(
    sized: Iterator[SizedUnit], is_enough: Callable[[int, float], bool], largest_bytes: int
) -> Iterator[SizedUnit]:
    """The next units, enough for a job even if it reads them in ranges of ``largest_bytes``."""
    item_count, task_count = 0, 0.0
    for each in sized:
        yield each
        share = each.unit.size_bytes / largest_bytes
        item_count += max(len(each.logs), 1)
        task_count += max(share if each.logs else min(share, 1), 1 / _MOST_ITEMS_IN_A_TASK)
        if is_enough(item_count, task_count):
            return


def _items_of_job(
    rest: Iterator[SizedUnit],
    made: TaskPlan,
    range_bytes: int,
    task_bytes: int,
    is_enough: Callable[[int, float], bool],
    *,
    keeps_split: bool,
) -> Iterator[Item]:
    """The items of one job, the next ones of the units. They are packed task by task."""
    item_count, task_count = 0, 0.0
    for sized in rest:
        made.total_bytes += sized.unit.size_bytes
        for item in _items_of(sized, range_bytes, made if keeps_split else None):
            yield item
            item_count += 1
            task_count += min(max(item.size_bytes / task_bytes, 1 / _MOST_ITEMS_IN_A_TASK), 1)
        if is_enough(item_count, task_count):
            return


def _items_of(sized: SizedUnit, range_bytes: int, made: TaskPlan | None) -> Iterator[Item]:
    """A unit, or if it is large the parts of its logs. Then the plan, if it is given, keeps the unit for the fold."""
    unit = sized.unit
    if not sized.logs or unit.size_bytes < 2 * range_bytes:
        yield unit
        return
    planned = [
        PlannedLog(unit.number, number, log, stamp, max(1, round(stamp.size_bytes / range_bytes)))
        for number, (log, stamp) in enumerate(sized.logs)
    ]
    if made is not None:
        made.split[unit.number] = packed(replace(unit, logs=tuple(planned)))
    for each in planned:
        yield from (LogPart(each, part) for part in range(each.part_count))


def _bytes_of_range(total_bytes: int, parallelism: int | None = None) -> int:
    """The part of a large log that one task reads, by the bytes of the scan so far, and on one machine by its cores.

    A task takes the JVM and its worker some 100 ms besides its work, as long as reading 256 MiB.
    """
    share = total_bytes // (_WANTED_RANGES if parallelism is None else _TASKS_FOR_EACH_CORE * parallelism)
    return min(max(share, SMALLEST_RANGE_BYTES), LARGEST_RANGE_BYTES)


def _bundled(items: Iterable[Item], task_bytes: int, most_items: int) -> Iterator[list[Item]]:
    """Items in their order, put together into tasks of about so many bytes, and of at most so many items."""
    task: list[Item] = []
    held_bytes = 0
    for item in items:
        if task and (held_bytes + item.size_bytes > task_bytes or len(task) >= most_items):
            yield task
            task, held_bytes = [], 0
        task.append(item)
        held_bytes += item.size_bytes
    if task:
        yield task


# -- brokers -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Brokers:
    """Node ids by log directory, the longest path first; ``given`` is the id for all of them, None for none."""

    by_place: list[tuple[str, int | None]] = field(default_factory=list)
    given: int | None = None

    @classmethod
    def of(cls, paths: Iterable[str | Path], given: int | None) -> Brokers:
        """The brokers of some paths, by ``given`` or from ``meta.properties``."""
        found: dict[str, int | None] = {}
        for path in paths if given is None else ():
            found |= _places_of(path_of(path))
        return cls(sorted(found.items(), key=lambda each: -len(each[0])), given)

    @property
    def ids(self) -> list[int | None]:
        """The ids of all brokers; None for a log directory without one."""
        return [self.given] if self.given is not None else list(dict.fromkeys(each for _, each in self.by_place))

    def of_path(self, path: str | None) -> int | None:
        """The broker of a file. For no path, and for one elsewhere: the only broker, None where there are several."""
        if path is not None:
            for place, broker_id in self.by_place:
                if path == place or path.startswith(f"{place}/"):
                    return broker_id
        return self.ids[0] if len(self.ids) == 1 else None


def _places_of(path: Path) -> dict[str, int | None]:
    """The log directories at, below or around a path, with their node ids."""
    try:
        target = Target(path)
        if target.kind is Kind.LOG_DIR:
            return {str(each.path): node_id_in(each.path / META_PROPERTIES) for each in target.log_dirs}
    except KafkaLogError:
        pass  # the command reports it
    for place in (path.absolute().parent, path.absolute().parent.parent):
        broker_id = node_id_in(place / META_PROPERTIES)
        if broker_id is not None:
            return {str(path): broker_id}
    return {str(path): None}
