"""The look-up of an offset in a partition (LocalLog.read, LogSegment.translateOffset)."""

from __future__ import annotations

from collections.abc import Generator

import msgspec
from msgspec.structs import replace

from format.verbs.find.bounds import Bounds
from format.verbs.find.segment_lookup import FoundRecord, LookupSegment
from format.verbs.find.trace import LookupStep, Match, NotFound, Result, Visibility


class _Next(msgspec.Struct, frozen=True):
    """The first record at or past an offset, or the log end offset; ``lost`` is why the offset itself is skipped."""

    match: Match | None
    lost: str | None = None
    log_end_offset: int | None = None


def offset_lookup(segments: list[LookupSegment], bounds: Bounds, offset: int) -> Generator[LookupStep, None, Result]:
    """The record with this offset; if there is none, ``nearest`` is the next record that a fetch would return."""
    below_start = f"offset {offset} is below the log start offset {bounds.log_start_offset} ({bounds.log_start_source})"
    if not segments:
        is_below = offset < bounds.log_start_offset
        visibility = Visibility.BELOW_LOG_START if is_below else Visibility.PAST_END
        return NotFound("the partition has no segment", visibility=visibility)
    if bounds.log_start_offset <= offset < segments[0].base_offset:
        return NotFound(f"offset {offset} is in remote storage, which is not read")
    if offset < segments[0].base_offset:
        return NotFound(below_start, visibility=Visibility.BELOW_LOG_START)
    number = max(number for number, segment in enumerate(segments) if segment.base_offset <= offset)
    detail = f", {number + 1} of {len(segments)}: the greatest base offset at or below {offset}"
    yield segments[number].segment_step(detail)
    found = yield from _next_record(segments[number:], offset)
    match = found.match
    if match is None or match.location.offset != offset:
        result = _not_there(found, offset)
        return replace(result, visibility=Visibility.BELOW_LOG_START) if offset < bounds.log_start_offset else result
    if offset < bounds.log_start_offset:
        answer = replace(match, visibility=Visibility.BELOW_LOG_START)
        return NotFound(
            f"{below_start}; its record is still in the file", match, visibility=answer.visibility, answer=answer
        )
    return match


def _not_there(found: _Next, offset: int) -> NotFound:
    match, end = found.match, found.log_end_offset
    if match is None:
        if found.lost is not None:
            return NotFound(found.lost, visibility=Visibility.DAMAGED)
        if end is not None and offset < end:
            reason = f"offset {offset} was removed: no record is left from there to the log end offset {end}"
            return NotFound(reason, visibility=Visibility.COMPACTED)
        return NotFound(f"offset {offset} is at or past the log end offset {end}", visibility=Visibility.PAST_END)
    reason = found.lost or f"offset {offset} is not in the log: compacted, or never written"
    visibility = Visibility.DAMAGED if found.lost is not None else Visibility.COMPACTED
    return NotFound(f"{reason}; the next record is at offset {match.location.offset}", match, visibility=visibility)


def _next_record(segments: list[LookupSegment], offset: int) -> Generator[LookupStep, None, _Next]:
    """The first record at or past the offset, in the first segment or a later one, where a fetch would continue."""
    lost: str | None = None
    log_end_offset = segments[0].base_offset
    for number, segment in enumerate(segments):
        if number:
            yield segment.segment_step(f": the one before has no record at or past offset {offset}")
        floor = yield from segment.floor(offset)
        yield segment.floor_step(floor)
        scan = segment.scan(floor.position)
        found: FoundRecord | None = None
        for place in scan.places_from(offset):
            searched = yield from segment.first_record(place, lambda records: records.offset >= offset, by_time=False)
            found = searched.found
            if not searched.is_complete and place.spans(offset):
                lost = f"{place.words} should hold offset {offset} and cannot be read"
            if found is not None:
                break
        yield from scan.findings
        for each in scan.findings:
            if each.lost_offsets is not None and each.lost_offsets[0] <= offset <= each.lost_offsets[1]:
                lost = f"offset {offset} is lost: {each.message}"
        for (first, last), each in scan.repairable:
            if first <= offset <= last:
                lost = f"offset {offset} is in a batch with a damaged header: {each.message}"
        yield segment.scan_step(scan, found, f"at or past offset {offset}")
        if found is not None:
            return _Next(segment.match(found), lost)
        log_end_offset = max(log_end_offset, segment.base_offset, scan.end_offset or 0)
        segment.close()
    return _Next(None, lost, log_end_offset)
