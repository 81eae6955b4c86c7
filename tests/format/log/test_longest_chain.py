"""The longest chain of rising batches, against a plain search for it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.log.longest_chain import chosen_chain

ITEMS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.integers(1, 5), st.booleans()), max_size=10)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(ITEMS)
def test_the_longest_chain_is_the_longest(items: list[tuple[int, int, int, bool]]) -> None:
    base = np.array([first for first, *_ in items], np.int64)
    last = np.array([first + delta for first, delta, *_ in items], np.int64)
    count = np.array([each[2] for each in items], np.int64)
    is_doubtful = np.array([each[3] for each in items], bool)
    kept = chosen_chain(base, last, count, is_doubtful).is_kept
    rows = np.flatnonzero(kept)
    assert (base[rows[1:]] > last[rows[:-1]]).all()
    best: list[tuple[int, int]] = []  # of the chains that end with each item, the most batches and fewest doubtful ones
    for row, (_, _, number, doubtful) in enumerate(items):
        before = max((best[other] for other in range(row) if last[other] < base[row]), default=(0, 0))
        best.append((before[0] + number, before[1] - number * doubtful))
    found = (int(count[kept].sum()), -int(count[kept & is_doubtful].sum()))
    assert found == max(best, default=(0, 0))


def test_of_two_alike_the_first_is_kept() -> None:
    base = np.array([0, 3, 3, 6], np.int64)
    assert chosen_chain(base, base + 2).is_kept.tolist() == [True, True, False, True]


@pytest.mark.slow
def test_a_few_wrong_offsets_among_many_take_little_time() -> None:
    """Runs that every chain holds are weighed as one."""
    base = np.arange(2_000_000, dtype=np.int64)
    base[1000::100_000] = 5
    started = time.process_time()
    assert int(chosen_chain(base, base).is_kept.sum()) == len(base) - 20
    assert time.process_time() - started < 10
