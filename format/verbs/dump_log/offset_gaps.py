"""Gaps between the offsets of a log, for the notice that kafka-dump-log prints at its end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format.verbs.dump_log.options import Release


class OffsetGaps:
    """The pairs of neighbouring offsets of one log that are not consecutive.

    A compacted log is full of them; 16 bytes are kept for each. 4.3.1 assumes that every log follows offset -1, so it
    reports a gap before every log but the first; it reports gaps after the same offset only once.
    """

    def __init__(self, emulate: Release | None) -> None:
        self._emulate = emulate
        self._first: int | None = None
        self._last: int | None = -1 if emulate is Release.V4_3_1 else None
        self._pairs: list[NDArray[np.int64]] = []

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
            self._pairs.append(np.stack((before[is_gap], offsets[is_gap]), axis=1))
        self._last = int(offsets[-1])

    def follow(self, later: OffsetGaps) -> None:
        """Append the gaps of the records that follow, which were collected separately."""
        if later._first is None:
            return
        self.add(np.array([later._first], np.int64))
        self._pairs += later._pairs
        self._last = later._last

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Each offset and the one after it, in the order in which they are reported."""
        if not self._pairs:
            return
        pairs = np.concatenate(self._pairs)
        if self._emulate is Release.V4_3_1:
            yield from sorted(dict(pairs.tolist()).items())
        elif self._emulate is Release.V3_9_1:
            yield from map(tuple, pairs[::-1].tolist())
        else:
            yield from map(tuple, pairs.tolist())
