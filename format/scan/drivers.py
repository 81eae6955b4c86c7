"""The drivers of scans: the serial one, the choice between it and processes, and the loop that folds log after log.

The choice is made by cost: whether several processes read some logs faster than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import msgspec
from msgspec.structs import replace

from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.io.source import FileSource, check_unchanged
from format.limits import MIB
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.walker import header_chunks
from format.scan.cluster import UnitT, cluster_for
from format.scan.progress import Advance, LogProgress, no_progress
from format.scan.protocol import (
    Cost,
    Driver,
    LogParts,
    LogUnit,
    OpenedRange,
    PartT,
    ResultT,
    Room,
    Scan,
    Walk,
    own_room,
)

if TYPE_CHECKING:
    from format.scan.processes import Outbox, RangeTask, SharedRanges

#: The least work, in seconds of processor time, for which it is worth starting processes.
_WORTH_S = 0.15
#: Processor time for each log, however small, in seconds.
_LOG_S = 0.3e-3
#: A log with less than this part of a range costs less to read than to pass to another process.
_LEAST_OF_RANGE = 64


def is_worth_sharing(paths: Sequence[Path], cost: Cost) -> bool:
    """Whether several processes are faster than one, estimated from the first batches of the largest log."""
    sizes = [size_of(path) for path in paths]
    if len(paths) * _LOG_S > _WORTH_S:
        return True
    if sum(sizes) < MIB:
        return False
    try:
        with FileSource(paths[sizes.index(max(sizes))]) as source:
            chunk = next(header_chunks(source), None)
    except KafkaLogError:
        return False
    if chunk is None or not len(chunk.headers):
        return False
    table = chunk.headers
    byte_s = cost.compressed_byte_s if table.codec.any() else cost.byte_s
    work_s = cost.batch_s / float(table.size_bytes.mean()) + byte_s
    return work_s * sum(sizes) + len(paths) * _LOG_S > _WORTH_S


def size_of(path: Path) -> int:
    """The size of a file; 0 if it cannot be determined, which the reader of the file reports."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def with_last_finding(log: LogUnit, parts: Iterator[PartT]) -> Iterator[PartT | Finding]:
    """The parts, and a finding if the log cannot be read to its end, for folds that go on. Raises WorkerDied."""
    try:
        yield from parts
    except WorkerDied:
        raise
    except KafkaLogError as error:
        yield finding_of(error, log.location)


def take_results(
    results: Iterator[ResultT | Finding], count: int, take: Callable[[ResultT], object]
) -> Iterator[Finding]:
    """The findings before and between the next ``count`` results of a scan; ``take`` is called with each result."""
    while count:
        item = next(results)
        if isinstance(item, Finding):
            yield item
        else:
            take(item)
            count -= 1


#: If only headers are read, chunks are small; then the file is checked for changes after this many bytes.
_HEADER_CHECK_BYTES = MIB


class SerialDriver(Generic[PartT]):
    """Reads one log after the other, in any order."""

    def __init__(self, walk: Walk[PartT], advance: Advance = no_progress, room: Room | None = None) -> None:
        self._walk = walk
        self._advance = advance
        self._room = room or own_room()

    def parts(self, log: LogUnit) -> LogParts[PartT]:
        return LogParts(lambda parts: self._read(log, parts))

    def _read(self, log: LogUnit, parts: LogParts[PartT]) -> Iterator[PartT]:
        with FileSource(log.path, log.state) as source:
            parts.state = source.state
            progress = LogProgress(self._advance)
            try:
                whole = log.whole_range(source, self._walk.needs.selection)
                yield from read_range(self._walk, log, source, whole, self._room, progress)
                check_unchanged(log.path, source.state, log.location)
            finally:
                progress.reached(source.size_bytes if log.end is None else min(log.end, source.size_bytes))


def read_range(
    walk: Walk[PartT], log: LogUnit, source: FileSource, batch_range: BatchRange, room: Room, progress: LogProgress
) -> Iterator[PartT]:
    """The parts of a range of an open log, with any damage; raises FileChanged if the file changes."""
    chunks = _watched(walk.needs.chunks(source, batch_range), walk.needs.reads_bodies, log, source, progress)
    return walk.parts(OpenedRange(log, source, batch_range, chunks, room))


def _watched(
    chunks: Iterator[HeaderChunk], reads_bodies: bool, log: LogUnit, source: FileSource, progress: LogProgress
) -> Iterator[HeaderChunk]:
    """The chunks; after each, or after several small ones, progress is counted and the file is checked for changes."""
    step = 0 if reads_bodies else _HEADER_CHECK_BYTES
    next_check = 0
    for chunk in chunks:
        yield chunk
        position = chunk.buffer_position
        if position >= next_check:
            next_check = position + step
            progress.reached(position)
            check_unchanged(log.path, source.state, log.location)


def scan_logs(
    scan: Scan[PartT, ResultT],
    logs: Iterable[LogUnit | Finding],
    *,
    jobs: int = 1,
    advance: Advance = no_progress,
    may_stop: bool = False,
) -> Iterator[ResultT | Finding]:
    """The results for some logs, in order, and a finding for each log that cannot be read to its end.

    Findings among the logs, for what could not be listed, are yielded in their place. The cluster of the session of the
    first log reads them, if there is one. With several jobs all logs are listed first, otherwise each is listed when it
    is read or passed to the cluster. With ``may_stop`` the caller may need only the first results, so no cluster makes
    all of them. Raises WorkerDied, and the errors of iterating over ``logs``, after the results of the logs before
    them.
    """
    listing, by_log = _Listing(logs), LogByLog(scan)
    cluster, units = cluster_for(by_log, listing)
    if cluster is not None and not may_stop:
        yield from cluster.results(by_log, units, advance)
    else:
        shared: list[LogUnit | Finding] = []
        if jobs > 1 and may_be_shared(scan):
            shared = list(units)
            units = iter(shared)
        with_logs = [(unit, by_log.logs(unit)) for unit in shared]
        with open_units(scan, by_log.results, with_logs, jobs, advance) as results:
            for unit in units:
                yield from results(unit)
    if listing.error is not None:
        raise listing.error


class _Listing:
    """The logs up to the first error of listing them, which is raised after their results."""

    def __init__(self, logs: Iterable[LogUnit | Finding]) -> None:
        self._logs = logs
        self.error: KafkaLogError | None = None

    def __iter__(self) -> Iterator[LogUnit | Finding]:
        try:
            yield from self._logs
        except KafkaLogError as error:
            self.error = error


class LogByLog(msgspec.Struct, Generic[PartT, ResultT], frozen=True):
    """A scan of single logs as a scan of units: each log is a unit, and so is each finding among them."""

    scan: Scan[PartT, ResultT]

    @property
    def walk(self) -> Walk[PartT]:
        return self.scan

    def place(self, unit: LogUnit | Finding) -> Path | None:
        return unit.path if isinstance(unit, LogUnit) else None

    def logs(self, unit: LogUnit | Finding) -> Sequence[LogUnit]:
        """The log itself."""
        return (unit,) if isinstance(unit, LogUnit) else ()

    def results(self, unit: LogUnit | Finding, driver: Driver[PartT]) -> Iterator[ResultT | Finding]:
        """The results for one log, with a finding if it cannot be read to its end; or the finding itself."""
        if isinstance(unit, Finding):
            yield unit
            return
        parts = driver.parts(unit)
        try:
            yield from with_last_finding(unit, self.scan.fold(unit, parts))
        finally:
            parts.close()


@contextmanager
def open_driver(
    walk: Walk[PartT], logs: Sequence[LogUnit], jobs: int, advance: Advance = no_progress
) -> Iterator[Driver[PartT]]:
    """The driver that reads these logs faster."""
    if not _are_shared(walk, [log.path for log in logs], jobs):
        yield SerialDriver(walk, advance)
        return
    with closing(ForkedDriver(walk, logs, jobs, advance)) as driver:
        yield driver


def _are_shared(walk: Walk[Any], paths: Sequence[Path], jobs: int) -> bool:
    """Whether several processes read these logs faster."""
    cost = walk.needs.cost
    return jobs > 1 and cost is not None and bool(paths) and may_be_shared(walk) and is_worth_sharing(paths, cost)


def may_be_shared(walk: Walk[PartT]) -> bool:
    """Whether several processes can be faster at all. A scan that may end early would waste what was read ahead."""
    needs = walk.needs
    return needs.cost is not None and needs.reads_bodies and not needs.may_end_early


@contextmanager
def open_units(
    walk: Walk[PartT],
    fold: Callable[[UnitT, Driver[PartT]], Iterator[ResultT]],
    units: Sequence[tuple[UnitT, Sequence[LogUnit]]],
    jobs: int,
    advance: Advance = no_progress,
    *,
    may_fold_elsewhere: bool = True,
) -> Iterator[Callable[[UnitT], Iterator[ResultT]]]:
    """What makes the results of a unit, for units that are requested in their order, and for any others.

    If several processes are faster, they fold the units of small logs, and make the parts of other logs. ``units`` come
    with the logs that are read whole. Without ``may_fold_elsewhere`` all units are folded in this process.
    """
    logs = {number: found for number, (_, found) in enumerate(units) if found}
    if not _are_shared(walk, [log.path for found in logs.values() for log in found], jobs):
        serial = SerialDriver(walk, advance)
        yield lambda unit: fold(unit, serial)
        return
    from format.scan.processes import SharedUnits

    range_bytes = walk.needs.range_bytes
    sizes = {number: sum(size_of(log.path) for log in found) for number, found in logs.items()}
    small = {number: size for number, size in sizes.items() if may_fold_elsewhere and size <= range_bytes}
    others = (log for number, found in logs.items() if number not in small for log in found)
    large = [log for log in others if size_of(log.path) * _LEAST_OF_RANGE > range_bytes]
    numbers = {id(units[number][0]): number for number in reversed(small)}

    def fold_elsewhere(number: int, room: Room) -> Iterator[ResultT]:
        return fold(units[number][0], SerialDriver(walk, no_progress, room))

    def results(unit: UnitT) -> Iterator[ResultT]:
        number = numbers.pop(id(unit), None)
        if number is None:
            yield from fold(unit, driver)
        else:
            yield from elsewhere.results(number)
            if small[number]:
                advance(small[number])

    with ExitStack() as opened:
        driver: Driver[PartT] = SerialDriver(walk, advance)
        if large:
            driver = opened.enter_context(closing(ForkedDriver(walk, large, jobs, advance)))
        if small:
            elsewhere = opened.enter_context(closing(SharedUnits(fold_elsewhere, small, min(jobs, len(small)))))
        yield results


class ForkedDriver(Generic[PartT]):
    """Reads planned logs with ``jobs`` processes, which ``close`` ends.

    Planned logs must be requested in their order. Other logs are read in this process.
    """

    def __init__(self, walk: Walk[PartT], logs: Sequence[LogUnit], jobs: int, advance: Advance = no_progress) -> None:
        from format.scan.processes import SharedRanges

        self._walk = walk
        self._advance = advance
        self._serial: SerialDriver[PartT] = SerialDriver(walk, advance)
        self._room = own_room()
        self._planned: dict[Path, LogUnit] = {}
        for log in logs:
            self._planned.setdefault(log.path, log)  # a repeated log is read in this process the second time
        needs = walk.needs
        self._ranges: SharedRanges[LogUnit] = SharedRanges(
            list(self._planned.values()),
            jobs,
            needs.range_bytes,
            partial(_send_parts, walk=walk),
            lambda log, source: log.whole_range(source, needs.selection),
        )

    def parts(self, log: LogUnit) -> LogParts[PartT]:
        """The parts of a log. Iteration may also raise WorkerDied."""
        planned = self._planned.pop(log.path, None)
        if planned is None or planned.next_base_offset != log.next_base_offset:
            return self._serial.parts(log)
        return LogParts(lambda parts: self._receive(planned, parts))

    def _receive(self, log: LogUnit, parts: LogParts[PartT]) -> Iterator[PartT]:
        from format.scan.processes import Unsound

        progress = LogProgress(self._advance)
        try:
            for task, items in self._ranges.tasks(log):
                if parts.state is None:
                    parts.state = task.state
                for item in items:
                    if isinstance(item, Unsound):
                        yield from self._rest(log, task, parts, progress)
                        return
                    yield item  # type: ignore[misc]
                if task.batch_range.end is not None:
                    progress.reached(task.batch_range.end)
            if parts.state is not None:
                check_unchanged(log.path, parts.state, log.location)
        finally:
            self._ranges.leave(log)
            if parts.state is not None:
                progress.reached(parts.state.size_bytes)

    def _rest(
        self, log: LogUnit, task: RangeTask[LogUnit], parts: LogParts[PartT], progress: LogProgress
    ) -> Iterator[PartT]:
        """The parts from a range on, made in this process."""
        self._ranges.leave(log)
        rest = replace(task.batch_range, end=None)
        with FileSource(log.path, task.state) as source:
            parts.state = source.state
            progress.reached(rest.start)
            yield from read_range(self._walk, log, source, rest, self._room, progress)
            check_unchanged(log.path, source.state, log.location)

    def close(self) -> None:
        """End the processes."""
        self._ranges.close()


def _send_parts(task: RangeTask[LogUnit], outbox: Outbox, *, walk: Walk[Any]) -> None:
    """Send the parts of one range, or of one whole log; runs in a worker."""
    from format.scan.processes import Unsound, sound_chunks

    log, needs = task.log, walk.needs
    if task.is_left:
        outbox.send(Unsound())
        return
    with FileSource(log.path, task.state) as source:
        if task.is_whole_log:
            parts = read_range(walk, log, source, task.batch_range, outbox.room, LogProgress(no_progress))
        else:
            chunks = sound_chunks(source, task, needs.limits, needs.range_bytes)
            if chunks is None:
                outbox.send(Unsound())
                return
            parts = walk.parts(OpenedRange(log, source, task.batch_range, chunks, outbox.room))
        for part in parts:
            outbox.send_part(part)
