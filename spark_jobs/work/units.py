"""Plans of scans: units cut into tasks of about equal bytes, so that one large log is many tasks.

A plan reads only names, sizes and times. The task that reads a range finds where it begins, from the segment's index
(``part_bounds``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from format.findings import Finding, finding
from format.io.session import is_there
from format.location import Location
from format.scan.cluster import UnitScan
from format.scan.drivers import may_be_shared
from format.scan.protocol import LogUnit
from spark_jobs.work.file_states import (
    FileState,
    is_directory,
    state_of_file,
    state_of_place,
    states_of_logs,
    sum_of,
    words_for_change,
)
from spark_jobs.work.packed import PackedByNumber, PackedList, PackedStream
from spark_jobs.work.planning import (
    LogPart,
    PlannedSegment,
    bundled,
    bytes_of_local_range,
    bytes_of_range,
    bytes_of_task,
    planned_segment,
    share_of_task,
)
from spark_jobs.work.workers import Surroundings, path_of


class WholeUnit(msgspec.Struct, frozen=True):
    """A unit that one task reads: the files at ``place``, whose size and time were ``state`` when it was planned."""

    number: int
    unit: Any
    place: str | None
    state: FileState

    @property
    def size_bytes(self) -> int:
        return self.state.size_bytes

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return self.place or "nothing"

    def changes(self) -> Iterator[Finding]:
        """A finding where the files are not those of the plan. Missing files are reported when they are opened."""
        if self.place is None:
            return
        words = words_for_change(self.place, self.state, state_of_place(self.place))
        if words is not None and is_there(path_of(self.place)):
            location = self.unit.location if isinstance(self.unit, LogUnit) else Location(self.place)
            yield finding("file-changed", location, words)


class SplitUnit(msgspec.Struct, frozen=True):
    """A unit whose logs several tasks read."""

    number: int
    unit: Any
    segments: tuple[PlannedSegment, ...]


Item = WholeUnit | LogPart


#: A job reads about so many parts of logs and whole units, or so many tasks for each core: its plan is kept in memory,
#: and its last tasks leave cores idle.
_ITEMS_OF_A_JOB = 8192
_TASKS_FOR_EACH_CORE = 8


@dataclass(slots=True)
class UnitPlan:
    """The tasks of one job of a scan, and by number the units that several tasks read.

    ``parallelism`` is the number of tasks that run at once.
    """

    parallelism: int
    tasks: Sequence[list[Item]] = field(default_factory=PackedList)
    split: PackedByNumber[SplitUnit] = field(default_factory=PackedByNumber)
    total_bytes: int = 0
    surroundings: Surroundings = field(default_factory=Surroundings)


def plan_units(
    scan: UnitScan[Any, Any],
    units: Iterable[Any],
    *,
    parallelism: int,
    range_bytes: int | None = None,
    is_elsewhere: bool = False,
) -> Iterator[UnitPlan]:
    """The plans of a scan, one for each job. A unit that is larger than two ranges is read in parts, if the scan can be
    shared.

    The plan of a job is made when it is requested, so that plans need the same memory for a thousand segments and for a
    hundred thousand. ``is_elsewhere``: the tasks run on hosts with another working directory.
    """
    total_bytes = 0

    def all_units() -> Iterator[tuple[WholeUnit, dict[str, FileState]]]:
        nonlocal total_bytes
        for number, unit in enumerate(units):
            if is_elsewhere and isinstance(unit, LogUnit):
                unit = replace(unit, path=unit.path.absolute())
            whole, states = _whole(scan, number, unit)
            total_bytes += whole.size_bytes
            yield whole, states

    rest = iter(PackedStream(all_units()))
    if range_bytes is None and not is_elsewhere:
        range_bytes = bytes_of_local_range(total_bytes, parallelism)
    wanted = bytes_of_range(total_bytes, range_bytes)
    task_bytes = bytes_of_task(total_bytes, wanted, parallelism)
    walk = scan.walk
    is_shared = walk is not None and may_be_shared(walk)

    def items_of(each: WholeUnit, states: dict[str, FileState], made: UnitPlan) -> Iterator[Item]:
        logs = scan.logs(each.unit) if is_shared and each.size_bytes > 2 * wanted else ()
        if not logs:
            yield each
            return
        segments = tuple(
            planned_segment(each.number, number, log, _state_of_log(log, states), wanted)
            for number, log in enumerate(logs)
        )
        made.split.add(each.number, SplitUnit(each.number, each.unit, segments))
        for segment, log in zip(segments, logs, strict=True):
            yield from (LogPart(segment, part, log) for part in range(segment.part_count))

    def items_of_job(made: UnitPlan) -> Iterator[Item]:
        """The items of one job, the next ones of the scan. They are packed task by task."""
        item_count, task_count = 0, 0.0
        for each, states in rest:
            made.total_bytes += each.size_bytes
            for item in items_of(each, states, made):
                yield item
                item_count += 1
                task_count += share_of_task(item, task_bytes)
            if item_count >= _ITEMS_OF_A_JOB and task_count >= _TASKS_FOR_EACH_CORE * parallelism:
                return

    while True:
        made = UnitPlan(parallelism)
        made.tasks = PackedList(bundled(items_of_job(made), task_bytes))
        if not made.tasks:
            return
        yield made


def _whole(scan: UnitScan[Any, Any], number: int, unit: Any) -> tuple[WholeUnit, dict[str, FileState]]:
    """A unit, and the states by name of its logs if it is a directory."""
    place: Path | None = scan.place(unit)
    if place is None:
        return WholeUnit(number, unit, None, FileState(0, 0)), {}
    if not is_directory(str(place)):
        return WholeUnit(number, unit, str(place), state_of_file(str(place))), {}
    states = states_of_logs(str(place))
    return WholeUnit(number, unit, str(place), sum_of(states.values())), states


def _state_of_log(log: LogUnit, states: dict[str, FileState]) -> FileState:
    known = states.get(log.path.name)
    return state_of_file(str(log.path)) if known is None else known
