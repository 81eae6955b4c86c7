"""Reads partitions at some paths, keeps the replica of each with the longest log, and reads transactional ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding, Severity
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind
from format.node.partition import NOT_A_SEGMENT_NAME, Partition, read_partition
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.scan.progress import Advance
from format.scan.protocol import Cost, LogUnit
from format.scan.selected_logs import every_log_of, partitions_to_read
from format.scan.whole_units import WholeUnits, scan_units
from format.state.transactional_ids import TransactionalIds
from format.verbs.txns.coordinator_records import CoordinatorRecords, coordinator_records
from format.wording import did_you_mean


class Replica(Protocol):
    """The content of one replica; ``progress`` orders replicas: leader epoch, then log end offset."""

    @property
    def partition(self) -> Partition: ...
    @property
    def progress(self) -> tuple[int, int]: ...


ReplicaT = TypeVar("ReplicaT", bound=Replica)

#: Measured on transactions: seconds for each batch, and for each byte (most bytes are read with the headers).
_COST = Cost(batch_s=1.6e-6, byte_s=0.3e-9, compressed_byte_s=0.3e-9)


class Coordinator(msgspec.Struct, frozen=True):
    """A partition of __transaction_state whose records are read."""

    partition: Partition


class ReplicaUnit(msgspec.Struct, frozen=True):
    """A partition whose headers are read, and the checkpoints around it."""

    partition: Partition
    checkpoints: Checkpoints


Unit = Coordinator | ReplicaUnit | Finding


class ReplicaScan(msgspec.Struct, WholeUnits[Unit, CoordinatorRecords | ReplicaT | Finding], frozen=True):
    """Reads partitions up to a time. Subclasses define ``replica``."""

    at_ms: int | None
    limits: Limits

    def replica(self, unit: ReplicaUnit, advance: Advance) -> Iterator[ReplicaT | Finding]:
        """Findings about a partition, and then its content."""
        raise NotImplementedError

    @property
    def cost(self) -> Cost:
        return _COST

    def logs(self, unit: Unit) -> Sequence[LogUnit]:
        """The logs of the partition."""
        return () if isinstance(unit, Finding) else tuple(every_log_of(unit.partition))

    def read(self, unit: Unit, advance: Advance) -> Iterator[CoordinatorRecords | ReplicaT | Finding]:
        """Findings about a unit, and then its records or its replica."""
        if isinstance(unit, Finding):
            yield unit
        elif isinstance(unit, Coordinator):
            yield from coordinator_records(unit.partition, self.at_ms, self.limits, advance)
        else:
            yield from self.replica(unit, advance)


class Replicas(msgspec.Struct, Generic[ReplicaT]):
    """The replicas with the longest logs at some targets, by topic and partition.

    ``ids`` is the state from the records of __transaction_state, ``topics`` the topics of all partitions there, read or
    not, and ``skipped`` the number of directories without replicas.
    """

    targets: tuple[Target, ...] = ()
    ids: TransactionalIds = msgspec.field(default_factory=TransactionalIds)
    partitions: dict[tuple[str | None, int | None], ReplicaT] = msgspec.field(default_factory=dict)
    topics: set[str] = msgspec.field(default_factory=set)
    skipped: int = 0

    def absent_words(self, wanted: frozenset[str]) -> list[str]:
        """A sentence for each wanted topic of which there is no partition, with topics of a similar name."""
        return [
            f"There is no partition of topic {topic} at the paths.{did_you_mean(topic, sorted(self.topics))}"
            for topic in sorted(wanted - self.topics)
        ]

    def keep(self, replica: ReplicaT) -> None:
        """Keep a replica if its leader epoch is newer than the known one's, or its log longer in the same epoch."""
        key = replica.partition.topic, replica.partition.number
        known = self.partitions.get(key)
        if known is None or known.progress < replica.progress:
            self.partitions[key] = replica

    def read_by(
        self, scan: ReplicaScan[ReplicaT], topics: frozenset[str], jobs: int, advance: Advance
    ) -> Iterator[Finding]:
        """Read the partitions of some topics, or of all if ``topics`` is empty, and the records of __transaction_state.

        Yields findings. Raises NotALogDir for a path without partitions.
        """
        incomplete: set[int | None] = set()
        for item in scan_units(scan, self._units(topics, scan.limits), jobs=jobs, advance=advance):
            if isinstance(item, Finding):
                if item.location.topic == TRANSACTION_STATE_TOPIC and (
                    item.severity >= Severity.WARNING or item.is_incomplete
                ):
                    incomplete.add(item.location.partition)
                yield item
            elif isinstance(item, CoordinatorRecords):
                item.feed_to(self.ids)
            else:
                self.keep(item)
        self.ids.partitions -= incomplete  # a producer may have its coordinator in what was not read

    def _units(self, topics: frozenset[str], limits: Limits) -> Iterator[Unit]:
        for target in self.targets:
            for found in _partitions_at(target, limits):
                if isinstance(found, Finding):
                    yield found
                    continue
                partition, checkpoints = found
                if partition.mark is not None and target.kind is Kind.LOG_DIR:
                    self.skipped += 1
                    continue
                if partition.topic == TRANSACTION_STATE_TOPIC:
                    if partition.number is not None:
                        self.ids.partitions.add(partition.number)
                    yield Coordinator(partition)
                if partition.topic is not None:
                    self.topics.add(partition.topic)
                if not topics or partition.topic in topics:
                    yield from unread_findings(partition)
                    yield ReplicaUnit(partition, checkpoints.of_partition(partition.key))


def _partitions_at(target: Target, limits: Limits) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
    """The partitions at a target; a log file is a partition of one segment."""
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
        yield from partitions_to_read(target, limits)
        return
    location = Location(str(target.path))
    if target.kind is not Kind.LOG:
        raise NotALogDir("a file of this kind holds no batches", location)
    partition = read_partition(target.path.parent)
    segments = [each for each in partition.segments if each.log is not None and each.log.name == target.path.name]
    if not segments:
        raise NotALogDir(NOT_A_SEGMENT_NAME, location)
    try:
        checkpoints = Target(target.path.parent).checkpoints_around(limits)
    except KafkaLogError:
        checkpoints = Checkpoints()
    yield partition.with_segments(segments), checkpoints
