"""Repeated batches: batches with the same offsets, size and CRC as an earlier batch of the file.

A log to which a part of itself was appended has such batches. The offsets of a sound log rise, so no batch is
remembered until an offset does not rise; then the headers before it are read again.
"""

from __future__ import annotations

from array import array

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.io.source import Source
from format.log.batch_header import header_tables
from format.log.batch_table import BatchTable, Int64Column


class RepeatedBatches:
    """Finds the repeated batches of one file.

    Tables must be passed in log order. ``read_from`` is the position in the file from which on batches were read, and
    ``after_offset`` the last offset before the first table.
    """

    def __init__(self, source: Source, read_from: int, after_offset: int | None) -> None:
        self._source = source
        self._read_from = read_from
        self._highest = -1 if after_offset is None else after_offset
        self._passed_over = array("q")  # starts and ends of bytes that are not an intact batch
        self._seen: list[_Seen] | None = None

    def pass_over(self, start: int, end: int) -> None:
        """Record a range of bytes that is not an intact batch."""
        self._passed_over.extend((start, end))

    def in_table(self, table: BatchTable) -> NDArray[np.bool_] | None:
        """Which batches of the next table repeat an earlier one; None if none does. CRCs must be computed."""
        sums = table.sums
        if self._seen is None and sums.follows and sums.right_crcs == len(table) and sums.least_offset > self._highest:
            self._highest = max(self._highest, table.last_offset_of(len(table) - 1))
            return None  # the usual case
        is_intact = table.crc_valid == 1
        for row in np.flatnonzero(~is_intact).tolist():
            self.pass_over(int(table.position[row]), int(table.end_position[row]))
        intact = table if is_intact.all() else table.rows(is_intact)
        if not len(intact):
            return None
        if self._seen is None:
            before = np.concatenate(([self._highest], intact.last_offset[:-1]))
            if (intact.base_offset > np.maximum.accumulate(before)).all():
                self._highest = max(self._highest, int(intact.last_offset.max()))
                return None
            self._seen = []
            self._read_again(int(intact.position[0]))
        own = _Seen.of(intact)
        repeats = own.repeats_of_itself()
        for seen in self._seen:
            repeats |= seen.has(own)
        self._remember(own.rows(~repeats))
        if not repeats.any():
            return None
        repeated = np.zeros(len(table), bool)
        repeated[np.flatnonzero(is_intact)] = repeats
        return repeated

    def _read_again(self, stop: int) -> None:
        """Remember the batches from ``read_from`` up to ``stop``."""
        gaps = np.array(self._passed_over, np.int64).reshape(-1, 2)
        position = self._read_from
        for start, end in [*gaps.tolist(), (stop, stop)]:
            for table in header_tables(self._source, position, min(start, stop)):
                self._remember(_Seen.of(table))
            position = max(position, end)
        self._passed_over = array("q")

    def _remember(self, more: _Seen) -> None:
        """Add batches; small pieces are joined to larger ones, so that there are few pieces to search."""
        seen = self._seen
        if seen is None or not len(more.key):
            return
        while seen and len(seen[-1].key) < 2 * len(more.key):
            more = seen.pop().joined(more)
        seen.append(more)


class _Seen(msgspec.Struct, frozen=True):
    """Batches by sorted hash keys, with the values that the keys are made of, since keys may collide."""

    key: NDArray[np.uint64]
    base_offset: Int64Column
    size_and_crc: Int64Column
    row: NDArray[np.intp]

    @classmethod
    def of(cls, table: BatchTable) -> _Seen:
        base_offset, size_and_crc = table.base_offset, table.size_bytes << 32 | table.crc
        key = base_offset.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key ^= size_and_crc.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        row = np.argsort(key, kind="stable")
        return cls(key[row], base_offset[row], size_and_crc[row], row)

    def rows(self, which: NDArray[np.bool_]) -> _Seen:
        """The batches that a mask over the rows of the table selects."""
        picked = which[self.row]
        return _Seen(self.key[picked], self.base_offset[picked], self.size_and_crc[picked], self.row[picked])

    def joined(self, other: _Seen) -> _Seen:
        key = np.concatenate((self.key, other.key))
        order = np.argsort(key, kind="stable")
        pairs = ((self.base_offset, other.base_offset), (self.size_and_crc, other.size_and_crc), (self.row, other.row))
        base_offset, size_and_crc, row = (np.concatenate(pair)[order] for pair in pairs)
        return _Seen(key[order], base_offset, size_and_crc, row)

    def repeats_of_itself(self) -> NDArray[np.bool_]:
        """Which batches, by row of the table, repeat an earlier one in the table."""
        same = (self.key[1:] == self.key[:-1]) & (self.base_offset[1:] == self.base_offset[:-1])
        same &= self.size_and_crc[1:] == self.size_and_crc[:-1]
        repeats = np.zeros(len(self.key), bool)
        repeats[self.row[1:][same]] = True
        return repeats

    def has(self, others: _Seen) -> NDArray[np.bool_]:
        """Which of the other batches, by row of their table, are among these."""
        nearest = np.minimum(np.searchsorted(self.key, others.key), len(self.key) - 1)
        same = (self.key[nearest] == others.key) & (self.base_offset[nearest] == others.base_offset)
        same &= self.size_and_crc[nearest] == others.size_and_crc
        found = np.zeros(len(others.key), bool)
        found[others.row[same]] = True
        return found
