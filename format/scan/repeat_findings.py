"""Findings for batches that stand in a log a second time, a run of them in one finding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.findings import Finding, finding
from format.location import Location
from format.log.batch_chunk import BatchChunk


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
