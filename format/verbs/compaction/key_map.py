"""The latest offset of each key: 64-bit hashes and offsets in sorted columns.

The cleaner compares 128-bit hashes, and never keys, as well (storage SkimpyOffsetMap). With five million keys, the most
that its default buffer holds, two of them share a 64-bit hash with a probability of one in a million.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.record_table import RecordTable

Int64Column = NDArray[np.int64]

#: The number of parts that keys are divided into by their hash, so that adding some copies only parts of the map.
_PARTS = 64
_PENDING_ROWS = 256 * 1024


def key_hashes(table: RecordTable) -> Int64Column:
    """The hash of each record's key; of records without one, any number."""
    content = bytes(table.buffer)
    starts, lengths = table.key_start.tolist(), table.key_length.tolist()
    spans = zip(starts, lengths, strict=True)
    return np.fromiter((hash(content[at : at + max(size, 0)]) for at, size in spans), np.int64, len(starts))


def _no_column() -> Int64Column:
    return np.empty(0, np.int64)


class _Part(msgspec.Struct):
    """The hashes of one part of the map, sorted, and their offsets."""

    hashes: Int64Column = msgspec.field(default_factory=_no_column)
    offsets: Int64Column = msgspec.field(default_factory=_no_column)

    def add(self, hashes: Int64Column, offsets: Int64Column) -> None:
        """Add keys in log order; the last offset of each is kept."""
        hashes = np.concatenate((self.hashes, hashes))
        offsets = np.concatenate((self.offsets, offsets))
        order = np.argsort(hashes, kind="stable")
        hashes, offsets = hashes[order], offsets[order]
        is_last = np.append(hashes[1:] != hashes[:-1], True) if len(hashes) else np.empty(0, np.bool_)
        self.hashes, self.offsets = hashes[is_last], offsets[is_last]


class KeyMap(msgspec.Struct):
    """The map of keys, filled in log order; ``latest_offset`` is the last offset that it covers, -1 for none."""

    latest_offset: int = -1
    _parts: list[_Part] = msgspec.field(default_factory=lambda: [_Part() for _ in range(_PARTS)])
    _pending: list[tuple[Int64Column, Int64Column]] = msgspec.field(default_factory=list)
    _pending_rows: int = 0

    def add(self, hashes: Int64Column, offsets: Int64Column) -> None:
        """Add some keys and their offsets."""
        self._pending.append((hashes, offsets))
        self._pending_rows += len(hashes)
        if self._pending_rows >= _PENDING_ROWS:
            self.settle()

    def settle(self) -> None:
        """Merge the keys that were added since the last call."""
        if not self._pending:
            return
        hashes = np.concatenate([each[0] for each in self._pending])
        offsets = np.concatenate([each[1] for each in self._pending])
        self._pending, self._pending_rows = [], 0
        parts = hashes & (_PARTS - 1)
        for number, part in enumerate(self._parts):
            rows = parts == number
            if rows.any():
                part.add(hashes[rows], offsets[rows])

    def __len__(self) -> int:
        """The number of keys."""
        self.settle()
        return sum(len(part.hashes) for part in self._parts)

    def offsets_of(self, hashes: Int64Column) -> Int64Column:
        """The latest offset of each key, -1 for a key that is not in the map."""
        self.settle()
        found = np.full(len(hashes), -1, np.int64)
        parts = hashes & (_PARTS - 1)
        for number, part in enumerate(self._parts):
            rows = np.flatnonzero(parts == number)
            if not len(rows) or not len(part.hashes):
                continue
            wanted = hashes[rows]
            at = np.minimum(np.searchsorted(part.hashes, wanted), len(part.hashes) - 1)
            is_there = part.hashes[at] == wanted
            found[rows[is_there]] = part.offsets[at[is_there]]
        return found
