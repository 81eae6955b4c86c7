"""Checks a .timeindex against the batches of its segment, which are fed table by table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from format.files.index_file import entries_with_problems
from format.files.time_index import TimeIndex
from format.findings import Certainty, Finding, Judgement, Severity, finding
from format.layout import TIME_INDEX_ENTRY
from format.location import Location
from format.log.batch_table import BatchTable
from format.timestamps import iso_time

_NEVER = -(2**63)
BoolArray = NDArray[np.bool_]


class TimeIndexCheck:
    """Checks that an entry has the largest timestamp of the segment so far, and an offset of its batch (KIP-33)."""

    def __init__(self, index: TimeIndex, location: Location) -> None:
        self._location = location
        self._timestamps = index.timestamps
        self._offsets = index.offsets
        self._is_invalid = entries_with_problems(index.problems, TIME_INDEX_ENTRY.size_bytes, index.entry_count)
        self._before = np.full(index.entry_count, _NEVER, np.int64)  # largest timestamp before the entry's batch
        self._of_batch = np.full(index.entry_count, _NEVER, np.int64)
        self._is_seen = np.zeros(index.entry_count, bool)
        self._is_past_v0 = np.zeros(index.entry_count, bool)  # whether messages of format 0 are at or before it
        self._has_v0 = False
        self._largest = _NEVER
        self._last_offset = -1  # the highest one of the segment
        self.has_padding = index.padding_bytes > 0

    def feed(self, table: BatchTable) -> None:
        """Compare the entries with one table of the segment's batches."""
        if not len(table):
            return
        last = np.maximum.accumulate(table.last_offset)
        largest = np.maximum.accumulate(table.max_timestamp)
        before = np.concatenate(([self._largest], np.maximum(largest, self._largest)[:-1]))
        at = np.searchsorted(last, self._offsets)
        inside = at < len(table)
        rows = np.minimum(at, len(table) - 1)
        inside &= ~self._is_seen & (table.base_offset[rows] <= self._offsets)
        self._is_seen |= inside
        self._before[inside] = before[rows[inside]]
        self._of_batch[inside] = table.max_timestamp[rows[inside]]
        past_v0 = np.logical_or.accumulate(table.magic == 0) | self._has_v0
        self._is_past_v0[inside] = past_v0[rows[inside]]
        self._has_v0 = bool(past_v0[-1])
        self._largest = max(self._largest, int(largest[-1]))
        self._last_offset = max(self._last_offset, int(last[-1]))

    def _is_plain(self) -> BoolArray:
        """Which entries are as a broker writes them: nothing is to be said of them, with damage or without."""
        plain: BoolArray = self._is_seen & ~self._is_invalid
        plain &= (self._timestamps == self._of_batch) & (self._before < self._of_batch)
        return plain

    def findings(
        self,
        damaged_after_offset: int | None,
        *,
        is_closed: bool,
        judged_at_end: Callable[[Finding], Finding] = lambda found: found,
    ) -> Iterator[Finding]:
        """The findings after all intact batches of the segment.

        After damage an entry may be that of a damaged batch. It is wrong if an intact batch up to its offset has a
        larger timestamp. A broker takes the largest timestamp of a closed segment from the last entry.
        ``judged_at_end`` judges entries past the end of the active segment.
        """
        for number in np.flatnonzero(~self._is_plain()).tolist():
            timestamp, offset = int(self._timestamps[number]), int(self._offsets[number])
            is_past_damage = damaged_after_offset is not None and offset > damaged_after_offset
            if is_past_damage and not self._is_seen[number]:
                continue
            place = self._location.at(number * TIME_INDEX_ENTRY.size_bytes, TIME_INDEX_ENTRY.size_bytes, offset)
            if self._is_invalid[number]:
                continue
            if not self._is_seen[number]:
                found = finding(
                    "time-index-mismatch", place, f"entry {number} has offset {offset}, which is in no batch"
                )
                yield found if is_closed or offset <= self._last_offset else judged_at_end(found)
                continue
            upto = max(int(self._before[number]), int(self._of_batch[number]))
            if is_past_damage and timestamp >= upto:
                continue
            if timestamp > upto and self._is_past_v0[number]:
                yield finding(
                    "time-index-imprecise", place,
                    f"entry {number} has the time {iso_time(timestamp)}, at which a broker appended messages of "
                    "format 0; these have no timestamps",
                )  # fmt: skip
            elif timestamp != upto:
                yield finding(
                    "time-index-mismatch", place,
                    f"entry {number} says that {iso_time(timestamp)} is the largest timestamp up to offset {offset}, "
                    f"but it is {iso_time(upto)}" + (" or larger" if is_past_damage else ""),
                    expected=upto, actual=timestamp,
                )  # fmt: skip
            elif int(self._before[number]) == int(self._of_batch[number]) == timestamp:
                yield finding(
                    "time-index-mismatch",
                    place,
                    f"entry {number} has offset {offset} for timestamp {iso_time(timestamp)}, which an earlier batch "
                    "also has: look-ups by that time begin too late",
                    judgement=Judgement(severity=Severity.WARNING, certainty=Certainty.LIKELY),
                )
            elif int(self._of_batch[number]) != timestamp:
                yield finding(
                    "time-index-imprecise", place,
                    f"entry {number} has timestamp {iso_time(timestamp)}, which belongs to a batch before offset "
                    f"{offset}",
                )  # fmt: skip
        if is_closed and self._largest >= 0 and not self.has_padding:
            known = int(self._timestamps[-1]) if len(self._timestamps) else -1
            if known < self._largest:
                yield finding(
                    "time-index-mismatch",
                    self._location,
                    f"the last entry has timestamp {iso_time(known)}, but the largest timestamp of the segment is "
                    f"{iso_time(self._largest)}: look-ups by time skip the segment",
                    expected=self._largest,
                    actual=known,
                )
