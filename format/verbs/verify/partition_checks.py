"""verify of one partition: its segments in order, and what must agree between its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from format import layout
from format.checks.batches import OffsetChain
from format.checks.directories import check_lost_log, check_partition_checkpoints, check_partition_files
from format.checks.losses import CauseAccount, LossAccount, after_stop, judged_at_end
from format.checks.producers import check_open_transactions, check_producer_events
from format.checks.side_files import (
    LeaderEpochCheck,
    LogAround,
    OffsetIndexCheck,
    SegmentTransactions,
    TimeIndexCheck,
    check_producer_snapshot,
    check_transaction_index,
)
from format.errors import KafkaLogError
from format.files import offset_index, time_index
from format.files.offset_index import OffsetIndex
from format.files.side_file import problem_findings
from format.files.time_index import TimeIndex
from format.findings import Cause, Finding, Judgement, finding, finding_of
from format.limits import Limits
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.node.log_dir import Checkpoints
from format.node.offsets import offsets_of, remote_head_findings
from format.node.partition import Partition, Segment
from format.node.partition_surroundings import unread_findings
from format.scan.selected_logs import log_of_segment
from format.state.producers import ProducerState
from format.verbs.verify.log_checks import (
    SegmentOutcome,
    SoundBatches,
    group_replay,
    verify_kraft_snapshot,
    verify_log_file,
)
from format.verbs.verify.terms import Verification
from format.verbs.verify.walk import Level

_Index = TypeVar("_Index", OffsetIndex, TimeIndex)


def verify_partition(partition: Partition, checkpoints: Checkpoints, terms: Verification) -> Iterator[Finding]:
    """Findings for one partition directory."""
    if terms.level is Level.FULL:
        yield from check_partition_files(partition, terms.limits)
    else:
        yield from unread_findings(partition)
    offsets = offsets_of(partition, checkpoints)
    yield from remote_head_findings(offsets, partition.location())
    losses = LossAccount(offsets)
    for found in _PartitionRun(partition, checkpoints, terms).findings():
        yield after_stop(losses.counted(found), offsets)
    if terms.level is Level.FULL:
        snapshots = [each for each in partition.kraft_snapshots if each.leftover is None]
        newest = max((each.end_offset for each in snapshots), default=None)
        for snapshot in snapshots:
            yield from verify_kraft_snapshot(snapshot.path, terms, is_newest=snapshot.end_offset == newest)


class _PartitionRun:
    """The checks of one partition, and their state from segment to segment."""

    def __init__(self, partition: Partition, checkpoints: Checkpoints, terms: Verification) -> None:
        self.partition = partition
        self.offsets = offsets_of(partition, checkpoints)
        self.is_broker_running = checkpoints.is_lock_held is True
        self.terms = terms
        self.is_full = terms.level is Level.FULL
        cleaner_offset = checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, partition.key)
        is_compacted = partition.topic in layout.COORDINATOR_TOPICS or bool(cleaner_offset)
        is_compacted = is_compacted or partition.topic in terms.compacted_topics
        self.chain = OffsetChain(is_compacted=is_compacted)
        self.producers = ProducerState.of_topic(partition.topic)
        self.transactions = SegmentTransactions()  # of the current segment
        self.snapshots_left = sorted(partition.snapshots.items())
        self.epochs = LeaderEpochCheck(
            partition.leader_epoch_checkpoint if self.is_full else None,
            partition.location(partition.leader_epoch_checkpoint),
            terms.limits,
            first_offset=self._certain_start(),
            read=partition.epochs_file,
        )
        self.causes = CauseAccount()
        self.log_is_whole = True
        self.end_is_known = True  # whether the last log could be read to its end
        self.torn_end: Cause | None = None  # the damage at the end of the last log that was read
        self.unread_logs = partition.unread_logs
        self.replay = group_replay(partition.topic, partition.segments[0].base_offset if partition.segments else None)

    def _certain_start(self) -> int | None:
        """The log start offset after a clean stop; the checkpoint of a broker that runs or crashed may be old."""
        is_known = self.partition.leader_epoch_checkpoint is not None and self.offsets.is_clean_shutdown
        return self.offsets.log_start_offset if is_known and not self.is_broker_running else None

    def findings(self) -> Iterator[Finding]:
        yield from self.epochs.opening
        segments = self.partition.segments
        for number, segment in enumerate(segments):
            self._pass_unread_logs(segment.base_offset)
            is_last = number == len(segments) - 1
            for each in self._segment(segment, None if is_last else segments[number + 1].base_offset):
                self.causes.note(each)
                yield each
        self._pass_unread_logs(None)
        if not self.is_full:
            return
        if any(each.leftover == "swap" and each.log is not None for each in self.partition.leftovers):
            self.end_is_known = False  # a broker puts the swapped log in its place: what it ends with is not read here
        yield from self._snapshots_up_to(None)
        if not self.end_is_known:
            return
        if not segments:
            yield from check_lost_log(self.offsets, self.partition)
            return
        yield from self.chain.end_findings(self.partition.location(segments[-1].log, segments[-1].base_offset))
        log_end = self.chain.log_end_offset
        log_end = segments[-1].base_offset if log_end is None else max(log_end, segments[-1].base_offset)
        yield from self.epochs.end_findings(log_end, self.torn_end, self.offsets)
        offsets = self.offsets.with_log_end(log_end)
        gap_count = self.chain.last_gap_count
        place = self.partition.location()
        yield from check_partition_checkpoints(offsets, place, self.torn_end, last_gap_count=gap_count)
        yield from check_open_transactions(self.producers, self.partition.location(), self.causes)

    def _pass_unread_logs(self, base_offset: int | None) -> None:
        """Pass the logs below a base offset (None: all that are left) that are links or pipes, and so were not read."""
        while self.unread_logs and (base_offset is None or self.unread_logs[0] < base_offset):
            self.unread_logs.pop(0)
            self.log_is_whole = self.end_is_known = False
            self._stop_replay()
            self.chain.note_damage(Damage("file-unreadable", 0, 0, "not a regular file"))

    def _segment(self, segment: Segment, next_base_offset: int | None) -> Iterator[Finding]:
        log = log_of_segment(self.partition, segment, self.offsets)
        if log is None:
            self._stop_replay()
            return
        location = log.location
        self.chain.start_segment(segment.base_offset, next_base_offset)
        outcome = SegmentOutcome()
        self.torn_end = None
        if not self.is_full:
            yield from verify_log_file(log, self.chain, self.terms, outcome, replay=self.replay)
            return
        offset_check, time_check, found = self._index_checks(segment)

        def across(sound: SoundBatches) -> Iterator[Finding]:
            if offset_check is not None:
                offset_check.feed(sound.table)
            if time_check is not None:
                time_check.feed(sound.table)
            yield from self.epochs.feed(sound.table, location)
            yield from self._producers(sound, segment)

        yield from verify_log_file(log, self.chain, self.terms, outcome, across=across, replay=self.replay)
        yield from found
        self.torn_end = outcome.torn_end
        if outcome.damaged_from is not None:
            self.log_is_whole = False
        transactions, self.transactions = self.transactions, SegmentTransactions()
        self.end_is_known = outcome.is_readable
        if outcome.is_readable:
            is_active = log.is_last_segment
            if offset_check is not None:
                yield from offset_check.findings(
                    outcome.damaged_from, outcome.cause, is_active=is_active, offsets=self.offsets
                )
            if time_check is not None:
                yield from time_check.findings(
                    outcome.damaged_after_offset, is_closed=not is_active, offsets=self.offsets
                )
            around = LogAround(
                self.chain.first_offset,
                self.chain.may_be_compacted(),
                self.log_is_whole,
                self.offsets.with_log_end(self.chain.log_end_offset) if is_active else None,
            )
            yield from check_transaction_index(segment, transactions, location, around, self.terms.limits)

    def _stop_replay(self) -> None:
        """A log is not read: what contradicts earlier records of a group is not known from here on."""
        if self.replay is not None:
            self.replay.stop()

    def _index_checks(self, segment: Segment) -> tuple[OffsetIndexCheck | None, TimeIndexCheck | None, list[Finding]]:
        """The checks of a segment's indexes, None for one that is missing or unreadable, and findings about both."""
        found: list[Finding] = []
        offsets = self._index(segment, segment.offset_index, offset_index.read, found)
        times = self._index(segment, segment.time_index, time_index.read, found)
        indexes = ((layout.OFFSET_INDEX_SUFFIX, offsets), (layout.TIME_INDEX_SUFFIX, times))
        padded = [suffix for suffix, index in indexes if index is not None and index.padding_bytes]
        if padded:
            has = "have their" if len(padded) > 1 else "has its"
            found.append(
                finding(
                    "index-preallocated",
                    self.partition.location(segment.log, segment.base_offset),
                    f"{' and '.join(padded)} still {has} preallocated size: the segment was being written",
                )
            )
        place_of = partial(self.partition.location, base_offset=segment.base_offset)
        offset_check = None if offsets is None else OffsetIndexCheck(offsets, place_of(segment.offset_index))
        return offset_check, None if times is None else TimeIndexCheck(times, place_of(segment.time_index)), found

    def _index(
        self,
        segment: Segment,
        path: Path | None,
        read: Callable[[Path, int, Limits], _Index],
        found: list[Finding],
    ) -> _Index | None:
        """An index of a segment, None where there is none or it cannot be read; adds findings about it."""
        if path is None:
            return None
        location = self.partition.location(path, segment.base_offset)
        self.terms.coverage.side_files += 1
        try:
            index = read(path, segment.base_offset, self.terms.limits)
        except KafkaLogError as error:
            found.append(finding_of(error, location))
            return None
        found.extend(problem_findings(index.problems, location))
        return index

    def _producers(self, sound: SoundBatches, segment: Segment) -> Iterator[Finding]:
        """Feed the producers' state, and compare it with each snapshot at the offset of that snapshot."""
        location = self.partition.location(segment.log, segment.base_offset)
        table, markers = sound.table, sound.markers
        first = 0
        while len(table):
            boundary = len(table)
            if self.snapshots_left:
                boundary = int(np.searchsorted(table.base_offset, self.snapshots_left[0][0]))
            part, part_markers = _part(table, markers, first, boundary)
            events = self.producers.feed(part, part_markers)
            self.transactions.add(events)
            self.transactions.cover(part)
            yield from check_producer_events(events, location, self.chain, self.causes)
            first = max(first, boundary)
            if first >= len(table):
                return
            yield from self._snapshots_up_to(int(table.base_offset[first]))

    def _snapshots_up_to(self, base_offset: int | None) -> Iterator[Finding]:
        """Check the snapshots at or below the base offset of the next batch; None at the end of the log."""
        log_end = self.chain.log_end_offset
        while self.snapshots_left and (base_offset is None or self.snapshots_left[0][0] <= base_offset):
            snapshot_offset, path = self.snapshots_left.pop(0)
            location = self.partition.location(path, snapshot_offset)
            first_base = self.partition.segments[0].base_offset if self.partition.segments else None
            is_known = self.log_is_whole and first_base is not None and snapshot_offset >= first_base
            is_past_end = base_offset is None and log_end is not None and snapshot_offset > log_end
            if is_past_end and self.end_is_known:
                found = finding(
                    "snapshot-mismatch",
                    location,
                    f"the snapshot is for offset {snapshot_offset}, but the log ends at {log_end}: the log lost its "
                    "end",
                    expected=log_end,
                    actual=snapshot_offset,
                    judgement=Judgement(caused_by=self.torn_end),
                )
                yield judged_at_end(found, self.offsets)
                is_known = False
            self.terms.coverage.side_files += 1
            starts = [each for each in (self.chain.first_offset, self.offsets.log_start_offset) if each is not None]
            yield from check_producer_snapshot(
                path,
                snapshot_offset,
                self.producers if is_known else None,
                location,
                first_offset=max(starts, default=None),
                is_compacted=self.chain.may_be_compacted(snapshot_offset),
                limits=self.terms.limits,
            )


def _part(
    table: BatchTable, markers: dict[int, ControlRecord], first: int, last: int
) -> tuple[BatchTable, dict[int, ControlRecord]]:
    """The rows from ``first`` to before ``last`` of a table, with the markers among them."""
    if first == 0 and last >= len(table):
        return table, markers
    return table.rows(slice(first, last)), {row - first: each for row, each in markers.items() if first <= row < last}
