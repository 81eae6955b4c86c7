"""Compares the logs of some replicas from their first offset to their last.

At each step every replica has a chunk, and all are compared up to the offset where the first chunk ends. So each file
is read once, and at most one chunk of each is in memory. Equal batches are compared as bytes, see ``content``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.findings import finding_of
from format.limits import Limits
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column
from format.log.control_records import decode_control_record
from format.log.read_records import record_tables
from format.log.record_table import RecordTable, differing_records
from format.offset_ranges import (
    Int64s,
    Range,
    Span,
    are_inside,
    clipped,
    intersection,
    is_covered,
    joined,
    merged,
    runs,
    without,
)
from format.scan.progress import Advance
from format.verbs.diff.replica_log import ReplicaLog, Replicas, Window, steps_of

#: The most missing records that wait for a later one of their key at a time, about 100 bytes each.
MOST_WAITING = 500_000
#: The kinds of differences, the gravest first.
KINDS = ("diverged", "behind", "different_bytes", "identical")
_ALL = -1  # the mask of all replicas


class MissingRecords:
    """The records of one replica that others lack. Its later records are fed in order.

    The other replicas are numbers, and bits in masks. By number, ``compacted`` counts the records that compaction
    explains, ``first_compacted`` has the first offset of them, and ``undecided`` counts those that were too many to
    keep. ``cleaned_later`` is the mask of the replicas that lack offsets past the end of this one: a tombstone or a
    marker may have been there that would explain what they lack.
    """

    def __init__(self) -> None:
        self.compacted: dict[int, int] = {}
        self.first_compacted: dict[int, int] = {}
        self.undecided: dict[int, int] = {}
        self.cleaned_later = 0
        self._masks: dict[int, int] = {}
        self._offsets_of_key: dict[int, list[int]] = {}
        self._offsets_of_producer: dict[int, list[int]] = {}
        #: What needs no second look past the end: keys by their hash, and producers, of each replica.
        self._done: set[tuple[str, int, int]] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether later records are needed."""
        return bool(self._masks)

    def add(self, table: RecordTable, other: int) -> Int64s:
        """Add records that another replica lacks; returns the offsets of those that no compaction can explain."""
        batches = table.batch
        is_control = table.batches.is_control[batches]
        is_explained = is_control | ((table.key_length >= 0) & (table.value_length < 0))
        lost = ~is_explained & (table.key_length < 0)
        offsets = table.offset
        self._explain(offsets[is_explained].tolist(), other)
        is_transactional = table.batches.is_transactional[batches].tolist()
        producers = table.batches.producer_id[batches].tolist()
        for row in np.flatnonzero(~is_explained & ~lost).tolist():
            offset = int(offsets[row])
            if offset in self._masks:
                self._masks[offset] |= 1 << other
            elif len(self._masks) >= MOST_WAITING:
                self.undecided[other] = self.undecided.get(other, 0) + 1
            else:
                self._masks[offset] = 1 << other
                self._offsets_of_key.setdefault(hash(table.key(row)), []).append(offset)
                if is_transactional[row]:
                    self._offsets_of_producer.setdefault(producers[row], []).append(offset)
        return offsets[lost]

    def feed(self, table: RecordTable, mask: int = _ALL) -> None:
        """Read the next records: a later one of a key explains why an earlier one is missing.

        After the end of this replica, they are those of another one, and explain what that one lacks: ``mask`` has its
        bit.
        """
        offsets = table.offset.tolist()
        is_control = table.batches.is_control[table.batch]
        for row in np.flatnonzero((table.key_length >= 0) & ~is_control).tolist():
            key = hash(table.key(row))
            waiting = self._offsets_of_key.get(key)
            if waiting is not None and waiting[0] < offsets[row] and not self._is_done("key", key, mask):
                self._settle([offset for offset in waiting if offset < offsets[row]], mask)
                waiting[:] = [offset for offset in waiting if offset in self._masks]
                if not waiting:
                    del self._offsets_of_key[key]
        for row in np.flatnonzero(is_control).tolist():
            self._end_transaction(table, row, offsets[row], mask)

    def _end_transaction(self, table: RecordTable, row: int, offset: int, mask: int) -> None:
        producer_id = int(table.batches.producer_id[table.batch[row]])
        waiting = self._offsets_of_producer.get(producer_id)
        if waiting is None or self._is_done("producer", producer_id, mask):
            return
        if mask == _ALL:
            del self._offsets_of_producer[producer_id]
        try:
            marker = decode_control_record(table.key(row), table.value(row))
        except KafkaLogError:
            return
        if marker.type_name == "ABORT":
            self._settle([each for each in waiting if each < offset], mask)

    def _is_done(self, kind: str, which: int, mask: int) -> bool:
        """Whether a key or producer was looked at past the end: all that waits comes before its first record there."""
        if mask == _ALL:
            return False
        is_done = (kind, which, mask) in self._done
        self._done.add((kind, which, mask))
        return is_done

    def left(self) -> Iterator[tuple[int, int]]:
        """After the last record: the unexplained offsets in order, each with the mask of the replicas that lack it."""
        yield from sorted(self._masks.items())

    def _settle(self, offsets: list[int], mask: int) -> None:
        for offset in offsets:
            lacking = self._masks.pop(offset, 0)
            if lacking & ~mask:
                self._masks[offset] = lacking & ~mask
            explained = lacking & mask
            for other in range(explained.bit_length()):
                if explained >> other & 1:
                    self._explain([offset], other)

    def _explain(self, offsets: list[int], other: int) -> None:
        if offsets:
            self.compacted[other] = self.compacted.get(other, 0) + len(offsets)
            self.first_compacted[other] = min(self.first_compacted.get(other, offsets[0]), offsets[0])


#: Called with records that only one of two replicas has: its side, 0 or 1, and the records, which it must not keep.
TakeLone = Callable[[int, RecordTable], None]


def are_shared(windows: Sequence[Window | None]) -> bool:
    """Whether all replicas share one chunk, whose bytes were compared when it was read."""
    first = windows[0]
    return first is not None and all(
        each is not None and each.chunk is first.chunk and len(each) == len(first) and each.rows[0] == first.rows[0]
        for each in windows
    )


class WindowDifference(msgspec.Struct):
    """The differences of two replicas over some offsets; pairs are for the one and the other.

    ``other_content``: offsets that both have with different records. ``other_epochs``: the offsets of batches where
    all those of one side have later leader epochs. ``same_records``: offsets of equal records in different bytes.
    ``unreadable``: errors of batches whose records cannot be read, with their offsets.

    Where one of the two has headers only: ``lone`` are the offsets of batches that overlap none of the other, and
    ``unknown`` those of batches with different bytes, whose records may be the same.
    """

    other_content: list[Range] = msgspec.field(default_factory=list)
    other_epochs: tuple[list[Range], list[Range]] = ([], [])
    same_records: list[Range] = msgspec.field(default_factory=list)
    unreadable: tuple[list[tuple[Range, KafkaLogError]], ...] = msgspec.field(default_factory=lambda: ([], []))
    lone: tuple[list[Range], list[Range]] = ([], [])
    unknown: list[Range] = msgspec.field(default_factory=list)


def compare_windows(
    left_side: Window, right_side: Window, bounds: Range, limits: Limits, take_lone: TakeLone
) -> WindowDifference:
    """Compare the batches of two windows inside the bounds."""
    found = WindowDifference()
    if left_side.chunk is right_side.chunk and np.array_equal(left_side.rows, right_side.rows):
        return found
    same, same_there = _same_batches(left_side, right_side)
    rest, rest_there = left_side.picked(~same), right_side.picked(~same_there)
    if _have_other_epochs(rest, rest_there):
        found.other_epochs = spans_of(rest, bounds), spans_of(rest_there, bounds)
        return found
    if not (left_side.has_records and right_side.has_records):
        _compare_headers((left_side, right_side), (same, same_there), bounds, found)
        return found
    left = _records(rest, bounds, limits, found.unreadable[0])
    right = _records(rest_there, bounds, limits, found.unreadable[1])
    for one, other in _joined(left, right):
        _compare_records(one, other, found, take_lone)
    found.other_content = merged(found.other_content)
    found.same_records = merged(found.same_records)
    return found


def records_of(window: Window, bounds: Range, limits: Limits) -> Iterator[RecordTable]:
    """The records of a window inside the bounds, as far as they can be read."""
    return _records(window, bounds, limits, [])


def spans_of(window: Window, bounds: Range) -> list[Range]:
    """The offsets of the batches of a window inside the bounds."""
    return merged(clipped(joined(window.base_offset, window.last_offset), *bounds))


def _same_batches(left_side: Window, right_side: Window) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which batches of both windows have the same bytes, by row."""
    same, same_there = np.zeros(len(left_side), bool), np.zeros(len(right_side), bool)
    at = np.minimum(np.searchsorted(right_side.base_offset, left_side.base_offset), len(right_side) - 1)
    left, right = left_side.table, right_side.table.rows(at)
    alike = np.flatnonzero(_equal_headers(left, right))
    if not len(alike):
        return same, same_there
    other = at[alike]
    # Neighbours on both sides are compared as one piece.
    edges = np.flatnonzero((np.diff(alike) != 1) | (np.diff(other) != 1) | ~_adjoin(left, right, alike)) + 1
    for piece in np.split(np.arange(len(alike)), edges):
        if _equal_bytes(left_side, right_side, alike[piece], other[piece]):
            same[alike[piece]] = same_there[other[piece]] = True
            continue
        for one in piece.tolist():
            if _equal_bytes(left_side, right_side, alike[one : one + 1], other[one : one + 1]):
                same[alike[one]] = same_there[other[one]] = True
    return same, same_there


def _equal_headers(left: BatchTable, right: BatchTable) -> NDArray[np.bool_]:
    """Which rows have equal headers, including the stored CRC and the size."""
    differ = left.columns != right.columns
    differ[:, BATCH_COLUMN["position"]] = False
    equal: NDArray[np.bool_] = ~differ.any(axis=1)
    return equal


def _adjoin(left: BatchTable, right: BatchTable, alike: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each of these rows ends where the next one starts, in both files."""
    rows, after = alike[:-1], alike[1:]
    adjoin: NDArray[np.bool_] = left.end_position[rows] == left.position[after]
    adjoin &= right.end_position[rows] == right.position[after]
    return adjoin


def _equal_bytes(left_side: Window, right_side: Window, rows: NDArray[np.intp], others: NDArray[np.intp]) -> bool:
    """Whether batches with equal headers have equal bytes; where one side has only headers, equal CRCs prove it."""
    if not (left_side.has_records and right_side.has_records):
        return True
    return _content(left_side, rows) == _content(right_side, others)


def _content(window: Window, rows: NDArray[np.intp]) -> bytes:
    """The bytes of some adjoining batches."""
    chunk = window.chunk
    first, last = int(window.rows[rows[0]]), int(window.rows[rows[-1]])
    start = int(chunk.table.position[first]) - chunk.buffer_position
    end = int(chunk.table.position[last]) + int(chunk.table.size_bytes[last]) - chunk.buffer_position
    return bytes(chunk.bodies[start:end])


def _compare_headers(
    windows: tuple[Window, Window],
    same: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    bounds: Range,
    found: WindowDifference,
) -> None:
    """Compare the batches that are not the same by offsets and leader epochs, where records cannot be read."""
    edges = np.unique(np.concatenate([(each.base_offset, each.last_offset + 1) for each in windows], axis=None))
    edges = np.unique(np.clip(edges, bounds[0], bounds[1] + 1))
    firsts, lasts = edges[:-1], edges[1:] - 1
    rows, is_held, epochs = [], [], []
    for window in windows:
        at = np.maximum(np.searchsorted(window.base_offset, firsts, "right") - 1, 0)
        table = window.table
        rows.append(at)
        is_held.append((window.base_offset[at] <= firsts) & (window.last_offset[at] >= firsts))
        epochs.append(np.where(table.magic[at] == 2, table.leader_epoch[at], -1))
    by_both = is_held[0] & is_held[1]
    has_other_epoch = by_both & (epochs[0] != epochs[1]) & (epochs[0] >= 0) & (epochs[1] >= 0)
    is_unknown = by_both & ~has_other_epoch & ~(same[0][rows[0]] & same[1][rows[1]])

    def ranges(which: NDArray[np.bool_]) -> list[Range]:
        return merged(zip(firsts[which].tolist(), lasts[which].tolist(), strict=True))

    found.other_epochs = ranges(has_other_epoch), ranges(has_other_epoch)
    found.unknown = ranges(is_unknown)
    found.lone = ranges(is_held[0] & ~is_held[1]), ranges(is_held[1] & ~is_held[0])


def _have_other_epochs(left_side: Window, right_side: Window) -> bool:
    """Whether all batches of one side have later leader epochs than those of the other: then all records differ."""
    if not len(left_side) or not len(right_side):
        return False
    left, right = left_side.table, right_side.table
    if not ((left.magic == 2).all() and (right.magic == 2).all()):
        return False
    left_epochs, right_epochs = left.leader_epoch, right.leader_epoch
    return bool(left_epochs.max() < right_epochs.min() or right_epochs.max() < left_epochs.min())


def _records(
    window: Window, bounds: Range, limits: Limits, unreadable: list[tuple[Range, KafkaLogError]]
) -> Iterator[RecordTable]:
    """The records of a window inside the bounds, with rising offsets; batches that cannot be read are noted."""
    if not len(window):
        return
    which = np.zeros(len(window.chunk.table), bool)
    which[window.rows] = True
    highest = bounds[0] - 1
    for table in record_tables(window.chunk, which=which, limits=limits):
        for problem in table.problems:
            row = int(np.searchsorted(window.rows, problem.batch))
            lost = clipped([(int(window.base_offset[row]), int(window.last_offset[row]))], *bounds)
            unreadable.extend((each, problem.error) for each in lost)
        offsets = table.offset
        kept = (offsets > np.maximum.accumulate(np.concatenate(([highest], offsets[:-1])))) if len(offsets) else None
        if kept is None:
            continue
        kept &= (offsets >= bounds[0]) & (offsets <= bounds[1])
        if kept.all():
            yield table
        elif kept.any():
            yield table.rows(kept)
        highest = max(highest, int(offsets.max()))


def _joined(
    left: Iterator[RecordTable], right: Iterator[RecordTable]
) -> Iterator[tuple[RecordTable | None, RecordTable | None]]:
    """The records of both sides in pairs of tables that cover the same offsets."""
    left_side, right_side = next(left, None), next(right, None)
    while left_side is not None or right_side is not None:
        ends = [int(each.offset[-1]) for each in (left_side, right_side) if each is not None]
        bound = min(ends)
        one, left_side = _cut(left_side, bound)
        other, right_side = _cut(right_side, bound)
        yield one, other
        left_side = next(left, None) if left_side is None else left_side
        right_side = next(right, None) if right_side is None else right_side


def _cut(table: RecordTable | None, bound: int) -> tuple[RecordTable | None, RecordTable | None]:
    """The records up to an offset, and the others; None for none."""
    if table is None:
        return None, None
    count = int(np.searchsorted(table.offset, bound, "right"))
    if count == 0:
        return None, table
    if count == len(table):
        return table, None
    return table.rows(slice(0, count)), table.rows(slice(count, len(table)))


def _compare_records(
    left_side: RecordTable | None, right_side: RecordTable | None, found: WindowDifference, take_lone: TakeLone
) -> None:
    if left_side is None or right_side is None:
        for side, table in enumerate((left_side, right_side)):
            if table is not None:
                take_lone(side, table)
        return
    offsets: Int64Column = left_side.offset
    others: Int64s = right_side.offset
    at = np.minimum(np.searchsorted(others, offsets), len(others) - 1)
    common = others[at] == offsets
    if common.any():
        left, right = left_side.rows(np.flatnonzero(common)), right_side.rows(at[common])
        differ = differing_records(left, right)
        found.other_content += runs(left.offset[differ])
        found.same_records += runs(left.offset[~differ])
    if not common.all():
        take_lone(0, left_side.rows(np.flatnonzero(~common)))
    is_lone = np.ones(len(others), bool)
    is_lone[at[common]] = False
    if is_lone.any():
        take_lone(1, right_side.rows(np.flatnonzero(is_lone)))


class PairDifference(msgspec.Struct):
    """The differences between two replicas: the first offset of each kind.

    ``diverged``: both should have the offset, and their records differ or one has none. ``behind``: one has it past the
    end of the other. ``different_bytes``: equal records have different bytes, were compacted away, or cannot be read in
    one of them.
    """

    firsts: dict[str, int] = msgspec.field(default_factory=dict)

    def note(self, kind: str, ranges: Iterable[Range]) -> None:
        """Note offsets that differ."""
        for first, _ in ranges:
            self.firsts[kind] = min(first, self.firsts.get(kind, first))

    @property
    def kind(self) -> str:
        """The gravest kind."""
        return next((kind for kind in KINDS if kind in self.firsts), "identical")

    @property
    def offset(self) -> int | None:
        """The first offset of the gravest kind."""
        return self.firsts.get(self.kind)


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
        first = 0
        with closing(steps_of(self.logs)) as steps:
            for last in steps:
                self._step((first, last))
                first = last + 1
        self._settle_missing()

    def _step(self, bounds: Range) -> None:
        windows = [None if log.is_at_end else log.window(bounds[1]) for log in self.logs]
        self._only = {}
        if not are_shared(windows):
            for pair in self.pairs:
                self._compare(pair, windows, bounds)
            self._add_up(self._only)
        for number, missing in enumerate(self._missing):
            # Past the end of a replica, those that lack its records may have been cleaned by later ones.
            others = range(len(self.logs)) if self.logs[number].is_at_end else (number,)
            for other in others:
                window = windows[other]
                if not missing.is_waiting or self.logs[other].is_at_end or (window and not window.has_records):
                    continue
                count = 0
                for table in () if window is None else records_of(window, bounds, self._limits):
                    missing.feed(table, _ALL if other == number else 1 << other)
                    count += len(table)
                if other != number and count <= bounds[1] - bounds[0]:
                    missing.cleaned_later |= 1 << other

    def _compare(self, pair: tuple[int, int], windows: list[Window | None], bounds: Range) -> None:
        one, other = pair
        start = max(bounds[0], *(self.logs[each].replica.log_start_offset for each in pair))
        if start > bounds[1]:
            return  # at least one of them has deleted these offsets by retention
        bounds = start, bounds[1]
        for holder, lacking in (pair, pair[::-1]):
            if self.logs[lacking].is_at_end:
                window, end = windows[holder], self.logs[lacking].log_end_offset
                ranges = [] if window is None else spans_of(window, bounds)
                past_end = clipped(ranges, end, 2**63)
                self._add_only(holder, lacking, "behind", past_end)
                if past_end:
                    self._pair(holder, lacking).note("behind", [(end, end)])
                self._add_only(holder, lacking, "diverged", clipped(ranges, 0, end - 1))
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
            self._add_only(holder, lacking, "diverged", found.other_content + found.other_epochs[side])
            log = self.logs[holder]
            for lost, error in found.unreadable[side]:
                if not is_covered(lost, log.damaged):
                    log.note_damaged(lost)
                    log.findings.append(finding_of(error, log.replica.partition.location().at(offset=lost[0])))
                difference.note("different_bytes", [lost])
        difference.note("different_bytes", found.same_records + found.unknown)
        for number in pair:
            self.differences[number].unknown.add(found.unknown)
        for side, (holder, lacking) in enumerate((pair, pair[::-1])):
            self._add_lone_ranges(holder, lacking, found.lone[side])

    def _add_only(self, holder: int, lacking: int, kind: str, ranges: list[Range]) -> None:
        """Note offsets that one replica has, and the other lacks or has otherwise."""
        self._only.setdefault((holder, lacking), []).extend(ranges)
        self._pair(holder, lacking).note(kind, ranges)

    def _add_window(self, holder: int, lacking: int, window: Window, bounds: Range) -> None:
        """Note batches that the other replica lacks, though its log goes on after them."""
        damaged = self.logs[lacking].damaged
        spans = spans_of(window, bounds)
        if all(is_covered(each, self.logs[lacking].changed) for each in spans):
            return  # not known: retention deletes a segment that is being read, and an election truncates it
        if all(is_covered(each, damaged) for each in spans):
            self._add_only(holder, lacking, "different_bytes", spans)
        elif not window.has_records:
            self._add_lone_ranges(holder, lacking, spans)
        else:
            for table in records_of(window, bounds, self._limits):
                self._add_lone(holder, lacking, table)

    def _add_lone(self, holder: int, lacking: int, table: RecordTable) -> None:
        """Note records that the other replica lacks, though its log goes on after them."""
        if self.logs[lacking].changed:
            table = table.rows(~are_inside(table.offset, self.logs[lacking].changed))
        damaged = are_inside(table.offset, self.logs[lacking].damaged)
        if damaged.any():
            self._add_only(holder, lacking, "different_bytes", runs(table.offset[damaged]))
            table = table.rows(~damaged)
        lost = table.offset
        if self._may_be_compacted(holder, lacking):
            lost = self._missing[holder].add(table, lacking)
        self._add_only(holder, lacking, "diverged", runs(lost))

    def _add_lone_ranges(self, holder: int, lacking: int, ranges: list[Range]) -> None:
        """Note offsets of lacking batches of which only the headers are known."""
        damaged = merged(self.logs[lacking].damaged)
        ranges = without(ranges, merged(self.logs[lacking].changed))
        self._add_only(holder, lacking, "different_bytes", intersection([ranges, damaged]))
        lost = without(ranges, damaged)
        if self._may_be_compacted(holder, lacking):
            self.differences[lacking].undecided_offsets.add(lost)
            self._pair(holder, lacking).note("different_bytes", lost)
        else:
            self._add_only(holder, lacking, "diverged", lost)

    def _may_be_compacted(self, one: int, other: int) -> bool:
        """Whether the topic may be compacted, by the checkpoints of the cleaner."""
        return any(self.logs[each].replica.was_cleaned is not False for each in (one, other))

    def _settle_missing(self) -> None:
        """At the end: missing records that compaction does not explain are losses."""
        left: dict[tuple[int, int], list[Range]] = {}
        for holder, missing in enumerate(self._missing):
            for offset, mask in missing.left():
                for lacking in range(len(self.logs)):
                    if mask & missing.cleaned_later & 1 << lacking:
                        missing.undecided[lacking] = missing.undecided.get(lacking, 0) + 1
                    elif mask >> lacking & 1:
                        left.setdefault((holder, lacking), []).append((offset, offset))
            for lacking, count in missing.compacted.items():
                self.differences[lacking].compacted_count = max(self.differences[lacking].compacted_count, count)
                first = missing.first_compacted[lacking]
                self._pair(holder, lacking).note("different_bytes", [(first, first)])
            for lacking, count in missing.undecided.items():
                self.differences[lacking].undecided_count += count
                self._pair(holder, lacking).firsts.setdefault("different_bytes", 0)
        for (holder, lacking), ranges in left.items():
            self._pair(holder, lacking).note("diverged", ranges)
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
