"""Ranges of offsets against sets of the same offsets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from format.offset_ranges import Range, Span, are_inside, clipped, intersection, is_covered, merged, runs

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)).map(lambda each: (each[0], sum(each))), max_size=6)


def offsets_of(ranges: list[Range]) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


@given(RANGES)
def test_merged(ranges: list[Range]) -> None:
    found = merged(ranges)
    assert offsets_of(found) == offsets_of(ranges)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found))
    assert runs(np.array(sorted(offsets_of(ranges)), np.int64)) == found


@given(RANGES, st.integers(0, 48), st.integers(0, 48))
def test_clipped(ranges: list[Range], first: int, last: int) -> None:
    assert offsets_of(clipped(ranges, first, last)) == offsets_of(ranges) & set(range(first, last + 1))


@given(RANGES, st.integers(0, 48), st.integers(0, 4))
def test_inside_and_covered(ranges: list[Range], first: int, more: int) -> None:
    wanted = set(range(first, first + more + 1))
    assert is_covered((first, first + more), merged(ranges)) == (wanted <= offsets_of(ranges))
    offsets = np.arange(50, dtype=np.int64)
    assert set(offsets[are_inside(offsets, ranges)].tolist()) == offsets_of(ranges)


@given(st.lists(RANGES.map(merged), min_size=1, max_size=3))
def test_intersection(missing: list[list[Range]]) -> None:
    assert offsets_of(intersection(missing)) == set.intersection(*map(offsets_of, missing))


@given(RANGES)
def test_a_span(ranges: list[Range]) -> None:
    span, offsets = Span(), offsets_of(ranges)
    span.add(merged(ranges))
    assert span.count == len(offsets)
    assert span.ends == ([min(offsets), max(offsets)] if offsets else None)
