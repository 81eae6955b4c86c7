"""Look-ups by time in a partition (UnifiedLog.searchOffsetInLocalLog and fetchOffsetByTimestamp)."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from msgspec.structs import replace

from format.findings import finding
from format.layout import NO_TIMESTAMP
from format.timestamps import iso_time
from format.verbs.find.bounds import Bounds
from format.verbs.find.lookup_scan import BatchPlace
from format.verbs.find.segment_lookup import LookupSegment
from format.verbs.find.time_index_lookup import LargestTimestamp, first_record_at, largest_timestamp
from format.verbs.find.trace import LookupStep, Match, NotFound, Result


def timestamp_lookup(
    segments: list[LookupSegment], bounds: Bounds, timestamp: int
) -> Generator[LookupStep, None, Result]:
    """The first record at or after a time (ms), as ListOffsets answers it.

    A broker searches only the first segment whose largest timestamp is at or past the time. For a segment without
    timestamps, such as one of format 0 messages, it takes the time when the file was changed (LogSegment).
    """
    largest_of_all = NO_TIMESTAMP
    stopped_at: LookupSegment | None = None
    for number, segment in enumerate(segments):
        if (yield from _is_below_start(segment, bounds)):
            continue
        largest = yield from largest_timestamp(segment, at_least=timestamp)
        largest_of_all = max(largest_of_all, largest.timestamp)
        has_none = largest.timestamp == NO_TIMESTAMP
        reached = segment.modified_ms if has_none else largest.timestamp
        is_reached = reached >= timestamp
        side = "at or after" if is_reached else "before"
        detail = f"{largest.detail}, and the file was changed at {iso_time(reached)}" if has_none else largest.detail
        yield segment.segment_step(f", {number + 1} of {len(segments)}: {detail}, {side} {iso_time(timestamp)}")
        if not is_reached:
            segment.close()  # there may be thousands
            continue
        if has_none:
            stopped_at = stopped_at or segment
            segment.close()
            continue
        found, is_whole = yield from first_record_at(segment, timestamp, bounds.log_start_offset)
        if found is not None:
            match = segment.match(found)
            return _bounded(match, bounds) if stopped_at is None else _stopped(stopped_at, match, bounds, timestamp)
        if is_whole and stopped_at is None:
            stopped_at = segment
        segment.close()
    if largest_of_all >= timestamp:
        start = bounds.log_start_offset
        return NotFound(f"no record at or after {iso_time(timestamp)} from the log start offset {start} on")
    largest_words = (
        "the log has none" if largest_of_all == NO_TIMESTAMP else f"the largest is {iso_time(largest_of_all)}"
    )
    return NotFound(f"no record has a timestamp at or after {iso_time(timestamp)}; {largest_words}")


def max_timestamp_lookup(segments: list[LookupSegment], bounds: Bounds) -> Generator[LookupStep, None, Result]:
    """The first record with the largest timestamp: in the first segment that has it, in its first batch (KIP-734)."""
    best: tuple[LookupSegment, LargestTimestamp] | None = None
    for number, segment in enumerate(segments):
        if (yield from _is_below_start(segment, bounds)):
            continue
        largest = yield from largest_timestamp(segment)
        yield segment.segment_step(f", {number + 1} of {len(segments)}: {largest.detail}")
        segment.close()
        if best is None or largest.timestamp > best[1].timestamp:
            best = segment, largest
    if best is None:
        return NotFound("the partition has no segment")
    segment, largest = best
    floor = yield from segment.floor(largest.offset)
    yield segment.floor_step(floor)
    scan = segment.scan(floor.position)
    place: BatchPlace | None = None
    for batches in scan:
        rows = np.flatnonzero(batches.table.max_timestamp == largest.timestamp)
        if len(rows):
            place = batches.place(int(rows[0]))
            break
    yield from scan.findings
    if place is None:
        return NotFound("the log has no records")
    if place.magic == 0:
        return NotFound("the log has no timestamps: its messages are in format 0")
    max_timestamp = place.max_timestamp
    searched = yield from segment.first_record(place, lambda records: records.timestamp == max_timestamp)
    found = searched.found
    if found is not None:
        yield segment.scan_step(scan, found, f"with timestamp {iso_time(max_timestamp)}")
        match = segment.match(found)
        if found.offset < bounds.log_start_offset:
            match = replace(match, note=f"below the log start offset {bounds.log_start_offset}")
        return _bounded(match, bounds)
    words = f"{place.words} has the largest timestamp {iso_time(max_timestamp)}"
    if not searched.is_complete:
        return NotFound(f"{words} and cannot be read")
    if not searched.has_records:
        return NotFound(
            f"{words}, and compaction has removed all of its records: a broker answers that there is no such record"
        )
    where = segment.location.at(place.position, place.size_bytes, place.base_offset)
    if max_timestamp != NO_TIMESTAMP:  # which a broker stores for records that are all older than 1970
        message = f"the header says {iso_time(max_timestamp)}, none of the records has that timestamp"
        yield finding("max-timestamp-mismatch", where, message)
    return NotFound(f"{words}, none of its records has it: a broker answers that there is no such record")


def _is_below_start(segment: LookupSegment, bounds: Bounds) -> Generator[LookupStep, None, bool]:
    """Whether the whole segment lies below the log start offset: a broker is about to delete it."""
    end = segment.next_base_offset
    if end is None or end > bounds.log_start_offset:
        return False
    yield segment.segment_step(f": it ends below the log start offset {bounds.log_start_offset}")
    return True


def _stopped(segment: LookupSegment, match: Match, bounds: Bounds, timestamp: int) -> NotFound:
    return NotFound(
        f"a broker answers that there is no such record: it looks no further than segment {segment.base_offset}, which "
        f"has no record at or after {iso_time(timestamp)} from the log start offset {bounds.log_start_offset} on; "
        f"the next one is at offset {match.location.offset}",
        match,
    )


def _bounded(match: Match, bounds: Bounds) -> Result:
    offset = match.location.offset
    if bounds.high_watermark is not None and offset is not None and offset >= bounds.high_watermark:
        return NotFound(
            "a broker answers that there is no such record: "
            f"the record at offset {offset} is at or past the high watermark "
            f"{bounds.high_watermark} of the checkpoint",
            match,
        )
    return match
