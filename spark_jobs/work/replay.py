"""Walks over parts of logs, made by many tasks, and put together again for the checks that go across them.

A part that holds damage, or that does not begin where the one before it ended, makes the whole segment be walked once
more, from its start, by the task that puts the parts together: findings about damage depend on all that stands
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.findings import Finding
from format.io.remote_path import path_of
from format.io.source import FileState
from format.limits import Limits
from format.log.batch_ranges import BatchRange
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.log.walker import BODY_CHUNK_BYTES
from format.scan.protocol import LogParts, LogUnit, OpenedRange
from format.scan.room import OwnRoom
from format.scan.serial import SerialDriver
from format.value_class import value_class
from format.verbs.verify.verify import MOST_ALIKE
from format.verbs.verify.walk import Level, LogWalk, WalkedChunk
from spark_jobs.work.part_bounds import bounds_of, opened
from spark_jobs.work.planning import Part, PlannedSegment
from spark_jobs.work.tasks import Result

#: What the phases of a unit's results are: how its parts went comes before what they saw.
STATUS, CHUNKS, FINISHED = 0, 1, 2
_MOST_ROWS = 32 * 1024  # of one chunk, as format.log.batch_table cuts them


@value_class
class PartStatus:
    """How the walk over a part went; ``is_plain`` False means that the segment must be walked as a whole."""

    start: int
    end: int
    size_bytes: int
    is_plain: bool
    change: str | None = None


@value_class
class PartChunk:
    """One chunk of a part as it travels: its table, findings, control records by row, and records read."""

    columns: NDArray[np.int64]
    crc_valid: NDArray[np.int8]
    header_findings: list[Finding]
    record_findings: list[Finding]
    markers: dict[int, ControlRecord]
    record_count: int


def walk_part(item: Part, level: Level, limits: Limits) -> Iterator[Result]:
    """The chunks of a part, then its status."""
    segment = item.segment
    step = 0
    is_plain = True
    start = position = size_bytes = 0
    change = None

    def result(phase: int, value: Any) -> Result:
        return Result(segment.unit, phase, segment.number, item.part, step, value)

    try:
        source, change = opened(segment)
        with source:
            start, end = bounds_of(segment, source, item.part, limits)
            position, size_bytes = start, source.size_bytes
            walk = LogWalk(level, limits)
            log = LogUnit(path_of(segment.path), segment.location, is_last_segment=segment.is_last)
            batch_range = BatchRange(start, end)
            chunks = walk.needs.chunks(source, batch_range)
            found_count = 0
            for walked in walk.parts(OpenedRange(log, source, batch_range, chunks, OwnRoom())):
                header_findings, record_findings = list(walked.header_findings), list(walked.record_findings)
                found_count += len(header_findings) + len(record_findings)
                if walked.damage is not None or not (walked.table.crc_valid != 0).all() or found_count > MOST_ALIKE:
                    is_plain = False
                    break
                table = walked.table
                position = int(table.end_position[-1]) if len(table) else position
                yield result(
                    CHUNKS,
                    PartChunk(
                        np.ascontiguousarray(table.columns),
                        table.crc_valid,
                        header_findings,
                        record_findings,
                        walked.markers,
                        walked.record_count,
                    ),
                )
                step += 1
            is_plain &= position == (size_bytes if end is None else end)
    except KafkaLogError:
        is_plain = False  # the second walk reports why
    step = 0
    yield result(STATUS, PartStatus(start, position, size_bytes, is_plain, change))


def parts_fit(segment: PlannedSegment, parts: list[PartStatus]) -> bool:
    """Whether the parts of a segment, in order, are all there and plain, and make up the log."""
    if len(parts) != segment.part_count or not all(each.is_plain for each in parts):
        return False
    starts, ends = [each.start for each in parts], [each.end for each in parts]
    return starts == [0, *ends[:-1]] and ends[-1] == parts[-1].size_bytes


@dataclass(slots=True)
class ReplayedWalks:
    """The driver of verify whose parts were made by other tasks; it must be asked for the logs in their order.

    ``statuses`` are all parts of the unit by segment; ``results`` the unit's chunks in order, read once.
    """

    segments: tuple[PlannedSegment, ...]
    statuses: dict[int, list[PartStatus]]
    results: Iterator[Result]
    walk: LogWalk
    _ahead: Result | None = field(default=None)

    def parts(self, log: LogUnit) -> LogParts[WalkedChunk]:
        """The chunks of a log, in order. Raises KafkaLogError where it cannot be opened or read."""
        segment = next((each for each in self.segments if each.path == str(log.path)), None)
        fits = segment is not None and parts_fit(segment, self.statuses.get(segment.number, []))
        if segment is None or segment.is_last != log.is_last_segment or not fits:
            return SerialDriver(self.walk).parts(log)
        number = segment.number

        def replayed(parts: LogParts[WalkedChunk]) -> Iterator[WalkedChunk]:
            parts.state = FileState(self.statuses[number][-1].size_bytes, 0, (0, 0))
            yield from as_one_walk(self._of_segment(number))

        return LogParts(replayed)

    def close(self) -> None:
        """Nothing is left open."""

    def _of_segment(self, number: int) -> Iterator[PartChunk]:
        while True:
            result = self._ahead or next(self.results, None)
            self._ahead = None
            if result is None:
                return
            if result.segment > number:
                self._ahead = result
                return
            if result.segment == number:
                yield result.value


def as_one_walk(chunks: Iterator[PartChunk]) -> Iterator[WalkedChunk]:
    """Chunks cut as one walk over the whole log cuts them: some checks look at a chunk at a time."""
    held: list[PartChunk] = []
    window_end = 0  # where what one read gives ends
    for chunk in chunks:
        held.append(chunk)
        joined = _joined(held)
        ends = joined.columns[:, 0] + joined.columns[:, 1]
        first = 0
        while first < len(ends):
            start = int(joined.columns[first, 0])
            if start >= window_end or int(ends[first]) > window_end:
                window_end = max(start + BODY_CHUNK_BYTES, int(ends[first]))
            last = min(int(np.searchsorted(ends, window_end, side="right")), first + _MOST_ROWS)
            if last == len(ends) and int(ends[-1]) < window_end and last - first < _MOST_ROWS:
                break  # more of it may come
            yield _walked(joined, first, last)
            first = last
        held = [_rows(joined, first, len(ends))] if first < len(ends) else []
    if held:
        joined = _joined(held)
        yield _walked(joined, 0, len(joined.columns))


def _joined(held: list[PartChunk]) -> PartChunk:
    if len(held) == 1:
        return held[0]
    markers: dict[int, ControlRecord] = {}
    row = 0
    for each in held:
        markers |= {row + number: marker for number, marker in each.markers.items()}
        row += len(each.columns)
    return PartChunk(
        np.concatenate([each.columns for each in held]),
        np.concatenate([each.crc_valid for each in held]),
        [found for each in held for found in each.header_findings],
        [found for each in held for found in each.record_findings],
        markers,
        sum(each.record_count for each in held),
    )


def _rows(chunk: PartChunk, first: int, last: int) -> PartChunk:
    """Some rows of a chunk, with what was found in them; the records read are counted with the first rows."""
    if first == 0 and last == len(chunk.columns):
        return chunk
    start = int(chunk.columns[first, 0])
    end = int(chunk.columns[last - 1, 0] + chunk.columns[last - 1, 1])

    def inside(found: Finding) -> bool:
        return found.location.position is None or start <= found.location.position < end

    return PartChunk(
        chunk.columns[first:last],
        chunk.crc_valid[first:last],
        [found for found in chunk.header_findings if inside(found)],
        [found for found in chunk.record_findings if inside(found)],
        {row - first: marker for row, marker in chunk.markers.items() if first <= row < last},
        chunk.record_count if first == 0 else 0,
    )


def _walked(chunk: PartChunk, first: int, last: int) -> WalkedChunk:
    part = _rows(chunk, first, last)
    table = BatchTable(part.columns, part.crc_valid)
    return WalkedChunk(table, part.header_findings, part.record_findings, part.markers, None, None, part.record_count)
