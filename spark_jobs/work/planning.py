"""Plans for the views: the files below some paths, cut into tasks of about equal bytes; large segments are many tasks.

A plan reads only names, sizes and times. The task that reads a range finds where it begins, from the segment's index
(``part_bounds``), so that a plan of a hundred thousand segments takes seconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.io.session import RemotePath
from format.limits import MIB
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, LogDir
from format.node.partition import Partition, Segment, key_of_directory, location_of_file, read_partition
from format.node.target import Target
from format.scan.protocol import LogUnit
from format.scan.selected_logs import every_log_of
from spark_jobs.work.file_states import FileState, state_of_file, state_of_partition
from spark_jobs.work.packed import PackedList, PackedStream
from spark_jobs.work.workers import Surroundings, path_of

#: The bounds of a range's size, so that a hundred terabytes do not become millions of tasks.
SMALLEST_RANGE_BYTES = 64 * MIB
LARGEST_RANGE_BYTES = 1024 * MIB
_WANTED_RANGES = 50_000
#: Small items are put together until a task has this many bytes, or this many items: starting a task takes some 50 ms.
SMALLEST_TASK_BYTES = 4 * MIB
_MOST_ITEMS_IN_A_TASK = 250
_TASKS_FOR_EACH_CORE = 8
_ENDLESS = 2**62


class UnitKind(Enum):
    """What a unit of a plan is."""

    LOG_DIR_FILES = "log-dir-files"  # the files of a log directory itself
    PARTITION = "partition"
    FILE = "file"


class Splits(Enum):
    """How the logs of a plan are cut: not at all, into segments, or into ranges of segments."""

    NEVER = "never"
    SEGMENTS = "segments"
    RANGES = "ranges"


class PlannedSegment(msgspec.Struct, frozen=True):
    """A ``.log`` file of a unit that is read in ``part_count`` parts; ``number`` is its place in the unit."""

    unit: int
    number: int
    path: str
    location: Location
    index_path: str | None
    state: FileState
    part_count: int
    next_base_offset: int | None

    @property
    def log(self) -> LogUnit:
        """The log file, by itself."""
        return LogUnit(path_of(self.path), self.location, None, self.next_base_offset)


class Unit(msgspec.Struct, frozen=True):
    """A partition, a file, or the files of a log directory itself.

    ``segments`` are its logs where they are read in parts. ``checkpoints`` has the entries of this partition.
    """

    number: int
    kind: UnitKind
    path: str
    state: FileState
    file_kind: Kind | None = None
    segments: tuple[PlannedSegment, ...] = ()
    checkpoints: Checkpoints | None = None

    @property
    def size_bytes(self) -> int:
        return self.state.size_bytes

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return self.path


class LogPart(msgspec.Struct, frozen=True):
    """One of the parts in which a log is read; ``part`` is its number, from 0.

    ``unit`` is the log as a scan described it, None for the log file by itself: a plan of a hundred thousand logs keeps
    no more of each than it must.
    """

    segment: PlannedSegment
    part: int
    unit: LogUnit | None = None

    @property
    def log(self) -> LogUnit:
        """The log that the part belongs to."""
        return self.unit or self.segment.log

    @property
    def size_bytes(self) -> int:
        return self.segment.state.size_bytes // self.segment.part_count

    @property
    def path(self) -> str:
        return self.segment.path

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return f"{self.segment.path} (part {self.part + 1} of {self.segment.part_count})"


Item = Unit | LogPart


@dataclass(slots=True)
class Plan:
    """All units in the order of the paths, without their segments, and the tasks that read them."""

    units: Iterable[Unit]
    tasks: PackedList[list[Item]]
    total_bytes: int
    surroundings: Surroundings = field(default_factory=Surroundings)


def plan(
    paths: Iterable[Path],
    *,
    parallelism: int = 2,
    range_bytes: int | None = None,
    splits: Splits = Splits.RANGES,
    wants: Callable[[Item], bool] = lambda item: True,
) -> Plan:
    """The plan for these paths, each a log directory, a partition or a file. Raises InputError for anything else.

    ``splits`` is how partitions and logs are cut. A range has about ``range_bytes``, None to choose by the total.
    ``parallelism`` is the number of tasks that run at once. Items for which ``wants`` is false are left out.
    """
    total_bytes = 0

    def counted(units: Iterable[Unit]) -> Iterator[Unit]:
        nonlocal total_bytes
        for unit in units:
            total_bytes += unit.size_bytes
            yield unit

    with contextlib.ExitStack() as listings:
        # Units and tasks are packed one after the other, as a plan may have very many.
        units = PackedStream(counted(_units_of(paths, listings)))
        wanted = bytes_of_range(total_bytes, range_bytes)
        split = (unit if splits is Splits.NEVER else _split(unit, wanted, splits) for unit in units)
        items = filter(wants, _items(split))
        tasks = PackedList(bundled(items, bytes_of_task(total_bytes, wanted, parallelism)))
    return Plan(units, tasks, total_bytes)


def bytes_of_range(total_bytes: int, given: int | None) -> int:
    """The bytes of a large log that one task reads: ``given``, else by the total of the scan."""
    return given or min(max(total_bytes // _WANTED_RANGES, SMALLEST_RANGE_BYTES), LARGEST_RANGE_BYTES)


def bytes_of_local_range(total_bytes: int, parallelism: int) -> int:
    """The same on one machine, whose cores are known: a task for each range, and several for each core.

    A task takes the JVM and its worker some 20 ms besides its work, as long as reading 64 MiB.
    """
    share = total_bytes // (_TASKS_FOR_EACH_CORE * parallelism)
    return min(max(share, SMALLEST_RANGE_BYTES), LARGEST_RANGE_BYTES)


def bytes_of_task(total_bytes: int, range_bytes: int, parallelism: int) -> int:
    """The bytes up to which small items are put into one task."""
    share = max(total_bytes // (_TASKS_FOR_EACH_CORE * parallelism), SMALLEST_TASK_BYTES)
    return min(share, max(range_bytes, SMALLEST_TASK_BYTES))


def part_count_of(size_bytes: int, range_bytes: int) -> int:
    """The number of parts in which a log of this size is read."""
    return max(1, round(size_bytes / range_bytes))


def _units_of(paths: Iterable[Path], listings: contextlib.ExitStack) -> Iterator[Unit]:
    """The units of the paths. What is listed of stores is remembered until ``listings`` end."""
    numbers = count()
    for path in paths:
        if isinstance(path, RemotePath):
            listings.enter_context(path.session.stores.listed_at_once(str(path)))
        target = Target(path)
        if target.kind is Kind.LOG_DIR:
            for log_dir in target.log_dirs:
                yield from _units_of_log_dir(numbers, log_dir)
        elif target.kind is Kind.PARTITION:
            yield _partition(next(numbers), path, target.checkpoints_around())
        else:
            yield Unit(next(numbers), UnitKind.FILE, str(path), state_of_file(str(path)), target.kind)


def _units_of_log_dir(numbers: Iterator[int], log_dir: LogDir) -> Iterator[Unit]:
    checkpoints = log_dir.checkpoints()
    files = [*log_dir.checkpoint_paths.values(), *filter(None, (log_dir.meta_properties, log_dir.bootstrap_checkpoint))]
    state = FileState(sum(state_of_file(str(path)).size_bytes for path in files), 0)  # they are rewritten all the time
    yield Unit(next(numbers), UnitKind.LOG_DIR_FILES, str(log_dir.path), state)
    for path in log_dir.partitions:
        yield _partition(next(numbers), path, checkpoints)


def _partition(number: int, path: Path, checkpoints: Checkpoints) -> Unit:
    return Unit(
        number,
        UnitKind.PARTITION,
        str(path),
        state_of_partition(str(path)),
        checkpoints=checkpoints.of_partition(key_of_directory(path)),
    )


# -- parts ---------------------------------------------------------------------------------------------------


def _split(unit: Unit, range_bytes: int, splits: Splits) -> Unit:
    """The unit with its segments, where it has logs."""
    if unit.kind is not UnitKind.PARTITION and unit.file_kind is not Kind.LOG:
        return unit
    return replace(unit, segments=tuple(_planned_segments(unit, range_bytes if splits is Splits.RANGES else _ENDLESS)))


def segments_of_partition(partition: Partition, range_bytes: int, unit: int = 0) -> Iterator[PlannedSegment]:
    """The logs of a partition in order, each cut into parts of about so many bytes."""
    for number, log in enumerate(every_log_of(partition)):
        yield planned_segment(unit, number, log, state_of_file(str(log.path)), range_bytes)


def _planned_segments(unit: Unit, range_bytes: int) -> Iterator[PlannedSegment]:
    path = path_of(unit.path)
    if unit.kind is UnitKind.FILE:
        # A log that is read alone counts as the last of its partition.
        log = LogUnit(path, location_of_file(path), segment_of_file(path))
        yield planned_segment(unit.number, 0, log, unit.state, range_bytes)
        return
    try:
        partition = read_partition(path)
    except KafkaLogError:
        return  # the view of findings reports it
    yield from segments_of_partition(partition, range_bytes, unit.number)


def planned_segment(unit: int, number: int, log: LogUnit, state: FileState, range_bytes: int) -> PlannedSegment:
    """A log that is cut into parts of about so many bytes."""
    index = None if log.segment is None else log.segment.offset_index
    path, index_path = str(log.path), None if index is None else str(index)
    path = log.location.path if log.location.path == path else path  # plans are large: keep each text once
    part_count = part_count_of(state.size_bytes, range_bytes)
    return PlannedSegment(unit, number, path, log.location, index_path, state, part_count, log.next_base_offset)


def segment_of_file(path: Path) -> Segment | None:
    """The live segment of a log file, with the other files beside it; None where it belongs to no live segment."""
    try:
        partition: Partition = read_partition(path.absolute().parent)
    except KafkaLogError:
        return None
    return next((each for each in partition.segments if each.log is not None and each.log.name == path.name), None)


# -- tasks ---------------------------------------------------------------------------------------------------


class Sized(Protocol):
    """An item of work, and the number of bytes that it reads."""

    @property
    def size_bytes(self) -> int: ...


SizedT = TypeVar("SizedT", bound=Sized)


def bundled(items: Iterable[SizedT], task_bytes: int) -> Iterator[list[SizedT]]:
    """Items in their order, put together into tasks of about so many bytes."""
    task: list[SizedT] = []
    held_bytes = 0
    for item in items:
        if task and (held_bytes + item.size_bytes > task_bytes or len(task) >= _MOST_ITEMS_IN_A_TASK):
            yield task
            task, held_bytes = [], 0
        task.append(item)
        held_bytes += item.size_bytes
    if task:
        yield task


def share_of_task(item: Sized, task_bytes: int) -> float:
    """How much of a task of ``bundled`` an item fills, at most 1."""
    return min(max(item.size_bytes / task_bytes, 1 / _MOST_ITEMS_IN_A_TASK), 1)


def _items(units: Iterable[Unit]) -> Iterator[Item]:
    for unit in units:
        if not unit.segments:
            yield unit
        for segment in unit.segments:
            for part in range(segment.part_count):
                yield LogPart(segment, part)
