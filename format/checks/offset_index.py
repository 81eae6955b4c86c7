"""An .index against the batches of its segment, fed table by table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.files.offset_index import OffsetIndex
from format.findings import Finding, finding
from format.layout import OFFSET_INDEX_ENTRY
from format.location import Location
from format.log.batch_table import BatchTable


class OffsetIndexCheck:
    """Every entry must point to a batch, and look-ups through it must miss none.

    Brokers wrote the first offset of an append into an entry until 1.1 and its last offset since, so an entry's
    offset may be any that starts or ends a batch from its position on.
    """

    def __init__(self, index: OffsetIndex, location: Location) -> None:
        self._location = location
        self._offsets = index.offsets
        self._positions = index.positions
        self._is_seen = np.zeros(index.entry_count, bool)
        self._is_exact = np.zeros(index.entry_count, bool)
        self._is_inside = np.zeros(index.entry_count, bool)  # whether the position lies in the midst of a batch
        self._low = np.full(index.entry_count, -1, np.int64)  # base offset of the batch at the entry's position

    def feed(self, table: BatchTable) -> None:
        """Note what one table of the segment's batches says of the entries."""
        if not len(table) or not len(self._positions):
            return
        position, base, last = table.position, table.base_offset, table.last_offset
        before = np.searchsorted(position, self._positions) - 1
        self._is_inside |= (before >= 0) & (table.end_position[np.maximum(before, 0)] > self._positions)
        at = np.minimum(np.searchsorted(position, self._positions), len(table) - 1)
        hit = position[at] == self._positions
        self._is_seen |= hit
        self._low[hit] = base[at[hit]]
        self._is_exact |= np.isin(self._offsets, last) | np.isin(self._offsets, base)

    def findings(self, damaged_from: int | None) -> Iterator[Finding]:
        """The findings once the whole segment was fed; only intact batches were.

        Past ``damaged_from`` an entry may point to a batch that is damaged, and name the offset of one. It is wrong if
        it points into the midst of an intact batch, or to one that begins after its offset.
        """
        for number in range(len(self._positions)):
            position, offset = int(self._positions[number]), int(self._offsets[number])
            is_past_damage = damaged_from is not None and position >= damaged_from
            if is_past_damage and not (self._is_inside[number] or self._is_seen[number]):
                continue
            place = self._location.at(number * OFFSET_INDEX_ENTRY.size_bytes, OFFSET_INDEX_ENTRY.size_bytes, offset)
            if not self._is_seen[number]:
                yield finding(
                    "offset-index-mismatch", place,
                    f"entry {number} points to position {position}, where no batch starts", actual=position,
                )  # fmt: skip
            elif self._low[number] > offset:
                yield finding(
                    "offset-index-mismatch", place,
                    f"entry {number} says that offset {offset} lies at or after position {position}, where the batch "
                    f"starts at offset {self._low[number]}: look-ups from {offset} on would miss records",
                    expected=int(self._low[number]), actual=offset,
                )  # fmt: skip
            elif not self._is_exact[number] and damaged_from is None:
                yield finding(
                    "offset-index-imprecise", place,
                    f"entry {number} names offset {offset}, which starts or ends no batch",
                )  # fmt: skip
