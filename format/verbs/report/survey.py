"""Collects facts for a report while verify reads the batches: totals, histograms, epochs, segments, transactions.

verify passes each table of batches to ``Survey.see`` before it checks it. Partitions come one after another, so that
large state exists for only one of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from format.findings import Finding, Severity
from format.layout import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.node.log_dir import Checkpoints
from format.node.partition import Partition, parse_partition_dir
from format.scan.protocol import LogUnit
from format.state.header_scan import Headers
from format.state.totals import LogTotals
from format.verbs.boot.one_log.recovered_log import ReadLog
from format.verbs.boot.steps import KeptStart
from format.verbs.report.histograms import BatchSizes, BytesByOffset, BytesByTime
from format.verbs.report.timeline import Timeline
from format.verbs.txns.partition_transactions import (
    ENDED_COLUMNS,
    PartitionTransactions,
    forget_below_start,
    take_snapshot,
)
from format.verbs.txns.txns import Transactions
from format.verbs.verify.walk import WalkedChunk, sound_batches

#: The number of undamaged partitions, the largest ones, whose bytes are shown by offset.
_LARGEST = 4
#: The most damaged partitions whose bytes are shown by offset, and the most places of damage in each.
_MOST_DAMAGED = 60
_MOST_PLACES = 200
_MOST_ENDED = 1_000
_MOST_EPOCHS = 100
#: The number of batches that are added to the sums at once.
_ADDED_TOGETHER = 2_048
_NO_BATCHES = BatchTable.empty()
_FIRST_OFFSET, _LAST_OFFSET = ENDED_COLUMNS.index("first_offset"), ENDED_COLUMNS.index("last_offset")
_IS_ABORTED = ENDED_COLUMNS.index("is_aborted")


class DamagedPlace(msgspec.Struct):
    """The offsets of a finding; ``last_offset`` is the last lost offset."""

    code: str
    severity: Severity
    offset: int
    last_offset: int
    timestamp: int | None


class SurveyedPartition(msgspec.Struct):
    """The facts of one partition."""

    path: Path
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    record_count: int = 0
    by_offset: BytesByOffset | None = msgspec.field(default_factory=BytesByOffset)
    places: list[DamagedPlace] = msgspec.field(default_factory=list)
    worst: Severity | None = None
    finding_count: int = 0
    committed_count: int = 0
    aborted_count: int = 0
    last_log: Path | None = None
    last_log_timestamp: int = -1  # the largest timestamp in ``last_log``
    log_end_offset: int = 0
    first_open_offset: int | None = None

    @property
    def log_bytes(self) -> int:
        """The bytes of all batches."""
        return sum(self.totals.codec_bytes)


class _Current(msgspec.Struct):
    """The partition that is read, and its last table. ``held`` are tables that its bytes by offset do not have yet."""

    seen: SurveyedPartition
    partition: Partition
    transactions: PartitionTransactions | None
    topic: int
    log: LogUnit | None = None
    table: BatchTable = _NO_BATCHES
    leader_epoch: int = -1
    epoch_count: int = 0
    held: list[tuple[BatchTable, int]] = msgspec.field(default_factory=list)
    held_rows: int = 0

    def hold(self, table: BatchTable, base_offset: int) -> None:
        """Take a table for the bytes by offset, which few small partitions keep."""
        self.held.append((table, base_offset))
        self.held_rows += len(table)
        if self.held_rows > _ADDED_TOGETHER:
            self.add_held()

    def add_held(self) -> None:
        """Complete the bytes by offset."""
        for table, base_offset in self.held:
            if self.seen.by_offset is not None:
                self.seen.by_offset.add(table, base_offset)
        self.held, self.held_rows = [], 0


class Survey(msgspec.Struct):
    """The facts of all partitions that were read."""

    limits: Limits
    timeline: Timeline
    transactions: Transactions
    by_time: BytesByTime = msgspec.field(default_factory=BytesByTime)
    sizes: BatchSizes = msgspec.field(default_factory=BatchSizes)
    partitions: dict[Path, SurveyedPartition] = msgspec.field(default_factory=dict)
    read_logs: dict[Path, ReadLog] = msgspec.field(default_factory=dict)  # logs that a broker's start may recover
    kept_start: KeptStart = msgspec.field(default_factory=KeptStart)
    topics: dict[str, int] = msgspec.field(default_factory=dict)  # numbers by name, in the order of appearance
    _by_offset: list[SurveyedPartition] = msgspec.field(default_factory=list)  # those whose bytes by offset are kept
    _find: Callable[[Path], tuple[Partition, Checkpoints]] | None = None
    _waiting: list[BatchTable] = msgspec.field(default_factory=list)  # of ``_waiting_topic``, not yet in the sums
    _waiting_topic: int = 0
    _last_place: tuple[str, Path] = ("", Path())
    _waiting_count: int = 0
    _current: _Current | None = None

    def begin(self, find: Callable[[Path], tuple[Partition, Checkpoints]]) -> None:
        """Set the function that looks up the partitions that follow."""
        self.finish()
        self._find = find

    def see(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Add a chunk of a segment; chunks come in log order."""
        if log.segment is None or self._find is None:
            return
        current = self._current
        if current is None or current.seen.path != log.path.parent:
            current = self._next_partition(log, *self._find(log.path.parent))
        is_first = current.log is not log
        table = walked.table
        current.log, current.table = log, table
        self._note_read(log, walked)
        if not len(table):
            return
        seen = current.seen
        if is_first:
            seen.last_log, seen.last_log_timestamp = log.path, -1
        seen.last_log_timestamp = max(seen.last_log_timestamp, table.sums.max_timestamp)
        seen.log_end_offset = table.last_offset_of(len(table) - 1) + 1
        base_offset = log.location.base_offset or 0
        seen.totals.add(table, log.location.base_offset)
        seen.record_count += table.sums.record_count
        current.hold(table, base_offset)
        self._add_up(current.topic, table)
        if is_first and base_offset:
            self.timeline.segment(log.location, table.value("max_timestamp", 0))
        sound = sound_batches(table)
        self._see_epochs(current, sound)
        if current.transactions is not None:
            current.transactions.feed(Headers(sound, walked.markers), base_offset, None)
            _forget_ended(current.transactions, seen)

    def _add_up(self, topic: int, table: BatchTable) -> None:
        """Add batches to the sums by time and size; those of small partitions of one topic are added together."""
        if self._waiting and topic != self._waiting_topic:
            self._add_waiting()
        self._waiting_topic = topic
        self._waiting.append(table)
        self._waiting_count += len(table)
        if self._waiting_count >= _ADDED_TOGETHER:
            self._add_waiting()

    def _add_waiting(self) -> None:
        waiting, self._waiting, self._waiting_count = self._waiting, [], 0
        if waiting:
            table = waiting[0] if len(waiting) == 1 else BatchTable.concatenated(waiting)
            self.by_time.add(self._waiting_topic, table)
            self.sizes.add(table)

    def _note_read(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Add a chunk to the summary of a log for boot, which then does not read the log again."""
        read = self.read_logs.get(log.path)
        if read is None:
            if log.location.base_offset is None:
                return
            read = self.read_logs[log.path] = ReadLog(log.location.base_offset)
        # Offsets of opened wrappers are no longer those of the headers.
        read.add(walked.table, is_damaged=walked.damage is not None or walked.table.sums.wrappers > 0)

    def _next_partition(self, log: LogUnit, partition: Partition, checkpoints: Checkpoints) -> _Current:
        self._end_partition()
        seen = self.partitions.setdefault(partition.path, SurveyedPartition(partition.path))
        topic = self.topics.setdefault(partition.topic or partition.path.name, len(self.topics))
        transactions = None
        if partition.mark is None and partition.topic not in (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC):
            transactions = PartitionTransactions.of_partition(partition, checkpoints)
            list(take_snapshot(transactions, self.limits))  # verify reports its findings
        self._current = _Current(seen, partition, transactions, topic)
        return self._current

    def _see_epochs(self, current: _Current, table: BatchTable) -> None:
        for row in table.higher_epochs(current.leader_epoch):
            current.leader_epoch = table.value("leader_epoch", row)
            current.epoch_count += 1
            if current.log is not None and current.epoch_count <= _MOST_EPOCHS:
                place = current.log.location.at(table.value("position", row), None, table.value("base_offset", row))
                self.timeline.leader_epoch(place, table.value("max_timestamp", row), current.leader_epoch)

    def find(self, found: Finding) -> DamagedPlace | None:
        """Add a finding about the last chunk; returns its place, None for one without an offset or below warning."""
        directory = self._directory_of(found.location.path)
        current = self._current
        if current is not None and directory == current.seen.path:
            offset, timestamp = _place_in(current, found)
            seen = current.seen
        else:
            seen = self.partitions.setdefault(directory, SurveyedPartition(directory))
            offset, timestamp = found.location.offset, None
        seen.finding_count += 1
        seen.worst = found.severity if seen.worst is None else max(seen.worst, found.severity)
        if found.severity < Severity.WARNING:
            return None
        self.timeline.damage(found, timestamp)
        first, last = found.lost_offsets or (offset, offset)
        if first is None or last is None or len(seen.places) >= _MOST_PLACES:
            return None
        place = DamagedPlace(found.code, found.severity, first, last, timestamp)
        seen.places.append(place)
        return place

    def _directory_of(self, place: str) -> Path:
        """The partition directory of a file, or the directory itself; findings about one place often follow another."""
        if place != self._last_place[0]:
            path = Path(place)
            self._last_place = place, path.parent if parse_partition_dir(path.name) is None else path
        return self._last_place[1]

    def finish(self) -> None:
        """End the last partition, and complete the sums."""
        self._add_waiting()
        self._end_partition()

    def _end_partition(self) -> None:
        """End the current partition, and drop what is not needed of it any more."""
        current, self._current = self._current, None
        if current is None:
            return
        if current.transactions is not None:
            forget_below_start(current.transactions, self.limits)
            current.seen.first_open_offset = current.transactions.state.first_open_offset()
            current.transactions.last_of_producer = {
                each: current.transactions.last_of_producer[each]
                for each in current.transactions.state.open
                if each in current.transactions.last_of_producer
            }
            self.transactions.keep(current.transactions)
        self._forget_offsets(current)

    def _forget_offsets(self, current: _Current) -> None:
        """Keep the bytes by offset of some damaged partitions, and of the largest; ``current`` was read last."""
        ended = current.seen
        shown = [each for each in self._by_offset if not each.places]
        if not ended.places and len(shown) == _LARGEST and ended.log_bytes <= shown[-1].log_bytes:
            ended.by_offset = None  # the usual case
            return
        current.add_held()
        kept = [each for each in self._by_offset if each is not ended]
        if ended.by_offset is not None:
            kept.append(ended)
        sound = sorted((each for each in kept if not each.places), key=lambda each: -each.log_bytes)
        damaged = sorted(
            (each for each in kept if each.places), key=lambda each: (-(each.worst or 0), -len(each.places))
        )
        self._by_offset = [*sound[:_LARGEST], *damaged[:_MOST_DAMAGED]]
        for each in (*sound[_LARGEST:], *damaged[_MOST_DAMAGED:]):
            each.by_offset = None

    def header_times(self) -> dict[Path, tuple[int, int]]:
        """The largest timestamp and the end offset of the last log of each partition."""
        return {
            each.last_log: (each.last_log_timestamp, each.log_end_offset)
            for each in self.partitions.values()
            if each.last_log is not None
        }


def _place_in(current: _Current, found: Finding) -> tuple[int | None, int | None]:
    """The offset and the timestamp of a finding, from the batch at or before it in the last table."""
    where, table = found.location, current.table
    is_here = current.log is not None and where.path == str(current.log.path)
    if not is_here or where.position is None or not len(table):
        return where.offset, None
    row = table.row_at(where.position)
    if row < 0:
        return where.offset, None
    timestamp = int(table.max_timestamp[row])
    offset = int(table.base_offset[row]) if where.offset is None else where.offset
    return offset, timestamp if timestamp >= 0 else None


def _forget_ended(found: PartitionTransactions, seen: SurveyedPartition) -> None:
    """Drop ended transactions, except the last ones and those past the high watermark, and count the dropped ones."""
    if sum(map(len, found.ended)) <= 2 * _MOST_ENDED:
        return
    table = np.concatenate(found.ended)
    high_watermark = found.offsets.high_watermark
    keeps = np.zeros(len(table), np.bool_)
    keeps[-_MOST_ENDED:] = True
    if high_watermark is not None:
        keeps |= (table[:, _LAST_OFFSET] >= high_watermark) & (table[:, _FIRST_OFFSET] >= 0)
    gone = table[~keeps]
    aborted = int((gone[:, _IS_ABORTED] == 1).sum())
    seen.aborted_count += aborted
    seen.committed_count += len(gone) - aborted
    found.ended = [table[keeps]]


def ended_counts(found: PartitionTransactions, seen: SurveyedPartition) -> tuple[int, int]:
    """How many transactions committed and aborted, including the dropped ones."""
    aborted = sum(int((table[:, _IS_ABORTED] == 1).sum()) for table in found.ended)
    committed = sum(map(len, found.ended)) - aborted
    return seen.committed_count + committed, seen.aborted_count + aborted
