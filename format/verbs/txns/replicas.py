"""Partitions read by their headers, the longest replica of each, and the transactional ids of __transaction_state."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec
import numpy as np

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding, Severity, finding_of
from format.internal_topics.decoder import TRANSACTION_STATUSES, decoder_for
from format.internal_topics.record_check import InternalRecordCheck
from format.io.session import is_on_disk
from format.layout import TRANSACTION_STATE_TOPIC, coordinator_partition
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.node.log_dir import Checkpoints, Kind, directory_around
from format.node.partition import NOT_A_SEGMENT_NAME, Partition, read_partition
from format.node.partition_surroundings import unread_findings
from format.node.target import Target, require_one_cluster
from format.scan.progress import Advance
from format.scan.protocol import Cost, Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import every_log_of, partitions_to_read
from format.scan.selection import Selection
from format.scan.whole_units import WholeUnits, scan_units
from format.state.log_headers import log_parts
from format.wording import did_you_mean

if TYPE_CHECKING:
    from format.state.cluster_context import ClusterContext

#: The version and the producer id, with which a value of every version begins.
_PRODUCER = struct.Struct(">hq")


class CoordinatorState(msgspec.Struct, frozen=True):
    """The latest state of one transactional id. Timestamps are ms, -1 for none."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_timestamp: int
    partitions: frozenset[tuple[str, int]]


class TransactionalIds(msgspec.Struct):
    """The transactional ids in the records fed so far.

    The record of a key with the highest leader epoch and offset counts, so the replicas of a partition may be fed one
    after the other. ``partitions`` are the numbers of the partitions that were fed.
    """

    partitions: set[int] = msgspec.field(default_factory=set)
    _latest: dict[bytes, tuple[int, int, bytes | None]] = msgspec.field(default_factory=dict)
    _key_of_producer: dict[int, tuple[int, int, bytes]] = msgspec.field(default_factory=dict)
    _decoded: dict[bytes, CoordinatorState | None] = msgspec.field(default_factory=dict)
    _names: dict[bytes, str | None] = msgspec.field(default_factory=dict)

    def feed(self, records: CoordinatorRecords) -> None:
        """Take the next records."""
        for key, value, leader_epoch, offset in records:
            known = self._latest.get(key)
            if known is None or known[:2] <= (leader_epoch, offset):
                self._latest[key] = (leader_epoch, offset, value)
                self._decoded.pop(key, None)
            if value is not None and len(value) >= _PRODUCER.size:
                producer_id = _PRODUCER.unpack_from(value)[1]
                seen = self._key_of_producer.get(producer_id)
                if seen is None or seen[:2] <= (leader_epoch, offset):
                    self._key_of_producer[producer_id] = (leader_epoch, offset, key)

    def id_of_producer(self, producer_id: int) -> str | None:
        """The transactional id that a producer id has, or had as far as the records go back."""
        seen = self._key_of_producer.get(producer_id)
        return None if seen is None else self._name(seen[2])

    def state_of_producer(self, producer_id: int) -> CoordinatorState | None:
        """The state of the transactional id that has this producer id now; None for none."""
        seen = self._key_of_producer.get(producer_id)
        if seen is None:
            return None
        state = self._state(seen[2])
        return state if state is not None and state.producer_id == producer_id else None

    def producers_of(self, transactional_id: str) -> frozenset[int]:
        """The producer ids that a transactional id had, as far as the records go back."""
        return frozenset(
            producer_id
            for producer_id, (_, _, key) in self._key_of_producer.items()
            if self._name(key) == transactional_id
        )

    def names(self) -> set[str]:
        """The transactional ids of all producers in the records."""
        return set(filter(None, (self._name(key) for _, _, key in self._key_of_producer.values())))

    def _name(self, key: bytes) -> str | None:
        if key not in self._names:
            self._names[key] = _transactional_id(key)
        return self._names[key]

    def _state(self, key: bytes) -> CoordinatorState | None:
        if key not in self._decoded:
            self._decoded[key] = _decoded(key, self._latest[key][2])
        return self._decoded[key]


def _transactional_id(key: bytes) -> str | None:
    try:
        data = decoder_for(TRANSACTION_STATE_TOPIC).decode_key(key).data
    except KafkaLogError:
        return None
    return None if data is None else data["transactionalId"]


def _decoded(key: bytes, value: bytes | None) -> CoordinatorState | None:
    """The state of a record, None for a tombstone and for what cannot be decoded."""
    transactional_id = _transactional_id(key)
    if transactional_id is None:
        return None
    decoder = decoder_for(TRANSACTION_STATE_TOPIC)
    try:
        data = decoder.decode_value(decoder.decode_key(key), value).data
    except KafkaLogError:
        return None
    if data is None:
        return None
    status = data["transactionStatus"]
    return CoordinatorState(
        transactional_id,
        data["producerId"],
        data["producerEpoch"],
        TRANSACTION_STATUSES[status] if 0 <= status < len(TRANSACTION_STATUSES) else str(status),
        data["transactionTimeoutMs"],
        data["transactionStartTimestampMs"],
        frozenset(
            (each["topic"], number) for each in data["transactionPartitions"] or () for number in each["partitionIds"]
        ),
    )


#: Some consecutive records: the key, value, leader epoch and offset of each.
CoordinatorRecords = list[tuple[bytes, bytes | None, int, int]]


class CoordinatorScan(msgspec.Struct, frozen=True):
    """Reads the records up to the time ``at_ms``, or all where it is None."""

    at_ms: int | None = None
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        selection = Selection(to_timestamp=None if self.at_ms is None else self.at_ms + 1)
        return Needs(Depth.RECORDS, selection, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[CoordinatorRecords | Finding]:
        """The records of a range in log order, and findings about damage."""
        needs = self.needs
        check = InternalRecordCheck(TRANSACTION_STATE_TOPIC, opened.log.location)
        for item in selected_chunks(opened, needs):
            if isinstance(item, Finding):
                yield item
                continue
            for every in record_tables(item.chunk, which=item.readable, limits=self.limits, location=item.location):
                for problem in every.problems:
                    yield finding_of(problem.error, item.location)
                table = every.rows(needs.selection.records(every))
                odd = check.summary(table)
                yield from odd.findings
                epochs = table.batches.leader_epoch[table.batch]
                plain = ~table.batches.is_control[table.batch]
                keyed = ((row, table.key(row)) for row in np.flatnonzero(plain).tolist() if row not in odd.unreadable)
                yield [
                    (key, table.value(row), int(epochs[row]), int(table.offset[row]))
                    for row, key in keyed
                    if key is not None
                ]


class ReplicaContent(Protocol):
    """The content of one replica; ``progress`` orders replicas: leader epoch, then log end offset."""

    @property
    def partition(self) -> Partition: ...
    @property
    def progress(self) -> tuple[int, int]: ...


ReplicaT = TypeVar("ReplicaT", bound=ReplicaContent)

#: Measured on transactions: seconds for each batch, and for each byte (most bytes are read with the headers).
_COST = Cost(batch_s=1.6e-6, byte_s=0.3e-9, compressed_byte_s=0.3e-9)


class ReplicaUnit(msgspec.Struct, frozen=True):
    """A partition whose headers are read, with the checkpoints around it; None for one whose records are read."""

    partition: Partition
    checkpoints: Checkpoints | None


Unit = ReplicaUnit | Finding


class ReplicaScan(msgspec.Struct, WholeUnits[Unit, CoordinatorRecords | ReplicaT | Finding], frozen=True):
    """Reads partitions up to a time: ``replica`` yields findings about one, and then its content."""

    replica: Callable[[Partition, Checkpoints, int | None, Limits, Advance], Iterator[ReplicaT | Finding]]
    at_ms: int | None
    limits: Limits

    cost = _COST

    def logs(self, unit: Unit) -> Sequence[LogUnit]:
        return () if isinstance(unit, Finding) else tuple(every_log_of(unit.partition))

    def read(self, unit: Unit, advance: Advance) -> Iterator[CoordinatorRecords | ReplicaT | Finding]:
        """Findings about a unit, and then its records or its replica."""
        if isinstance(unit, Finding):
            yield unit
        elif unit.checkpoints is None:
            for log in self.logs(unit):
                yield from log_parts(CoordinatorScan(self.at_ms, self.limits), log, advance)
        else:
            yield from self.replica(unit.partition, unit.checkpoints, self.at_ms, self.limits, advance)


class LongestReplicas(msgspec.Struct, Generic[ReplicaT]):
    """The replicas with the longest logs at some targets, by topic and partition.

    ``ids`` is the state from the records of __transaction_state, ``topics`` the topics of all partitions there, read or
    not, and ``skipped`` the number of directories without replicas. ``context``: that of the targets, if it was read
    before. ``incomplete`` are the partitions of __transaction_state of which not all was read.
    """

    targets: tuple[Target, ...] = ()
    ids: TransactionalIds = msgspec.field(default_factory=TransactionalIds)
    partitions: dict[tuple[str | None, int | None], ReplicaT] = msgspec.field(default_factory=dict)
    topics: set[str] = msgspec.field(default_factory=set)
    skipped: int = 0
    context: ClusterContext | None = None
    incomplete: set[int | None] = msgspec.field(default_factory=set)

    def has_all_coordinators(self, limits: Limits) -> bool:
        """Whether every partition of __transaction_state was read: a producer in none of them has no coordinator."""
        count = self._coordinator_count(limits) if self.ids.partitions else 0
        return count > 0 and self.ids.partitions >= set(range(count))

    def may_lack_records_of(self, transactional_id: str | None, limits: Limits) -> bool:
        """Whether the log of its coordinator was not read as a whole, and may have later records of the id."""
        if not self.incomplete:
            return False
        count = self._coordinator_count(limits)
        return (
            not count or transactional_id is None or coordinator_partition(transactional_id, count) in self.incomplete
        )

    def no_producer_words(self, transactional_id: str, limits: Limits) -> tuple[str, bool] | None:
        """A sentence that a transactional id has no known producer, and whether that is proven; None if it has one."""
        if self.ids.producers_of(transactional_id):
            return None
        count = self._coordinator_count(limits)
        own = coordinator_partition(transactional_id, count) if count else None
        if own in self.ids.partitions:
            similar = did_you_mean(transactional_id, sorted(self.ids.names()))
            return f"There is no transactional id {transactional_id} in {TRANSACTION_STATE_TOPIC}.{similar}", True
        if own is not None:
            why = f"{TRANSACTION_STATE_TOPIC}-{own} is not at the paths, or was not read as a whole"
        elif self.ids.partitions:
            why = f"the partitions of {TRANSACTION_STATE_TOPIC} here do not have it, and there may be others"
        else:
            why = f"no {TRANSACTION_STATE_TOPIC} was read"
        return f"Which producers the transactional id {transactional_id} had is not known: {why}.", False

    def _coordinator_count(self, limits: Limits) -> int:
        """How many partitions __transaction_state has by the metadata log at or around the paths, 0 if none tells."""
        from format.state.cluster_context import ContextTerms, read_context  # it imports much, and few runs need it

        image = (self.context or read_context(self.targets, ContextTerms(limits=limits))).image
        return 0 if image is None else image.partition_count(TRANSACTION_STATE_TOPIC)

    def absent_words(self, wanted: frozenset[str]) -> list[str]:
        """A sentence for each wanted topic of which there is no partition, with topics of a similar name."""
        return [
            f"There is no partition of topic {topic} at the paths.{did_you_mean(topic, sorted(self.topics))}"
            for topic in sorted(wanted - self.topics)
        ]

    def in_order(self) -> list[ReplicaT]:
        """The replicas by topic and number."""
        return sorted(
            self.partitions.values(), key=lambda each: (str(each.partition.topic), each.partition.number or 0)
        )

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
        for item in scan_units(scan, self._units(topics, scan.limits), jobs=jobs, advance=advance):
            if isinstance(item, Finding):
                if item.location.topic == TRANSACTION_STATE_TOPIC and (
                    item.severity >= Severity.WARNING or item.is_incomplete
                ):
                    self.incomplete.add(item.location.partition)
                yield item
            elif isinstance(item, list):
                self.ids.feed(item)
            else:
                self.keep(item)
        self.ids.partitions -= self.incomplete  # a producer may have its coordinator in what was not read

    def _units(self, topics: frozenset[str], limits: Limits) -> Iterator[Unit]:
        require_one_cluster(self.targets, limits)
        given: set[Path] = set()  # the log directories of given coordinators
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
                    given.add(directory_around(partition.path))
                    yield ReplicaUnit(partition, None)
                if partition.topic is not None:
                    self.topics.add(partition.topic)
                if not topics or partition.topic in topics:
                    yield from unread_findings(partition)
                    yield ReplicaUnit(partition, checkpoints.of_partition(partition.key))
        for partition in self._coordinators_beside(given):
            if partition.number is not None:
                self.ids.partitions.add(partition.number)
                yield ReplicaUnit(partition, None)

    def _coordinators_beside(self, given: set[Path]) -> Iterator[Partition]:
        """The partitions of __transaction_state in other log directories around partitions, on disks of this host."""
        alone = (each for each in self.targets if each.kind is not Kind.LOG_DIR and is_on_disk(each.path))
        around = {directory_around(each.path if each.kind is Kind.PARTITION else each.path.parent) for each in alone}
        for directory in sorted(around - given):
            for path in sorted(directory.glob(f"{TRANSACTION_STATE_TOPIC}-*")):
                with suppress(KafkaLogError):  # not_checked says that no ids are known
                    partition = read_partition(path)
                    if partition.topic == TRANSACTION_STATE_TOPIC and partition.mark is None:
                        yield partition


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
