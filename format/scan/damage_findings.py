"""Findings for damage between batches, and for repeated batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.findings import Finding, Judgement, finding
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage
from format.log.batch_table import batch_location
from format.scan.protocol import LogUnit
from format.wording import counted_plainly, offset_range, offsets_are

_REPAIR = "Copy the directory first, then run salvage --repair to keep the records of the batch."
#: Codes of damage at the end of the last segment, which a broker truncates, and the next step if that loses offsets.
_TRUNCATED_AT_START = ("tail-torn", "tail-zeros")
_LOST_END = "Look for these offsets in another replica before a broker starts here, since it truncates the log."


def damage_finding(damage: Damage, log: LogUnit) -> Finding:
    """The finding for bytes that belong to no readable batch.

    An end that is cut off is a torn tail only in the last segment; in any other segment, records are lost.
    """
    size = counted_plainly(damage.length, "byte")
    if damage.code == "limit-exceeded":
        where = log.location.at(position=damage.position, length=damage.length)
        return finding(damage.code, where, f"{damage.reason}: {size}")
    lost = damage.lost_offsets or _lost_at_end(damage, log)
    code = damage.code
    if damage.reaches_end and not log.is_last_segment and (code == "tail-torn" or (code == "tail-zeros" and lost)):
        code = "log-truncated"
    cannot = "cannot" if damage.readable is None else "cannot otherwise"
    message = f"{damage.reason}; "
    if damage.readable is not None:
        kept = offset_range(*damage.readable)
        message += f"{kept} can be read at position {damage.position}, and 'kafkalog salvage --repair' keeps them; "
    if damage.next_base_offset is not None:
        message += f"{size} {cannot} be read, the next intact batch starts at offset {damage.next_base_offset}"
    elif damage.reaches_end:
        message += f"the last {size} of the file {cannot} be read"
    else:
        message += f"{size} {cannot} be read"
    if lost is not None:
        message += f"; {offsets_are(*lost)} lost"
    if damage.reaches_end and log.is_last_segment and log.segment is not None:
        message += _words_about_the_end(log.known_end, lost)
    next_offset = damage.lost_from if damage.after_offset is None else damage.after_offset + 1
    where = log.location.at(position=damage.position, length=damage.length, offset=next_offset)
    next_step = _LOST_END if lost is not None and code in _TRUNCATED_AT_START else None
    judgement = Judgement(next_step=next_step if damage.readable is None else _REPAIR)
    return finding(code, where, message, lost_offsets=lost, judgement=judgement)


def _lost_at_end(damage: Damage, log: LogUnit) -> tuple[int, int] | None:
    """The offsets that a file lost with its end; None if there are none, or if it is unknown where they ended."""
    first, end = damage.lost_from, log.offsets_end
    if not damage.reaches_end or first is None or end is None or end <= first:
        return None
    return first, end - 1


def _words_about_the_end(known_end: int | None, lost: tuple[int, int] | None) -> str:
    """The end of the message about damage at the end of the log: how it is known which offsets are lost."""
    if known_end is None:
        return "; it is not known where the log ended"
    if lost is None:
        return f"; no offset below {known_end} is lost, and no checkpoint or snapshot shows a later one"
    return ", as checkpoints or snapshots show"


class OverlapFindings:
    """Makes findings for batches that start before the one before them ends; chunks must be passed in log order.

    No CRC covers the base offset of a batch, so that one of the two has a false one. ``verify`` judges which.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._last: int | None = None  # the last offset of the intact batch before

    def in_chunk(self, chunk: BatchChunk) -> Iterator[Finding]:
        """Findings for the batches of the next chunk. Repeated batches, and those with a wrong CRC, do not count."""
        table = chunk.table
        last = chunk.after_offset if self._last is None else self._last
        if not len(table):
            return
        if chunk.repeated is None and chunk.is_sound_after(last):
            self._last = table.last_offset_of(len(table) - 1)
            return
        which = (table.crc_valid != 0) & (table.base_offset >= 0)
        which = which if chunk.repeated is None else which & ~chunk.repeated
        rows = np.flatnonzero(which)
        before = np.concatenate(([-1 if last is None else last], table.last_offset[rows]))
        for number in np.flatnonzero(table.base_offset[rows] <= before[:-1]).tolist():
            row = int(rows[number])
            yield finding(
                "offset-not-increasing",
                batch_location(self._location, table, row),
                f"the batch starts at offset {table.base_offset[row]}, but the one before it ends at {before[number]}: "
                "one of the two has a false base offset",
                expected=int(before[number]) + 1,
                actual=int(table.base_offset[row]),
            )
        if len(rows):
            self._last = int(before[-1])


class RepeatFindings:
    """Makes findings for runs of repeated batches; chunks must be passed in log order."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._start = self._end = 0
        self._first_offset = self._last_offset = 0
        self._count = 0

    def before(self, chunk: BatchChunk) -> Iterator[Finding]:
        """Findings for the runs that end before the next chunk or in it."""
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
        """End the run, if there is one, and yield its finding."""
        if self._count:
            batches = "a batch is" if self._count == 1 else f"{self._count} batches are"
            yield finding(
                "offset-not-increasing",
                self._location.at(self._start, self._end - self._start, self._first_offset),
                f"{batches} in the log a second time, byte for byte, with "
                f"{offset_range(self._first_offset, self._last_offset)}: the records are not read again",
            )
        self._count = 0
