"""Segments that a broker was putting in the place of others when it stopped: the swap is completed, as it would be.

New segments are whole before they are called ``.swap``; from then on the old ones may be gone. A ``.cleaned`` file at
or below a ``.swap`` file says that this swap never began. One without a batch would only leave a gap, and is passed
over. Source: storage LogLoader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from format.errors import InputError
from format.findings import Finding, finding
from format.io.source import FileSource
from format.limits import Limits
from format.log.walker import batch_chunks
from format.node.partition import Partition
from format.node.segment import Segment


def completed_swaps(partition: Partition, limits: Limits) -> tuple[Partition, list[Finding]]:
    """The partition with its swaps completed, and findings that say so; the same partition where there are none."""
    ends = {each.base_offset: (each, _end_offset(each, limits)) for each in _swaps(partition)}
    swaps = [each for each, end in ends.values() if end > each.base_offset]
    if not swaps:
        return partition, []
    first = min(each.base_offset for each in swaps)
    end = max(end for _, end in ends.values())
    replaced = [each for each in partition.segments if first <= each.base_offset < end]
    kept = [each for each in partition.segments if each not in replaced]
    new = [replace(each, leftover=None) for each in swaps]
    segments = sorted([*kept, *new], key=lambda each: each.base_offset)
    found = finding(
        "segment-leftover",
        partition.location(swaps[0].log, first),
        f"offsets {first} to {end - 1} are taken from .swap files, in the place of {len(replaced)} segments: a broker "
        "completes the swap too when it starts",
    )
    return partition.with_segments(segments), [found]


def _swaps(partition: Partition) -> Iterator[Segment]:
    """The segments that replace others, in order."""
    cleaned = [each.base_offset for each in partition.leftovers if each.leftover == "cleaned"]
    for each in partition.leftovers:
        if each.leftover == "swap" and each.log is not None and each.base_offset < min(cleaned, default=2**63):
            yield each


def _end_offset(segment: Segment, limits: Limits) -> int:
    """The offset after the last batch of a segment, as far as its headers can be read."""
    end = segment.base_offset
    try:
        with FileSource(segment.log or Path()) as source:
            for chunk in batch_chunks(source, with_bodies=False, limits=limits):
                if len(chunk.table):
                    end = max(end, chunk.table.last_offset_of(len(chunk.table) - 1) + 1)
    except InputError:
        pass  # the segment is read again, and the reason reported then
    return end
