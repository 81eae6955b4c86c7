"""Ranges of offsets, with both ends included: set operations on lists of ranges, and their totals."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.wording import span

Range = tuple[int, int]
Int64s = NDArray[np.int64]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The ranges sorted, with overlapping and adjacent ranges joined."""
    result: list[Range] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def clipped(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """The parts of the ranges from offset ``first`` to ``last``, both included."""
    cut = ((max(first, start), min(last, end)) for start, end in ranges)
    return [each for each in cut if each[0] <= each[1]]


def joined(firsts: Int64s, lasts: Int64s) -> list[Range]:
    """Ranges by their first and last offsets (int64, one dimension), those joined of which one follows the other."""
    if not len(firsts):
        return []
    edges = np.flatnonzero(firsts[1:] != lasts[:-1] + 1)
    starts, ends = np.concatenate(([0], edges + 1)), np.concatenate((edges, [len(lasts) - 1]))
    return list(zip(firsts[starts].tolist(), lasts[ends].tolist(), strict=True))


def runs(offsets: Int64s) -> list[Range]:
    """Strictly rising offsets (int64, one dimension) as ranges of consecutive offsets."""
    return joined(offsets, offsets)


def are_inside(offsets: Int64s, ranges: list[Range]) -> NDArray[np.bool_]:
    """Which offsets (int64, one dimension) are in one of the ranges, as bool for each."""
    inside = np.zeros(len(offsets), bool)
    for first, last in ranges:
        inside |= (offsets >= first) & (offsets <= last)
    return inside


def without(ranges: list[Range], gone: list[Range]) -> list[Range]:
    """The offsets of ``ranges`` that are not in ``gone``; both must be sorted and without overlaps."""
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


def intersection(lists: list[list[Range]]) -> list[Range]:
    """The offsets that are in all of the lists of ranges."""
    result = lists[0] if lists else []
    for other in lists[1:]:
        result = [part for first, last in other for part in clipped(result, first, last)]
    return merged(result)


class Span(msgspec.Struct):
    """The first and the last of a set of offsets, and their number."""

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
        """[first, last], None without offsets."""
        return None if self.first is None or self.last is None else [self.first, self.last]

    @property
    def words(self) -> str:
        """Such as ``5 to 9``; empty without offsets."""
        return "" if self.first is None or self.last is None else span(self.first, self.last)
