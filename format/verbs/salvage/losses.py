"""The losses of one segment in salvage: every gap between the kept batches, and the offsets that were in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec
import numpy as np

from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding
from format.io.source import PatchedSource
from format.location import Location
from format.rewriting.index_builder import LOOK_ELSEWHERE, IndexedOffsets
from format.rewriting.intact_batches import BadBytes, SegmentScan
from format.rewriting.repairs import Repair
from format.rewriting.written_segments import SegmentResult
from format.wording import are, counted_plainly, offsets_are
from format.wording import offset_range as range_words

#: Codes of intact batches, which are put aside.
_PUT_ASIDE = ("offset-not-increasing", "offset-out-of-segment")


class SegmentLosses(msgspec.Struct):
    """Reports the bytes of a segment that are not kept, and the offsets that they may have held.

    ``next_base_offset`` is the base offset of the next segment, None for the last. ``report`` sets the last two fields.
    """

    location: Location
    scan: SegmentScan
    source: PatchedSource
    next_base_offset: int | None
    is_live: bool
    is_compacted: bool
    indexed: IndexedOffsets
    repairable: tuple[Repair, ...] = ()
    lost_bytes: int = 0
    torn_end: Cause | None = None  # the damage after the last kept batch of the last segment

    def report(self, done: SegmentResult) -> None:
        """Add a finding for each gap in bytes or in offsets to ``done``, and set its last offset."""
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
                is_before_last = self.next_base_offset is None and gap == len(kept) - 1
                found = self._offset_gap(int(starts[gap]), int(first_lost[gap]), next_kept[gap], is_before_last)
                done.add(found, found.severity >= Severity.ERROR)
        if len(kept):
            done.last_offset = int(scan.last_offset[kept[-1]])
        end_offset = int(first_lost[-1])
        is_end_reported = int(ends[-1]) > int(starts[-1])
        if is_end_reported or self.is_compacted or scan.has_sparse or self.next_base_offset is None:
            return
        if end_offset < self.next_base_offset:
            done.add(self._missing_before_next(end_offset, self.next_base_offset), True)

    def _first_possible(self, done: SegmentResult) -> int:
        base_offset = self.location.base_offset or 0
        return base_offset if done.last_offset is None else max(base_offset, done.last_offset + 1)

    def _offset_gap(self, position: int, first: int, until: int, is_before_last: bool) -> Finding:
        """A finding about offsets between adjoining batches, the second of which may be the last one of the log.

        Compaction may have removed them: the loss is likely. It is proven where an index of the source names one.
        """
        message = f"{offsets_are(first, until - 1)} in no batch, and the new indexes do not show that either"
        judgement = Judgement(certainty=Certainty.LIKELY, next_step=LOOK_ELSEWHERE)
        named = self.indexed.within(first, until)
        if named is not None:
            message = f"{offsets_are(first, until - 1)} in no batch, and an index of the source names offset {named}"
            judgement = Judgement(severity=Severity.ERROR, next_step=LOOK_ELSEWHERE)
        elif is_before_last:
            message += ": compaction removed them, they are lost, or the base offset of the last batch is wrong"
        place = self.location.at(position=position, offset=first)
        return finding("offset-gap", place, message, lost_offsets=(first, until - 1), judgement=judgement)

    def _missing_before_next(self, first: int, next_base_offset: int) -> Finding:
        return finding(
            "log-truncated",
            self.location.at(position=self.source.size_bytes, offset=first),
            f"the segment ends at offset {first}, the next one starts at {next_base_offset}: "
            f"{offsets_are(first, next_base_offset - 1)} lost, unless compaction removed them",
            lost_offsets=(first, next_base_offset - 1),
            judgement=Judgement(certainty=Certainty.LIKELY),
        )

    def _gap(self, start: int, end: int, first_lost: int, until: int | None, done: SegmentResult) -> None:
        """Report a range of bytes that is not kept; ``until`` is the next offset after it, None where there is none."""
        # Bad ranges are in order and do not overlap. A log may have very many, so they are searched by bisection.
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
        if not is_padding and not worst.is_repeat:
            self.lost_bytes += end - start
        unreadable = sum(start <= block < end for block in self.source.unreadable)
        message = f"{counted_plainly(end - start, 'byte')} {are(end - start)} not kept: {worst.reason}"
        if unreadable:
            message += f" ({counted_plainly(unreadable, 'block')} of it could not be read from the disk)"
        if len(reasons) > 1:
            message += f", and {counted_plainly(len(reasons) - 1, 'more such place')} in it"
        lost = offset_range(first_lost, until)
        readable = [each for each in self.repairable if start <= each.position and each.end_position <= end]
        gone = lost
        is_repeat = lost is None and bool(reasons) and all(each.is_repeat for each in reasons)
        is_repeat = is_repeat and sum(each.length for each in reasons) == end - start
        if is_repeat:
            message += "; nothing is lost"
        elif readable:
            gone = self._without(lost, readable, start, end)
            message += "".join(f"; {_readable_words(each)}" for each in readable)
            message += f"; {offsets_are(*gone)} lost" if gone is not None else ""
        elif lost is not None:
            message += f"; {offsets_are(*lost)} lost"
        elif until is None and not is_padding:
            is_put_aside = len(reasons) == 1 and worst.length == end - start and worst.code in _PUT_ASIDE
            message += (
                "; its records are in the quarantine file"
                if is_put_aside
                else f"; the records in it, from offset {first_lost} on, are lost"
            )
        place = self.location.at(start, end - start, first_lost)
        next_step = "Nothing." if is_padding or is_repeat else LOOK_ELSEWHERE
        if readable and gone is None:
            next_step = "Run salvage with --repair, which writes the batch with the right field."
        judgement = Judgement(severity=Severity.WARNING if is_repeat else None, next_step=next_step)
        found = finding(code, place, message, lost_offsets=lost, judgement=judgement)
        if until is None and not is_repeat:
            self.torn_end = Cause.of(found)
        done.add(found, not is_padding and not is_repeat)

    def _without(
        self, lost: tuple[int, int] | None, readable: list[Repair], start: int, end: int
    ) -> tuple[int, int] | None:
        """The lost offsets without those that can be read at the start or the end of a gap; None if none is left."""
        if lost is None or sum(each.size_bytes for each in readable) == end - start:
            return None
        first, last = lost
        for each in readable:
            if each.first_offset <= first <= each.last_offset:
                first = each.last_offset + 1
        for each in reversed(readable):
            if each.first_offset <= last <= each.last_offset:
                last = each.first_offset - 1
        return (first, last) if first <= last else None


def _readable_words(repair: Repair) -> str:
    """What can be read of a batch that is not kept."""
    offsets = range_words(repair.first_offset, repair.last_offset)
    return f"{offsets} can be read at position {repair.position}, and --repair keeps them: {repair.words}"


def offset_range(first: int, until: int | None) -> tuple[int, int] | None:
    """The offsets from ``first`` to before ``until`` as first and last; None for none, or if ``until`` is None."""
    return None if until is None or until <= first else (first, until - 1)
