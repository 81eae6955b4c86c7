"""One segment opened for look-ups: the floor entry of its offset index, its batch headers, and the records of a batch.

An index is only a hint. Its floor entry is used if the batch headers lead from the entry before it to its position.
Otherwise the scan starts at the segment's first byte, which is always a batch boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import InvalidIndex, KafkaLogError, NotInBundle
from format.files import offset_index
from format.files.offset_index import OffsetPosition
from format.findings import Finding, finding, finding_of
from format.io.session import path_of
from format.io.source import FileSource, HeadersOnly
from format.layout import MAX_RELATIVE_OFFSET, NO_TIMESTAMP, OFFSET_INDEX_ENTRY
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BATCH_COLUMN, BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RECORD_COLUMN, RecordTable
from format.log.walker import HEADER_CHUNK_BYTES, batch_chunks, header_chunks
from format.node.partition import Partition, Segment
from format.scan.protocol import LogUnit
from format.scan.read_log import IntactElsewhere, crc_findings, tail_finding
from format.verbs.find.lookup import FoundRecord, LookupResult, MatchedBatch
from format.wording import counted_plainly

#: A broker adds an index entry every 4 KiB or so; reading little at once keeps a look-up within a few KiB.
_SHORT_READ_BYTES = 1024
_SHORT_READS = 32
#: Batches above this size are skipped with short reads, however many they are.
_LARGE_BATCH_BYTES = 16 * 1024
_MAX_ORDER_FINDINGS = 20
NO_NEXT_OFFSET = 2**63 - 1
#: How much of a log's end is read at once for the headers of its last batches.
END_READ_BYTES = 512
_TORN = ("tail-torn", "tail-zeros")
_NOT_TORN = 2**63


def is_in_order(first_offset: int, offsets: tuple[int, int], next_base_offset: int) -> bool:
    """Whether a batch of this base and last offset fits between the start of the segment and the next batch."""
    most = min(next_base_offset - 1, first_offset + MAX_RELATIVE_OFFSET)
    return first_offset <= offsets[0] <= offsets[1] <= most


class BatchByHeader(msgspec.Struct, frozen=True):
    """A batch or outermost v0/v1 message, by its header; ``base_offset`` is None for a compressed message."""

    position: int
    size_bytes: int
    magic: int
    base_offset: int | None
    last_offset: int
    max_timestamp: int

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    def spans(self, offset: int) -> bool:
        """Whether the batch's offset range, records dropped by compaction included, may contain this offset."""
        return (self.base_offset is None or self.base_offset <= offset) and offset <= self.last_offset

    @property
    def words(self) -> str:
        if self.base_offset is None:
            return f"the batch at position {self.position} whose last offset is {self.last_offset}"
        return f"the batch at position {self.position} with offsets {self.base_offset} to {self.last_offset}"


class ScannedBatches(msgspec.Struct, frozen=True):
    """Some batches of a scan; ``is_ordered`` marks those in offset order with the batch after them."""

    table: BatchTable
    is_ordered: NDArray[np.bool_]

    def place(self, row: int) -> BatchByHeader:
        values = dict(zip(BATCH_COLUMN, self.table.columns[row].tolist(), strict=True))
        is_wrapper = values["record_count"] < 0 and values["magic"] < 2
        return BatchByHeader(
            values["position"],
            values["size_bytes"],
            values["magic"],
            None if is_wrapper else values["base_offset"],
            self.table.last_offset_of(row),
            values["max_timestamp"],
        )


class LookupScan:
    """The batches of a segment's log from a batch boundary on, by their headers alone.

    Collects findings on the way in ``findings``. ``batch_count`` and ``end_offset`` (the offset after the last batch
    so far, None before the first) are its progress. The location's base offset is the segment's. ``damaged_from`` is
    the position of the first damage.
    """

    def __init__(self, log: FileSource, start: int, *, unit: LogUnit, limits: Limits, read_bytes: int) -> None:
        self._log = log
        self._unit = unit
        self._location = unit.location
        self._first_offset = unit.location.base_offset or 0
        self._next_base_offset = unit.next_base_offset
        self._limits = limits
        self._read_bytes = read_bytes
        self._elsewhere = IntactElsewhere.of_log(unit, limits)
        self.start = start
        self.findings: list[Finding] = []
        self.repairable: list[tuple[tuple[int, int], Finding]] = []  # offsets behind a damaged header, and its finding
        self.damaged_from: int | None = None
        self._damaged: list[range] = []  # positions
        self.batch_count = 0
        self.end_offset: int | None = None
        self._positions = np.empty(0, np.int64)

    def __iter__(self) -> Iterator[ScannedBatches]:
        """The batches in log order; each is held back until the header after it is known."""
        held = BatchTable.empty()
        for table in self._tables():
            known = BatchTable.concatenated([held, table]) if len(held) else table
            if len(known) > 1:
                yield self._ordered(known.rows(slice(0, -1)), known.base_offset[1:])
            held = known.rows(slice(-1, None))
        if len(held):
            next_base_offset = NO_NEXT_OFFSET if self._next_base_offset is None else self._next_base_offset
            yield self._ordered(held, np.array([next_base_offset], np.int64))

    def _tables(self) -> Iterator[BatchTable]:
        """Short reads first, since the target is usually near; longer ones after many small batches."""
        position, read_bytes = self.start, self._read_bytes
        reads = batch_count = 0
        is_done = False
        while not is_done:
            is_done = True
            for chunk in header_chunks(self._log, BatchRange(position), limits=self._limits, chunk_bytes=read_bytes):
                if chunk.damage is None:
                    position = int(chunk.headers.end_position[-1])
                else:
                    damage = chunk.damage
                    self.damaged_from = damage.position if self.damaged_from is None else self.damaged_from
                    self._damaged.append(range(damage.position, damage.position + damage.length))
                    found = tail_finding(self._log, chunk, self._unit)
                    self.findings += self._elsewhere.counted(found)
                    if chunk.damage.readable is not None:
                        self.repairable.append((chunk.damage.readable, found))
                    position = chunk.damage.position + chunk.damage.length
                if len(chunk.headers):
                    yield chunk.headers.unopened()
                reads += 1
                batch_count += len(chunk.headers)
                is_dense = position - self.start < _LARGE_BATCH_BYTES * batch_count
                if reads >= _SHORT_READS and is_dense and read_bytes < HEADER_CHUNK_BYTES:
                    read_bytes, is_done = HEADER_CHUNK_BYTES, False
                    break

    def is_damaged_at(self, position: int) -> bool:
        """Whether a position that the scan has passed lies in damage."""
        return any(position in each for each in self._damaged)

    def is_out_of_order(self, offset: int) -> bool:
        """Whether the log was found damaged, and an intact batch has the offset in a place where it does not fit."""
        return self.damaged_from is not None and not self._elsewhere.taken_from([(offset, offset)])[0]

    def _ordered(self, table: BatchTable, next_base_offsets: NDArray[np.int64]) -> ScannedBatches:
        is_ordered = self._are_ordered(table, next_base_offsets)
        for row in np.flatnonzero(~is_ordered).tolist():
            if len(self.findings) < _MAX_ORDER_FINDINGS:
                self.findings.append(self._order_finding(table, row, int(next_base_offsets[row])))
        self.batch_count += len(table)
        self._positions = table.position
        self.end_offset = table.last_offset_of(len(table) - 1) + 1
        return ScannedBatches(table, is_ordered)

    def _are_ordered(self, table: BatchTable, next_base_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which batches are in order. One batch, as look-ups mostly read it, is compared without columns."""
        if len(table) == 1:
            offsets = int(table.base_offset[0]), table.last_offset_of(0)
            return np.array([is_in_order(self._first_offset, offsets, int(next_base_offsets[0]))])
        base_offset, last_offset = table.base_offset, table.last_offset
        is_ordered = base_offset >= self._first_offset
        is_ordered &= last_offset >= base_offset
        is_ordered &= last_offset < next_base_offsets
        is_ordered &= last_offset - self._first_offset <= MAX_RELATIVE_OFFSET
        return is_ordered

    def count_before(self, position: int) -> int:
        """How many of the scanned batches start before this position, which must not lie far back."""
        return self.batch_count - int(np.count_nonzero(self._positions >= position))

    def _order_finding(self, table: BatchTable, row: int, next_base_offset: int) -> Finding:
        first, last, end = int(table.base_offset[row]), table.last_offset_of(row), self._next_base_offset
        where = self._location.at(int(table.position[row]), int(table.size_bytes[row]), first)
        message = f"the batch has offsets {first} to {last}"
        most = self._first_offset + MAX_RELATIVE_OFFSET if end is None else end - 1
        if not self._first_offset <= first <= last <= most:
            message += f", its segment may have those from {self._first_offset} to {most}"
            return finding("offset-out-of-segment", where, message)
        return finding("offset-not-increasing", where, f"{message}, the one after it starts at {next_base_offset}")

    def places_from(self, offset: int) -> Iterator[BatchByHeader]:
        """The batches whose last offset is at or past this one, in order.

        The CRC does not cover the base offset. So a batch out of offset order is yielded only if no batch in order
        spans the offset; it then comes first.
        """
        doubtful: BatchByHeader | None = None
        is_first = True
        for batches in self:
            for row in np.flatnonzero(batches.table.last_offset >= offset).tolist():
                place = batches.place(row)
                if not batches.is_ordered[row]:
                    if is_first and doubtful is None and place.spans(offset):
                        doubtful = place
                    continue
                if is_first and doubtful is not None and not place.spans(offset):
                    yield doubtful
                is_first = False
                yield place
        if is_first and doubtful is not None:
            yield doubtful


def outlined_table(
    log: FileSource, bundled: HeadersOnly, batch_range: BatchRange, limits: Limits, location: Location, *, by_time: bool
) -> RecordTable:
    """The records of one batch; unknown timestamps are -1.

    Raises NotInBundle for unknown offsets, or, ``by_time``, times.
    """
    headers = next(header_chunks(log, batch_range, limits=limits)).headers.rows(slice(0, 1))
    table = headers.with_crcs(np.ones(1, np.int8)).unopened()
    found = bundled.outline(batch_range.start) or _from_header(table, bundled, by_time)
    if found is None:
        first, last = int(table.base_offset[0]), table.last_offset_of(0)
        what = "timestamps" if by_time else "offsets"
        raise NotInBundle(
            f"the bundle does not hold the {what} of the records of this batch, offsets {first} to {last}",
            location.at(position=int(table.position[0]), length=int(table.size_bytes[0]), offset=first),
        )
    if table.is_wrapper[0]:
        first, last, count = np.array([[found[0][0]], [found[0][-1]], [len(found[0])]], np.int64)
        table = table.with_contents(np.array([0]), first, last, count)
    columns = np.zeros((len(found[0]), len(RECORD_COLUMN)), np.int64)
    columns[:, RECORD_COLUMN["offset"]], columns[:, RECORD_COLUMN["timestamp"]] = found
    columns[:, RECORD_COLUMN["key_length"]] = columns[:, RECORD_COLUMN["value_length"]] = -1
    return RecordTable(table, memoryview(b""), columns)


def _from_header(table: BatchTable, bundled: HeadersOnly, by_time: bool) -> tuple[list[int], list[int]] | None:
    """Offsets and timestamps from a header alone: of a batch without gaps, whose records share a timestamp.

    For a compressed v0/v1 message the bundle has the first offset.
    """
    first, last = int(table.base_offset[0]), table.last_offset_of(0)
    timestamp = int(table.max_timestamp[0])
    if table.magic[0] < 2 and not table.is_wrapper[0]:
        return [first], [timestamp]
    count = int(table.record_count[0])
    if table.is_wrapper[0]:
        first, count = bundled.inner_offsets(table.position)[0].tolist()
    if first < 0 or count != last - first + 1 or count > layout.MAX_RELATIVE_OFFSET // 64:
        return None
    is_known = count == 1 or bool(table.is_append_time[0])
    if by_time and not is_known:
        return None
    return list(range(first, last + 1)), [timestamp if is_known else layout.NO_TIMESTAMP] * count


class OffsetFloor(msgspec.Struct, frozen=True):
    """Where a scan for an offset starts: a batch boundary, the index entry it comes from, and a description."""

    position: int
    entry: OffsetPosition | None
    detail: str


class SearchedBatch(msgspec.Struct):
    """The result of a search in one batch: the first wanted record, and whether all records could be read.

    ``is_intact`` if its CRC is right, so that it has no other records than those that were read.
    """

    place: BatchByHeader
    match: FoundRecord | None = None
    is_complete: bool = False
    is_intact: bool = True
    has_records: bool = False


class LookupSegment:
    """A live segment's files, opened when they are needed; ``bytes_read`` counts what was read from all of them."""

    def __init__(self, lookup: LookupResult, partition: Partition, segment: Segment, limits: Limits) -> None:
        self.lookup = lookup
        self.segment = segment
        self.base_offset = segment.base_offset
        # of one that the next overlaps, the whole log is searched, as its time index is of all of it
        self.next_base_offset = partition.next_base_offset(segment) if segment.end is None else None
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

    def floor(self, offset: int) -> OffsetFloor:
        """Where a scan for the offset starts (storage OffsetIndex.lookup). Wrong entries are reported."""
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
            self.report(finding_of(error, self.at(path)))
            return OffsetFloor(0, None, "the index cannot be used: the scan starts at position 0")
        words = f"entry ({entry.offset - self.base_offset}, {entry.position})"
        if self._leads_to(before, entry):
            detail = f"{words}: offset {entry.offset}, the scan starts at position {entry.position}"
            return OffsetFloor(entry.position, entry, detail)
        # Following the headers from the first byte on does not depend on other entries.
        leads_to = {each: self._leads_to(None, each) for each in (before, entry) if each is not None}
        wrong = [each for each, fits in leads_to.items() if fits is False and not self.has_lost(each.offset)]
        self.report(*(self._mismatch(path, each) for each in wrong))
        if leads_to[entry]:
            return OffsetFloor(entry.position, entry, f"{words}: offset {entry.offset}, checked from position 0 on")
        if leads_to[entry] is None:
            return OffsetFloor(0, None, f"{words} leads into damage: the scan starts at position 0")
        return OffsetFloor(0, entry, f"{words} is wrong: the scan starts at position 0")

    def _entry(self, index: FileSource, number: int) -> OffsetPosition:
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        relative_offset, position = OFFSET_INDEX_ENTRY.struct.unpack(index.read_at(number * size_bytes, size_bytes))
        if relative_offset < 0 or position < 0:
            place = Location(index.path, position=number * size_bytes, length=size_bytes)
            raise InvalidIndex(f"entry {number} has relative offset {relative_offset} and position {position}", place)
        return OffsetPosition(number, self.base_offset + relative_offset, position)

    def _leads_to(self, before: OffsetPosition | None, entry: OffsetPosition) -> bool | None:
        """Whether the headers from the entry before, or from the first byte, lead to a batch that fits the entry.

        None if they lead to damage.
        """
        start = 0 if before is None else before.position
        if not start <= entry.position < self.log.size_bytes:
            return False
        previous: BatchByHeader | None = None
        for batches in (scan := self.scan(start)):
            positions = batches.table.position
            row = int(np.searchsorted(positions, entry.position))
            if row == len(positions):
                previous = batches.place(row - 1)
                continue
            place = batches.place(row)
            if place.position != entry.position:
                return None if scan.is_damaged_at(entry.position) else False
            if row:
                previous = batches.place(row - 1)
            # An entry has the largest offset of the append that starts there; that of a 0.8 broker has the smallest.
            # A compressed message's header does not hold its first offset, but the message before it ends below that.
            if place.base_offset is not None:
                return self.base_offset <= place.base_offset <= entry.offset
            return previous is None or previous.last_offset < entry.offset
        return None if scan.is_damaged_at(entry.position) else False

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

    def scan(self, start: int = 0, read_bytes: int = _SHORT_READ_BYTES) -> LookupScan:
        """The batch headers from a batch boundary on, of which the first reads have ``read_bytes``."""
        return LookupScan(self.log, start, unit=self.unit, limits=self.limits, read_bytes=read_bytes)

    def batch_of(self, offset: int) -> BatchByHeader | None:
        """The first batch whose last offset is at or past this one, found through the index."""
        scan = self.scan(self.floor(offset).position)
        place = next(scan.places_from(offset), None)
        self.report(*scan.findings)
        return place

    def first_record(
        self, place: BatchByHeader, is_wanted: Callable[[RecordTable], NDArray[np.bool_]], *, by_time: bool = True
    ) -> SearchedBatch:
        """The first record of one batch that ``is_wanted`` selects. The whole batch is read, table by table.

        ``by_time``: ``is_wanted`` needs the timestamps.
        """
        searched = SearchedBatch(place)
        where = BatchRange(place.position, place.end_position)
        bundled = self.log.headers_only
        if bundled is not None:
            records = outlined_table(self.log, bundled, where, self.limits, self.location, by_time=by_time)
            searched.is_complete, searched.has_records = True, len(records) > 0
            searched.match = self._first_match(place, records, is_wanted)
            return searched
        for chunk in batch_chunks(self.log, where, limits=self.limits):
            if chunk.damage is not None:
                self.report(tail_finding(self.log, chunk, self.unit))
                return searched
            self.report(*crc_findings(chunk, self.unit))
            searched.is_complete = True
            everything = np.ones(len(chunk.table), bool)
            is_intact = searched.is_intact = bool((chunk.table.crc_valid == 1).all())
            for table in record_tables(chunk, which=everything, limits=self.limits, location=self.location):
                for problem in table.problems:
                    defect = finding_of(problem.error, self.location)
                    if is_intact or defect.is_incomplete:  # a wrong CRC explains all other problems of the batch
                        self.report(defect)
                    searched.is_complete = False
                searched.has_records |= len(table) > 0
                searched.match = searched.match or self._first_match(place, table, is_wanted)
        return searched

    # -- steps and matches -------------------------------------------------------------------------------------

    def report(self, *findings: Finding) -> None:
        """Report what is wrong."""
        self.lookup.report(findings)

    def step(self, detail: str) -> None:
        """Add the step that reached this segment."""
        where = self.location.at(offset=self.base_offset)
        self.lookup.step("segment", where, f"segment {self.base_offset}{detail}")

    def scan_from(self, offset: int) -> LookupScan:
        """The scan for an offset; adds the step that looked into the offset index."""
        floor = self.floor(offset)
        where, path, entry = self.location, self.segment.offset_index, floor.entry
        if path is not None:
            where = self.at(path)
        if path is not None and entry is not None:
            size_bytes = OFFSET_INDEX_ENTRY.size_bytes
            where = self.at(path, entry.entry_number * size_bytes, size_bytes, entry.offset)
        self.lookup.step("offset_index", where, floor.detail)
        return self.scan(floor.position)

    def scan_step(self, scan: LookupScan, goal: str, searched: SearchedBatch | None) -> None:
        """Add the step that scanned the log: up to the batch that was searched last, if the record is in it."""
        found = searched if searched is not None and searched.match is not None else None
        end_position = self.log.size_bytes if found is None else found.place.end_position
        detail = f"bytes {scan.start} to {end_position}, {counted_plainly(scan.count_before(end_position), 'batch')}: "
        if found is None or found.match is None:
            where, words = self.location.at(scan.start, end_position - scan.start), "no record"
        else:
            where, words = found.match.location, f"{found.place.words} has the first record"
        self.lookup.step("scan", where, f"{detail}{words} {goal}")

    def _first_match(
        self, place: BatchByHeader, records: RecordTable, is_wanted: Callable[[RecordTable], NDArray[np.bool_]]
    ) -> FoundRecord | None:
        rows = np.flatnonzero(is_wanted(records))
        if not len(rows):
            return None
        batches, batch = records.batches, int(records.batch[rows[0]])
        timestamp = int(records.timestamp[rows[0]])
        is_unknown = self.log.headers_only is not None and timestamp == NO_TIMESTAMP
        return FoundRecord(
            self.location.at(place.position, place.size_bytes, int(records.offset[rows[0]])),
            None if place.magic == 0 or is_unknown else timestamp,
            int(batches.leader_epoch[batch]) if place.magic == 2 else None,
            batch=MatchedBatch(
                int(batches.base_offset[batch]),
                bool(batches.is_control[batch]),
                bool(batches.is_transactional[batch]),
                int(batches.producer_id[batch]),
                int(batches.producer_epoch[batch]),
                bool(batches.crc_valid[batch]),
            ),
            file_written_at=self.modified_ms,
        )
