"""Describes what partitions hold, for a selected range in which nothing lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind
from format.node.partition import Partition
from format.node.target import Target
from format.scan.selection import Selection
from format.timestamps import iso_time
from format.verbs.find.find import find_max_timestamp
from format.verbs.groups.replicas import log_end_of

_MOST_NAMED = 4


def empty_range_words(targets: Iterable[Target], selection: Selection, limits: Limits = DEFAULT_LIMITS) -> str:
    """A sentence with the offsets of the first partitions, and their largest timestamps for a range of times.

    Empty where no range was selected, and where there is no log at the targets.
    """
    by_time = selection.from_timestamp is not None or selection.to_timestamp is not None
    by_offset = selection.from_offset is not None or selection.to_offset is not None
    if not (by_time or by_offset):
        return ""
    parts: list[str] = []
    for partition in _partitions(targets):
        if len(parts) == _MOST_NAMED:
            return f"The range is empty: {'; '.join(parts)}; and so on."
        parts.append(_held(partition, by_time, limits))
    return f"The range is empty: {'; '.join(parts)}." if parts else ""


def _partitions(targets: Iterable[Target]) -> Iterator[Partition]:
    for target in targets:
        if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
            yield from target.partitions()


def _held(partition: Partition, by_time: bool, limits: Limits) -> str:
    name = partition.name
    end = log_end_of(partition, limits)
    if end is None:
        return f"{name} has no log that can be read"
    start = partition.segments[0].base_offset
    if end <= start:
        return f"{name} is empty, at offset {end}"
    words = f"{name} has offsets {start} to {end - 1}"
    newest = find_max_timestamp(partition, past_high_watermark=True, limits=limits).match if by_time else None
    if newest is None or newest.timestamp is None:
        return words
    return f"{words}, and its largest timestamp is {iso_time(newest.timestamp)}"
