"""Base offsets, which no CRC covers: what the batches around one and those of other replicas say of it.

The CRC covers how many offsets a batch has. So in a run of intact batches that adjoin each other, each offset follows
from any other one, unless the cleaner has made gaps, which it has not past the offset up to which it has cleaned. What
two of a run agree on is proven, and the others are false. A batch alone between damaged places has no such proof. It is
held back until the other replicas were read: one that has the same batch elsewhere proves that its offset is false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import BatchTable
from format.offset_ranges import Int64s
from format.rewriting.composed_logs import Piece
from format.verbs.diff.replica_log import ReplicaLog, Window

#: The most batches that are held back; more stand alone only in a file that was made so.
_MOST_HELD = 10_000
#: No codec packs records without keys and values denser: measured are 1.3 to a byte.
_MOST_OFFSETS_A_BYTE = 2


class Standing(msgspec.Struct, frozen=True):
    """What the neighbours of the batches of a chunk say of their offsets, by the rows of the chunk's table.

    ``is_false``: others prove another offset. ``run`` is not 0 for what nothing proves: a number that the batches share
    of which one at most is right. The offsets of all others are proven, or the cleaner may have made gaps before them.
    ``is_epoch_false``: epochs never fall, and that of a batch is not between those around it.
    """

    is_false: NDArray[np.bool_]
    run: NDArray[np.int64]
    is_epoch_false: NDArray[np.bool_]

    def rows(self, rows: NDArray[np.intp]) -> Standing:
        """That of some rows."""
        return Standing(self.is_false[rows], self.run[rows], self.is_epoch_false[rows])


class _Before(msgspec.Struct, frozen=True):
    """The last batch of the chunk before, or the name of the segment, where its first batch begins."""

    segment_base: int = -1
    end_position: int = -1
    last_offset: int = -1
    leader_epoch: int = -1
    is_proven: bool = True


class Neighbours:
    """Judges the batches of one replica, chunk by chunk; ``clean_until`` is where the cleaner was."""

    def __init__(self, log: ReplicaLog, clean_until: int) -> None:
        self._log = log
        self._clean_until = clean_until
        self._window: Window | None = None
        self._segment_base = -1
        self._before = _Before()
        self._standing: Standing | None = None
        self._run_count = 0
        self._is_last_proven = True  # one of a chunk that all replicas share is

    def look(self) -> bool:
        """Note the chunk that was loaded, and return whether one was; nothing of it may be consumed yet."""
        log = self._log
        window = self._window
        if log.chunk is None or (window is not None and log.chunk is window.chunk):
            return False
        if window is not None and len(window.chunk.table):
            table = window.chunk.table
            end, last, epoch = (int(each[-1]) for each in (table.end_position, table.last_offset, table.leader_epoch))
            self._before = _Before(self._segment_base, end, last, epoch, self._is_last_proven)
        self._window, self._standing, self._is_last_proven = log.window(2**63 - 1), None, True
        self._segment_base = log.replica_segment_base
        if self._before.segment_base != self._segment_base:
            self._before = _Before(self._segment_base, 0, self._segment_base - 1)
        return True

    @property
    def table(self) -> BatchTable:
        if self._window is None:
            raise ValueError("no chunk was loaded")
        return self._window.chunk.table

    @property
    def ends_before(self) -> tuple[Int64s, Int64s]:
        """The end position and the last offset of the batch before each of the chunk."""
        table, before = self.table, self._before
        ends = np.concatenate(([before.end_position], table.end_position[:-1]))
        return ends, np.concatenate(([before.last_offset], table.last_offset[:-1]))

    @property
    def standing(self) -> Standing:
        """That of the chunk."""
        if self._standing is None:
            if self._window is None:
                raise ValueError("no chunk was loaded")
            self._standing = self._judged(self._window)
        return self._standing

    def _judged(self, window: Window) -> Standing:
        table, before, count = window.chunk.table, self._before, len(window.chunk.table)
        is_taken = np.zeros(count, bool)
        is_taken[window.rows] = True
        # Gaps that the cleaner made are between taken batches that it has reached; others are in runs.
        is_in_run = (table.crc_valid == 1) & (table.last_offset >= table.base_offset)
        is_in_run &= ~is_taken | (table.base_offset >= self._clean_until)
        ends, lasts = self.ends_before
        adjoins = table.position == ends
        is_start = ~adjoins | ~is_in_run | ~np.concatenate(([False], is_in_run[:-1]))
        number = np.cumsum(is_start)
        width = np.where(is_in_run, table.last_offset - table.base_offset + 1, 0)
        widths = np.concatenate(([0], np.cumsum(width)))
        origin = table.base_offset - widths[:-1]  # the same for all batches of a run
        # The ends of the runs: what is before is the segment's name or a batch of the chunk before, or a damaged batch,
        # whose header is a witness too, as is that of a damaged batch that follows.
        is_witnessed = is_start & adjoins & is_in_run & (lasts + 1 >= self._clean_until)
        follows = np.flatnonzero(adjoins[1:] & is_in_run[:-1] & (table.crc_valid[1:] != 1))
        votes = np.concatenate(
            (
                np.column_stack((number, origin))[is_in_run],
                np.column_stack((number, lasts + 1 - widths[:-1]))[is_witnessed],
                np.column_stack((number[follows], table.base_offset[follows + 1] - widths[follows + 1])),
            )
        )
        _, which, counts = np.unique(votes, axis=0, return_inverse=True, return_counts=True)
        is_proven = np.zeros(count, bool)
        is_proven[is_in_run] = counts[which.reshape(-1)][: int(is_in_run.sum())] > 1
        has_proof = np.isin(number, number[is_proven])
        bytes_before = table.position - ends
        has_no_room = is_start & (lasts + 1 >= self._clean_until) & np.concatenate(([before.is_proven], is_proven[:-1]))
        has_no_room &= table.base_offset - lasts - 1 > _MOST_OFFSETS_A_BYTE * bytes_before
        is_false = is_in_run & is_taken & ~is_proven & (has_proof | has_no_room)
        run = np.where(is_in_run & is_taken & ~has_proof & ~is_false, number + self._run_count, 0)
        self._run_count += count + 1
        self._is_last_proven = bool(count) and bool(is_proven[-1])
        epoch = np.concatenate(([before.leader_epoch], table.leader_epoch))
        is_joint = adjoins & (table.base_offset == lasts + 1)
        is_joint &= is_taken & np.concatenate(([True], is_taken[:-1]))
        is_epoch_false = np.zeros(count, bool)
        is_epoch_false[:-1] = is_joint[:-1] & is_joint[1:] & (epoch[:-2] <= epoch[2:])
        is_epoch_false[:-1] &= (epoch[1:-1] < epoch[:-2]) | (epoch[1:-1] > epoch[2:])
        return Standing(is_false, run, is_epoch_false)


class HeldBatch(msgspec.Struct):
    """A batch of which nothing proves the offset, or with a false leader epoch, and the piece that it is.

    ``run`` is that of its standing. ``is_confirmed``: another replica has it at this offset too. ``is_elsewhere``: one
    has it at another offset.
    """

    piece: Piece
    crc: int
    run: int = 0
    is_epoch_false: bool = False
    is_confirmed: bool = False
    is_elsewhere: bool = False


class HeldBatches:
    """The batches of all replicas that are held back until all replicas were read."""

    def __init__(self) -> None:
        self.batches: list[HeldBatch] = []
        self._crcs = np.empty(0, np.int64)

    @property
    def is_full(self) -> bool:
        return len(self.batches) >= _MOST_HELD

    def add(self, batch: HeldBatch) -> None:
        """Hold a batch back."""
        self.batches.append(batch)
        self._crcs = np.append(self._crcs, batch.crc)

    def see(self, windows: Sequence[Window | None], standings: Sequence[Standing | None]) -> None:
        """Compare the batches that are held back with what each replica has over the same offsets."""
        for number, (window, standing) in enumerate(zip(windows, standings, strict=True)) if self.batches else ():
            if window is None or standing is None:
                continue
            crc = window.chunk.table.crc[window.rows]
            for at in np.flatnonzero(np.isin(self._crcs, crc)).tolist():
                held = self.batches[at]
                rows = np.flatnonzero((crc == held.crc) & ~standing.is_false)
                if held.piece.replica != number and not held.is_confirmed and len(rows):
                    _compare(held, window.chunk.table.rows(window.rows[rows]), windows[held.piece.replica])

    def compare(self, number: int, neighbours: Neighbours) -> None:
        """Compare with all batches of a chunk of a replica, also those that are not in order there, or damaged.

        The header of a damaged batch has its CRC too. It is a witness that follows the batch before it.
        """
        table = neighbours.table
        if not len(table):
            return
        ends, lasts = neighbours.ends_before
        follows = (table.position == ends) & (table.base_offset == lasts + 1) & (table.crc_valid != 1)
        for at in np.flatnonzero(np.isin(self._crcs, table.crc)).tolist():
            held = self.batches[at]
            is_same = (table.crc == held.crc) & (table.size_bytes == held.piece.size_bytes)
            is_there = is_same & (table.base_offset == held.piece.first_offset)
            if held.piece.replica != number:
                held.is_confirmed |= bool(is_there.any())
                held.is_elsewhere |= bool((is_same & ~is_there & follows).any())

    def true_ones(self, base: int) -> list[Piece]:
        """Those of which nothing shows that their offsets are false, the best first."""
        left = [each for each in self.batches if each.is_confirmed or not each.is_elsewhere]
        in_run = Counter((each.piece.replica, each.run) for each in left if each.run)
        found = [each for each in left if each.is_confirmed or in_run[each.piece.replica, each.run] < 2]
        found.sort(key=lambda each: (each.is_epoch_false, not each.is_confirmed, each.piece.replica != base))
        return [each.piece for each in found]


def _compare(held: HeldBatch, table: BatchTable, own: Window | None) -> None:
    """Compare a batch with those of another replica that have its CRC; ``own`` is its own replica there."""
    table = table.rows(table.size_bytes == held.piece.size_bytes)
    is_same = table.base_offset == held.piece.first_offset
    held.is_confirmed |= bool(is_same.any())
    if own is not None:  # a batch that was sent twice is twice in both
        is_same |= same_batches(table, own.table)
    held.is_elsewhere |= not is_same.all()


def same_batches(table: BatchTable, others: BatchTable) -> NDArray[np.bool_]:
    """Which batches another table has at the same offset, with the same size and CRC."""
    if not len(others):
        return np.zeros(len(table), bool)
    at = np.minimum(np.searchsorted(others.base_offset, table.base_offset), len(others) - 1)
    is_same: NDArray[np.bool_] = (others.base_offset[at] == table.base_offset) & (others.crc[at] == table.crc)
    is_same &= others.size_bytes[at] == table.size_bytes
    return is_same
