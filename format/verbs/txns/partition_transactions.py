"""The transactions of one partition, from its batch headers, and what read_committed consumers see of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.side_file import problem_findings
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.node.log_dir import Checkpoints
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import Partition, read_partition
from format.node.target import Surroundings, Target
from format.scan.drivers import SerialDriver, with_last_finding
from format.scan.protocol import Driver, LogUnit
from format.scan.selected_logs import log_of_segment, selected_logs
from format.scan.selection import CommittedView, Selection
from format.state.log_headers import Headers, HeaderScan
from format.state.producers import (
    MarkerOrphaned,
    Transaction,
    TransactionEnded,
    TransactionState,
    newest_sound_snapshot,
)

NONE = -1

#: The columns of transactions that ended.
ENDED_COLUMNS = (
    "producer_id", "producer_epoch", "first_offset", "last_offset", "position", "start_timestamp", "last_timestamp",
    "record_count", "size_bytes", "coordinator_epoch", "is_aborted", "segment",
)  # fmt: skip


class PartitionTransactions(msgspec.Struct):
    """The transactions of one partition. ``ended`` are tables of ENDED_COLUMNS, in log order; NONE stands for no value.

    ``leader_epoch`` and ``log_end_offset`` are those of the last batch; they show how long a replica's log is.
    """

    partition: Partition
    offsets: PartitionOffsets
    state: TransactionState = msgspec.field(default_factory=TransactionState)
    ended: list[NDArray[np.int64]] = msgspec.field(default_factory=list)
    last_of_producer: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)  # timestamp, coordinator epoch
    # open producer -> base offset of the first batch's file
    segment_of: dict[int, int] = msgspec.field(default_factory=dict)
    leader_epoch: int = -1
    log_end_offset: int = 0
    is_damaged: bool = False

    @classmethod
    def of_partition(cls, partition: Partition, checkpoints: Checkpoints) -> Self:
        """The state before any batch is read."""
        return cls(partition, offsets_of(partition, checkpoints))

    @property
    def progress(self) -> tuple[int, int]:
        return self.leader_epoch, self.log_end_offset

    @property
    def offsets_read(self) -> PartitionOffsets:
        """The offsets with what the batches say. A transaction whose end marker is not replicated is unstable."""
        unstable = [self.state.first_open_offset()]
        high_watermark = self.offsets.high_watermark
        if high_watermark is not None:
            for table in self.ended:
                first, last = (table[:, ENDED_COLUMNS.index(name)] for name in ("first_offset", "last_offset"))
                unstable += first[(last >= high_watermark) & (first >= 0)].tolist()
        oldest = min((each for each in unstable if each is not None), default=None)
        return self.offsets.with_transactions(self.log_end_offset, oldest)

    @property
    def last_stable_offset(self) -> int:
        return self.offsets_read.last_stable_offset or 0

    def ended_counts(self) -> tuple[int, int]:
        """How many transactions committed, and how many aborted."""
        aborted = sum(int((table[:, ENDED_COLUMNS.index("is_aborted")] == 1).sum()) for table in self.ended)
        return sum(map(len, self.ended)) - aborted, aborted

    def waiting(self, transaction: Transaction) -> tuple[int, int]:
        """The number of data records, and their bytes, from a transaction's first batch to the log's end."""
        records, size_bytes = transaction.data_before
        return self.state.data_records - records, self.state.data_bytes - size_bytes

    def feed(self, headers: Headers, segment_base_offset: int, at_ms: int | None) -> None:
        """Feed the next batches; those after ``at_ms`` are left out."""
        headers = headers.up_to(at_ms)
        table, markers = headers.table, headers.markers
        if not len(table):
            return
        self.leader_epoch = max(self.leader_epoch, table.value("leader_epoch", len(table) - 1))
        self.log_end_offset = max(self.log_end_offset, table.last_offset_of(len(table) - 1) + 1)
        self._note_last_batches(table, markers)
        events = self.state.feed(table, markers)
        ends = [each for each in events if isinstance(each, TransactionEnded | MarkerOrphaned)]
        if ends:
            columns = np.array([_ended_row(each, segment_base_offset) for each in ends], np.int64)
            rows = np.searchsorted(table.position, [each.place.position for each in ends])
            columns[:, ENDED_COLUMNS.index("last_timestamp")] = table.max_timestamp[rows]
            self.ended.append(columns)
        for producer_id in self.state.open:
            self.segment_of.setdefault(producer_id, segment_base_offset)
        for producer_id in [each for each in self.segment_of if each not in self.state.open]:
            del self.segment_of[producer_id]

    def _note_last_batches(self, table: BatchTable, markers: dict[int, ControlRecord]) -> None:
        """Note the timestamp of each producer's last batch, as a broker does, and its coordinator's epoch."""
        last_rows = [len(table) - 1]  # the usual case: one producer
        if table.sums.producer_changes:
            last_rows = (len(table) - 1 - np.unique(table.producer_id[::-1], return_index=True)[1]).tolist()
        for row in last_rows:
            producer_id, timestamp = table.value("producer_id", row), table.value("max_timestamp", row)
            self.last_of_producer[producer_id] = (timestamp, self.last_of_producer.get(producer_id, (0, NONE))[1])
        for row, marker in markers.items():
            if marker.coordinator_epoch is not None:
                producer_id = int(table.producer_id[row])
                self.last_of_producer[producer_id] = (self.last_of_producer[producer_id][0], marker.coordinator_epoch)


def _ended_row(event: TransactionEnded | MarkerOrphaned, segment_base_offset: int) -> tuple[int, ...]:
    """An event as a row of ENDED_COLUMNS; the marker's timestamp is filled in for all at once."""
    known = event.transaction if isinstance(event, TransactionEnded) else None
    if known is None:
        known = Transaction(event.producer_id, event.producer_epoch, NONE, event.place.position, start_timestamp=NONE)
    return (
        known.producer_id, known.producer_epoch, known.first_offset, event.place.offset,
        NONE if known.position is None else known.position, known.start_timestamp, 0, known.record_count,
        known.size_bytes, NONE if event.coordinator_epoch is None else event.coordinator_epoch, event.is_aborted,
        segment_base_offset,
    )  # fmt: skip


def read_partition_transactions(
    result: PartitionTransactions, at_ms: int | None, limits: Limits, driver: Driver[Headers | Finding] | None = None
) -> Iterator[Finding]:
    """Read the headers of the partition into ``result``, by the driver of a HeaderScan; yields findings."""
    partition, driver = result.partition, driver or SerialDriver(HeaderScan(limits))
    yield from take_snapshot(result, limits)
    for segment in partition.segments:
        log = log_of_segment(partition, segment, result.offsets)
        if log is None:
            continue
        result.log_end_offset = max(result.log_end_offset, segment.base_offset)
        for item in with_last_finding(log, driver.parts(log)):
            if isinstance(item, Finding):
                result.is_damaged = True
                yield item
            else:
                result.feed(item, segment.base_offset, at_ms)
    if at_ms is None:
        forget_below_start(result, limits)


def forget_below_start(result: PartitionTransactions, limits: Limits) -> None:
    """Drop the open transactions that a broker forgot when the log start offset rose above all their records.

    Brokers before 2.4 did so, later ones when they rebuild the producers from the log: the newest producer snapshot
    does not have such a transaction.
    """
    start = result.offsets.log_start_offset or 0
    deleted = [each for each in result.state.open.values() if each.last_offset < start]
    newest = newest_sound_snapshot(result.partition, limits) if deleted else None
    if newest is None:
        return
    snapshot_offset, snapshot = newest
    known = set(snapshot.producer_ids[snapshot.current_txn_first_offsets >= 0].tolist())
    for each in deleted:
        if each.producer_id not in known and max(each.first_offset, each.last_offset) < snapshot_offset:
            del result.state.open[each.producer_id]


def take_snapshot(result: PartitionTransactions, limits: Limits) -> Iterator[Finding]:
    """Add the open transactions that began before the first segment, from the first sound producer snapshot.

    One that began there and is open at the snapshot was open at the first segment, too.
    """
    partition = result.partition
    if not partition.segments or partition.segments[0].base_offset == 0:
        return
    first_offset = partition.segments[0].base_offset
    for offset in sorted(each for each in partition.snapshots if each >= first_offset):
        path = partition.snapshots[offset]
        try:
            snapshot = producer_snapshot.read(path, limits)
        except KafkaLogError as error:
            yield finding_of(error, partition.location(path, offset))
            continue
        if snapshot.problems:
            yield from problem_findings(snapshot.problems, partition.location(path, offset))
            continue
        columns = (
            snapshot.producer_ids, snapshot.producer_epochs, snapshot.timestamps, snapshot.coordinator_epochs,
            snapshot.current_txn_first_offsets,
        )  # fmt: skip
        for producer_id, epoch, timestamp, coordinator_epoch, first in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if 0 <= first < first_offset:
                result.state.add_open(Transaction(producer_id, epoch, first))
                result.last_of_producer[producer_id] = (timestamp, coordinator_epoch)
        return


def logs_below(target: Target, selection: Selection, limits: Limits = DEFAULT_LIMITS) -> Iterator[LogUnit | Finding]:
    """The logs that may hold selected records, in order, and findings."""
    logs = selected_logs(target, selection)
    return logs if not selection.read_committed else _committed(logs, limits, target.surroundings)


def _committed(
    logs: Iterator[LogUnit | Finding], limits: Limits, surroundings: Surroundings
) -> Iterator[LogUnit | Finding]:
    """The same logs with their views. The headers of a partition are read once, before its first log."""
    directory: Path | None = None
    view: CommittedView | None = None
    for log in logs:
        if isinstance(log, LogUnit):
            if log.path.parent != directory:
                directory = log.path.parent
                view = committed_view(directory, limits, surroundings.checkpoints(directory, limits))
            yield replace(log, committed=view)
        else:
            yield log


def committed_view(
    directory: Path, limits: Limits = DEFAULT_LIMITS, checkpoints: Checkpoints | None = None
) -> CommittedView:
    """What read_committed consumers see of a partition; damage is not reported here but when records are read.

    ``checkpoints`` are those of its log directory, if they were read before.
    """
    checkpoints = Surroundings().checkpoints(directory, limits) if checkpoints is None else checkpoints
    found = PartitionTransactions.of_partition(read_partition(directory), checkpoints)
    list(read_partition_transactions(found, None, limits))
    column = {name: number for number, name in enumerate(ENDED_COLUMNS)}
    aborted: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    if found.ended:
        table = np.concatenate(found.ended)
        table = table[(table[:, column["is_aborted"]] == 1) & (table[:, column["first_offset"]] >= 0)]
        for producer_id in np.unique(table[:, column["producer_id"]]).tolist():
            own = table[table[:, column["producer_id"]] == producer_id]
            aborted[producer_id] = own[:, column["first_offset"]], own[:, column["last_offset"]]
    return CommittedView(found.offsets.log_start_offset or 0, found.last_stable_offset, aborted)
