"""One followed partition: the ends of its logs, where reading goes on, and finding that place after files changed."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.findings import Finding, finding
from format.io.source import FileSource, Source
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_chunk import BatchRange
from format.log.batch_header import HEADER_BYTES, has_right_crc, header_tables, headers_in
from format.log.batch_table import HeaderTable
from format.log.walker import header_chunks
from format.node.partition import Partition, Segment, read_partition
from format.scan.protocol import LogUnit
from format.scan.selected_logs import every_log_of
from format.scan.selection import EVERYTHING, Selection, start_position
from format.wording import offset_range, offsets_are

_LAST_OFFSET = 2**63 - 2
_ZEROS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FollowedEnd:
    """A position between batches of a segment, the offset there, and some batches before it."""

    position: int
    next_offset: int
    last_batches: HeaderTable | None = field(default=None, compare=False, repr=False)


def end_of_table(table: HeaderTable) -> FollowedEnd:
    """The end of the last batch of a table."""
    return FollowedEnd(int(table.end_position[-1]), table.last_offset_of(len(table) - 1) + 1, table)


def whole_batches(source: Source, start: int, most_bytes: int) -> HeaderTable | None:
    """The whole batches from a position on, up to ``most_bytes`` but at least one; None if there is none.

    The last batch in the file counts only if its CRC is right: in a preallocated file its header may be written first.
    """
    tables: list[HeaderTable] = []
    for table in header_tables(source, start, source.size_bytes):
        count = int(np.searchsorted(table.end_position, start + most_bytes, "right"))
        if count < len(table):
            tables.append(table.rows(slice(0, max(count, 0 if tables else 1))))
            break
        tables.append(table)
    else:
        if tables:
            last = tables[-1].rows(slice(-1, None))
            position, size_bytes, magic = (int(column[0]) for column in (last.position, last.size_bytes, last.magic))
            if not has_right_crc(source, position, size_bytes, magic):
                tables[-1] = tables[-1].rows(slice(0, -1))
    found = HeaderTable.concatenated(tables) if tables else None
    return found if found is not None and len(found) else None


def end_of_segment(segment: Segment, source: Source) -> FollowedEnd:
    """The end of a segment's log, found from the last entry of its index on."""
    start = start_position(segment, source, Selection(from_offset=_LAST_OFFSET))
    for position in (start, 0) if start else (0,):
        end = FollowedEnd(position, -1)
        for table in header_tables(source, position, source.size_bytes):
            end = end_of_table(table)
        if end.next_offset >= 0:
            return end
    return FollowedEnd(0, segment.base_offset)


def place_of_offset(segment: Segment, source: Source, offset: int) -> FollowedEnd | None:
    """The start of the batch that contains an offset, or of the next one; None if the log ends before the offset."""
    start = start_position(segment, source, Selection(from_offset=offset))
    for table in header_tables(source, start, source.size_bytes):
        row = int(np.searchsorted(table.last_offset, offset))
        if row < len(table):
            return FollowedEnd(int(table.position[row]), int(table.header_offset[row]))
    return None


def end_behind_damage(source: Source, start: int, limits: Limits = DEFAULT_LIMITS) -> FollowedEnd | None:
    """The end of the last intact batch after damage at ``start``; None if there is none.

    Zeros at ``start`` are not damage but a preallocated file, for which the result is None.
    """
    if not any(source.read_at(start, _ZEROS_BYTES)):
        return None
    end = None
    for chunk in header_chunks(source, BatchRange(start), limits=limits):
        if len(chunk.headers):
            end = end_of_table(chunk.headers)
    return end


#: The number of the last batches that are remembered, to determine how far a log was truncated.
_MOST_MARKS = 128
_DELETED = "deleted"
#: Two changes within this time may leave a directory with the same modification time.
_TICK_NS = 50_000_000


class BatchMark(NamedTuple):
    """A batch that was read: its segment, its start and end position there, its offsets, and its CRC."""

    segment_base_offset: int
    position: int
    end_position: int
    base_offset: int
    last_offset: int
    crc: int


class FollowedPlace(msgspec.Struct, frozen=True):
    """The place of the next batch: a file, its identity, and a position in it.

    ``is_deleted`` is whether the file is marked as deleted; it is read to its end before it is removed.
    """

    path: Path
    segment_base_offset: int
    device_inode: tuple[int, int]
    position: int
    is_deleted: bool = False


@dataclass(slots=True, eq=False)
class FollowedPartition:
    """The state of one followed partition directory.

    ``next_offset`` is the offset after the last batch that was read. ``place`` is None while there is no segment, and
    after the file that was read was removed. Segments outside ``selection`` are not read.
    """

    path: Path
    listed: Partition
    directory_inode: tuple[int, int]
    selection: Selection = EVERYTHING
    place: FollowedPlace | None = None
    next_offset: int = 0
    marks: deque[BatchMark] = field(default_factory=lambda: deque(maxlen=_MOST_MARKS))
    is_to_begin: bool = True
    waiting_bytes: int = 0  # after the last whole batch
    waiting_since: float = 0.0  # the time from which on waiting_bytes has not changed
    look_again_at: float | None = None
    _listed_look: Hashable = None

    @classmethod
    def at(cls, path: Path, selection: Selection = EVERYTHING) -> FollowedPartition:
        """The partition in a directory, without a place. Raises UnreadableFile and FileChanged."""
        return cls(path, read_partition(path), inode_at(path) or (0, 0), selection)

    def look(self) -> Hashable:
        """The state of the directory and of the file that is read, which changes when the partition does."""
        return status_at(self.path), None if self.place is None else status_at(self.place.path)

    @property
    def place_path(self) -> Path | None:
        """The file that is read."""
        return None if self.place is None else self.place.path

    # -- where to begin ----------------------------------------------------------------------------------------

    def begin(self, *, at_end: bool) -> None:
        """Set the first place: the end of the log, or the start of the selection. Raises KafkaLogError."""
        if not self.listed.segments:
            return
        self.is_to_begin = False
        if at_end:
            segment = self.listed.segments[-1]
            with _opened(segment) as source:
                end = end_of_segment(segment, source)
                self.place = _place(segment, source, end.position)
            self.next_offset = end.next_offset
            self._remember(end.last_batches)
            return
        following = [each.base_offset for each in self.listed.segments[1:]]
        for segment, next_base_offset in zip(self.listed.segments, [*following, None], strict=True):
            if not self.selection.excludes_segment(segment.base_offset, next_base_offset):
                self.next_offset = segment.base_offset
                self.enter(segment)
                return

    def enter(self, segment: Segment) -> None:
        """Continue with a segment, at its start or at the start of the selection. Raises KafkaLogError."""
        with _opened(segment) as source:
            position = 0
            if not self.selection.is_everything:
                position = start_position(segment, source, self.selection)
            self.place = _place(segment, source, position)

    def restart(self) -> None:
        """Read the partition again from its first segment on."""
        self.marks.clear()
        self.place = None
        self.next_offset = 0
        self.selection = EVERYTHING
        self.is_to_begin = True

    # -- reading on --------------------------------------------------------------------------------------------

    def list_again(self, *, if_changed: bool = False) -> None:
        """List the directory again. Raises UnreadableFile and FileChanged.

        With ``if_changed`` it is not listed if its modification time is the same, and old enough to show all changes.
        """
        look, now_ns = status_at(self.path), time.time_ns()
        if not if_changed or look is None or look != self._listed_look:
            self.listed = read_partition(self.path)
            self._listed_look = look if look is not None and now_ns - look[2] > _TICK_NS else None

    def open(self) -> FileSource | None:
        """Open the file of the place; None if it no longer exists. Raises UnreadableFile."""
        place = self.place
        if place is None or not os.path.lexists(place.path):
            return None
        source = FileSource(place.path)
        if source.device_inode != place.device_inode:
            source.close()
            return None
        return source

    def has_been_cut(self, source: FileSource) -> bool:
        """Whether the log ends before the place, or has other bytes before it than those that were read."""
        place = self.place
        if place is None:
            return False
        if source.size_bytes < place.position:
            return True
        if not self.marks or self.marks[-1].segment_base_offset != place.segment_base_offset:
            return False
        last = self.marks[-1]
        return last.end_position == place.position and not _is_there(last, source)

    def took(self, end: FollowedEnd) -> None:
        """Move the place to the end of batches that were read."""
        if self.place is None:
            raise ValueError("there is no place that could be moved")
        self.place = replace(self.place, position=end.position)
        self.next_offset = max(self.next_offset, end.next_offset)
        self._remember(end.last_batches)

    def _remember(self, table: HeaderTable | None) -> None:
        """Remember the last batches of a table, which end at the place."""
        if table is None or self.place is None:
            return
        last = table.rows(slice(-_MOST_MARKS, None))
        columns = (last.position, last.end_position, last.header_offset, last.last_offset, last.crc)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            self.marks.append(BatchMark(self.place.segment_base_offset, *row))

    def next_segment(self) -> Segment | None:
        """The segment after that of the place; None if there is none yet."""
        if self.place is None:
            return None
        base_offset = self.place.segment_base_offset
        return next((each for each in self.listed.segments if each.base_offset > base_offset), None)

    # -- a place that no longer exists ---------------------------------------------------------------------------

    def find_again(self) -> Finding | None:
        """Find the place of ``next_offset`` in the files that are listed now; return a finding if offsets are missing.

        It is called after a file was replaced or removed by compaction, retention or truncation. The place remains None
        while there is no segment. Raises KafkaLogError.
        """
        place, self.place = self.place, None
        segments = self.listed.segments
        if place is not None:
            for each in self.listed.leftovers:
                if each.leftover == _DELETED and each.log is not None and inode_at(each.log) == place.device_inode:
                    self.place = replace(place, path=each.log, is_deleted=True)
                    return None
        if not segments:
            return None
        floor = next((each for each in reversed(segments) if each.base_offset <= self.next_offset), None)
        if floor is None:
            return None if self._find_deleted() else self._skip_to(segments[0])
        with _opened(floor) as source:
            found = place_of_offset(floor, source, self.next_offset)
            end = end_of_segment(floor, source) if found is None else found
            self.place = _place(floor, source, end.position)
        is_cut = found is None and floor is segments[-1] and end.next_offset < self.next_offset
        return self.cut() if is_cut else None

    def _find_deleted(self) -> bool:
        """Find the place in a segment that is marked as deleted, while its file exists; return whether it was found."""
        deleted = [each for each in self.listed.leftovers if each.leftover == _DELETED and each.log is not None]
        for segment in reversed(deleted):
            if segment.base_offset > self.next_offset:
                continue
            try:
                with _opened(segment) as source:
                    found = place_of_offset(segment, source, self.next_offset)
                    if found is not None:
                        place = _place(segment, source, found.position)
                        self.place = replace(place, is_deleted=True)
                        return True
            except KafkaLogError:
                continue  # the file was removed meanwhile
        return False

    def _skip_to(self, segment: Segment) -> Finding:
        first, self.next_offset = self.next_offset, segment.base_offset
        self.marks.clear()
        with _opened(segment) as source:
            self.place = _place(segment, source, 0)
        return finding(
            "followed-offsets-deleted",
            self.listed.location(segment.log, segment.base_offset).at(offset=first),
            f"{offset_range(first, segment.base_offset - 1)} deleted before being read: the log now starts at "
            f"{segment.base_offset}",
            lost_offsets=(first, segment.base_offset - 1),
        )

    def cut(self) -> Finding:
        """Move the place to the end of the last batch that is still as it was read. Raises KafkaLogError."""
        segments = {each.base_offset: each for each in self.listed.segments}
        while self.marks:
            mark = self.marks[-1]
            segment = segments.get(mark.segment_base_offset)
            if segment is not None:
                with _opened(segment) as source:
                    if _is_there(mark, source):
                        self.place = _place(segment, source, mark.end_position)
                        return self._cut_to(mark.last_offset + 1)
            self.marks.pop()
        if not self.listed.segments:
            self.place = None
            return self._cut_to(self.next_offset)
        last = self.listed.segments[-1]
        with _opened(last) as source:
            end = end_of_segment(last, source)
            self.place = _place(last, source, end.position)
        return self._cut_to(min(end.next_offset, self.next_offset))

    def _cut_to(self, next_offset: int) -> Finding:
        before, self.next_offset = self.next_offset, next_offset
        while self.marks and self.marks[-1].last_offset >= next_offset:
            self.marks.pop()
        place = self.place
        path = None if place is None else place.path
        base_offset = None if place is None else place.segment_base_offset
        gone = offsets_are(next_offset, before - 1) if next_offset < before else "its end is"
        return finding(
            "followed-log-cut",
            self.listed.location(path, base_offset).at(
                position=None if place is None else place.position, offset=next_offset
            ),
            f"the log was truncated while it was followed: {gone} no longer in it; reading continues at offset "
            f"{next_offset}",
            expected=before,
            actual=next_offset,
        )


def status_at(path: Path) -> tuple[int, int, int, int] | None:
    """The device, the inode, the modification time and the size of what is at a path; None if there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def inode_at(path: Path) -> tuple[int, int] | None:
    """The device and the inode of what is at a path; None if there is nothing."""
    found = status_at(path)
    return None if found is None else found[:2]


def _opened(segment: Segment) -> FileSource:
    if segment.log is None:
        raise ValueError("a segment without a .log cannot be read")
    return FileSource(segment.log)


def _place(segment: Segment, source: FileSource, position: int) -> FollowedPlace:
    return FollowedPlace(Path(source.path), segment.base_offset, source.device_inode, position)


def _is_there(mark: BatchMark, source: FileSource) -> bool:
    """Whether the batch of a mark is still where it was read."""
    try:
        header = headers_in(memoryview(source.read_at(mark.position, HEADER_BYTES)), mark.position)
    except KafkaLogError:
        return False
    if not len(header) or int(header.end_position[0]) != mark.end_position or mark.end_position > source.size_bytes:
        return False
    return (int(header.header_offset[0]), int(header.crc[0])) == (mark.base_offset, mark.crc)


def logs_before(partition: FollowedPartition) -> Iterator[LogUnit]:
    """The logs of a partition up to its place."""
    place = partition.place
    if place is None:
        return
    for log in every_log_of(partition.listed):
        base_offset = log.location.base_offset
        if base_offset == place.segment_base_offset:
            yield replace(log, end=place.position)
        elif base_offset is not None and base_offset < place.segment_base_offset:
            yield log
