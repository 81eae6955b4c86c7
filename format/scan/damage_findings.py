"""Findings for damage between batches, and for batches that a log repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.findings import Finding, finding
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage


def damage_finding(damage: Damage, location: Location, *, is_last_segment: bool) -> Finding:
    """The finding for bytes that belong to no readable batch.

    A cut-off end is a torn tail only in the last segment; in one that others follow, records are lost.
    """
    lost, code = damage.lost_offsets, damage.code
    if damage.reaches_end and not is_last_segment and code == "tail-torn":
        code = "log-truncated"
    if damage.code == "limit-exceeded":
        where = location.at(position=damage.position, length=damage.length)
        return finding(code, where, f"{damage.reason}: {damage.length} bytes")
    message = f"{damage.reason}; {damage.length} bytes are not readable"
    if damage.next_base_offset is not None:
        message += f", the next intact batch starts at offset {damage.next_base_offset}"
    elif damage.reaches_end:
        message += " up to the end of the file"
    if lost is not None:
        message += f"; offsets {lost[0]} to {lost[1]} are lost" if lost[0] < lost[1] else f"; offset {lost[0]} is lost"
    next_offset = None if damage.after_offset is None else damage.after_offset + 1
    where = location.at(position=damage.position, length=damage.length, offset=next_offset)
    return finding(code, where, message, lost_offsets=lost)


class RepeatFindings:
    """The run of repeated batches that the chunks so far end with; the chunks must come in log order."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._start = self._end = 0
        self._first_offset = self._last_offset = 0
        self._count = 0

    def before(self, chunk: BatchChunk) -> Iterator[Finding]:
        """Findings for the runs that end before a chunk or in it."""
        if chunk.repeated is None:
            yield from self.ended()
            return
        table = chunk.table
        for row in np.flatnonzero(chunk.repeated).tolist():
            position = int(table.position[row])
            if position != self._end:
                yield from self.ended()
            if not self._count:
                self._start, self._first_offset = position, int(table.base_offset[row])
            self._count += 1
            self._end, self._last_offset = int(table.end_position[row]), table.last_offset_of(row)

    def ended(self) -> Iterator[Finding]:
        """The finding for the run so far, if there is one."""
        if self._count:
            batches = "a batch stands" if self._count == 1 else f"{self._count} batches stand"
            yield finding(
                "offset-not-increasing",
                self._location.at(self._start, self._end - self._start, self._first_offset),
                f"{batches} here that the log holds before, byte for byte, from offset {self._first_offset} to "
                f"{self._last_offset}: the records are not read a second time",
            )
        self._count = 0
