"""Parts of logs that several tasks read, and the driver that replays them where their unit is folded.

If a part is not plainly sound, or does not begin where the one before it ended, the task that folds the unit reads the
whole log again from its start, because findings about damage depend on everything before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding, finding
from format.io.source import FileState
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange
from format.scan.processes.room import OwnRoom
from format.scan.protocol import LogParts, LogUnit, OpenedRange, Walk
from format.scan.serial import SerialDriver
from spark_jobs.work.part_bounds import bounds_of, opened
from spark_jobs.work.planning import LogPart, PlannedSegment
from spark_jobs.work.tasks import Result
from spark_jobs.work.units import SplitUnit

#: The phases of a unit's results, in their order: the states of its parts, the parts, the folded results.
STATUS, PARTS, FINISHED = 0, 1, 2


class PartStatus(msgspec.Struct, frozen=True):
    """The outcome of reading a part. ``is_plain`` False means that the log must be read as a whole.

    ``first_offset`` and ``last_offset`` are of its batches, None where it has none. ``change`` is the message about a
    file that is not the one of the plan.
    """

    start: int
    end: int
    size_bytes: int
    is_plain: bool
    first_offset: int | None = None
    last_offset: int | None = None
    change: str | None = None


class _SoundChunks:
    """The chunks of a range up to the first that is not plainly sound, and the position and offsets that they reach."""

    def __init__(self, chunks: Iterable[BatchChunk], position: int) -> None:
        self._chunks = chunks
        self.position = position
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.is_plain = True

    def __iter__(self) -> Iterator[BatchChunk]:
        for chunk in self._chunks:
            table = chunk.table
            if not chunk.is_sound_after(self.last_offset):
                self.is_plain = False
                return
            if len(table):
                self.position = int(table.end_position[-1])
                if self.first_offset is None:
                    self.first_offset = int(table.base_offset[0])
                self.last_offset = table.last_offset_of(len(table) - 1)
            yield chunk


def results_of_part(item: LogPart, walk: Walk[Any]) -> Iterator[Result]:
    """The parts that a scan makes of one part of a log, and then the PartStatus."""
    segment, needs = item.segment, walk.needs
    start = size_bytes = 0
    seen = _SoundChunks((), 0)
    is_plain = False  # stays so after an error, which the second reading reports
    change = None

    def result(phase: int, step: int, value: Any) -> Result:
        return Result(segment.unit, phase, segment.number, item.part, step, value)

    try:
        source, change = opened(segment)
        with source:
            size_bytes = source.size_bytes
            start, end = bounds_of(segment, source, item.part, needs.limits)
            first = max(start, item.log.whole_range(source, needs.selection).start)
            seen.position = start
            if end is not None and first >= end:
                seen.position = end  # nothing of it is selected
            elif change is None:
                batch_range = BatchRange(first, end)
                seen = _SoundChunks(needs.chunks(source, batch_range), start)
                read = OpenedRange(item.log, source, batch_range, seen, OwnRoom())
                for step, part in enumerate(walk.parts(read)):
                    yield result(PARTS, step, settled(part))
            is_plain = change is None and seen.is_plain and seen.position == (size_bytes if end is None else end)
    except KafkaLogError:
        pass
    status = PartStatus(start, seen.position, size_bytes, is_plain, seen.first_offset, seen.last_offset, change)
    yield result(STATUS, 0, status)


def settled(value: Any) -> Any:
    """A result as a value that can be pickled: bytes in place of a memoryview, whose memory is reused."""
    return bytes(value) if isinstance(value, memoryview) else value


def parts_fit(segment: PlannedSegment, parts: list[PartStatus]) -> bool:
    """Whether the parts of a log, in order, are complete and plain, cover the log, and have rising offsets."""
    if len(parts) != segment.part_count or not all(each.is_plain for each in parts):
        return False
    starts, ends = [each.start for each in parts], [each.end for each in parts]
    if starts != [0, *ends[:-1]] or ends[-1] != parts[-1].size_bytes:
        return False
    offsets = [each for part in parts for each in (part.first_offset, part.last_offset) if each is not None]
    return offsets == sorted(offsets) and all(
        first < second for first, second in zip(offsets[1::2], offsets[2::2], strict=False)
    )


class ReplayedParts:
    """The driver that replays parts made by other tasks. Logs must be requested in their order.

    ``results`` are the results of one unit in order: the states of its parts, then the parts.
    """

    def __init__(self, walk: Walk[Any], unit: SplitUnit, results: Iterator[Result]) -> None:
        self._serial: SerialDriver[Any] = SerialDriver(walk)
        self._segments = {each.path: each for each in unit.segments}
        self._statuses: dict[int, list[PartStatus]] = {}
        self._results = results
        self._ahead: Result | None = None
        for each in results:
            if each.phase != STATUS:
                self._ahead = each
                break
            self._statuses.setdefault(each.segment, []).append(each.value)

    def changes(self) -> Iterator[Finding]:
        """Findings for logs that differ from the plan."""
        for segment in self._segments.values():
            words = {each.change for each in self._statuses.get(segment.number, ()) if each.change}
            for each in sorted(words):
                yield finding("file-changed", segment.location, each)

    def parts(self, log: LogUnit) -> LogParts[Any]:
        """The parts of a log, in order. A log without parts, or whose parts do not fit, is read here."""
        segment = self._segments.get(str(log.path))
        statuses = [] if segment is None else self._statuses.get(segment.number, [])
        if segment is None or segment.next_base_offset != log.next_base_offset or not parts_fit(segment, statuses):
            return self._serial.parts(log)
        number = segment.number

        def replayed(parts: LogParts[Any]) -> Iterator[Any]:
            parts.state = FileState(statuses[-1].size_bytes, 0, (0, 0))
            yield from self._of_segment(number)

        return LogParts(replayed)

    def _of_segment(self, number: int) -> Iterator[Any]:
        while True:
            result = self._ahead or next(self._results, None)
            self._ahead = None
            if result is None:
                return
            if result.segment > number:
                self._ahead = result
                return
            if result.segment == number:
                yield result.value

    def close(self) -> None:
        """Nothing is left open."""
