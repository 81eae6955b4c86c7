"""find: looks up an offset, a time or the largest timestamp as a broker does.

Offset: the segment with the greatest base offset at or below it, the greatest index entry at or below it, a scan
(LocalLog.read, LogSegment.translateOffset). Time: the first segment whose largest timestamp reaches it, both index
floors, a scan (UnifiedLog.searchOffsetInLocalLog). Largest timestamp: the first segment that has it, then the first
batch, then the first record (UnifiedLog.fetchOffsetByTimestamp for MAX_TIMESTAMP). A look-up by time returns no record
at or past the high watermark (ReplicaManager.fetchOffset).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.errors import InputError
from format.findings import Finding, finding
from format.layout import NO_TIMESTAMP
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import Partition, is_offset, read_partition
from format.node.segment import NOT_A_SEGMENT_NAME
from format.node.target import Target
from format.timestamps import iso_time
from format.verbs.find.lookup import LookupStep, Match, NotFound, Result, TraceStep, Visibility
from format.verbs.find.segment_lookup import BatchPlace, FoundRecord, LookupSegment
from format.verbs.find.time_index_lookup import LargestTimestamp, first_record_at, largest_timestamp
from format.verbs.find.visibility import Bounds, diagnosed, read_bounds
from format.wording import listed


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


#: A look-up in the segments of a partition, within the bounds.
_Lookup = Callable[[list[LookupSegment], Bounds], Generator[LookupStep, None, Result]]

#: The most bytes of a remote log that are read by default to find out who can see a record.
REMOTE_VISIBILITY_BYTES = 256 * 1024


def find_offset(
    partition: Partition, offset: int, *, visibility_limit: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[LookupStep | Result]:
    """The steps to the record with this offset, findings, and at the end the Match or NotFound.

    Both have the visibility of the offset, unless more than ``visibility_limit`` bytes must be read for it. Raises
    UnreadableFile for a log that cannot be read.
    """

    def lookup(segments: list[LookupSegment], bounds: Bounds) -> Generator[LookupStep, None, Result]:
        result = yield from offset_lookup(segments, bounds, offset)
        if isinstance(result, Match):
            return diagnosed(partition, bounds, result, limits, visibility_limit)
        if result.answer is not None:
            return result
        nowhere = replace(partition.location().at(offset=offset), base_offset=None)
        return replace(result, answer=Match(nowhere, None, None, visibility=result.visibility))

    return _run(partition, limits, lookup)


def find_timestamp(
    partition: Partition, timestamp: int, *, past_high_watermark: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Iterator[LookupStep | Result]:
    """The same steps for the first record with a timestamp (ms) at or past this one, as ListOffsets answers it.

    ``past_high_watermark`` also returns records that a broker hides from consumers because they are not replicated.
    """

    def lookup(segments: list[LookupSegment], bounds: Bounds) -> Generator[LookupStep, None, Result]:
        return timestamp_lookup(segments, _bounds(bounds, past_high_watermark), timestamp)

    return _run(partition, limits, lookup)


def find_max_timestamp(
    partition: Partition, *, past_high_watermark: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Iterator[LookupStep | Result]:
    """The same steps for the first record with the log's largest timestamp (KIP-734)."""

    def lookup(segments: list[LookupSegment], bounds: Bounds) -> Generator[LookupStep, None, Result]:
        return max_timestamp_lookup(segments, _bounds(bounds, past_high_watermark))

    return _run(partition, limits, lookup)


def partition_to_search(path: Path) -> Partition:
    """The partition of a partition directory, or of one ``.log`` file and its siblings.

    A file that a broker marked ``.deleted``, ``.cleaned`` or ``.swap`` is searched by itself. Raises InputError for
    anything else.
    """
    target = Target(path)
    kind = target.kind
    if kind is Kind.PARTITION:
        return target.partition
    location = Location(str(path))
    if kind is Kind.LOG_DIR:
        raise InputError(_many_partitions(target), location)
    if kind is not Kind.LOG:
        raise InputError("this is not a segment: give a partition directory or a .log file", location)
    partition = read_partition(path.parent)
    if any(segment.log is not None and segment.log.name == path.name for segment in partition.segments):
        return partition
    for leftover in partition.leftovers:
        if leftover.log is not None and leftover.log.name == path.name:
            # Its siblings and the checkpoints belong to the live log.
            return dataclasses.replace(
                partition.with_segments([leftover]), orphans=[], unexpected=[], mark=leftover.leftover
            )
    raise InputError(NOT_A_SEGMENT_NAME, location)


def _many_partitions(target: Target) -> str:
    """The message about a directory of many partitions, with a partition of a user's topic as an example."""
    log_dirs = target.log_dirs
    paths = [path for log_dir in log_dirs for path in log_dir.partitions]
    example = next((path for path in paths if not path.name.startswith("__")), paths[0] if paths else None)
    names = [str(log_dir.path.relative_to(target.path)) for log_dir in log_dirs]
    what = "this is a log directory" if len(names) == 1 else f"{len(names)} log directories lie here, {listed(names)}"
    return f"{what}: give one partition directory{f', such as {example}' if example else ''}"


def _bounds(bounds: Bounds, past_high_watermark: bool) -> Bounds:
    return replace(bounds, high_watermark=None) if past_high_watermark else bounds


def _run(partition: Partition, limits: Limits, lookup: _Lookup) -> Iterator[LookupStep | Result]:
    """Run a look-up, report each finding once, and close the segments' files."""
    yield from _not_searched(partition)
    bounds = yield from read_bounds(partition, limits)
    live = partition.segments
    next_base_offsets = [*(segment.base_offset for segment in live), None][1:]
    segments = [
        LookupSegment(partition, segment, next_base_offset, limits)
        for segment, next_base_offset in zip(live, next_base_offsets, strict=True)
    ]
    try:
        result = yield from _without_repeated_findings(lookup(segments, bounds))
    finally:
        for segment in segments:
            segment.close()
    bytes_read = sum(segment.bytes_read for segment in segments)
    if isinstance(result, Match):
        where, words = result.location, f"offset {result.location.offset}"
        words += f", {result.note}" if result.note else ""
    else:
        where, words = partition.location(), f"not found: {result.reason}"
    yield TraceStep("match", where, f"{words}; {bytes_read} bytes were read")
    yield replace(result, bytes_read=bytes_read)


def _not_searched(partition: Partition) -> Iterator[Finding]:
    """Findings for segments that cannot be searched: the log is missing, not a regular file, or its name impossible."""
    for orphan in partition.orphans:
        path = next(iter(orphan.files.values()))
        message = "an index without its log: the offsets of that segment are not searched"
        yield finding("index-orphan", partition.location(path, orphan.base_offset), message)
    for path in partition.unexpected:
        match = layout.SEGMENT_FILE.match(path.name)
        if match is not None and match["suffix"] == layout.LOG_SUFFIX and match["leftover"] is None:
            if not is_offset(int(match["base_offset"])):
                message = "the name's offset does not fit in 63 bits; not searched"
                yield finding("entry-unexpected", partition.location(path), message)
            else:
                where = partition.location(path, int(match["base_offset"]))
                yield finding("file-unreadable", where, "not a regular file, so not searched")


def _without_repeated_findings(steps: Generator[LookupStep, None, Result]) -> Generator[LookupStep, None, Result]:
    """The same steps without repeated findings: a look-up may pass a batch more than once."""
    reported: set[tuple[str, Location]] = set()
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        if isinstance(step, Finding):
            if (step.code, step.location) in reported:
                continue
            reported.add((step.code, step.location))
        yield step
