"""Gaps between the offsets of a log, for the notice that kafka-dump-log prints at its end."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format.verbs.dump_log.options import Release

_FASTEST = 1
#: The number of gaps that are compressed together.
_PACKED_GAPS = 64 * 1024


class OffsetGaps:
    """The pairs of neighbouring offsets of one log that are not consecutive.

    A compacted log has many of them, and a hostile one tens of millions, so they are kept compressed, as differences.
    4.3.1 assumes that every log follows offset -1, so it reports a gap before every log but the first. It reports gaps
    after the same offset only once.
    """

    def __init__(self, emulate: Release | None) -> None:
        self._emulate = emulate
        self._first: int | None = None
        self._last: int | None = -1 if emulate is Release.V4_3_1 else None
        self._packed: list[bytes] = []
        self._pairs: list[NDArray[np.int64]] = []  # not packed yet
        self._pair_count = 0  # of these

    def add(self, offsets: NDArray[np.int64]) -> None:
        """Add the offsets of the next records, in log order."""
        if not len(offsets):
            return
        if self._first is None:
            self._first = int(offsets[0])
        first = int(offsets[0]) if self._last is None else self._last
        before = np.concatenate((np.array([first], np.int64), offsets[:-1]))
        is_gap = offsets - before != 1
        if self._last is None:
            is_gap[0] = False
        if is_gap.any():
            self._keep(np.stack((before[is_gap], offsets[is_gap]), axis=1))
        self._last = int(offsets[-1])

    def _keep(self, pairs: NDArray[np.int64]) -> None:
        if self._emulate is Release.V4_3_1:
            pairs = _latest(pairs)
        self._pairs.append(pairs)
        self._pair_count += len(pairs)
        if self._pair_count >= _PACKED_GAPS:
            self._pack()

    def _pack(self) -> None:
        if self._pairs:
            flat = np.concatenate(self._pairs).ravel()
            self._packed.append(zlib.compress(np.diff(flat, prepend=np.int64(0)).tobytes(), _FASTEST))
            self._pairs, self._pair_count = [], 0

    def follow(self, later: OffsetGaps) -> None:
        """Append the gaps of the records that follow, which were collected separately."""
        if later._first is None:
            return
        self.add(np.array([later._first], np.int64))
        if later._packed:
            self._pack()
            self._packed += later._packed
        for pairs in later._pairs:
            self._keep(pairs)
        self._last = later._last

    def __bool__(self) -> bool:
        return bool(self._packed or self._pairs)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Each offset and the one after it, in the order in which they are reported."""
        self._pack()
        if self._emulate is Release.V4_3_1:
            merged = np.empty((0, 2), np.int64)
            for packed in self._packed:
                merged = _latest(np.concatenate((merged, _unpacked(packed))))
            yield from map(tuple, merged.tolist())
        elif self._emulate is Release.V3_9_1:
            for packed in reversed(self._packed):
                yield from map(tuple, _unpacked(packed)[::-1].tolist())
        else:
            for packed in self._packed:
                yield from map(tuple, _unpacked(packed).tolist())


def _unpacked(packed: bytes) -> NDArray[np.int64]:
    flat: NDArray[np.int64] = np.cumsum(np.frombuffer(zlib.decompress(packed), np.int64))
    return flat.reshape(-1, 2)


def _latest(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs in the order of their first offsets; of several with the same, the last."""
    firsts, at = np.unique(pairs[::-1, 0], return_index=True)
    return np.stack((firsts, pairs[::-1][at, 1]), axis=1)
