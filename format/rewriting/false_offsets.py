"""Which intact batches of a segment have a false base offset, and what shows it.

No CRC covers the base offset. The chain of rising offsets shows most of the false ones (``chosen_chain``). The last
batch of a segment contradicts no other one if its base offset is too high; then an index of the source, or the sequence
of its producer, shows where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_chunk import OffsetRange
from format.log.batch_table import BatchTable
from format.log.longest_chain import Rival, chosen_chain
from format.rewriting.index_builder import IndexedOffsets

_SEQUENCES = 2**31


class Placement(msgspec.Struct, frozen=True):
    """What is known of the offsets of a segment's batches, one value for each batch.

    ``rival`` is how good the chain with a batch is that is not kept. ``right_offset`` is the base offset that a batch
    with a false one must have, -1 if it is not proven; ``proofs`` has the reason, by number of the batch.
    """

    is_kept: NDArray[np.bool_]
    rival: NDArray[np.int8]
    right_offset: NDArray[np.int64]
    proofs: dict[int, str]


def placed(
    table: BatchTable,
    last_offset: NDArray[np.int64],
    is_candidate: NDArray[np.bool_],
    offsets: OffsetRange,
    indexed: IndexedOffsets | None,
    has_keyless: Callable[[int], bool] = lambda row: False,
) -> Placement:
    """Choose the batches whose offsets fit among the candidates, which are intact and have possible offsets.

    ``last_offset`` are the last offsets of the batches. Batches that are intact and no candidates may have a false base
    offset too. ``has_keyless`` says whether the batch of a row has a record without a key.
    """
    number = len(table)
    base = table.base_offset
    rows = np.flatnonzero(is_candidate)
    is_doubtful = None
    if indexed is not None and (base[rows[1:]] <= last_offset[rows[:-1]]).any():
        named = indexed.names(table.position[rows], base[rows], last_offset[rows])
        is_doubtful = ~named if named.any() else None
    chosen = chosen_chain(base[rows], last_offset[rows], None, is_doubtful, first=offsets.first, end=offsets.last + 1)
    is_kept, rival = np.zeros(number, bool), np.zeros(number, np.int8)
    is_kept[rows], rival[rows] = chosen.is_kept, chosen.rival
    found = Placement(is_kept, rival, np.full(number, -1, np.int64), {})
    _judge_last(table, last_offset, offsets, indexed, found, has_keyless)
    _set_right_offsets(table, last_offset, offsets, found)
    return found


def _set_right_offsets(
    table: BatchTable, last_offset: NDArray[np.int64], offsets: OffsetRange, found: Placement
) -> None:
    """Find the right offsets of batches that fill the place between the kept ones around them exactly."""
    kept = np.flatnonzero(found.is_kept)
    is_other = (table.crc_valid == 1) & ~found.is_kept & (table.last_offset_delta >= 0) & (table.record_count >= 0)
    if not is_other.any():
        return
    for after in np.unique(np.searchsorted(kept, np.flatnonzero(is_other))).tolist():
        start = int(kept[after - 1]) + 1 if after else 0
        stop = int(kept[after]) if after < len(kept) else len(table)
        first = offsets.first if not start else int(last_offset[start - 1]) + 1
        if after == len(kept) or not is_other[start:stop].all() or not _adjoin(table, start, stop):
            continue
        widths = table.last_offset_delta[start:stop] + 1
        if int(widths.sum()) != int(table.base_offset[stop]) - first or (found.rival[start:stop] == Rival.EQUAL).any():
            continue
        starts = first + np.concatenate(([0], np.cumsum(widths)[:-1]))
        is_false = starts != table.base_offset[start:stop]
        found.right_offset[start:stop][is_false] = starts[is_false]
        for row in (np.flatnonzero(is_false) + start).tolist():
            found.proofs[row] = "it fills the place between the batches around it exactly"


def _adjoin(table: BatchTable, start: int, stop: int) -> bool:
    """Whether no bytes lie between the batches from the one before ``start`` to that at ``stop``."""
    first = max(start - 1, 0)
    if not start and int(table.position[0]) != 0:
        return False
    return bool((table.position[first + 1 : stop + 1] == table.end_position[first:stop]).all())


def _judge_last(
    table: BatchTable,
    last_offset: NDArray[np.int64],
    offsets: OffsetRange,
    indexed: IndexedOffsets | None,
    found: Placement,
    has_keyless: Callable[[int], bool],
) -> None:
    """Drop the last batch if its base offset is proven to be too high."""
    row = len(table) - 1
    if row < 0 or table.crc_valid[row] != 1 or table.last_offset_delta[row] < 0 or table.record_count[row] < 0:
        return
    if row and not (found.is_kept[row - 1] and _adjoin(table, row, row)):
        return
    if not row and int(table.position[0]):
        return
    first = int(last_offset[row - 1]) + 1 if row else offsets.first
    is_whole = row > 0 and _goes_on(table, row) and _is_gapless(table, last_offset, row) and has_keyless(row - 1)
    proof = proof_of_false_end(table.rows(slice(max(row - 1, 0), None)), first, indexed, is_whole=is_whole)
    if proof and first + int(table.last_offset_delta[row]) <= offsets.last:
        found.is_kept[row], found.rival[row] = False, Rival.NONE
        found.right_offset[row] = first
        found.proofs[row] = proof


def proof_of_false_end(end: BatchTable, first: int, indexed: IndexedOffsets | None, *, is_whole: bool) -> str:
    """The proof that the last batch of a log must start at ``first`` and not where it says; empty for none.

    ``end`` is that batch, after the one before it, which it adjoins. ``is_whole``: no offset is missing before them,
    and a record without a key shows that the log was never compacted. Otherwise the batch of another producer may have
    been removed between the two, and the sequence proves nothing.
    """
    base, width = int(end.base_offset[-1]), int(end.last_offset_delta[-1]) + 1
    if base == first:
        return ""
    if indexed is not None:
        named = indexed.within(first, first + width)
        if named is not None and (base < first or indexed.within(base, base + width) is None):
            return f"an index names offset {named} there"
    if is_whole and len(end) > 1 and _goes_on(end, 1):
        return "the sequence of its producer goes on there"
    return ""


def _goes_on(table: BatchTable, row: int) -> bool:
    """Whether a batch and the one before it are of one producer, whose sequence has no gap between them."""
    before = row - 1
    is_one = (
        table.producer_id[row] >= 0
        and table.producer_id[row] == table.producer_id[before]
        and table.producer_epoch[row] == table.producer_epoch[before]
        and table.base_sequence[before] >= 0
    )
    after = int(table.base_sequence[before]) + int(table.last_offset_delta[before]) + 1
    return bool(is_one and int(table.base_sequence[row]) == after % _SEQUENCES)


def _is_gapless(table: BatchTable, last_offset: NDArray[np.int64], stop: int) -> bool:
    """Whether no offset is missing between the batches before ``stop``: compaction removed none of them."""
    return bool((table.base_offset[1:stop] == last_offset[: stop - 1] + 1).all()) and not table.is_sparse[:stop].any()
