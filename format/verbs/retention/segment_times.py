"""Reads the largest timestamp of a segment as a broker does, the offset of the record with it, and the log end.

Source: storage LogSegment.largestTimestamp: the last entry of the time index, which holds the largest timestamp once a
segment is closed; the file's modification time where no record has a timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from format.errors import KafkaLogError
from format.files import time_index
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.limits import MIB, Limits
from format.log.read_records import record_tables
from format.node.segment import Segment
from format.scan.drivers import SerialDriver, size_of, with_last_finding
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selection import Selection


class SegmentTimes(msgspec.Struct, frozen=True):
    """The times of a segment; ``largest_timestamp`` is -1 where no record has one, and then ``modified_ms`` counts.

    ``end_offset`` is known only where the batch headers were read.
    """

    largest_timestamp: int
    modified_ms: int
    offset: int | None = None
    end_offset: int | None = None

    @property
    def counted_ms(self) -> int:
        """The time from which retention counts."""
        return self.largest_timestamp if self.largest_timestamp >= 0 else self.modified_ms


class _Headers(msgspec.Struct, frozen=True):
    """A walk over headers, whose parts are the largest timestamp and the last offset of each chunk."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[tuple[int, int] | Finding]:
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
            elif len(item.chunk.table):
                table = item.chunk.table
                yield int(table.max_timestamp.max()), table.last_offset_of(len(table) - 1)


class _TimestampSearch(msgspec.Struct, frozen=True):
    """A walk that yields the offset of the first record with a timestamp, found through the time index."""

    timestamp: int
    limits: Limits

    @property
    def needs(self) -> Needs:
        selection = Selection(from_timestamp=self.timestamp)
        return Needs(Depth.RECORDS, selection, self.limits, chunk_bytes=MIB)

    def parts(self, opened: OpenedRange) -> Iterator[int]:
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                continue
            for table in record_tables(item.chunk, which=item.readable, limits=self.limits):
                rows = np.flatnonzero(table.timestamp == self.timestamp)
                if len(rows):
                    yield int(table.offset[rows[0]])
                    return


def read_segment_times(
    log: LogUnit, limits: Limits, *, by_headers: bool, with_offset: bool
) -> tuple[SegmentTimes, list[Finding]]:
    """The times of a segment, and findings.

    ``by_headers``: the time index is not complete, as of the last segment of a broker that runs or was killed.
    """
    findings: list[Finding] = []
    modified_ms = size_bytes = 0
    try:
        with FileSource(log.path) as source:
            modified_ms, size_bytes = source.mtime_ns // 1_000_000, source.size_bytes
    except KafkaLogError as error:
        return SegmentTimes(-1, 0), [finding_of(error, log.location)]
    if not size_bytes and by_headers:
        return SegmentTimes(-1, modified_ms), []
    largest: int | None = None
    end_offset: int | None = None
    if not by_headers:
        largest = _index_timestamp(log)
    if largest is None:
        largest, end_offset = _header_times(log, limits, findings)
    offset = None
    if with_offset and largest >= 0:
        offset = _offset_of(log, largest, limits)
    return SegmentTimes(largest, modified_ms, offset, end_offset), findings


def log_bytes(segment: Segment) -> int:
    """The size of a segment's log; 0 where there is none or it is unknown."""
    return 0 if segment.log is None else size_of(segment.log)


def modified_ms(path: Path) -> int:
    """The modification time of a log in ms; 0 where it is unknown."""
    try:
        return path.lstat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _index_timestamp(log: LogUnit) -> int | None:
    """The timestamp of the last entry of the time index, -1 for an empty one; None where it cannot be read."""
    segment = log.segment
    if segment is None or segment.time_index is None:
        return None
    try:
        with FileSource(segment.time_index) as source:
            entry = time_index.last_entry(source, segment.base_offset)
    except KafkaLogError:
        return None  # a broker rebuilds the index
    return None if entry is None else entry.timestamp


def _header_times(log: LogUnit, limits: Limits, findings: list[Finding]) -> tuple[int, int | None]:
    largest, end_offset = -1, None
    with SerialDriver(_Headers(limits)) as driver:
        for part in with_last_finding(log, driver.parts(log)):
            if isinstance(part, Finding):
                findings.append(part)
            else:
                largest, end_offset = max(largest, part[0]), part[1] + 1
    return largest, end_offset


def _offset_of(log: LogUnit, timestamp: int, limits: Limits) -> int | None:
    try:
        with FileSource(log.path) as source:
            if source.bundled is not None and source.bundled.has_only_headers:
                return source.bundled.outlined_offset(timestamp)
    except KafkaLogError:
        return None
    with SerialDriver(_TimestampSearch(timestamp, limits)) as driver:
        try:
            return next(driver.parts(log), None)
        except KafkaLogError:
            return None
