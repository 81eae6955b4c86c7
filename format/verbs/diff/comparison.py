"""Compares the logs of some replicas from their first offset to their last.

At each step every replica has a chunk, and all are compared up to the offset where the first chunk ends. So each file
is read once, and at most one chunk of each is in memory. Equal batches are compared as bytes, see ``content``.
"""

from __future__ import annotations

from itertools import combinations

import msgspec

from format.findings import finding_of
from format.limits import Limits
from format.log.record_table import RecordTable
from format.offset_ranges import (
    Range,
    Span,
    are_inside,
    clipped,
    intersection,
    is_covered,
    merged,
    runs,
    without,
)
from format.scan.progress import Advance
from format.verbs.diff.compaction import MissingRecords
from format.verbs.diff.content import WindowDifference, compare_windows, records_of, spans_of
from format.verbs.diff.replica_log import ReplicaLog, Window
from format.verbs.diff.replicas import Replicas


class PairDifference(msgspec.Struct):
    """The differences between two replicas.

    ``diverged``: the first offset that both should have, where their records differ or one has none. ``ahead``: the
    first offset that one has past the end of the other. ``other_bytes``: the first offset where equal records have
    different bytes, were compacted away, or cannot be read in one of them.
    """

    diverged: int | None = None
    ahead: int | None = None
    other_bytes: int | None = None

    @property
    def kind(self) -> str:
        if self.diverged is not None:
            return "diverged"
        if self.ahead is not None:
            return "behind"
        return "identical" if self.other_bytes is None else "different_bytes"

    @property
    def offset(self) -> int | None:
        """The first offset of the difference that determines the kind."""
        for each in (self.diverged, self.ahead, self.other_bytes):
            if each is not None:
                return each
        return None


class ReplicaDifference(msgspec.Struct):
    """One replica compared with all others: the offsets that it alone has, and those of others that it lacks.

    ``lost_committed`` are the lacking ones below the high watermark of a replica that has them. Where only headers are
    known, ``undecided_offsets`` are lacking and may have been compacted away, and ``unknown`` are in different bytes,
    with records that may be the same.
    """

    unique: Span = msgspec.field(default_factory=Span)
    lost: Span = msgspec.field(default_factory=Span)
    lost_committed: Span = msgspec.field(default_factory=Span)
    compacted_count: int = 0
    undecided_count: int = 0
    undecided_offsets: Span = msgspec.field(default_factory=Span)
    unknown: Span = msgspec.field(default_factory=Span)


class Comparison:
    """Compares the replicas of one partition: call ``run``, then read ``pairs``, ``differences`` and the logs.

    ``pairs`` has an entry for each two replicas, by their numbers, the lower first.
    """

    def __init__(self, replicas: Replicas, limits: Limits, advance: Advance) -> None:
        self.replicas = replicas
        self.logs = [ReplicaLog(each, limits, advance) for each in replicas.replicas]
        self.pairs = {pair: PairDifference() for pair in combinations(range(len(self.logs)), 2)}
        self.differences = [ReplicaDifference() for _ in self.logs]
        self._limits = limits
        self._missing = [MissingRecords() for _ in self.logs]
        self._high_watermarks = [each.replica.offsets.high_watermark for each in self.logs]
        # By holder and lacking replica: the offsets of this step that the one has, and the other lacks or has
        # otherwise.
        self._only: dict[tuple[int, int], list[Range]] = {}

    def run(self) -> None:
        """Read all logs to their ends."""
        try:
            first = 0
            while True:
                for log in self.logs:
                    if not log.has_batches:
                        log.load(self.logs)
                reading = [log for log in self.logs if not log.is_at_end]
                if not reading:
                    break
                last = min(log.last_offset for log in reading)
                self._step((first, last))
                for log in reading:
                    log.consume(last)
                first = last + 1
            self._settle_missing()
        finally:
            for log in self.logs:
                log.close()

    def _step(self, bounds: Range) -> None:
        windows = [None if log.is_at_end else log.window(bounds[1]) for log in self.logs]
        self._only = {}
        if not self._are_all_shared(windows):
            for pair in self.pairs:
                self._compare(pair, windows, bounds)
            self._add_up(self._only)
        for number, missing in enumerate(self._missing):
            window = windows[number]
            if missing.is_waiting and window is not None and window.has_records:
                for table in records_of(window, bounds, self._limits):
                    missing.feed(table)

    @staticmethod
    def _are_all_shared(windows: list[Window | None]) -> bool:
        """Whether all replicas share one chunk, whose bytes were compared when it was read."""
        first = windows[0]
        return first is not None and all(
            each is not None and each.chunk is first.chunk and len(each) == len(first) and each.rows[0] == first.rows[0]
            for each in windows
        )

    def _compare(self, pair: tuple[int, int], windows: list[Window | None], bounds: Range) -> None:
        one, other = pair
        start = max(bounds[0], *(self.logs[each].replica.log_start_offset for each in pair))
        if start > bounds[1]:
            return  # at least one of them has deleted these offsets by retention
        bounds = start, bounds[1]
        for holder, lacking in (pair, pair[::-1]):
            if self.logs[lacking].is_at_end:
                window = windows[holder]
                self._add_ahead(holder, lacking, [] if window is None else spans_of(window, bounds))
                return
        left, right = windows[one], windows[other]
        if left is None or right is None:
            for holder, lacking, window in ((one, other, left), (other, one, right)):
                if window is not None:
                    self._add_window(holder, lacking, window, bounds)
            return

        def take_lone(side: int, table: RecordTable) -> None:
            self._add_lone(pair[side], pair[1 - side], table)

        found = compare_windows(left, right, bounds, self._limits, take_lone)
        self._add_found(pair, found)

    def _add_found(self, pair: tuple[int, int], found: WindowDifference) -> None:
        difference = self.pairs[pair]
        for side, (holder, lacking) in enumerate((pair, pair[::-1])):
            only = found.other_content + found.other_epochs[side]
            self._only.setdefault((holder, lacking), []).extend(only)
            difference.diverged = _least(difference.diverged, only)
            log = self.logs[holder]
            for lost, error in found.unreadable[side]:
                if not is_covered(lost, log.damaged):
                    log.note_damaged(lost)
                    log.findings.append(finding_of(error, log.replica.partition.location().at(offset=lost[0])))
                difference.other_bytes = _least(difference.other_bytes, [lost])
        difference.other_bytes = _least(difference.other_bytes, found.same_records + found.unknown)
        for number in pair:
            self.differences[number].unknown.add(found.unknown)
        for side, (holder, lacking) in enumerate((pair, pair[::-1])):
            self._add_lone_ranges(holder, lacking, found.lone[side])

    def _add_ahead(self, holder: int, lacking: int, ranges: list[Range]) -> None:
        """Note batches past the end of the other replica."""
        end = self.logs[lacking].log_end_offset
        self._only.setdefault((holder, lacking), []).extend(ranges)
        pair = self._pair(holder, lacking)
        pair.ahead = _least(pair.ahead, clipped(ranges, end, 2**63))
        pair.diverged = _least(pair.diverged, clipped(ranges, 0, end - 1))

    def _add_window(self, holder: int, lacking: int, window: Window, bounds: Range) -> None:
        """Note batches that the other replica lacks, though its log goes on after them."""
        damaged = self.logs[lacking].damaged
        spans = spans_of(window, bounds)
        if all(is_covered(each, damaged) for each in spans):
            self._add_unreadable(holder, lacking, spans)
            return
        if not window.has_records:
            self._add_lone_ranges(holder, lacking, spans)
            return
        for table in records_of(window, bounds, self._limits):
            self._add_lone(holder, lacking, table)

    def _add_unreadable(self, holder: int, lacking: int, ranges: list[Range]) -> None:
        self._only.setdefault((holder, lacking), []).extend(ranges)
        pair = self._pair(holder, lacking)
        pair.other_bytes = _least(pair.other_bytes, ranges)

    def _add_lone(self, holder: int, lacking: int, table: RecordTable) -> None:
        """Note records that the other replica lacks, though its log goes on after them."""
        damaged = are_inside(table.offset, self.logs[lacking].damaged)
        if damaged.any():
            self._add_unreadable(holder, lacking, runs(table.offset[damaged]))
            table = table.rows(~damaged)
        lost = table.offset
        if self._may_be_compacted(holder, lacking):
            lost = self._missing[holder].add(table, lacking)
        ranges = runs(lost)
        self._only.setdefault((holder, lacking), []).extend(ranges)
        pair = self._pair(holder, lacking)
        pair.diverged = _least(pair.diverged, ranges)

    def _add_lone_ranges(self, holder: int, lacking: int, ranges: list[Range]) -> None:
        """Note offsets of lacking batches of which only the headers are known."""
        damaged = merged(self.logs[lacking].damaged)
        unreadable = intersection([ranges, damaged])
        if unreadable:
            self._add_unreadable(holder, lacking, unreadable)
        lost = without(ranges, damaged)
        if not lost:
            return
        pair = self._pair(holder, lacking)
        if self._may_be_compacted(holder, lacking):
            self.differences[lacking].undecided_offsets.add(lost)
            pair.other_bytes = _least(pair.other_bytes, lost)
            return
        self._only.setdefault((holder, lacking), []).extend(lost)
        pair.diverged = _least(pair.diverged, lost)

    def _may_be_compacted(self, one: int, other: int) -> bool:
        """Whether the topic may be compacted, by the checkpoints of the cleaner."""
        return any(self.logs[each].replica.was_cleaned is not False for each in (one, other))

    def _settle_missing(self) -> None:
        """At the end: missing records that compaction does not explain are losses."""
        left: dict[tuple[int, int], list[Range]] = {}
        for holder, missing in enumerate(self._missing):
            for offset, mask in missing.left():
                for lacking in range(len(self.logs)):
                    if mask >> lacking & 1:
                        left.setdefault((holder, lacking), []).append((offset, offset))
            for lacking, count in missing.compacted.items():
                self.differences[lacking].compacted_count = max(self.differences[lacking].compacted_count, count)
                pair = self._pair(holder, lacking)
                first = missing.first_compacted[lacking]
                pair.other_bytes = _least(pair.other_bytes, [(first, first)])
            for lacking, count in missing.undecided.items():
                self.differences[lacking].undecided_count += count
                pair = self._pair(holder, lacking)
                pair.other_bytes = 0 if pair.other_bytes is None else pair.other_bytes
        for (holder, lacking), ranges in left.items():
            pair = self._pair(holder, lacking)
            pair.diverged = _least(pair.diverged, ranges)
        self._add_up(left)

    def _add_up(self, only: dict[tuple[int, int], list[Range]]) -> None:
        """Add offsets that only some replicas have to what each replica has alone and lacks."""
        for key in only:
            only[key] = merged(only[key])
        for number, difference in enumerate(self.differences):
            others = [each for each in range(len(self.logs)) if each != number]
            difference.unique.add(intersection([only.get((number, other), []) for other in others]))
            lacked = [(holder, only.get((holder, number), [])) for holder in others]
            difference.lost.add(merged(each for _, ranges in lacked for each in ranges))
            difference.lost_committed.add(
                merged(each for holder, ranges in lacked for each in self._committed(holder, ranges))
            )

    def _committed(self, holder: int, ranges: list[Range]) -> list[Range]:
        high_watermark = self._high_watermarks[holder]
        return [] if high_watermark is None else clipped(ranges, 0, high_watermark - 1)

    def _pair(self, one: int, other: int) -> PairDifference:
        return self.pairs[min(one, other), max(one, other)]


def _least(known: int | None, ranges: list[Range]) -> int | None:
    """The first offset of the ranges, or the known one if that is less."""
    firsts = [first for first, _ in ranges]
    return min([*firsts, *([] if known is None else [known])], default=None)
