"""The longest chain of batches in which each starts after the one before it ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import Int64Column


def longest_chain(
    base_offset: Int64Column,
    last_offset: Int64Column,
    count: Int64Column | None = None,
    is_doubtful: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Which items, in file order, are in the chain of the most batches: a bool for each; all columns are as long.

    An item is one batch, or ``count`` batches that are in the chain together or not at all. ``last_offset`` must not be
    below ``base_offset``. Of chains that are equally long, one with the fewest doubtful batches is chosen. Takes n log
    n steps, or n if all offsets rise.
    """
    number = len(base_offset)
    if number < 2 or (base_offset[1:] > last_offset[:-1]).all():
        return np.ones(number, bool)
    weight = np.ones(number, np.int64) if count is None else count
    if is_doubtful is not None:
        weight = weight * (2 * int(weight.sum()) + 1) - np.where(is_doubtful, weight, 0)
    piece = _pieces(base_offset, last_offset)
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    last = np.append(first[1:], number) - 1
    return _heaviest(base_offset[first], last_offset[last], np.add.reduceat(weight, first))[piece]


def _pieces(base_offset: Int64Column, last_offset: Int64Column) -> Int64Column:
    """The number of each item's piece: neighbours that compare in the same way with every other item.

    A chain with one item of a piece can have all of them, so that pieces can be weighed instead of items.
    """
    ends = np.sort(np.concatenate((base_offset, last_offset)))
    between = np.searchsorted(ends, last_offset[1:], "right") - np.searchsorted(ends, base_offset[:-1], "left")
    is_one = (base_offset[1:] > last_offset[:-1]) & (between == 4)  # only the ends of the two neighbours
    return np.concatenate(([0], np.cumsum(~is_one)))


def _heaviest(base_offset: Int64Column, last_offset: Int64Column, weight: Int64Column) -> NDArray[np.bool_]:
    """Which pieces are in the heaviest chain: a Fenwick tree over the last offsets has the best chain up to each."""
    ordered = np.unique(last_offset)
    size = len(ordered)
    best = [0] * (size + 1)  # the weight of the heaviest chain that ends in each range of the tree
    best_piece = [-1] * (size + 1)  # the last piece of that chain
    before = [-1] * len(base_offset)
    heaviest, end = 0, -1
    bounds = np.searchsorted(ordered, base_offset, "left").tolist()
    ranks = (np.searchsorted(ordered, last_offset, "left") + 1).tolist()
    for piece, (at, rank, own) in enumerate(zip(bounds, ranks, weight.tolist(), strict=True)):
        total, previous = 0, -1
        while at > 0:
            if best[at] > total:
                total, previous = best[at], best_piece[at]
            at &= at - 1
        total += own
        before[piece] = previous
        if total > heaviest:
            heaviest, end = total, piece
        while rank <= size:
            if best[rank] < total:
                best[rank], best_piece[rank] = total, piece
            rank += rank & -rank
    is_kept = np.zeros(len(base_offset), bool)
    while end >= 0:
        is_kept[end] = True
        end = before[end]
    return is_kept
