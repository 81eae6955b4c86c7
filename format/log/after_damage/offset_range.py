"""The range of offsets that the batches of a log can have."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.log.batch_table import BatchTable, Int64Column

_MAX_OFFSET = 2**63 - 1


class OffsetRange(msgspec.Struct, frozen=True):
    """The offsets that batches of a log can have; the base offset of a batch outside the range is damaged."""

    first: int = 0
    last: int = _MAX_OFFSET - 1

    def possible(self, table: BatchTable) -> BatchTable:
        """The batches whose offsets are in the range."""
        is_possible = self.holds(table.base_offset, table.last_offset_delta)
        return table if is_possible.all() else table.rows(is_possible)

    def holds(self, base_offset: Int64Column, last_offset_delta: Int64Column) -> NDArray[np.bool_]:
        """Which of these batches are in the range, as bool; computed without sums that could overflow int64."""
        is_held: NDArray[np.bool_] = (base_offset >= self.first) & (base_offset <= self.last) & (last_offset_delta >= 0)
        is_held &= last_offset_delta <= self.last - np.clip(base_offset, self.first, max(self.first, self.last))
        return is_held


def possible_offsets(path: str) -> OffsetRange:
    """The offsets that the batches of a file can have: from the base offset in its name on, limited by its index.

    An offset index stores offsets relative to the base offset as int32. All offsets for a file with another name.
    """
    match = layout.SEGMENT_FILE.match(path.rpartition("/")[2])
    first = 0 if match is None else int(match["base_offset"])
    if match is None or first >= _MAX_OFFSET:
        return OffsetRange()
    return OffsetRange(first, min(first + layout.MAX_RELATIVE_OFFSET, _MAX_OFFSET - 1))


def offset_before(path: str) -> int | None:
    """The offset before the base offset in the name of a segment; None for a file with another name."""
    match = layout.SEGMENT_FILE.match(path.rpartition("/")[2])
    return None if match is None or int(match["base_offset"]) >= _MAX_OFFSET else int(match["base_offset"]) - 1
