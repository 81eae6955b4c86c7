"""Checks an .index against the batches of its segment, which are fed table by table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from format.files.index_file import entries_with_problems
from format.files.offset_index import OffsetIndex
from format.findings import Cause, Finding, Judgement, finding
from format.layout import OFFSET_INDEX_ENTRY
from format.location import Location
from format.log.batch_table import BatchTable
from format.sorted_values import are_among


class OffsetIndexCheck:
    """Checks that every entry points to a batch, and that look-ups through it skip no batch.

    Up to 1.1 brokers wrote the first offset of an append into an entry, and since then its last offset: an entry's
    offset may be the first or the last of any batch from its position on.
    """

    def __init__(self, index: OffsetIndex, location: Location) -> None:
        self._location = location
        self._offsets = index.offsets
        self._positions = index.positions
        self._is_invalid = entries_with_problems(index.problems, OFFSET_INDEX_ENTRY.size_bytes, index.entry_count)
        self._is_seen = np.zeros(index.entry_count, bool)
        self._is_exact = np.zeros(index.entry_count, bool)
        self._is_inside = np.zeros(index.entry_count, bool)  # whether the position is in the middle of a batch
        self._low = np.full(index.entry_count, -1, np.int64)  # base offset of the batch at the entry's position
        self._last_offset = -1  # the highest one of the segment
        self._end_position = 0  # of its last batch

    def feed(self, table: BatchTable) -> None:
        """Compare the entries with one table of the segment's batches."""
        if not len(table) or not len(self._positions):
            return
        position, base, last = table.position, table.base_offset, table.last_offset
        self._last_offset = max(self._last_offset, int(last.max()))
        self._end_position = max(self._end_position, int(table.end_position[-1]))
        before = np.searchsorted(position, self._positions) - 1
        self._is_inside |= (before >= 0) & (table.end_position[np.maximum(before, 0)] > self._positions)
        at = np.minimum(np.searchsorted(position, self._positions), len(table) - 1)
        hit = position[at] == self._positions
        self._is_seen |= hit
        self._low[hit] = base[at[hit]]
        self._is_exact |= are_among(self._offsets, last) | are_among(self._offsets, base)

    def findings(
        self,
        damaged_from: int | None,
        cause: Cause | None = None,
        *,
        is_active: bool = False,
        judged_at_end: Callable[[Finding], Finding] = lambda found: found,
    ) -> Iterator[Finding]:
        """The findings after all intact batches of the segment; ``cause`` is the damage, if any.

        After ``damaged_from`` an entry may point to a damaged batch, and have its offset. It is wrong if it points into
        the middle of an intact batch, or to a batch that starts after its offset. ``judged_at_end`` judges entries past
        the last batch of the active segment.
        """
        past_end = self._end_position if is_active and damaged_from is None else 2**63
        first_astray: int | None = None  # of a run of entries that point to no batch
        for number in range(len(self._positions) + 1):
            is_past_end = number == len(self._positions)
            is_past_damage = not is_past_end and damaged_from is not None and self._positions[number] >= damaged_from
            is_astray = not is_past_end and not self._is_seen[number] and not self._is_invalid[number]
            is_astray = is_astray and bool(self._is_inside[number] or not is_past_damage)
            if first_astray is not None:
                begins_past = bool(self._positions[first_astray] >= past_end)
                if not is_astray or begins_past != bool(self._positions[number] >= past_end):
                    found = self._astray(first_astray, number - 1, cause)
                    yield judged_at_end(found) if begins_past else found
                    first_astray = None
            if is_astray:
                first_astray = number if first_astray is None else first_astray
                continue
            if is_past_end or not self._is_seen[number]:
                continue
            offset = int(self._offsets[number])
            if self._low[number] > offset:
                yield finding(
                    "offset-index-mismatch", self._place(number),
                    f"entry {number} gives position {self._positions[number]} for offset {offset}, but the batch there "
                    f"starts at offset {self._low[number]}: look-ups from {offset} on would miss records",
                    expected=int(self._low[number]), actual=offset,
                )  # fmt: skip
            elif is_active and damaged_from is None and number == len(self._offsets) - 1 and offset > self._last_offset:
                yield finding(
                    "offset-index-mismatch", self._place(number),
                    f"entry {number}, the last one, has offset {offset}, but the segment ends at {self._last_offset}: "
                    "after a clean stop a broker looks for the end of the log from there on, finds no batch, and "
                    "serves nothing of this segment",
                    expected=self._last_offset, actual=offset,
                )  # fmt: skip
            elif not self._is_exact[number] and damaged_from is None:
                yield finding(
                    "offset-index-imprecise", self._place(number),
                    f"entry {number} has offset {offset}, which is not the first or last of a batch",
                )  # fmt: skip

    def _place(self, number: int) -> Location:
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        return self._location.at(number * size_bytes, size_bytes, int(self._offsets[number]))

    def _astray(self, first: int, last: int, cause: Cause | None) -> Finding:
        """The finding for consecutive entries that point to no batch."""
        positions = self._positions[first], self._positions[last]
        words = f"entry {first} points to position {positions[0]}, where no batch starts"
        if last > first:
            words = (
                f"entries {first} to {last} point to positions {positions[0]} to {positions[1]}, where no batch starts"
            )
        return finding(
            "offset-index-mismatch", self._place(first), words, actual=int(positions[0]),
            judgement=Judgement(caused_by=cause),
        )  # fmt: skip
