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

from msgspec.structs import replace

from format import layout
from format.errors import InputError
from format.findings import Finding, finding
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import NOT_A_SEGMENT_NAME, Partition, is_offset, read_partition
from format.node.target import Target
from format.verbs.find.bounds import Bounds, read_bounds
from format.verbs.find.by_offset import offset_lookup
from format.verbs.find.by_time import max_timestamp_lookup, timestamp_lookup
from format.verbs.find.segment_lookup import LookupSegment
from format.verbs.find.trace import LookupStep, Match, Result, TraceStep
from format.verbs.find.visibility import diagnosed
from format.wording import listed

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
