"""The forked driver: worker processes make the parts of ranges, and this process receives them in log order.

From a range with damage on, this process reads the rest of the log, since the treatment of damage depends on everything
before it. It also reads a log that cannot be cut into ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic

from format.io.source import FileSource, check_unchanged
from format.scan.processes.outbox import Outbox, SharedBytes
from format.scan.processes.room import OwnRoom
from format.scan.processes.shared_ranges import RangeTask, SharedRanges, Unsound, sound_chunks
from format.scan.progress import Advance, LogProgress, no_progress
from format.scan.protocol import LogParts, LogUnit, OpenedRange, PartT, Walk
from format.scan.serial import SerialDriver, read_range


class ForkedDriver(Generic[PartT]):
    """Reads planned logs with ``jobs`` processes; close it, or use it as a context manager.

    Planned logs must be requested in their order. Other logs are read in this process.
    """

    def __init__(
        self,
        walk: Walk[PartT],
        logs: Sequence[LogUnit],
        jobs: int,
        advance: Advance = no_progress,
    ) -> None:
        self._walk = walk
        self._advance = advance
        self._serial: SerialDriver[PartT] = SerialDriver(walk, advance)
        self._room = OwnRoom()
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
        progress = LogProgress(self._advance)
        try:
            for task, items in self._ranges.tasks(log):
                if parts.state is None:
                    parts.state = task.state
                for item in items:
                    if isinstance(item, Unsound):
                        yield from self._rest(log, task, parts, progress)
                        return
                    yield item.view if isinstance(item, SharedBytes) else item  # type: ignore[misc]
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
        rest = task.rest
        with rest.open(log.path) as source:
            parts.state = source.state
            progress.reached(rest.batch_range.start)
            yield from read_range(self._walk, log, source, rest.batch_range, self._room, progress)
            check_unchanged(log.path, source.state, log.location)

    def close(self) -> None:
        """End the processes."""
        self._ranges.close()

    def __enter__(self) -> ForkedDriver[PartT]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _send_parts(task: RangeTask[LogUnit], outbox: Outbox, *, walk: Walk[Any]) -> None:
    """Send the parts of one range, or of one whole log; runs in a worker."""
    log, needs = task.log, walk.needs
    if task.is_left:
        outbox.send(Unsound(task.batch_range))
        return
    with FileSource(log.path, task.state) as source:
        if task.is_whole_log:
            parts = read_range(walk, log, source, task.batch_range, outbox.room, LogProgress(no_progress))
        else:
            chunks = sound_chunks(source, task, outbox, needs.limits, needs.range_bytes)
            if chunks is None:
                return
            parts = walk.parts(OpenedRange(log, source, task.batch_range, chunks, outbox.room))
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                outbox.stream(part)
            else:
                outbox.send(part)
