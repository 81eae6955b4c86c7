"""What salvage says of one segment: every gap between the batches that are kept, and the offsets that were in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from format.findings import Cause, Certainty, Finding, Judgement, finding
from format.io.unreadable_ranges import PatchedSource
from format.location import Location
from format.rewriting.intact_batches import BadBytes, SegmentScan
from format.rewriting.written_segments import SegmentResult
from format.value_class import state_class

_LOOK_ELSEWHERE = "Look for these offsets in another replica, a backup, or where the records came from."


@state_class
class LossTeller:
    """Reports what a segment lost: every byte between kept batches, and the offsets that those bytes may have held."""

    location: Location
    scan: SegmentScan
    source: PatchedSource
    next_base_offset: int | None
    is_live: bool
    is_compacted: bool
    lost_bytes: int = 0
    torn_end: Cause | None = None  # the damage after the last batch that is kept, if no segment follows

    def tell(self, done: SegmentResult) -> None:
        """Add a finding for each gap to ``done``, in bytes or in offsets alone, and the last offset kept."""
        scan = self.scan
        kept = np.flatnonzero(scan.is_kept)
        starts = np.concatenate(([0], scan.end_position[kept]))
        ends = np.concatenate((scan.position[kept], [self.source.size_bytes]))
        first_lost = np.concatenate(([self._first_possible(done)], scan.last_offset[kept] + 1))
        next_kept = scan.base_offset[kept].tolist()
        is_missing = np.append((scan.base_offset[kept] > first_lost[:-1]) & scan.is_opened[kept], False)
        is_missing &= not (self.is_compacted or scan.has_sparse)
        for gap in np.flatnonzero((ends > starts) | is_missing).tolist():
            until = next_kept[gap] if gap < len(kept) else self.next_base_offset
            if ends[gap] > starts[gap]:
                self._gap(int(starts[gap]), int(ends[gap]), int(first_lost[gap]), until, done)
            else:
                done.add(self._offset_gap(int(starts[gap]), int(first_lost[gap]), next_kept[gap]), False)
        if len(kept):
            done.last_offset = int(scan.last_offset[kept[-1]])
        end_offset = int(first_lost[-1])
        is_told = int(ends[-1]) > int(starts[-1])
        if is_told or self.is_compacted or scan.has_sparse or self.next_base_offset is None:
            return
        if end_offset < self.next_base_offset:
            done.add(self._missing_before_next(end_offset, self.next_base_offset), True)

    def _first_possible(self, done: SegmentResult) -> int:
        base_offset = self.location.base_offset or 0
        return base_offset if done.last_offset is None else max(base_offset, done.last_offset + 1)

    def _offset_gap(self, position: int, first: int, until: int) -> Finding:
        """Offsets that no byte is there for. That proves no loss: a cleaner may have been here once."""
        return finding(
            "offset-gap",
            self.location.at(position=position, offset=first),
            f"offsets {first} to {until - 1} are in no batch, and the new indexes do not show that either",
            lost_offsets=(first, until - 1),
            judgement=Judgement(certainty=Certainty.LIKELY, next_step=_LOOK_ELSEWHERE),
        )

    def _missing_before_next(self, first: int, next_base_offset: int) -> Finding:
        return finding(
            "log-truncated",
            self.location.at(position=self.source.size_bytes, offset=first),
            f"the segment ends at offset {first}, the next one starts at {next_base_offset}: offsets {first} to "
            f"{next_base_offset - 1} are lost, unless compaction removed them",
            lost_offsets=(first, next_base_offset - 1),
            judgement=Judgement(certainty=Certainty.LIKELY),
        )

    def _gap(self, start: int, end: int, first_lost: int, until: int | None, done: SegmentResult) -> None:
        """One range of bytes that is not kept; ``until`` is the next offset that is there, None for unknown."""
        # What is bad lies in order and apart; a log may have as many gaps as bad places.
        first = bisect_right(self.scan.bad, start, key=lambda each: each.position + each.length)
        reasons = self.scan.bad[first : bisect_left(self.scan.bad, end, key=lambda each: each.position)]
        worst = reasons[0] if reasons else BadBytes(start, end - start, "log-framing-broken", "no batch is here")
        code = worst.code
        if worst.reaches_end:
            if self.is_live:
                done.add(finding("live-tail", self.location.at(start, end - start), "the end is being written"), False)
                return
            if code == "tail-torn" and self.next_base_offset is not None:
                code = "log-truncated"
        is_padding = code == "tail-zeros" and self.next_base_offset is None
        if not is_padding:
            self.lost_bytes += end - start
        unreadable = sum(start <= block < end for block in self.source.unreadable)
        message = f"{end - start} bytes are not kept: {worst.reason}"
        if unreadable:
            message += f" ({unreadable} blocks of it could not be read from the disk)"
        if len(reasons) > 1:
            message += f", and {len(reasons) - 1} more such places in it"
        lost = offset_range(first_lost, until)
        if lost is not None:
            message += (
                f"; offset {lost[0]} is lost" if lost[0] == lost[1] else f"; offsets {lost[0]} to {lost[1]} are lost"
            )
        elif until is None and not is_padding:
            message += f"; what offsets from {first_lost} on it held is lost"
        place = self.location.at(start, end - start, first_lost)
        next_step = "Nothing." if is_padding else _LOOK_ELSEWHERE
        found = finding(code, place, message, lost_offsets=lost, judgement=Judgement(next_step=next_step))
        if until is None:
            self.torn_end = Cause.of(found)
        done.add(found, not is_padding)


def offset_range(first: int, until: int | None) -> tuple[int, int] | None:
    """First and last of the offsets from ``first`` to the one before ``until``; None where there is none, or no end."""
    return None if until is None or until <= first else (first, until - 1)
