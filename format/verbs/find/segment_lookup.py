"""One segment opened for look-ups: the floor entry of its offset index, its batch headers, and the records of a batch.

An index is only a hint. Its floor entry is used if the batch headers lead from the entry before it to its position.
Otherwise the scan starts at the segment's first byte, which is always a batch boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import InvalidIndex, KafkaLogError
from format.files import offset_index
from format.files.offset_index import OffsetPosition
from format.findings import Finding, finding, finding_of
from format.io.remote_path import path_of
from format.io.source import FileSource
from format.layout import NO_TIMESTAMP, OFFSET_INDEX_ENTRY
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.node.partition import Partition
from format.node.segment import Segment
from format.scan.protocol import LogUnit
from format.scan.read_log import crc_findings, tail_finding
from format.verbs.find.lookup_scan import BatchPlace, HeaderScan
from format.verbs.find.outlined_records import outlined_table
from format.verbs.find.trace import Match, MatchedBatch, TraceStep
from format.wording import counted_plainly

#: How much of a log's end is read at once for the headers of its last batches.
END_READ_BYTES = 512
_TORN = ("tail-torn", "tail-zeros")
_NOT_TORN = 2**63


class OffsetFloor(msgspec.Struct, frozen=True):
    """Where a scan for an offset starts: a batch boundary, the index entry it comes from, and a description."""

    position: int
    entry: OffsetPosition | None
    detail: str


class FoundRecord(msgspec.Struct, frozen=True):
    """A record's row in its table, and its batch."""

    place: BatchPlace
    records: RecordTable
    row: int

    @property
    def offset(self) -> int:
        return int(self.records.offset[self.row])


class SearchedBatch(msgspec.Struct):
    """The result of a search in one batch: the first wanted record, and whether all records could be read."""

    found: FoundRecord | None = None
    is_complete: bool = False
    has_records: bool = False


class LookupSegment:
    """A live segment's files, opened when they are needed; ``bytes_read`` counts what was read from all of them."""

    def __init__(self, partition: Partition, segment: Segment, next_base_offset: int | None, limits: Limits) -> None:
        self.segment = segment
        self.base_offset = segment.base_offset
        self.next_base_offset = next_base_offset
        self.location = partition.location(segment.log, segment.base_offset)
        self.limits = limits
        self._sources: dict[str, FileSource] = {}
        self._closed_bytes_read = 0
        self._torn_end: int | None = None  # the end offset of a torn log, once it was looked for

    @property
    def bytes_read(self) -> int:
        return self._closed_bytes_read + sum(source.bytes_read for source in self._sources.values())

    def close(self) -> None:
        """Close the files; they are opened again when they are needed again."""
        self._closed_bytes_read = self.bytes_read
        for source in self._sources.values():
            source.close()
        self._sources.clear()

    def source(self, path: Path) -> FileSource:
        """One of the segment's files; raises UnreadableFile."""
        name = str(path)  # paths take longer to compare
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = FileSource(path)
        return source

    @property
    def unit(self) -> LogUnit:
        """The ``.log`` and what is known of its place in the partition."""
        return LogUnit(self.segment.log or path_of(self.location.path), self.location, None, self.next_base_offset)

    @property
    def log(self) -> FileSource:
        """The ``.log``; raises UnreadableFile."""
        if self.segment.log is None:
            raise ValueError("a live segment has a log")
        return self.source(self.segment.log)

    def at(
        self, path: Path, position: int | None = None, length: int | None = None, offset: int | None = None
    ) -> Location:
        """A place in one of the segment's files."""
        place = self.location
        return Location(str(path), place.topic, place.partition, place.base_offset, position, length, offset)

    @property
    def modified_ms(self) -> int:
        """When the ``.log`` was changed last, in ms."""
        return self.log.mtime_ns // 1_000_000

    # -- the offset index --------------------------------------------------------------------------------------

    def floor(self, offset: int) -> Generator[Finding, None, OffsetFloor]:
        """Where a scan for the offset starts (storage OffsetIndex.lookup); yields findings about wrong entries."""
        path = self.segment.offset_index
        if path is None:
            return OffsetFloor(0, None, "there is no .index: the scan starts at position 0")
        try:
            index = self.source(path)
            entry = offset_index.floor_entry(index, self.base_offset, offset)
            if entry is None:
                return OffsetFloor(0, None, f"no entry at or below offset {offset}: the scan starts at position 0")
            before = self._entry(index, entry.entry_number - 1) if entry.entry_number else None
        except KafkaLogError as error:
            yield finding_of(error, self.at(path))
            return OffsetFloor(0, None, "the index cannot be used: the scan starts at position 0")
        words = f"entry ({entry.offset - self.base_offset}, {entry.position})"
        if self._leads_to(before, entry):
            detail = f"{words}: offset {entry.offset}, the scan starts at position {entry.position}"
            return OffsetFloor(entry.position, entry, detail)
        is_right = True
        for each in filter(None, (before, entry)):
            # Following the headers from the first byte on does not depend on other entries.
            if not self._leads_to(None, each):
                is_right = is_right and each is not entry
                if not self.has_lost(each.offset):
                    yield self._mismatch(path, each)
        if is_right:
            return OffsetFloor(entry.position, entry, f"{words}: offset {entry.offset}, checked from position 0 on")
        return OffsetFloor(0, entry, f"{words} is wrong: the scan starts at position 0")

    def _entry(self, index: FileSource, number: int) -> OffsetPosition:
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        relative_offset, position = OFFSET_INDEX_ENTRY.struct.unpack(index.read_at(number * size_bytes, size_bytes))
        if relative_offset < 0 or position < 0:
            place = Location(index.path, position=number * size_bytes, length=size_bytes)
            raise InvalidIndex(f"entry {number} has relative offset {relative_offset} and position {position}", place)
        return OffsetPosition(number, self.base_offset + relative_offset, position)

    def _leads_to(self, before: OffsetPosition | None, entry: OffsetPosition) -> bool:
        """Whether the headers from the entry before, or from the first byte, lead to a batch that fits the entry."""
        start = 0 if before is None else before.position
        if not start <= entry.position < self.log.size_bytes:
            return False
        previous: BatchPlace | None = None
        for batches in self.scan(start):
            positions = batches.table.position
            row = int(np.searchsorted(positions, entry.position))
            if row == len(positions):
                previous = batches.place(row - 1)
                continue
            place = batches.place(row)
            if place.position != entry.position:
                return False
            if row:
                previous = batches.place(row - 1)
            # An entry has the largest offset of the append that starts there; that of a 0.8 broker has the smallest.
            # A compressed message's header does not hold its first offset, but the message before it ends below that.
            if place.base_offset is not None:
                return self.base_offset <= place.base_offset <= entry.offset
            return previous is None or previous.last_offset < entry.offset
        return False

    def _mismatch(self, path: Path, entry: OffsetPosition) -> Finding:
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        return finding(
            "offset-index-mismatch",
            self.at(path, entry.entry_number * size_bytes, size_bytes, entry.offset),
            f"entry ({entry.offset - self.base_offset}, {entry.position}) leads to no batch that starts at or below "
            f"offset {entry.offset}; it was not used",
            actual=entry.position,
        )

    # -- the log -----------------------------------------------------------------------------------------------

    def has_lost(self, offset: int) -> bool:
        """Whether the log ends, torn, before this offset.

        Index entries for what is lost are not wrong: a broker wrote them before the crash, and drops them at its start.
        """
        if self._torn_end is None:
            end_offset, scan = self.base_offset, self.scan()
            for batches in scan:
                end_offset = batches.table.last_offset_of(len(batches.table) - 1) + 1
            is_torn = any(each.code in _TORN for each in scan.findings)
            self._torn_end = end_offset if is_torn else _NOT_TORN
        return offset >= self._torn_end

    def scan(self, start: int = 0) -> HeaderScan:
        """The batch headers from a batch boundary on."""
        return HeaderScan(self.log, start, unit=self.unit, limits=self.limits)

    def scan_of_end(self, start: int) -> HeaderScan:
        """The same where few batches follow: each read is as short as two headers may need."""
        return HeaderScan(self.log, start, unit=self.unit, limits=self.limits, read_bytes=END_READ_BYTES)

    def batch_of(self, offset: int) -> Generator[Finding, None, BatchPlace | None]:
        """The first batch whose last offset is at or past this one, found through the index."""
        floor = yield from self.floor(offset)
        scan = self.scan(floor.position)
        place = next(scan.places_from(offset), None)
        yield from scan.findings
        return place

    def first_record(
        self, place: BatchPlace, is_wanted: Callable[[RecordTable], NDArray[np.bool_]], *, by_time: bool = True
    ) -> Generator[Finding, None, SearchedBatch]:
        """The first record of one batch that ``is_wanted`` selects. The whole batch is read, table by table.

        ``by_time``: ``is_wanted`` needs the timestamps.
        """
        searched = SearchedBatch()
        bundled = self.log.bundled
        if bundled is not None and bundled.has_only_headers:
            where = BatchRange(place.position, place.end_position)
            records = outlined_table(self.log, bundled, where, self.limits, self.location, by_time=by_time)
            rows = np.flatnonzero(is_wanted(records))
            found = FoundRecord(place, records, int(rows[0])) if len(rows) else None
            return SearchedBatch(found, is_complete=True, has_records=len(records) > 0)
        for chunk in batch_chunks(self.log, BatchRange(place.position, place.end_position), limits=self.limits):
            if chunk.damage is not None:
                yield tail_finding(self.log, chunk, self.unit)
                return searched
            yield from crc_findings(chunk, self.unit)
            searched.is_complete = True
            everything = np.ones(len(chunk.table), bool)
            is_intact = bool((chunk.table.crc_valid == 1).all())
            for table in record_tables(chunk, which=everything, limits=self.limits, location=self.location):
                for problem in table.problems:
                    defect = finding_of(problem.error, self.location)
                    if is_intact or defect.is_incomplete:  # a wrong CRC explains all other problems of the batch
                        yield defect
                    searched.is_complete = False
                searched.has_records |= len(table) > 0
                if searched.found is None:
                    rows = np.flatnonzero(is_wanted(table))
                    searched.found = FoundRecord(place, table, int(rows[0])) if len(rows) else None
        return searched

    # -- steps and results -------------------------------------------------------------------------------------

    def segment_step(self, detail: str) -> TraceStep:
        """The step that reached this segment."""
        where = self.location.at(offset=self.base_offset)
        return TraceStep("segment", where, f"segment {self.base_offset}{detail}")

    def floor_step(self, floor: OffsetFloor) -> TraceStep:
        """The step that looked into the offset index."""
        path, entry = self.segment.offset_index, floor.entry
        if path is None:
            return TraceStep("offset_index", self.location, floor.detail)
        if entry is None:
            return TraceStep("offset_index", self.at(path), floor.detail)
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        where = self.at(path, entry.entry_number * size_bytes, size_bytes, entry.offset)
        return TraceStep("offset_index", where, floor.detail)

    def scan_step(self, scan: HeaderScan, found: FoundRecord | None, goal: str) -> TraceStep:
        """The step that scanned the log, up to the batch of the record found or to the end."""
        end_position = self.log.size_bytes if found is None else found.place.end_position
        detail = f"bytes {scan.start} to {end_position}, {counted_plainly(scan.count_before(end_position), 'batch')}: "
        if found is None:
            where = self.location.at(scan.start, end_position - scan.start)
            return TraceStep("scan", where, f"{detail}no record {goal}")
        where = self.location.at(found.place.position, found.place.size_bytes, found.offset)
        return TraceStep("scan", where, f"{detail}{found.place.words} has the first record {goal}")

    def match(self, found: FoundRecord) -> Match:
        """The record found, as a match."""
        batches, row = found.records.batches, int(found.records.batch[found.row])
        leader_epoch = int(batches.leader_epoch[row])
        timestamp = int(found.records.timestamp[found.row])
        is_unknown = self.log.bundled is not None and timestamp == NO_TIMESTAMP
        return Match(
            self.location.at(found.place.position, found.place.size_bytes, found.offset),
            None if found.place.magic == 0 or is_unknown else timestamp,
            leader_epoch if found.place.magic == 2 else None,
            batch=MatchedBatch(
                int(batches.base_offset[row]),
                bool(batches.is_control[row]),
                bool(batches.is_transactional[row]),
                int(batches.producer_id[row]),
                int(batches.producer_epoch[row]),
                bool(batches.crc_valid[row]),
            ),
            file_written_at=self.log.mtime_ns // 1_000_000,
        )
