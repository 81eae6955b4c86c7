"""The log files below a path that may hold what is selected, and their chunks, read by one process or by several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from format.findings import Finding
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.walker import BODY_CHUNK_BYTES, batch_chunks
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, read_log_dir
from format.node.partition import Partition, read_partition
from format.node.segment import Segment
from format.scan.read_log import LogChunk, first_position, log_chunks, opened_chunks
from format.scan.selection import EVERYTHING, Selection
from format.scan.shared_ranges import RangeTask, RestOfLog, sound_chunks
from format.scan.workers import Outbox

#: The kinds of paths that logs with records lie at.
LOG_KINDS = (Kind.LOG_DIR, Kind.PARTITION, Kind.LOG, Kind.KRAFT_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class SelectedLog:
    """A log file, and what its partition tells of it; ``segment`` is None for one that is no segment's."""

    path: Path
    segment: Segment | None
    location: Location
    is_last_segment: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """How logs are read: what of them, under which limits, and how much at once."""

    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    chunk_bytes: int = BODY_CHUNK_BYTES

    def chunks(self, log: SelectedLog) -> Iterator[LogChunk | Finding]:
        """The selected chunks of a log, and findings where it is damaged or cannot be read."""
        return log_chunks(
            log.path,
            log.segment,
            log.location,
            selection=self.selection,
            is_last_segment=log.is_last_segment,
            limits=self.limits,
            chunk_bytes=self.chunk_bytes,
        )

    def start_of(self, log: SelectedLog, source: FileSource) -> int:
        """Where in a log to begin."""
        return first_position(log.segment, source, self.selection)

    def chunks_of_task(self, task: RangeTask[SelectedLog], outbox: Outbox) -> Iterator[LogChunk | Finding]:
        """The same for a range in a worker; nothing but Unsound, which is sent, for one that is not plainly sound."""
        log = task.log
        if task.is_whole_log:
            yield from self.chunks(log)
            return
        with FileSource(log.path, task.state) as source:
            chunks = sound_chunks(source, task, outbox, self.limits, self.chunk_bytes)
            if chunks is None:
                return
            yield from opened_chunks(
                source, chunks, log.location, self.selection, is_last_segment=log.is_last_segment, limits=self.limits
            )

    def chunks_of_rest(self, log: SelectedLog, rest: RestOfLog) -> Iterator[LogChunk | Finding]:
        """The same from where on a log is left to the process that asks. Raises KafkaLogError."""
        with rest.open(log.path) as source:
            chunks = batch_chunks(
                source,
                rest.batch_range.start,
                after_offset=rest.batch_range.after_offset,
                limits=self.limits,
                chunk_bytes=self.chunk_bytes,
            )
            yield from opened_chunks(
                source, chunks, log.location, self.selection, is_last_segment=log.is_last_segment, limits=self.limits
            )

    @property
    def has_end(self) -> bool:
        """Whether reading a log may end before its end, which only one who reads it in order sees."""
        return self.selection.to_offset is not None or self.selection.to_timestamp is not None


def selected_logs(path: Path, kind: Kind, selection: Selection) -> Iterator[SelectedLog]:
    """The log files below a path of one of LOG_KINDS that may hold what is selected, in order."""
    if kind is Kind.LOG_DIR:
        for directory in read_log_dir(path).partitions:
            yield from _logs_of_partition(read_partition(directory), selection)
    elif kind is Kind.PARTITION:
        yield from _logs_of_partition(read_partition(path), selection)
    else:
        yield _lone_log(path, kind)


def _logs_of_partition(partition: Partition, selection: Selection) -> Iterator[SelectedLog]:
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or selection.excludes_segment(segment.base_offset, next_base_offset):
            continue
        location = partition.location(segment.log, segment.base_offset)
        yield SelectedLog(segment.log, segment, location, next_base_offset is None)


def _lone_log(path: Path, kind: Kind) -> SelectedLog:
    """One log file by itself: its siblings tell its indexes and whether later segments follow."""
    location = location_of_file(path)
    segment = None
    is_last = True
    if kind is Kind.LOG and location.base_offset is not None:
        partition = read_partition(path.parent)
        for each in partition.segments:
            if each.log is not None and each.log.name == path.name:
                segment, is_last = each, partition.next_base_offset(each) is None
    return SelectedLog(path, segment, location, is_last)
