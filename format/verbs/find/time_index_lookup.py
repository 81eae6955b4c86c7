"""Look-ups by time in one segment: its largest timestamp, and the first record at or after a time.

A time index is only a hint. An entry is used if its timestamp is the largest of the batch that holds its offset.
Otherwise the headers are scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.files import offset_index, time_index
from format.files.time_index import TimestampOffset
from format.findings import Finding, finding, finding_of
from format.io.session import is_on_disk
from format.io.source import FileSource
from format.kernel.headers import HOP_STOPS, hop
from format.layout import MESSAGE_V0, NO_TIMESTAMP, TIME_INDEX_ENTRY
from format.location import Location
from format.log.batch_table import BATCH_COLUMN
from format.node.offsets import PartitionOffsets
from format.timestamps import iso_time
from format.verbs.boot.one_log.batches import CorruptRecords
from format.verbs.find.broker_search import BrokerSearch
from format.verbs.find.lookup import FoundRecord
from format.verbs.find.segment_lookup import (
    END_READ_BYTES,
    NO_NEXT_OFFSET,
    BatchByHeader,
    LookupScan,
    LookupSegment,
    SearchedBatch,
    is_in_order,
)
from format.wording import counted_plainly

_MOST_READS = 4
_PLAIN_STOPS = (HOP_STOPS.index("end"), HOP_STOPS.index("more-bytes"))
_rows = np.empty((END_READ_BYTES // MESSAGE_V0.size_bytes + 1, len(BATCH_COLUMN)), np.int64)
_status = np.zeros(3, np.int64)


def confirms_last_entry(segment: LookupSegment, start: int, entry: TimestampOffset) -> bool:
    """Whether sound v2 batches in offset order lead from ``start`` to the end of the log, and the entry is of them.

    That is so if one of them spans its offset and has its timestamp, and none has a larger one. False for logs that are
    not on a disk.
    """
    log = segment.log
    if not is_on_disk(log.place):
        return False
    bytes_read = log.bytes_read
    is_confirmed = _are_confirming(_headers_to_end(log, start), segment, entry)
    if not is_confirmed:
        log.bytes_read = bytes_read  # the scan reads these bytes again, and counts them
    return is_confirmed


def _are_confirming(rows: list[list[int]], segment: LookupSegment, entry: TimestampOffset) -> bool:
    """Whether the last batches of a log are sound, and one of them is the entry's."""
    base, delta, timestamp, magic = (
        BATCH_COLUMN[name] for name in ("base_offset", "last_offset_delta", "max_timestamp", "magic")
    )
    after = NO_NEXT_OFFSET if segment.next_base_offset is None else segment.next_base_offset
    is_confirmed = False
    for row in reversed(rows):
        last_offset = row[base] + row[delta]
        if row[magic] != 2 or row[timestamp] > entry.timestamp:
            return False
        if not is_in_order(segment.base_offset, (row[base], last_offset), after):
            return False
        is_confirmed |= row[base] <= entry.offset <= last_offset and row[timestamp] == entry.timestamp
        after = row[base]
    return is_confirmed


def _headers_to_end(log: FileSource, start: int) -> list[list[int]]:
    """The rows of the headers from a position on, if the last batch ends with the log; none otherwise."""
    rows: list[list[int]] = []
    position = start
    _status[2] = 0
    for _ in range(_MOST_READS):
        buffer = memoryview(log.read_at(position, END_READ_BYTES))
        count = hop(buffer, 0, len(buffer), position, memoryview(_rows), 0, memoryview(_status))
        stop, length, _ = _status.tolist()
        if not count or stop not in _PLAIN_STOPS:
            return []
        rows += _rows[:count].tolist()
        position += length
        if position >= log.size_bytes:
            return rows if position == log.size_bytes else []
    return []


class LargestTimestamp(msgspec.Struct, frozen=True):
    """A segment's largest timestamp in ms (-1 for none), an offset of the first batch with it, and their source.

    ``in_index`` is that of an entry of the time index that the log contradicts, -1 for none. ``is_of_damaged_log``: the
    whole log was read for it, and is damaged.
    """

    timestamp: int
    offset: int
    detail: str
    in_index: int = NO_TIMESTAMP
    is_of_damaged_log: bool = False


def largest_timestamp(
    segment: LookupSegment, offsets: PartitionOffsets, at_least: int | None = None
) -> LargestTimestamp:
    """The segment's largest timestamp, equal to LogSegment.maxTimestampSoFar after a broker's start.

    The last time index entry has it when the segment was closed. Where the index is missing, still preallocated or
    contradicted by the log, the batch headers are read. With ``at_least``, an entry that reaches it is enough.
    Of an index that a broker's start builds again, it is not reported what is missing.
    """
    path = segment.segment.time_index
    is_kept = not offsets.is_broker_running and offsets.keeps_indexes(segment.next_base_offset)
    if path is None:
        if is_kept and segment.segment.offset_index is not None and segment.log.size_bytes:
            message = "there is no .timeindex: a broker makes an empty one, and looks for no time past this segment"
            segment.report(finding("index-missing", segment.location, message))
        return _scanned_largest(segment, "there is no .timeindex")
    try:
        index = segment.source(path)
        entry = time_index.floor_entry(index, segment.base_offset, None)
        is_trimmed = _is_trimmed(index, entry)
    except KafkaLogError as error:
        segment.report(finding_of(error, segment.at(path)))
        return _scanned_largest(segment, "the time index cannot be used")
    if is_kept and not is_trimmed and not index.size_bytes % TIME_INDEX_ENTRY.size_bytes:
        segment.report(_mismatch(segment.at(path), "the index ends in zeros, to a broker an entry of 1970-01-01"))
    if entry is None:
        largest = _scanned_largest(segment, "the time index has no entry")
        is_rebuilt = offsets.rebuilds_indexes(segment.next_base_offset)
        if is_trimmed and largest.timestamp != NO_TIMESTAMP and not is_rebuilt:
            words = f"the index has no entry, but the segment's largest timestamp is {iso_time(largest.timestamp)}"
            segment.report(_mismatch(segment.at(path), words))
        return largest
    detail = f"largest timestamp {iso_time(entry.timestamp)}, of the last entry"
    largest = LargestTimestamp(entry.timestamp, entry.offset, detail)
    if is_trimmed and _ends_with(segment, entry):
        return largest
    place = segment.batch_of(entry.offset)
    if place is None or not _is_of(entry, place):
        scanned = _scanned_largest(segment, f"the log contradicts the last entry {_shown(segment, entry)}")
        is_lost = segment.has_lost(entry.offset)
        if scanned.is_of_damaged_log and not is_lost and (place is None or not place.spans(entry.offset)):
            if scanned.timestamp <= entry.timestamp:
                return replace(largest, detail=f"{detail}, whose batch may be damaged")
            return scanned
        if scanned.timestamp != entry.timestamp and not is_lost:
            why = f"the segment's largest timestamp is {iso_time(scanned.timestamp)}"
            if scanned.timestamp == NO_TIMESTAMP:
                why = "no batch of the segment has a timestamp"
            segment.report(_entry_mismatch(segment, path, entry, why))
        return replace(scanned, in_index=entry.timestamp)
    if at_least is not None and entry.timestamp >= at_least:
        return largest
    later = _later_largest(segment, place, is_trimmed)
    if later is None:
        return largest
    largest_words = iso_time(later.max_timestamp)
    if is_trimmed:
        segment.report(_entry_mismatch(segment, path, entry, f"a later batch has timestamp {largest_words}"))
    detail = f"last entry {_shown(segment, entry)}, and after it a batch with the largest timestamp {largest_words}"
    return LargestTimestamp(later.max_timestamp, later.last_offset, detail)


def _is_trimmed(index: FileSource, last: TimestampOffset | None) -> bool:
    """Whether a broker closed the index: it ends with an entry, and no preallocated slot is left."""
    size_bytes = TIME_INDEX_ENTRY.size_bytes
    if index.size_bytes % size_bytes:
        return False
    if last is not None:
        return (last.entry_number + 1) * size_bytes == index.size_bytes
    return index.size_bytes == 0 or any(index.read_at(index.size_bytes - size_bytes, size_bytes))


def _is_of(entry: TimestampOffset, place: BatchByHeader) -> bool:
    """Whether a time index entry is what a broker would have written for this batch.

    Releases before 0.11 index the timestamps of producers even where they store messages of format 0, without them.
    """
    return place.spans(entry.offset) and (place.magic == 0 or place.max_timestamp == entry.timestamp)


def _scanned_largest(segment: LookupSegment, why: str) -> LargestTimestamp:
    scan = segment.scan()
    place = _larger_in(scan, NO_TIMESTAMP)
    segment.report(*scan.findings)
    detail = f"{why}; {counted_plainly(scan.batch_count, 'batch header')}: "
    timestamp, offset = NO_TIMESTAMP, segment.base_offset
    words = "no timestamp"
    if place is not None:
        timestamp, offset = place.max_timestamp, place.last_offset
        words = f"largest timestamp {iso_time(timestamp)}"
    return LargestTimestamp(timestamp, offset, f"{detail}{words}", is_of_damaged_log=scan.damaged_from is not None)


def _larger_in(scan: LookupScan, timestamp: int) -> BatchByHeader | None:
    """The first batch of the scan with its largest timestamp, if that is larger than this one."""
    found: BatchByHeader | None = None
    for batches in scan:
        row = int(np.argmax(batches.table.max_timestamp))
        if int(batches.table.max_timestamp[row]) > timestamp:
            found = batches.place(row)
            timestamp = found.max_timestamp
    return found


def _ends_with(segment: LookupSegment, entry: TimestampOffset) -> bool:
    """Whether the entry's batch is one of the last few of the closed segment, and none of these has a larger timestamp.

    This is so where timestamps rise; it takes one read at the segment's end.
    """
    start = _last_indexed_position(segment)
    if start is None:
        return False
    if confirms_last_entry(segment, start, entry):
        return True
    is_there = False
    scan = segment.scan(start, END_READ_BYTES)
    for batches in scan:
        if int(batches.table.max_timestamp.max()) > entry.timestamp:
            return False
        row = int(np.argmax(batches.table.last_offset >= entry.offset))
        is_there = is_there or _is_of(entry, batches.place(row))
    return is_there and not scan.findings


def _later_largest(segment: LookupSegment, place: BatchByHeader, is_trimmed: bool) -> BatchByHeader | None:
    """The first batch with the largest timestamp of all after this one, if that is larger than its own."""
    start = _last_indexed_position(segment) if is_trimmed else None
    if start is not None and start > place.end_position:
        scan = segment.scan(start)
        if _larger_in(scan, place.max_timestamp) is None and not scan.findings:
            return None
    scan = segment.scan(place.end_position)
    later = _larger_in(scan, place.max_timestamp)
    segment.report(*scan.findings)
    return later


def _last_indexed_position(segment: LookupSegment) -> int | None:
    """The last position in the offset index, 0 for an index without entries, None for an unusable one.

    Both indexes get their entries at the same time. So no batch before that position has a larger timestamp than the
    last time index entry, and only the few batches after it need to be read in a closed segment.
    """
    path = segment.segment.offset_index
    if path is None:
        return None
    try:
        last = offset_index.floor_entry(segment.source(path), segment.base_offset, None)
    except KafkaLogError:
        return None  # look-ups by offset report it
    if last is None:
        return 0
    return last.position if last.position < segment.log.size_bytes else None


def first_record_at(
    segment: LookupSegment, broker: BrokerSearch, timestamp: int, starting_offset: int
) -> tuple[FoundRecord | None, str]:
    """The first record with a timestamp and an offset at or past these (LogSegment.findOffsetByTimestamp).

    Also returns what a broker's search comes to first that cannot be read, in words; empty for nothing.
    """
    path = segment.segment.time_index
    entry = trusted = None
    if path is None:
        segment.lookup.step("time_index", segment.location, "there is no .timeindex")
    else:
        entry, trusted = _time_floor(segment, path, timestamp)
    scan = segment.scan_from(max(starting_offset, segment.base_offset if trusted is None else trusted.offset))
    searched: SearchedBatch | None = None
    unreadable: BatchByHeader | None = None
    for place in _places_at(scan, timestamp):
        searched = segment.first_record(
            place, lambda records: (records.timestamp >= timestamp) & (records.offset >= starting_offset)
        )
        if searched.match is not None:
            break
        if not searched.is_complete:
            unreadable = unreadable or place
    segment.report(*scan.findings)
    found = None if searched is None else searched.match
    segment.scan_step(scan, f"at or after {iso_time(timestamp)}", searched)
    if path is not None and entry is not None and trusted is None:
        _report_misled(segment, path, entry, found)
    if scan.damaged_from is None:
        return found, "" if unreadable is None else unreadable.words
    try:
        offset = broker.first_at(timestamp, starting_offset, scan.start, found)
    except CorruptRecords as error:
        if unreadable is not None and unreadable.position == error.position:
            return found, unreadable.words
        return found, f"the damage at position {error.position}"
    if offset == (None if found is None else found.location.offset):
        return found, ""
    if offset is None:
        return found, f"the damage at position {scan.damaged_from}"
    return found, f"the batch of offset {offset}, with which it answers,"


def _places_at(scan: LookupScan, timestamp: int) -> Iterator[BatchByHeader]:
    """The batches of the scan whose largest timestamp is at or past this one, in order."""
    for batches in scan:
        for row in np.flatnonzero(batches.table.max_timestamp >= timestamp).tolist():
            yield batches.place(row)


def _time_floor(
    segment: LookupSegment, path: Path, timestamp: int
) -> tuple[TimestampOffset | None, TimestampOffset | None]:
    """The time index entry at or below the timestamp, and the same entry again where the log confirms it, else None."""
    try:
        entry = time_index.floor_entry(segment.source(path), segment.base_offset, timestamp)
    except KafkaLogError as error:
        segment.report(finding_of(error, segment.at(path)))
        segment.lookup.step("time_index", segment.at(path), "the index cannot be used")
        return None, None
    if entry is None:
        segment.lookup.step("time_index", segment.at(path), f"no entry at or below {iso_time(timestamp)}")
        return None, None
    where = _entry_location(segment, path, entry)
    place = segment.batch_of(entry.offset)
    if place is None or not _is_of(entry, place):
        segment.lookup.step(
            "time_index", where, f"entry {_shown(segment, entry)}: the log contradicts it, so it is not used"
        )
        return entry, None
    detail = f"entry {_shown(segment, entry)}: no larger timestamp up to offset {entry.offset}"
    segment.lookup.step("time_index", where, detail)
    return entry, entry


def _report_misled(segment: LookupSegment, path: Path, entry: TimestampOffset, found: FoundRecord | None) -> None:
    """A finding about an entry that the log contradicts: an error if using it would miss the record."""
    if segment.has_lost(entry.offset):
        return
    floor = segment.floor(entry.offset)
    where = None if found is None else found.location
    if where is not None and (where.position or 0) < floor.position:
        segment.report(_entry_mismatch(segment, path, entry, f"it would miss the record at offset {where.offset}"))
    else:
        where = _entry_location(segment, path, entry)
        words = "the batch of that offset has another largest timestamp; it was not used"
        segment.report(finding("time-index-imprecise", where, f"entry {_shown(segment, entry)}: {words}"))


def _shown(segment: LookupSegment, entry: TimestampOffset) -> str:
    return f"({iso_time(entry.timestamp)}, {entry.offset - segment.base_offset})"


def _entry_location(segment: LookupSegment, path: Path, entry: TimestampOffset) -> Location:
    size_bytes = TIME_INDEX_ENTRY.size_bytes
    return segment.at(path, entry.entry_number * size_bytes, size_bytes, entry.offset)


def _entry_mismatch(segment: LookupSegment, path: Path, entry: TimestampOffset, why: str) -> Finding:
    return _mismatch(_entry_location(segment, path, entry), f"entry {_shown(segment, entry)} is wrong: {why}")


def _mismatch(where: Location, message: str) -> Finding:
    return finding("time-index-mismatch", where, message)
