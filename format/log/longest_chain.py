"""The longest chain of batches in which each starts after the one before it ends, and what speaks for other chains.

No CRC covers the base offset of a batch. Where two batches contradict each other, the number of batches in the chain
does not decide; then it does where the others have room. A batch that is not in the chain was written at its place, so
that its offsets must fit between those of the batches around it.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import Int64Column

#: Up to this many pieces are compared with each other; above that only their weights count.
_MOST_COMPARED = 1024
#: One piece without room counts as much as this many gaps.
_MISFIT = 2 * _MOST_COMPARED


class Rival(IntEnum):
    """How good the best chain with a batch is that is not in the chosen chain."""

    NONE = 0  # it has fewer batches, or no room for one
    CLOSE = 1  # it leaves more gaps between offsets, which compaction may have made
    EQUAL = 2  # it is as good


class ChosenChain(msgspec.Struct, frozen=True):
    """Which items are in the longest chain, and the Rival of each other one (int8, 0 in the chain)."""

    is_kept: NDArray[np.bool_]
    rival: NDArray[np.int8]


def chosen_chain(
    base_offset: Int64Column,
    last_offset: Int64Column,
    count: Int64Column | None = None,
    is_doubtful: NDArray[np.bool_] | None = None,
    *,
    first: int | None = None,
    end: int | None = None,
) -> ChosenChain:
    """The chain of the most batches; of equally long ones, the one with the most room for the other batches.

    An item is one batch, or ``count`` batches that are in the chain together or not at all. Items are in file order;
    ``last_offset`` must not be below ``base_offset``. Fewer doubtful batches come before more room. The chain and the
    other items have offsets from ``first`` to before ``end``, as far as these are known.
    """
    number = len(base_offset)
    if number < 2 or (base_offset[1:] > last_offset[:-1]).all():
        return ChosenChain(np.ones(number, bool), np.zeros(number, np.int8))
    weight = np.ones(number, np.int64) if count is None else count
    if is_doubtful is not None:
        weight = weight * (2 * int(weight.sum()) + 1) - np.where(is_doubtful, weight, 0)
    piece = _pieces(base_offset, last_offset)
    start = np.flatnonzero(np.diff(piece, prepend=-1))
    last = np.append(start[1:], number) - 1
    weights = np.add.reduceat(weight, start)
    if len(start) > _MOST_COMPARED:
        is_kept = _heaviest(base_offset[start], last_offset[last], weights)
        return ChosenChain(is_kept[piece], np.where(is_kept, 0, Rival.EQUAL).astype(np.int8)[piece])
    widths = np.add.reduceat(last_offset - base_offset + 1, start)
    is_kept, rival = _roomiest(base_offset[start], last_offset[last], weights, widths, first, end)
    return ChosenChain(is_kept[piece], rival[piece])


def _roomiest(
    base: Int64Column, last: Int64Column, weight: Int64Column, width: Int64Column, first: int | None, end: int | None
) -> tuple[NDArray[np.bool_], NDArray[np.int8]]:
    """Which pieces are in the heaviest chain with the fewest faults, and the Rival of each of the others.

    Compares each piece with all before it, and then, in the other direction, with all after it.
    """
    total, faults, before = _best_before(base, last, weight, width, first)
    # The same from the end of the log: offsets are turned round, so that what follows comes first.
    turned = None if end is None else -(end - 1)
    after_total, after_faults, _ = _best_before(-last[::-1], -base[::-1], weight[::-1], width[::-1], turned)
    through = total + after_total[::-1] - weight
    through_faults = faults + after_faults[::-1]
    heaviest = int(through.max())
    fewest = int(through_faults[through == heaviest].min())
    at = int(np.flatnonzero((total == heaviest) & (through_faults == fewest))[0])  # the last one of the chain
    is_kept = np.zeros(len(base), bool)
    while at >= 0:
        is_kept[at] = True
        at = before[at]
    rival = np.zeros(len(base), np.int8)
    rival[(through == heaviest) & (through_faults // _MISFIT == fewest // _MISFIT)] = Rival.CLOSE
    rival[(through == heaviest) & (through_faults == fewest)] = Rival.EQUAL
    rival[is_kept] = Rival.NONE
    return is_kept, rival


def _best_before(
    base: Int64Column, last: Int64Column, weight: Int64Column, width: Int64Column, first: int | None
) -> tuple[Int64Column, Int64Column, list[int]]:
    """The weight and the faults of the best chain that ends in each piece, and the piece before it there, -1 for none.

    A fault is a place between two pieces of the chain that is too small for the pieces between them, which counts as
    _MISFIT, or that is larger than they need.
    """
    number = len(base)
    sums = np.concatenate(([0], np.cumsum(width)))
    total, faults, before = np.zeros(number, np.int64), np.zeros(number, np.int64), [-1] * number
    for piece in range(number):
        best, fewest = 0, 0
        if first is not None:
            fewest = int(_faults(base[piece] - first, sums[piece], piece > 0))
        elif piece:
            fewest = 1  # as much as is known: what lies before may have room
        fits = np.flatnonzero(last[:piece] < base[piece])
        if len(fits):
            best_total = int(total[fits].max())
            fits = fits[total[fits] == best_total]
            gap = base[piece] - last[fits] - 1
            own = faults[fits] + _faults(gap, sums[piece] - sums[fits + 1], fits + 1 < piece)
            least = int(own.min())
            best, fewest = best_total, least
            before[piece] = int(fits[np.flatnonzero(own == least)[0]])
        total[piece], faults[piece] = best + int(weight[piece]), fewest
    return total, faults, before


def _faults(gap: Int64Column, needed: Int64Column, has_others: NDArray[np.bool_] | bool) -> Int64Column:
    """The faults of places with ``gap`` offsets for pieces that need ``needed``."""
    faults: Int64Column = np.where((gap < needed) & has_others, _MISFIT, np.where(gap == needed, 0, 1))
    return faults


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
