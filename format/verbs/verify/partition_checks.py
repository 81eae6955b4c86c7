"""verify of a partition: the fold over each log, and what must agree between the files; at rest, or while it grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.checks.batches import OffsetChain
from format.checks.directories import (
    KraftSnapshotCheck,
    check_lost_log,
    check_orphans,
    check_partition_checkpoints,
    check_partition_files,
)
from format.checks.losses import CauseAccount, LossAccount, after_stop, judged_at_end, judged_past_use
from format.checks.producers import check_open_transactions, check_producer_events
from format.checks.records import Misplaced
from format.checks.side_files import (
    LeaderEpochCheck,
    LogAround,
    OffsetIndexCheck,
    SegmentTransactions,
    TimeIndexCheck,
    check_producer_snapshot,
    check_transaction_index,
)
from format.errors import KafkaLogError, WorkerDied
from format.files import offset_index, time_index
from format.files.offset_index import OffsetIndex
from format.files.side_file import read_reported
from format.files.time_index import TimeIndex
from format.findings import MOST_ALIKE, Cause, Finding, Judgement, Severity, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable, batch_location
from format.log.control_records import ControlRecord
from format.node.log_dir import Checkpoints
from format.node.offsets import MARKS_OF_REPLICAS, PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import Partition, Segment, location_of_file
from format.node.partition_surroundings import unread_findings
from format.rewriting.index_builder import IndexedOffsets
from format.rewriting.intact_batches import proof_of_false_end
from format.scan.protocol import Driver, LogParts, LogUnit
from format.scan.read_log import IntactElsewhere, RepeatFindings, damage_finding, offsets_out_of_order
from format.scan.selected_logs import every_log_of, log_of_segment
from format.state.producers import ProducerState
from format.verbs.verify.walk import Level, LogWalk, WalkedChunk, sound_batches

if TYPE_CHECKING:
    from format.internal_topics.group_replay import GroupReplay
    from format.node.target import Target
    from format.scan.follow import CaughtUp, FollowTerms, Grown
    from format.scan.followed_partition import FollowedPartition

_Index = TypeVar("_Index", OffsetIndex, TimeIndex)
_COUNTS = ("partitions", "segments", "side_files", "batches", "records", "bytes")


class Coverage(msgspec.Struct):
    """Counts of what was checked. ``misplaced`` is by the name of the partition."""

    partitions: int = 0
    segments: int = 0
    side_files: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    remote_heads: int = 0  # heads of logs in remote storage, which are not checked
    misplaced: dict[str, Misplaced] = msgspec.field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in _COUNTS}

    def add_misplaced(self, name: str, found: Misplaced) -> None:
        """Add records of a partition that belong in other ones."""
        known = self.misplaced.get(name)
        self.misplaced[name] = found if known is None else known + found

    def add(self, other: Coverage) -> None:
        """Add the counts of another run."""
        for name in (*_COUNTS, "remote_heads"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, found in other.misplaced.items():
            self.add_misplaced(name, found)


class UnitReport:
    """What verifying a unit found so far, and what it checked.

    At most MOST_ALIKE findings with the same code and file are reported one by one. The others are counted in one last
    finding of that code.
    """

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self._found: list[Finding] = []
        self._seen: Counter[tuple[str, str]] = Counter()
        self._last_ones: dict[tuple[str, str], Finding] = {}

    def add(self, found: Iterable[Finding]) -> None:
        """Add findings."""
        for each in found:
            key = (each.code, each.location.path)
            self._seen[key] += 1
            if self._seen[key] <= MOST_ALIKE:
                self._found.append(each)
            else:
                self._last_ones[key] = each

    def taken(self) -> list[Finding]:
        """The findings since the last call."""
        found, self._found = self._found, []
        return found

    def ended(self) -> list[Finding]:
        """The findings since the last call, and those that count what was not reported one by one."""
        found = self.taken()
        for key, last in self._last_ones.items():
            message = f"{self._seen[key] - MOST_ALIKE} more like it in this file, the last: {last.message}"
            found.append(replace(last, message=message, expected=None, actual=None))
        self._seen.clear()
        self._last_ones.clear()
        return found


class LogFold:
    """The checks of one log that need more than one chunk, and what they found about it as a whole.

    ``add`` takes the findings. ``across`` is called with the batches of each chunk whose CRC is right, and their
    control records by row, for what is checked across files. ``replay`` is that of the group records of the logs before
    it. ``flushed_end`` is the end of what was flushed, where a start cuts wrong batches off the end of the log, else
    None. ``damaged_from`` is the position of the first damage, if any, ``damaged_after_offset`` the last offset before
    it (-1 for none), ``cause`` the first damage as a cause, and ``torn_end`` the damage that reaches the log's end. A
    KRaft snapshot counts as a side file.
    """

    def __init__(
        self,
        log: LogUnit,
        chain: OffsetChain,
        walk: LogWalk,
        coverage: Coverage,
        add: Callable[[Iterable[Finding]], None],
        *,
        across: Callable[[BatchTable, dict[int, ControlRecord]], None] | None = None,
        replay: GroupReplay | None = None,
    ) -> None:
        self.log = log
        self.flushed_end: int | None = None
        self._chain = chain
        self._walk = walk
        self._coverage = coverage
        self._add = add
        self._across = across
        self._replay = replay
        self.damaged_from: int | None = None
        self.damaged_after_offset: int | None = None
        self._repeats = RepeatFindings(log.location)
        self._sound_end = (0, 0)  # the position and the offset after the last batch with a right CRC
        self.is_readable = True  # False where reading ended before the log did
        self.torn_end: Cause | None = None
        self.cause: Cause | None = None

    def folded(self, parts: LogParts[WalkedChunk]) -> Iterator[None]:
        """Check all parts; yields after each, so that its findings can be passed on. Raises WorkerDied."""
        try:
            for walked in parts:
                self._chunk(walked, 0 if parts.state is None else parts.state.size_bytes)
                yield
            self._false_end()
            position, offset = self._sound_end
            is_hidden = self.log.is_last_segment and offset < (self._chain.log_end_offset or 0)
            self._add(self._repeats.ended(position if is_hidden else None))
            self._add(self._chain.end_segment(self.log.location))
        except WorkerDied:
            raise
        except KafkaLogError as error:
            unread = Damage(error.code, 0, 0, error.message)
            self.is_readable = False
            self._note(unread)
            self._chain.note_damage(unread)
            if self._replay is not None:
                self._replay.stop()
            self._add([finding_of(error, self.log.location)])
        finally:
            if parts.state is not None:
                is_snapshot = self.log.path.suffix == layout.CHECKPOINT_SUFFIX
                self._coverage.segments += not is_snapshot
                self._coverage.side_files += is_snapshot
                self._coverage.bytes += parts.state.size_bytes

    def _chunk(self, walked: WalkedChunk, size_bytes: int) -> None:
        log, chain, coverage, damage = self.log, self._chain, self._coverage, walked.damage
        coverage.batches += len(walked.table)
        torn = self._torn_write(walked, size_bytes)
        for each in walked.header_findings:
            if each.code != "batch-crc-mismatch":
                self._add([each])
            elif torn is None or (each.location.position or 0) < (torn.location.position or 0):
                self.cause = self.cause or Cause.of(each)
                self._add([each])
            else:
                if self.torn_end is None:
                    self._add_tail(torn, reaches_end=True)
                self._add([replace(each, severity=Severity.WARNING, lost_offsets=None, caused_by=Cause.of(torn))])
        if not walked.table.crc_valid.all():
            self._note(_first_bad_crc(walked.table))
        record_findings = list(walked.record_findings)  # reads the records, which sets keyless_offset
        self._add(self._repeats.before(walked.table, walked.repeated))
        keyless = walked.keyless_offset
        self._add(chain.feed(walked.table, log.location, keyless_offset=keyless, repeated=walked.repeated))
        if len(sound := sound_batches(walked.table)):
            self._sound_end = int(sound.end_position[-1]), sound.last_offset_of(len(sound) - 1) + 1
        self._add(record_findings)
        if self._replay is not None and walked.group_changes is not None:
            self._add(self._replay.feed(walked.group_changes, log.location))
            if damage is not None:
                self._replay.stop()
        coverage.records += walked.record_count
        if walked.misplaced is not None:
            coverage.add_misplaced(f"{log.location.topic}-{log.location.partition}", walked.misplaced)
        if self._across is not None:
            self._across(sound_batches(walked.table), walked.markers)
        if damage is None:
            return
        self._add(chain.end_segment(log.location))
        chain.note_damage(damage)
        self._note(damage)
        tail = walked.tail_finding
        if tail is None or (torn is not None and not tail.is_incomplete):
            return
        self._add_tail(tail, reaches_end=damage.reaches_end)

    def _add_tail(self, tail: Finding, *, reaches_end: bool) -> None:
        """Report damage after the batches of a chunk."""
        if not tail.is_incomplete:  # what is still being written is no damage
            self.cause = self.cause or Cause.of(tail)
            self.torn_end = Cause.of(tail) if reaches_end else self.torn_end
        self._add([tail])

    def _torn_write(self, walked: WalkedChunk, size_bytes: int) -> Finding | None:
        """The finding for the end of the log from the first of its last batches with a wrong CRC on; None if it stays.

        It is an error if records are lost that consumers could read, or that were flushed.
        """
        table, damage = walked.table, walked.damage
        if self.flushed_end is None or not self.log.is_last_segment or not table.crc_valid.any():
            return None
        sound = int(np.flatnonzero(table.crc_valid)[-1])
        is_end = damage.reaches_end if damage is not None else int(table.end_position[-1]) == size_bytes
        if sound + 1 == len(table) or not is_end:
            return None
        position, after = int(table.position[sound + 1]), table.last_offset_of(sound)
        count = len(table) - 1 - sound
        words = "the CRC of the last batch does not match its bytes"
        if count > 1:
            words = f"the CRCs of the last {count} batches do not match their bytes"
        end = Damage("tail-torn", position, size_bytes - position, words, after, reaches_end=True, lost_from=after + 1)
        found = damage_finding(end, self.log)
        is_lost = found.lost_offsets is not None or after + 1 < self.flushed_end
        return replace(found, severity=Severity.ERROR) if is_lost else found

    def _note(self, damage: Damage) -> None:
        """Remember the place of the first damage."""
        if self.damaged_from is None:
            self.damaged_from = damage.position
            self.damaged_after_offset = -1 if damage.after_offset is None else damage.after_offset

    def _false_end(self) -> None:
        """Report a last batch whose base offset is too high, if that is proven; it contradicts no other batch.

        A compressed message that cannot be opened has no count, and its base offset is not known.
        """
        chain, location = self._chain, self.log.location
        end = chain.end_after_gap
        if end is None or int(end.position[1]) != int(end.end_position[0]):
            return
        if int(end.last_offset_delta[1]) < 0 or int(end.record_count[1]) < 0:
            return
        right = end.last_offset_of(0) + 1
        indexed = IndexedOffsets(location, self._walk.limits) if self._walk.level is Level.FULL else None
        proof = proof_of_false_end(end, right, indexed, is_whole=chain.is_whole)
        if proof:
            message = f"the base offset of the batch is {end.base_offset[1]}, and must be {right}: {proof}"
            place, actual = batch_location(location, end, 1), int(end.base_offset[1])
            self._add([finding("batch-invalid", place, message, expected=right, actual=actual)])
            chain.place_waiting(right + int(end.last_offset_delta[1]))


def group_replay(topic: str | None, base_offset: int | None) -> GroupReplay | None:
    """The replay of a group coordinator's log that is there from its beginning, None for others."""
    if topic != layout.CONSUMER_OFFSETS_TOPIC or base_offset != 0:
        return None
    from format.internal_topics.group_replay import GroupReplay  # few runs need it

    return GroupReplay()


def _first_bad_crc(table: BatchTable) -> Damage:
    row = int(np.flatnonzero(table.crc_valid == 0)[0])
    after = int(table.base_offset[row]) - 1
    return Damage("batch-crc-mismatch", int(table.position[row]), int(table.size_bytes[row]), "", after)


def check_lone_segment(path: Path, walk: LogWalk, driver: Driver[WalkedChunk], report: UnitReport) -> Iterator[Finding]:
    """Findings for one ``.log`` file by itself. Other segments are not read: its end is judged as the end of a log."""
    location = location_of_file(path)
    log, chain = LogUnit(path, location), OffsetChain()
    chain.start_segment(location.base_offset, None)
    replay = group_replay(location.topic, location.base_offset)
    losses = _losses_of(log, walk)

    def add(found: Iterable[Finding]) -> None:
        report.add(each for one in found for each in losses.counted(one))

    for _ in LogFold(log, chain, walk, report.coverage, add, replay=replay).folded(driver.parts(log)):
        yield from report.taken()


def _losses_of(log: LogUnit, walk: LogWalk) -> LossAccount:
    """The losses of one log by itself, of whose partition nothing else is read."""
    return LossAccount(PartitionOffsets(), IntactElsewhere.of_log(log, walk.limits))


def check_kraft_snapshot(
    path: Path, walk: LogWalk, driver: Driver[WalkedChunk], report: UnitReport, *, is_newest: bool = True
) -> None:
    """Report what is wrong in a KRaft snapshot or bootstrap.checkpoint: batches between header and footer record.

    A node reads the newest one at every start and does not repair it, so a torn end is damage.
    """
    log, chain = LogUnit(path, location_of_file(path)), OffsetChain()
    chain.start_segment(0, None)
    check = KraftSnapshotCheck(log.location)

    def add(found: Iterable[Finding]) -> None:
        report.add(
            _as_snapshot(each, is_newest) if each.code in ("tail-torn", "tail-zeros") else each for each in found
        )

    fold = LogFold(log, chain, walk, report.coverage, add, across=lambda table, markers: check.feed(markers))
    for _ in fold.folded(driver.parts(log)):
        pass
    if walk.level is Level.FULL and fold.damaged_from is None:
        report.add(check.findings(is_bootstrap=path.name == layout.BOOTSTRAP_CHECKPOINT))


def _as_snapshot(found: Finding, is_newest: bool) -> Finding:
    """A finding about the torn end of a log, as a finding about a KRaft snapshot, which no broker mends."""
    return finding(
        "data-truncated",
        found.location,
        found.message,
        judgement=Judgement(
            severity=Severity.ERROR if is_newest else Severity.WARNING,
            next_step="Restore the file from another node, or from a backup.",
        ),
    )


class PartitionCheck:
    """The checks of one partition, and their state from segment to segment. Findings go to ``report``.

    Of a deleted partition only the logs are checked, and not what lies beside them.
    """

    def __init__(
        self,
        partition: Partition,
        checkpoints: Checkpoints,
        walk: LogWalk,
        report: UnitReport,
        *,
        compacted_topics: Mapping[str, bool],
    ) -> None:
        self.partition = partition
        self.offsets = offsets_of(partition, checkpoints)
        self.is_broker_running = checkpoints.is_lock_held is True
        self.walk = walk
        self.limits = walk.limits
        self.report = report
        self.is_full = walk.level is Level.FULL and not partition.is_deleted
        cleaner_offset = checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, partition.key)
        is_compacted = True if partition.topic in layout.COORDINATOR_TOPICS or cleaner_offset else None
        is_compacted = is_compacted or compacted_topics.get(partition.topic or "")
        self.is_compacted = bool(is_compacted)
        self.chain = OffsetChain(is_compacted=is_compacted)
        self.producers = ProducerState.of_topic(partition.topic)
        self.transactions = SegmentTransactions()  # of the current segment
        self.snapshots_left = sorted(partition.snapshots.items())
        self.epochs = LeaderEpochCheck(
            partition.leader_epoch_checkpoint if self.is_full else None,
            partition.location(partition.leader_epoch_checkpoint),
            walk.limits,
            first_offset=self._certain_start(),
            read=partition.epochs_file,
        )
        self.causes = CauseAccount()
        self.losses = LossAccount(
            self.offsets, IntactElsewhere(lambda: offsets_out_of_order(every_log_of(partition), walk.limits))
        )
        self.log_is_whole = True
        self.end_is_known = True  # whether the last log could be read to its end
        self.torn_end: Cause | None = None  # the damage at the end of the last log that was read
        self.unread_logs = partition.unread_logs
        self.replay = group_replay(partition.topic, partition.segments[0].base_offset if partition.segments else None)

    def _certain_start(self) -> int | None:
        """The log start offset after a clean stop; the checkpoint of a broker that runs or crashed may be old."""
        is_known = self.partition.leader_epoch_checkpoint is not None and self.offsets.is_clean_shutdown
        return self.offsets.log_start_offset if is_known and not self.is_broker_running else None

    def _flushed_end(self) -> int | None:
        """The recovery point after a crash; None after a clean stop, or if it is not known what consumers could read.

        After a crash a start reads the last segment from its begin, and cuts it at the first wrong batch (LogLoader).
        """
        offsets = self.offsets
        if offsets.is_clean_shutdown is not False or offsets.is_broker_running or offsets.high_watermark is None:
            return None
        return offsets.recovery_point or 0

    def _add(self, found: Iterable[Finding]) -> None:
        """Report findings, judged by what was lost before, and by how the broker stopped."""
        self.report.add(after_stop(each, self.offsets) for one in found for each in self.losses.counted(one))

    def _add_of_segment(self, found: Iterable[Finding]) -> None:
        """Report findings about a segment, which may be the causes of later ones."""
        for each in found:
            self.causes.note(each)
            self._add([each])

    def findings(self, driver: Driver[WalkedChunk], small: Driver[WalkedChunk]) -> Iterator[Finding]:
        """The findings of the partition; ``small`` reads KRaft snapshots, which do not count as progress."""
        partition, report = self.partition, self.report
        is_listed = self.walk.level is Level.FULL
        report.add(check_partition_files(partition, self.limits) if is_listed else unread_findings(partition))
        report.add(remote_head_findings(self.offsets, partition.location()))
        self._add(self.epochs.opening)
        segments = partition.segments
        for number, segment in enumerate(segments):
            self._pass_unread_logs(segment.base_offset)
            is_last = number == len(segments) - 1
            for _ in self._segment(segment, None if is_last else segments[number + 1].base_offset, driver):
                yield from report.taken()
        self._pass_unread_logs(None)
        if self.is_full:
            self._end()
            self._orphans()
            yield from report.taken()
            snapshots = [each for each in partition.kraft_snapshots if each.leftover is None]
            newest = max((each.end_offset for each in snapshots), default=None)
            for snapshot in snapshots:
                is_newest = snapshot.end_offset == newest
                check_kraft_snapshot(snapshot.path, self.walk, small, report, is_newest=is_newest)
        yield from report.ended()

    def _end(self) -> None:
        """Check what must agree at the end of the log."""
        segments = self.partition.segments
        if any(each.leftover == "swap" and each.log is not None for each in self.partition.leftovers):
            self.end_is_known = False  # a broker puts the swapped log in its place: what it ends with is not read here
        self._snapshots_up_to(None, self._add)
        if self._has_true_start():
            self.report.add(self.epochs.head_findings(self.offsets, self.partition.location()))
        if not self.end_is_known:
            return
        if not segments:
            self._add(check_lost_log(self.offsets, self.partition))
            return
        self._add(self.chain.end_findings(self.partition.location(segments[-1].log, segments[-1].base_offset)))
        log_end = self.chain.log_end_offset
        log_end = segments[-1].base_offset if log_end is None else max(log_end, segments[-1].base_offset)
        self._add(self.epochs.end_findings(log_end, self.torn_end, self.offsets))
        offsets, place = self.offsets.with_log_end(log_end), self.partition.location()
        gap_count = self.chain.last_gap_count
        self._add(check_partition_checkpoints(offsets, place, self.torn_end, last_gap_count=gap_count))
        self._add(check_open_transactions(self.producers, place, self.causes))

    def _orphans(self) -> None:
        """Check indexes without a log, after what else shows that their records are lost."""
        for found in check_orphans(self.partition, self.limits, is_compacted=self.is_compacted):
            counted = self.losses.counted(found)
            self.report.add(
                each if each.lost_offsets is None else replace(each, severity=Severity.ERROR) for each in counted
            )

    def _has_true_start(self) -> bool:
        """Whether the log begins with its first segment: none before it is unread or renamed, and its name is right."""
        partition, first = self.partition, self.chain.first_offset
        has_other_logs = partition.mark not in MARKS_OF_REPLICAS or partition.leftovers or partition.unread_logs
        if has_other_logs or partition.topic == layout.CLUSTER_METADATA_TOPIC or not partition.segments:
            return False
        return first is None or first >= partition.segments[0].base_offset

    def _pass_unread_logs(self, base_offset: int | None) -> None:
        """Pass the logs below a base offset (None: all that are left) that are links or pipes, and so were not read."""
        while self.unread_logs and (base_offset is None or self.unread_logs[0] < base_offset):
            self.unread_logs.pop(0)
            self.log_is_whole = self.end_is_known = False
            self._stop_replay()
            self.chain.note_damage(Damage("file-unreadable", 0, 0, "not a regular file"))

    def _segment(self, segment: Segment, next_base_offset: int | None, driver: Driver[WalkedChunk]) -> Iterator[None]:
        """Check a segment; yields after each chunk."""
        log = log_of_segment(self.partition, segment, self.offsets)
        if log is None:
            self._stop_replay()
            return
        location, add = log.location, self._add_of_segment
        self.chain.start_segment(segment.base_offset, next_base_offset)
        self.torn_end = None
        is_whole = self.is_full and segment.end is None  # else its indexes go on
        offset_check, time_check, found = self._index_checks(segment) if is_whole else (None, None, [])

        def across(table: BatchTable, markers: dict[int, ControlRecord]) -> None:
            if offset_check is not None:
                offset_check.feed(table)
            if time_check is not None:
                time_check.feed(table)
            add(self.epochs.feed(table, location))
            self._producers(table, markers, location)

        fold = LogFold(
            log,
            self.chain,
            self.walk,
            self.report.coverage,
            add,
            across=across if self.is_full else None,
            replay=self.replay,
        )
        fold.flushed_end = self._flushed_end()
        yield from fold.folded(driver.parts(log))
        if not self.is_full:
            return
        self.torn_end = fold.torn_end
        if fold.damaged_from is not None:
            self.log_is_whole = False
        transactions, self.transactions = self.transactions, SegmentTransactions()
        self.end_is_known = fold.is_readable
        if not fold.is_readable or not is_whole:
            add(found)
            return
        is_active = log.is_last_segment
        if offset_check is not None:
            found += offset_check.findings(fold.damaged_from, fold.cause, is_active=is_active, offsets=self.offsets)
        if time_check is not None:
            is_closed = not is_active
            found += time_check.findings(fold.damaged_after_offset, is_closed=is_closed, offsets=self.offsets)
        add(self._judged_past_use(found, segment, offset_check, time_check) if is_active else found)
        around = LogAround(
            self.chain.first_offset,
            self.chain.may_be_compacted(),
            self.log_is_whole,
            self.offsets.with_log_end(self.chain.log_end_offset) if is_active else None,
        )
        add(check_transaction_index(segment, transactions, location, around, self.limits))
        yield

    def _judged_past_use(
        self,
        found: list[Finding],
        segment: Segment,
        offset_check: OffsetIndexCheck | None,
        time_check: TimeIndexCheck | None,
    ) -> Iterator[Finding]:
        """The findings about the indexes of the last segment: what a broker leaves in one it writes to is no error."""
        is_kept = not self.offsets.is_broker_running and self.offsets.keeps_indexes(self.chain.log_end_offset)
        checks = ((segment.offset_index, offset_check), (segment.time_index, time_check))
        ends = {str(path): check.end_of_use for path, check in checks if check is not None and check.has_padding}
        for each in found:
            place = each.location
            end = ends.get(place.path)
            is_past = end is not None and place.position is not None and place.position >= end
            yield judged_past_use(each) if is_past and not is_kept and each.severity > Severity.WARNING else each

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
            ends = "end" if len(padded) > 1 else "ends"
            found.append(
                finding(
                    "index-preallocated",
                    self.partition.location(segment.log, segment.base_offset),
                    f"{' and '.join(padded)} {ends} in preallocated zeros, as while the segment is being written",
                )
            )
        place_of = partial(self.partition.location, base_offset=segment.base_offset)
        offset_check = None if offsets is None else OffsetIndexCheck(offsets, place_of(segment.offset_index))
        return offset_check, None if times is None else TimeIndexCheck(times, place_of(segment.time_index)), found

    def _index(
        self, segment: Segment, path: Path | None, read: Callable[[Path, int, Limits], _Index], found: list[Finding]
    ) -> _Index | None:
        """An index of a segment, None where there is none or it cannot be read; adds findings about it."""
        self.report.coverage.side_files += path is not None
        location = self.partition.location(path, segment.base_offset)
        return read_reported(found, location, read, path, segment.base_offset, self.limits)

    def _producers(self, table: BatchTable, markers: dict[int, ControlRecord], location: Location) -> None:
        """Feed the producers' state, and compare it with each snapshot at the offset of that snapshot."""
        first = 0
        while len(table):
            boundary = len(table)
            if self.snapshots_left:
                boundary = int(np.searchsorted(table.base_offset, self.snapshots_left[0][0]))
            part, part_markers = _part(table, markers, first, boundary)
            events = self.producers.feed(part, part_markers)
            self.transactions.add(events)
            self.transactions.cover(part)
            self._add_of_segment(check_producer_events(events, location, self.chain, self.causes))
            first = max(first, boundary)
            if first >= len(table):
                return
            self._snapshots_up_to(int(table.base_offset[first]), self._add_of_segment)

    def _snapshots_up_to(self, base_offset: int | None, add: Callable[[Iterable[Finding]], None]) -> None:
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
                add([judged_at_end(found, self.offsets)])
                is_known = False
            self.report.coverage.side_files += 1
            starts = [each for each in (self.chain.first_offset, self.offsets.log_start_offset) if each is not None]
            found_in = check_producer_snapshot(
                path,
                snapshot_offset,
                self.producers if is_known else None,
                location,
                first_offset=max(starts, default=None),
                is_compacted=self.chain.may_be_compacted(snapshot_offset),
                limits=self.limits,
            )
            add(found_in)


def _part(
    table: BatchTable, markers: dict[int, ControlRecord], first: int, last: int
) -> tuple[BatchTable, dict[int, ControlRecord]]:
    """The rows from ``first`` to before ``last`` of a table, with the markers among them."""
    if first == 0 and last >= len(table):
        return table, markers
    return table.rows(slice(first, last)), {row - first: each for row, each in markers.items() if first <= row < last}


#: What following does not check, at any level.
NOT_FOLLOWED = "batches that were there before, indexes, checkpoints and snapshots: they are checked without --follow"


def follow_verify(
    targets: Sequence[Target], walk: LogWalk, follow: FollowTerms, coverage: Coverage
) -> Iterator[Finding | CaughtUp]:
    """Findings about what is appended from now on, also against the batches before it in its partition.

    What was checked is counted in ``coverage``. Raises InputError as ``Target.kind`` does.
    """
    from format.scan.follow import Broken, FollowDriver, Grown

    checks: dict[Path, _FollowCheck] = {}
    segments: set[tuple[Path, int | None]] = set()
    follow = replace(follow, limits=walk.limits, step_bytes=walk.needs.range_bytes)
    driver = FollowDriver(targets, follow)
    yield from driver.begin()
    for event in driver.events():
        if isinstance(event, Grown):
            path, base_offset = event.partition.path, event.log.location.base_offset
            if path not in checks:
                checks[path] = _FollowCheck(event.partition, walk)
            yield from checks[path].findings(event, coverage)
            if (path, base_offset) not in segments:
                segments = {each for each in segments if each[0] != path} | {(path, base_offset)}
                coverage.segments += 1
            coverage.partitions = max(coverage.partitions, len(checks))
        elif isinstance(event, Broken):
            checks.pop(event.partition.path, None)
            yield event.finding
        else:
            yield event


class _FollowCheck:
    """The state of the checks of one followed partition, from where following begins."""

    def __init__(self, partition: FollowedPartition, walk: LogWalk) -> None:
        place = partition.place
        self._walk = walk
        self._causes = CauseAccount()
        self._segment = None if place is None else place.segment_base_offset  # the base offset of the one that is read
        self._chain = OffsetChain()
        self._chain.resume(self._segment, partition.next_offset)
        self._producers = _producers_before(partition, walk.limits) if walk.level is Level.FULL else None

    def findings(self, event: Grown, coverage: Coverage) -> list[Finding]:
        """Findings about the next batches."""
        log, own, found, losses = event.log, Coverage(), list[Finding](), _losses_of(event.log, self._walk)
        if log.location.base_offset != self._segment:
            self._segment = log.location.base_offset
            self._chain.start_segment(self._segment, None)

        def add(more: Iterable[Finding]) -> None:
            for each in more:
                self._causes.note(each)
                found.extend(losses.counted(each))

        def across(table: BatchTable, markers: dict[int, ControlRecord]) -> None:
            if self._producers is not None:
                events = self._producers.feed(table, markers)
                add(check_producer_events(events, log.location, self._chain, self._causes))

        for _ in LogFold(log, self._chain, self._walk, own, add, across=across).folded(event.parts(self._walk)):
            pass
        coverage.batches += own.batches
        coverage.records += own.records
        coverage.bytes += event.size_bytes
        return found


def _producers_before(partition: FollowedPartition, limits: Limits) -> ProducerState:
    """The producers' state at a partition's next offset, from its newest sound snapshot and the headers after it."""
    from format.scan.followed_partition import logs_before
    from format.state.log_headers import producers_after

    return producers_after(partition.listed, logs_before(partition), limits, partition.next_offset)[0]
