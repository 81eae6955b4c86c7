"""The log files below a path that may hold what is selected, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from format.errors import KafkaLogError
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, read_log_dir
from format.node.partition import Partition, read_partition
from format.node.target import kind_of
from format.scan.cost import size_of
from format.scan.protocol import LogUnit
from format.scan.selection import Selection

#: The kinds of paths that logs with records lie at.
LOG_KINDS = (Kind.LOG_DIR, Kind.PARTITION, Kind.LOG, Kind.KRAFT_SNAPSHOT)


def selected_logs(path: Path, kind: Kind, selection: Selection) -> Iterator[LogUnit]:
    """The log files below a path of one of LOG_KINDS that may hold what is selected, in order."""
    if kind is Kind.LOG_DIR:
        for directory in read_log_dir(path).partitions:
            yield from _logs_of_partition(read_partition(directory), selection)
    elif kind is Kind.PARTITION:
        yield from _logs_of_partition(read_partition(path), selection)
    else:
        yield _lone_log(path, kind)


def selected_bytes(paths: Iterable[Path], selection: Selection, *, kind: Kind | None = None) -> int:
    """The bytes of the selected logs below some paths, for a progress bar; a path that cannot be listed has none."""
    total_bytes = 0
    for path in paths:
        with suppress(KafkaLogError):  # the command says why
            kind_of_path = kind or kind_of(path)
            if kind_of_path in LOG_KINDS:
                total_bytes += sum(size_of(log.path) for log in selected_logs(path, kind_of_path, selection))
    return total_bytes


def _logs_of_partition(partition: Partition, selection: Selection) -> Iterator[LogUnit]:
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or selection.excludes_segment(segment.base_offset, next_base_offset):
            continue
        location = partition.location(segment.log, segment.base_offset)
        yield LogUnit(segment.log, location, segment, next_base_offset is None)


def _lone_log(path: Path, kind: Kind) -> LogUnit:
    """One log file by itself. The files beside it name its indexes and show whether later segments follow."""
    location = location_of_file(path)
    segment = None
    is_last = True
    if kind is Kind.LOG and location.base_offset is not None:
        partition = read_partition(path.parent)
        for each in partition.segments:
            if each.log is not None and each.log.name == path.name:
                segment, is_last = each, partition.next_base_offset(each) is None
    return LogUnit(path, location, segment, is_last)
