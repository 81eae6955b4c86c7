"""Ranges of offsets, first and last included: sorted lists without overlaps, and their sums."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from format.value_class import state_class

Range = tuple[int, int]
Int64s = NDArray[np.int64]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets, sorted, with neighbours joined."""
    result: list[Range] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def clipped(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """The part of the ranges between two offsets, both included."""
    cut = ((max(first, start), min(last, end)) for start, end in ranges)
    return [each for each in cut if each[0] <= each[1]]


def runs(offsets: Int64s) -> list[Range]:
    """Rising offsets as ranges of consecutive ones."""
    if not len(offsets):
        return []
    edges = np.flatnonzero(np.diff(offsets) != 1)
    firsts = offsets[np.concatenate(([0], edges + 1))].tolist()
    lasts = offsets[np.concatenate((edges, [len(offsets) - 1]))].tolist()
    return list(zip(firsts, lasts, strict=True))


def are_inside(offsets: Int64s, ranges: list[Range]) -> NDArray[np.bool_]:
    """Which offsets lie in one of the ranges."""
    inside = np.zeros(len(offsets), bool)
    for first, last in ranges:
        inside |= (offsets >= first) & (offsets <= last)
    return inside


def without(ranges: list[Range], gone: list[Range]) -> list[Range]:
    """The offsets of some ranges but those of others; both are sorted and without overlaps."""
    result: list[Range] = []
    for first, last in ranges:
        for start, end in clipped(gone, first, last):
            if start > first:
                result.append((first, start - 1))
            first = end + 1
        if first <= last:
            result.append((first, last))
    return result


def is_covered(wanted: Range, ranges: list[Range]) -> bool:
    """Whether one of the ranges contains all of ``wanted``."""
    return any(first <= wanted[0] and wanted[1] <= last for first, last in ranges)


def held_by_none(ranges_of: list[list[Range]]) -> list[Range]:
    """The offsets that are in each of the lists of ranges."""
    common = ranges_of[0] if ranges_of else []
    for other in ranges_of[1:]:
        common = [part for first, last in other for part in clipped(common, first, last)]
    return merged(common)


@state_class
class Span:
    """The first and the last of some offsets, and how many there are."""

    first: int | None = None
    last: int | None = None
    count: int = 0

    def add(self, ranges: Iterable[Range]) -> None:
        """Add ranges that do not overlap each other or what was added before."""
        for first, last in ranges:
            self.first = first if self.first is None else min(self.first, first)
            self.last = last if self.last is None else max(self.last, last)
            self.count += last - first + 1

    @property
    def ends(self) -> list[int] | None:
        """[first, last], None for no offsets."""
        return None if self.first is None or self.last is None else [self.first, self.last]
