"""Indexes, leader-epoch-checkpoint and producer snapshots, each held against the batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.checks.losses import judged_at_end
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint, producer_snapshot, transaction_index
from format.files.index_file import entries_with_problems
from format.files.leader_epoch_checkpoint import LeaderEpochCheckpoint
from format.files.offset_index import OffsetIndex
from format.files.side_file import problem_findings, read_reported
from format.files.time_index import TimeIndex
from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.layout import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable, batch_location
from format.node.offsets import PartitionOffsets
from format.node.partition import Segment
from format.offset_ranges import Range
from format.sorted_values import are_among
from format.state import producers
from format.timestamps import iso_time
from format.wording import counted_plainly, offset_range, offsets_are


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
        self.has_padding = index.padding_bytes > 0

    @property
    def end_of_use(self) -> int:
        """The position after the last entry that is right."""
        right = self._is_seen & ~self._is_invalid & (self._low <= self._offsets) & (self._offsets <= self._last_offset)
        return _end_of_last(right, OFFSET_INDEX_ENTRY.size_bytes)

    def feed(self, table: BatchTable) -> None:
        """Compare the entries with one table of the segment's batches."""
        if not len(table) or not len(self._positions):
            return
        position, base, last = table.position, table.base_offset, table.last_offset
        self._last_offset = max(self._last_offset, int(last.max()))
        self._end_position = max(self._end_position, int(table.end_position[-1]))
        here = np.flatnonzero((self._positions >= position[0]) & (self._positions < table.end_position[-1]))
        at = np.searchsorted(position, self._positions[here], "right") - 1
        is_hit = position[at] == self._positions[here]
        self._is_inside[here] |= ~is_hit & (table.end_position[at] > self._positions[here])
        self._is_seen[here] |= is_hit
        self._low[here[is_hit]] = base[at[is_hit]]
        least, most = min(base.min(), last.min()), max(base.max(), last.max())
        here = np.flatnonzero((self._offsets >= least) & (self._offsets <= most))
        self._is_exact[here] |= are_among(self._offsets[here], last) | are_among(self._offsets[here], base)

    def findings(
        self,
        damaged_from: int | None,
        cause: Cause | None = None,
        *,
        is_active: bool = False,
        offsets: PartitionOffsets | None = None,
    ) -> Iterator[Finding]:
        """The findings after all intact batches of the segment; ``cause`` is the damage, if any.

        After ``damaged_from`` an entry may point to a damaged batch, and have its offset. It is wrong if it points into
        the middle of an intact batch, or to a batch that starts after its offset. ``offsets`` judge entries past the
        last batch of the active segment.
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
                    yield judged_at_end(found, offsets) if begins_past else found
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


_NEVER = -(2**63)
BoolArray = NDArray[np.bool_]


def _end_of_last(is_right: BoolArray, size_bytes: int) -> int:
    right = np.flatnonzero(is_right)
    return (int(right[-1]) + 1) * size_bytes if len(right) else 0


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
        is_here = ~self._is_seen & (self._offsets >= table.base_offset.min()) & (self._offsets <= last[-1])
        here = np.flatnonzero(is_here)
        rows = np.searchsorted(last, self._offsets[here])
        is_inside = table.base_offset[rows] <= self._offsets[here]
        here, rows = here[is_inside], rows[is_inside]
        self._is_seen[here] = True
        self._before[here] = before[rows]
        self._of_batch[here] = table.max_timestamp[rows]
        past_v0 = np.logical_or.accumulate(table.magic == 0) | self._has_v0
        self._is_past_v0[here] = past_v0[rows]
        self._has_v0 = bool(past_v0[-1])
        self._largest = max(self._largest, int(largest[-1]))
        self._last_offset = max(self._last_offset, int(last[-1]))

    @property
    def end_of_use(self) -> int:
        """The position after the last entry that is right."""
        right = self._is_seen & ~self._is_invalid & (self._timestamps == np.maximum(self._before, self._of_batch))
        return _end_of_last(right, TIME_INDEX_ENTRY.size_bytes)

    def _is_plain(self) -> BoolArray:
        """Which entries are as a broker writes them: nothing is to be said of them, with damage or without."""
        plain: BoolArray = self._is_seen & ~self._is_invalid
        plain &= (self._timestamps == self._of_batch) & (self._before < self._of_batch)
        return plain

    def findings(
        self, damaged_after_offset: int | None, *, is_closed: bool, offsets: PartitionOffsets | None = None
    ) -> Iterator[Finding]:
        """The findings after all intact batches of the segment.

        After damage an entry may be that of a damaged batch. It is wrong if an intact batch up to its offset has a
        larger timestamp. A broker takes the largest timestamp of a closed segment from the last entry; a clean stop
        closes the active one, too. ``offsets`` judge entries past the end of the active segment.
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
                yield found if is_closed or offset <= self._last_offset else judged_at_end(found, offsets)
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
        # Each start recovers the metadata log, whose time index 4.4.0 does not complete when it stops.
        is_metadata = self._location.topic == layout.CLUSTER_METADATA_TOPIC
        is_clean = offsets is not None and offsets.is_clean_shutdown and not is_metadata
        is_complete = is_closed or (is_clean and (self.has_padding or len(self._timestamps)))
        if self.has_padding:  # to a broker the zeros are entries, unless it builds the index again
            is_complete = is_complete and offsets is not None and self._is_kept(offsets)
        elif not len(self._timestamps) and offsets is not None:
            is_complete = is_complete and not offsets.rebuilds_indexes(self._last_offset + 1)
        if is_complete and self._largest >= 0:
            last = int(self._timestamps[-1]) if len(self._timestamps) else -1
            known = 0 if self.has_padding else last
            if known < self._largest:
                has = f"the last entry has timestamp {iso_time(known)}" if known >= 0 else "the index has no entry"
                result = "look-ups by time skip the segment" if known >= 0 else "later times may not be found"
                yield finding(
                    "time-index-mismatch",
                    self._location,
                    f"{has}, but the largest timestamp of the segment is {iso_time(self._largest)}: {result}",
                    expected=self._largest,
                    actual=known,
                )

    def _is_kept(self, offsets: PartitionOffsets) -> bool:
        """Whether a start leaves the index as it is."""
        return not offsets.is_broker_running and offsets.keeps_indexes(self._last_offset + 1)


class SegmentTransactions(msgspec.Struct):
    """The transactions whose marker is in a segment, and those that began in it, both in log order.

    ``aborts`` are the producer id and offset of all ABORT markers, ``intact`` the offsets of intact batches.
    """

    ended: list[producers.TransactionEnded] = msgspec.field(default_factory=list)
    began: list[tuple[int, int]] = msgspec.field(default_factory=list)  # first offset and producer id
    aborts: set[tuple[int, int]] = msgspec.field(default_factory=set)
    intact: list[Range] = msgspec.field(default_factory=list)

    def cover(self, table: BatchTable) -> None:
        """Note the offsets of the next batches."""
        if not len(table):
            return
        starts = np.flatnonzero(np.append(True, table.base_offset[1:] != table.last_offset[:-1] + 1))
        ends = np.append(starts[1:], len(table)) - 1
        for first, last in zip(table.base_offset[starts].tolist(), table.last_offset[ends].tolist(), strict=True):
            if self.intact and self.intact[-1][1] + 1 == first:
                self.intact[-1] = (self.intact[-1][0], last)
            else:
                self.intact.append((first, last))

    def is_intact(self, offset: int) -> bool:
        """Whether an offset is in an intact batch."""
        before = bisect_right(self.intact, offset, key=lambda each: each[0])
        return before > 0 and offset <= self.intact[before - 1][1]

    def add(self, events: Iterable[producers.ProducerEvent]) -> None:
        """Add the events of the next batches of the segment."""
        for event in events:
            if isinstance(event, producers.TransactionEnded):
                self.ended.append(event)
            elif isinstance(event, producers.TransactionBegan):
                self.began.append((event.first_offset, event.producer_id))
            if isinstance(event, producers.TransactionEnded | producers.MarkerOrphaned) and event.is_aborted:
                self.aborts.add((event.producer_id, event.place.offset))

    def may_be_stable(self, ended: producers.TransactionEnded, offset: int) -> bool:
        """Whether a broker may have written this last stable offset for a transaction.

        A follower appends the batches of one fetch together: if no transaction was open at the marker, it writes the
        first offset of a transaction that begins after it in the same fetch (storage UnifiedLog.append).
        """
        if offset == ended.last_stable_offset:
            return True
        if ended.last_stable_offset != ended.last_offset + 1:
            return False
        later = self.began[bisect_right(self.began, (ended.last_offset, 2**63)) :]
        return offset == next((first for first, producer_id in later if producer_id != ended.producer_id), None)


class LogAround(msgspec.Struct, frozen=True):
    """What is known of the log that a segment is in, up to the end of the segment.

    The records of a transaction before the log's ``first_offset`` are known only from the index. Compaction removes
    aborted records and their markers. In a damaged log (``is_whole`` False), missing records prove nothing, unless an
    intact batch is in their place. ``ends`` has the offsets of the partition if this is its last segment, and the end
    offset of the log: a broker that runs may have written to the index since.
    """

    first_offset: int | None
    is_compacted: bool
    is_whole: bool
    ends: PartitionOffsets | None = None

    def is_at_end(self, offset: int) -> bool:
        """Whether an offset is past the end of the log."""
        return self.ends is not None and offset >= (self.ends.log_end_offset or 0)


def check_transaction_index(
    segment: Segment, transactions: SegmentTransactions, location: Location, log: LogAround, limits: Limits
) -> Iterator[Finding]:
    """Findings for one segment."""
    ended = transactions.ended
    aborted = {(each.producer_id, each.last_offset): each for each in ended if each.is_aborted}
    path = segment.transaction_index
    if path is None:
        if aborted:
            first = min(aborted.values(), key=lambda each: each.last_offset)
            found = finding(
                "transaction-index-mismatch",
                location.at(offset=first.first_offset),
                f"the segment has {counted_plainly(len(aborted), 'aborted transaction')} and no .txnindex",
                expected=len(aborted),
                actual=0,
            )
            yield judged_at_end(found, log.ends)
        return
    where = Location(str(path), location.topic, location.partition, segment.base_offset)
    try:
        index = transaction_index.read(path, segment.base_offset, limits)
    except KafkaLogError as error:
        yield finding_of(error, where)
        return
    yield from problem_findings(index.problems, where)
    is_invalid = entries_with_problems(index.problems, layout.ABORTED_TXN.size_bytes, len(index.producer_ids))
    entry_bytes = layout.ABORTED_TXN.size_bytes
    for number, (producer_id, first, last, stable) in enumerate(
        zip(
            index.producer_ids.tolist(),
            index.first_offsets.tolist(),
            index.last_offsets.tolist(),
            index.last_stable_offsets.tolist(),
            strict=True,
        )
    ):
        place = where.at(number * entry_bytes, entry_bytes, first)
        known = aborted.pop((producer_id, last), None)
        if is_invalid[number] and known is None:
            continue
        began_before = log.first_offset is not None and first < log.first_offset
        if known is None:
            if began_before or log.is_compacted:
                continue
            if not log.is_whole and ((producer_id, last) in transactions.aborts or not transactions.is_intact(last)):
                continue
            found = finding(
                "transaction-index-mismatch", place,
                f"entry {number}: there is no ABORT marker of producer {producer_id} at offset {last}",
            )  # fmt: skip
            if not log.is_at_end(last):
                yield found
            elif log.ends is not None and not log.ends.is_broker_running:  # it writes the marker, then the entry
                yield judged_at_end(found, log.ends)
        elif known.first_offset != first and not (
            log.is_compacted or began_before or (not log.is_whole and first < known.first_offset)
        ):
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: the transaction of producer {producer_id} begins at offset {known.first_offset}, "
                f"not {first}",
                expected=known.first_offset, actual=first,
            )  # fmt: skip
        elif not (
            log.is_compacted
            or not log.is_whole
            or transactions.may_be_stable(known, stable)
            or (log.first_offset is not None and stable < log.first_offset)
        ):
            yield finding(
                "transaction-index-mismatch",
                place,
                f"entry {number}: the last stable offset was {known.last_stable_offset}, not {stable}",
                expected=known.last_stable_offset,
                actual=stable,
                judgement=Judgement(severity=Severity.WARNING),
            )
    index_end = int(index.last_offsets[-1]) if len(index.last_offsets) else -1
    for missing in aborted.values():
        found = finding(
            "transaction-index-mismatch",
            where.at(offset=missing.first_offset),
            f"the aborted transaction of producer {missing.producer_id}, "
            f"{offset_range(missing.first_offset, missing.last_offset)}, is not in the index",
        )
        yield judged_at_end(found, log.ends) if missing.last_offset > index_end else found


_NO_OFFSET = 2**63


class LeaderEpochCheck:
    """A batch's epoch must be that of the last checkpoint entry at or below its base offset (LeaderEpochFileCache)."""

    def __init__(
        self,
        path: Path | None,
        location: Location,
        limits: Limits,
        *,
        first_offset: int | None = None,
        read: Callable[[Path, Limits], LeaderEpochCheckpoint] = leader_epoch_checkpoint.read,
    ) -> None:
        """``first_offset`` is the log start offset if it is certain: the first entry starts there or before.

        ``read`` reads the checkpoint.
        """
        self._starts = self._epochs = np.empty(0, np.int64)
        self.opening: list[Finding] = []  # about the checkpoint itself
        self._location = location
        self._first_offset = first_offset
        self._early: Finding | None = None
        if path is None:
            return
        checkpoint = read_reported(self.opening, location, read, path, limits)
        if checkpoint is None or checkpoint.problems:
            self._first_offset = None
        else:
            self._starts = np.array([entry.start_offset for entry in checkpoint.entries], np.int64)
            self._epochs = np.array([entry.leader_epoch for entry in checkpoint.entries], np.int64)

    def head_findings(self, offsets: PartitionOffsets, place: Location) -> Iterator[Finding]:
        """The finding for offsets from the first entry to the first segment, which no broker has deleted.

        A broker that deletes segments moves the first entry to the new log start, and writes it soon after
        (LeaderEpochFileCache.truncateFromStartAsyncFlush). After a crash in between, and in a copy of a running
        broker's files, the old entry stays, until segments are deleted again: a start moves it to the offset of the
        log-start-offset-checkpoint alone (LogLoader.load). Entries below the first segment are kept where remote
        storage has their records, but then that checkpoint has the partition.
        """
        first_base = offsets.local_start_offset
        if not len(self._starts) or first_base is None or offsets.log_start_checkpoint is not None:
            return
        first = int(self._starts[0])
        if first >= first_base:
            return
        lost = first, first_base - 1
        where = place.at(offset=first)
        message = f"the log begins at offset {first_base}, and its {layout.LEADER_EPOCH_CHECKPOINT} at {first}: "
        message += offsets_are(*lost)
        if not offsets.begins_with_first_segment:
            judgement = Judgement(severity=Severity.INFO, certainty=Certainty.POSSIBLE)
            yield finding("log-head-missing", where, f"{message} in remote storage, or lost", judgement=judgement)
            return
        message += " gone; a broker that deletes segments moves the start of the checkpoint, unless it crashes just "
        message += "after, or its files are copied meanwhile"
        judgement = Judgement(certainty=Certainty.LIKELY)
        yield finding("log-head-missing", where, message, lost_offsets=lost, judgement=judgement)

    def feed(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        """Findings for one table of batches; batches before the first entry cannot be judged."""
        if not len(table):
            return
        yield from self._before_first_entry(table, location)
        if len(self._starts):
            yield from self._differences(table, location)

    def _before_first_entry(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        """The finding for the first batch with an epoch that is before all entries; once for a log.

        Brokers leave such checkpoints on replicas that were reassigned or fetched anew: it is information only.
        It is yielded at the first entry or at the end: messages of an old format would have emptied the checkpoint.
        """
        if self._first_offset is None:
            return
        is_old = table.magic < 2
        if self._early is not None and is_old.any():
            self._early = None
        first_start = int(self._starts[0]) if len(self._starts) else _NO_OFFSET
        judged = (table.leader_epoch >= 0) & (table.base_offset >= self._first_offset) & (table.crc_valid != 0)
        early = np.flatnonzero(judged & ~is_old & (table.base_offset < first_start))
        if is_old.any():
            early = early[early > np.flatnonzero(is_old)[-1]]
        if self._early is None and len(early):
            self._early = self._early_finding(table, location, int(early[0]))
        if int(table.base_offset[-1]) >= first_start:
            yield from self._settled_early()

    def _settled_early(self) -> Iterator[Finding]:
        if self._early is not None:
            yield self._early
        self._early = self._first_offset = None

    def _early_finding(self, table: BatchTable, location: Location, row: int) -> Finding:
        begins = f"begins at offset {self._starts[0]}" if len(self._starts) else "has no entry"
        return finding(
            "leader-epoch-checkpoint-mismatch",
            batch_location(location, table, row),
            f"the batch has leader epoch {table.leader_epoch[row]}, but the checkpoint {begins}: a leader cannot look "
            "up the end of this epoch for its followers",
            expected=int(table.base_offset[row]),
            actual=int(self._starts[0]) if len(self._starts) else None,
            judgement=Judgement(
                severity=Severity.INFO,
                certainty=Certainty.POSSIBLE,
                next_step="Nothing, if this replica was fetched anew; else compare with another replica's checkpoint.",
            ),
        )

    def _differences(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        entry = np.searchsorted(self._starts, table.base_offset, side="right") - 1
        expected = self._epochs[np.maximum(entry, 0)]
        judged = (entry >= 0) & (table.magic == 2) & (table.leader_epoch >= 0)
        for row in np.flatnonzero(judged & (table.leader_epoch != expected)).tolist():
            yield finding(
                "leader-epoch-checkpoint-mismatch",
                batch_location(location, table, row),
                f"the batch has leader epoch {table.leader_epoch[row]}, but the checkpoint has {expected[row]} "
                f"from offset {self._starts[entry[row]]} on",
                expected=int(expected[row]),
                actual=int(table.leader_epoch[row]),
            )

    def end_findings(
        self, log_end_offset: int | None, torn_end: Cause | None = None, offsets: PartitionOffsets | None = None
    ) -> Iterator[Finding]:
        """Findings for entries that start past the end of the log; the damage at the end, if any, is their cause."""
        yield from self._settled_early()
        if log_end_offset is None:
            return
        for number in np.flatnonzero(self._starts > log_end_offset).tolist():
            found = finding(
                "leader-epoch-checkpoint-mismatch",
                self._location.at(offset=int(self._starts[number])),
                f"epoch {self._epochs[number]} starts at offset {self._starts[number]}, but the log ends at "
                f"{log_end_offset}",
                expected=log_end_offset,
                actual=int(self._starts[number]),
                judgement=Judgement(caused_by=torn_end),
            )
            yield judged_at_end(found, offsets)


_OF_THE_LAST_BATCH = ("last_sequence", "last_offset", "offset_delta")


def check_producer_snapshot(
    path: Path,
    snapshot_offset: int,
    state: producers.ProducerState | None,
    location: Location,
    *,
    first_offset: int | None,
    is_compacted: bool,
    limits: Limits,
) -> Iterator[Finding]:
    """Findings for one snapshot; ``state`` is computed from the log before ``snapshot_offset``, None if unknown.

    A producer whose batches are before ``first_offset``, where the log begins or its records start to count, cannot be
    compared; one that is missing from the snapshot may have expired (producer.id.expiration.ms), unless its transaction
    is open. Brokers before 2.4 forget a producer, and its open transaction, with its last record before that offset.
    """
    try:
        snapshot = producer_snapshot.read(path, limits)
    except KafkaLogError as error:
        yield finding_of(error, location)
        return
    yield from problem_findings(snapshot.problems, location)
    if state is None or snapshot.problems:
        return
    seen = set()
    names = ("producer_epoch", "last_sequence", "last_offset", "offset_delta", "timestamp")
    for producer_id, *values in zip(*(column.tolist() for column in snapshot.columns), strict=True):
        seen.add(producer_id)
        stored = dict(zip((*names, "coordinator_epoch", "current_txn_first_offset"), values, strict=True))
        entry = state.entries.get(producer_id)
        if entry is None:
            if first_offset is not None and stored["last_offset"] >= first_offset and not is_compacted:
                yield _mismatch(
                    location, snapshot_offset, producer_id, "is in the snapshot with last offset "
                    f"{stored['last_offset']}, but no batch of it is in the log", None, stored["last_offset"],
                )  # fmt: skip
            continue
        _read_as_newer(stored, entry)
        wrong = []
        # If the batches of a producer were deleted with the head of the log, only the marker is left.
        is_headless = entry.last_offset < 0 and (first_offset is None or stored["last_offset"] < first_offset)
        for name in names:
            known = getattr(entry, name)
            if (is_compacted and name != "producer_epoch") or (is_headless and name in _OF_THE_LAST_BATCH):
                continue
            if _differs(stored[name], known, is_compacted):
                wrong.append((name, known, stored[name]))
        # The broker knows of no marker of a producer that expired and wrote again.
        known, coordinator_epoch = entry.coordinator_epoch, stored["coordinator_epoch"]
        if known is not None and coordinator_epoch != -1 and _differs(coordinator_epoch, known, is_compacted):
            wrong.append(("coordinator_epoch", known, coordinator_epoch))
        open_since = -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset
        if stored["current_txn_first_offset"] != open_since and not is_compacted:
            before_log = first_offset is not None and 0 <= stored["current_txn_first_offset"] < first_offset
            if not before_log:
                wrong.append(("current_txn_first_offset", open_since, stored["current_txn_first_offset"]))
        for name, known, actual in wrong:
            yield _mismatch(
                location, snapshot_offset, producer_id,
                f"has {name} {actual} in the snapshot, but {known} in the log", known, actual,
            )  # fmt: skip
    for producer_id, began in state.open_transactions.items():
        entry = state.entries.get(producer_id)
        is_gone = entry is not None and first_offset is not None and entry.last_offset < first_offset
        if producer_id not in seen and began < snapshot_offset and not is_gone:
            yield _mismatch(
                location, snapshot_offset, producer_id,
                "has an open transaction in the log and is not in the snapshot", None, None,
            )  # fmt: skip


def _differs(stored: int, known: int, is_compacted: bool) -> bool:
    """Whether an epoch in a snapshot contradicts the log.

    The cleaner removes aborted batches and the content of markers, so that the log may have no trace of a producer's
    last epochs: in a compacted log, an epoch that is higher in the snapshot proves nothing.
    """
    return stored < known if is_compacted else stored != known


def _read_as_newer(stored: dict[str, int], entry: producers.ProducerEntry) -> None:
    """Change an entry of an old release into what newer releases would have written.

    0.11 counts a marker as a batch of one record; 1.0 to 2.4 keep the timestamp of the last data batch (core
    ProducerStateManager of these releases).
    """
    if 0 <= entry.marker_offset == stored["last_offset"] and stored["offset_delta"] == 0:
        stored["last_offset"], stored["offset_delta"] = entry.last_offset, entry.offset_delta
    if stored["timestamp"] == entry.data_timestamp:
        stored["timestamp"] = entry.timestamp


def _mismatch(
    location: Location, snapshot_offset: int, producer_id: int, what: str, expected: object, actual: object
) -> Finding:
    return finding(
        "snapshot-mismatch",
        location.at(offset=snapshot_offset),
        f"producer {producer_id} {what}",
        expected=expected,
        actual=actual,
        judgement=Judgement(certainty=Certainty.LIKELY),
    )
