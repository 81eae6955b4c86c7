"""Interrupted swaps: segments with which a broker was replacing others when it stopped, completed as a broker would.

New segments are complete before they are renamed to ``.swap``; after that, the old ones may be deleted. A ``.cleaned``
file at or below the offset of a ``.swap`` file means that this swap did not start. A ``.swap`` file without a batch is
ignored, since it would only leave a gap. Source: storage LogLoader.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from format.errors import InputError
from format.findings import Finding, finding
from format.io.source import FileSource
from format.limits import Limits
from format.log.walker import header_chunks
from format.node.partition import Partition
from format.node.segment import Segment
from format.wording import counted_plainly, offsets_are


def completed_swaps(partition: Partition, limits: Limits) -> tuple[Partition, list[Finding]]:
    """The partition with its swaps completed, and findings that report it; the same partition if there are none."""
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
        f"{offsets_are(first, end - 1)} taken from .swap files in place of "
        f"{counted_plainly(len(replaced), 'segment')}: a broker also completes the swap when it starts",
    )
    return partition.with_segments(segments), [found]


def _swaps(partition: Partition) -> Iterator[Segment]:
    """The ``.swap`` segments that replace others, in order."""
    cleaned = [each.base_offset for each in partition.leftovers if each.leftover == "cleaned"]
    for each in partition.leftovers:
        if each.leftover == "swap" and each.log is not None and each.base_offset < min(cleaned, default=2**63):
            yield each


def _end_offset(segment: Segment, limits: Limits) -> int:
    """The offset after the last batch of a segment, as far as its headers can be read."""
    end = segment.base_offset
    try:
        with FileSource(segment.log or Path()) as source:
            for chunk in header_chunks(source, limits=limits):
                if len(chunk.headers):
                    end = max(end, chunk.headers.last_offset_of(len(chunk.headers) - 1) + 1)
    except InputError:
        pass  # the segment is read again later, and the error is reported then
    return end
