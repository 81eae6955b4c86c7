"""The logs at and below the paths of a command that may contain selected records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.io.session import map_near
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, with_checkpoints
from format.node.offsets import PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import Partition, Segment, location_of_directory, location_of_file, read_partition
from format.node.partition_surroundings import unread_findings
from format.node.target import Target, nothing_to_read
from format.scan.cluster import cluster_of
from format.scan.drivers import size_of
from format.scan.protocol import LogUnit
from format.scan.selection import Selection

#: The kinds of paths that are, or contain, logs with records.
LOG_KINDS = (Kind.LOG_DIR, Kind.PARTITION, Kind.LOG, Kind.KRAFT_SNAPSHOT)


def selected_logs(target: Target, selection: Selection) -> Iterator[LogUnit | Finding]:
    """The logs at or below a target of one of LOG_KINDS that may contain selected records, in order.

    There are findings in place of partitions that cannot be listed, and of links, which are not followed.
    """
    if target.kind not in (Kind.LOG_DIR, Kind.PARTITION):
        yield _lone_log(target)
        return
    for found in partitions_to_read(target):
        if isinstance(found, Finding):
            yield found
        else:
            yield from logs_of_partition(*found, selection)


def logs_of_partition(
    partition: Partition, checkpoints: Checkpoints, selection: Selection
) -> Iterator[LogUnit | Finding]:
    """The logs of a partition that may contain selected records, and findings for what is not read."""
    yield from unread_findings(partition)
    offsets = offsets_of(partition, checkpoints)
    head = offsets.missing_head
    if head is not None and not selection.excludes_segment(head[0], head[1] + 1):
        yield from remote_head_findings(offsets, partition.location())
    for segment in partition.segments:
        if not selection.excludes_segment(segment.base_offset, partition.next_base_offset(segment)):
            log = log_of_segment(partition, segment, offsets)
            if log is not None and not (selection.from_log_start and _is_below(partition, segment, offsets)):
                yield replace(log, log_start_offset=offsets.log_start_offset)


def _is_below(partition: Partition, segment: Segment, offsets: PartitionOffsets) -> bool:
    """Whether a whole segment is below the log start offset."""
    next_base_offset = partition.next_base_offset(segment)
    if next_base_offset is None or offsets.log_start_offset is None:
        return False
    return next_base_offset <= offsets.log_start_offset


def partitions_to_read(
    target: Target, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
    """The items of ``partitions_below``, and a finding if there is no segment of any log."""
    is_empty = True
    for found in partitions_below(target, limits):
        is_empty = is_empty and not isinstance(found, Finding) and not found[0].segments
        yield found
    if is_empty:
        yield nothing_to_read(target)


def partitions_below(
    target: Target, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
    """The partitions at or below a target, each with its checkpoints; findings for those that cannot be listed.

    On a cluster the tasks list what they read, and this process keeps no listing, as there may be very many.
    """
    if target.kind is Kind.PARTITION:
        try:
            yield target.partition, target.checkpoints_around(limits)
        except KafkaLogError as error:
            yield finding_of(error, location_of_directory(target.path))
        return
    yield from target.link_findings()
    is_kept = cluster_of(target.path) is None
    for log_dir in with_checkpoints(target.log_dirs, limits):
        yield from log_dir.unread_findings()
        # Threads list partitions for this process, which keeps them, and tasks of a cluster for one that keeps none.
        list_one = partial(_listed, log_dir.partition if is_kept else read_partition)
        for found in map_near(list_one, log_dir.partitions, log_dir.path):
            yield found if isinstance(found, Finding) else (found, log_dir.checkpoints(limits))


def _listed(listing: Callable[[Path], Partition], path: Path) -> Partition | Finding:
    """The partition in a directory, or the finding about one that cannot be listed."""
    try:
        return listing(path)
    except KafkaLogError as error:
        return finding_of(error, location_of_directory(path))


def selected_bytes(targets: Iterable[Target], selection: Selection) -> int:
    """The bytes of the selected logs of some targets, for a progress bar; 0 for what cannot be listed."""
    total_bytes = 0
    for target in targets:
        with suppress(KafkaLogError):  # the command reports the error
            if target.kind in LOG_KINDS:
                logs = selected_logs(target, selection)
                total_bytes += sum(size_of(log.path) for log in logs if isinstance(log, LogUnit))
    return total_bytes


def every_log_of(partition: Partition, offsets: PartitionOffsets | None = None) -> Iterator[LogUnit]:
    """All logs of a partition, in order."""
    for segment in partition.segments:
        log = log_of_segment(partition, segment, offsets)
        if log is not None:
            yield log


def log_of_segment(partition: Partition, segment: Segment, offsets: PartitionOffsets | None = None) -> LogUnit | None:
    """The log of one segment of a partition; None for a segment without a .log.

    ``offsets`` are the offsets of the partition from its checkpoints, None if those are not read.
    """
    log = segment.log
    if log is None:
        return None
    location = partition.location(log, segment.base_offset)
    known_end = None if offsets is None else offsets.known_end
    next_base_offset, keeps_end = partition.next_base_offset(segment), _keeps_end(location, offsets)
    return LogUnit(log, location, segment, next_base_offset, known_end, end=segment.end, keeps_end=keeps_end)


def _keeps_end(location: Location, offsets: PartitionOffsets | None) -> bool:
    """Whether a broker starts without a recovery of the log; the metadata log is recovered at every start."""
    return offsets is not None and bool(offsets.is_clean_shutdown) and location.topic != CLUSTER_METADATA_TOPIC


def _lone_log(target: Target) -> LogUnit:
    """The log at a path that is a file. Its directory is listed for its indexes and the next segment."""
    path, location = target.path, location_of_file(target.path)
    segment = next_base_offset = known_end = log_start_offset = offsets = None
    if target.kind is Kind.LOG and location.base_offset is not None:
        partition = target.surroundings.partition(path)
        at = bisect_left(partition.segments, location.base_offset, key=lambda each: each.base_offset)
        for each in partition.segments[at : at + 1]:
            if each.log is not None and each.log.name == path.name:
                segment, next_base_offset = each, partition.next_base_offset(each)
        with suppress(KafkaLogError):
            offsets = offsets_of(partition, target.surroundings.checkpoints(path.parent))
            log_start_offset, known_end = offsets.log_start_offset, offsets.known_end
    keeps_end = _keeps_end(location, offsets)
    return LogUnit(
        path, location, segment, next_base_offset, known_end, log_start_offset=log_start_offset, keeps_end=keeps_end
    )
