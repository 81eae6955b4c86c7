"""What is read of the partitions at some paths, of each the replica that is furthest, with the transactional ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind
from format.node.partition import Partition, read_partition
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.scan.progress import Advance
from format.scan.selected_logs import partitions_to_read
from format.state.transactional_ids import TransactionalIds
from format.verbs.txns.coordinator_records import read_coordinator_records


class ReplicaTerms(Protocol):
    """Which topics are read, up to when, and within which limits; no topics are all topics."""

    @property
    def at_ms(self) -> int | None: ...
    @property
    def topics(self) -> frozenset[str]: ...
    @property
    def limits(self) -> Limits: ...


class Replica(Protocol):
    """What was read of one replica; ``progress`` is how far it is: leader epoch and log end offset."""

    @property
    def partition(self) -> Partition: ...
    @property
    def progress(self) -> tuple[int, int]: ...


ReplicaT = TypeVar("ReplicaT", bound=Replica)


@dataclass(slots=True)
class Replicas(Generic[ReplicaT]):
    """The replicas at some targets that are furthest, by topic and partition.

    ``ids`` is what the records of __transaction_state say, ``skipped`` how many directories hold no replicas.
    """

    targets: tuple[Target, ...] = ()
    ids: TransactionalIds = field(default_factory=TransactionalIds)
    partitions: dict[tuple[str | None, int | None], ReplicaT] = field(default_factory=dict)
    skipped: int = 0

    def keep(self, replica: ReplicaT) -> None:
        """Take a replica of a partition; the newest leader epoch counts, and the log end offset within one."""
        key = replica.partition.topic, replica.partition.number
        known = self.partitions.get(key)
        if known is None or known.progress < replica.progress:
            self.partitions[key] = replica

    def wanted(self, terms: ReplicaTerms, advance: Advance) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
        """The partitions to read, and findings; the records of __transaction_state are read on the way.

        Raises NotALogDir for a path at which no partition lies.
        """
        for target in self.targets:
            for found in _partitions_at(target, terms.limits):
                if isinstance(found, Finding):
                    yield found
                    continue
                partition, _ = found
                if partition.mark is not None and target.kind is Kind.LOG_DIR:
                    self.skipped += 1
                    continue
                if partition.topic == TRANSACTION_STATE_TOPIC:
                    yield from read_coordinator_records(partition, self.ids, terms.at_ms, terms.limits, advance)
                if not terms.topics or partition.topic in terms.topics:
                    yield from unread_findings(partition)
                    yield found


def _partitions_at(target: Target, limits: Limits) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
    """The partitions at a target; a log file is a partition of one segment."""
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
        yield from partitions_to_read(target, limits)
        return
    location = Location(str(target.path))
    if target.kind is not Kind.LOG:
        raise NotALogDir("name a log directory, a partition directory or a .log file", location)
    partition = read_partition(target.path.parent)
    segments = [each for each in partition.segments if each.log is not None and each.log.name == target.path.name]
    if not segments:
        raise NotALogDir("the name of a segment is its base offset in 20 digits and .log", location)
    try:
        checkpoints = Target(target.path.parent).checkpoints_around(limits)
    except KafkaLogError:
        checkpoints = Checkpoints()
    yield replace(partition, segments=segments), checkpoints
