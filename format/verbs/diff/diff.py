"""diff: where the replicas of a partition differ, which one is best, and what the election of each would lose.

Each partition is a unit of the scan, compared by one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from format import layout
from format.columns import DIVERGENCE, REPLICA
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.node.target import Target
from format.offset_ranges import Range, Span, merged
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, LogUnit
from format.scan.selected_logs import every_log_of
from format.scan.whole_units import WholeUnits, scan_units
from format.state.cluster_context import Assignment, ClusterContext, ContextTerms, read_context
from format.verbs.diff.comparison import Comparison, PairDifference, ReplicaDifference
from format.verbs.diff.epochs import ReplicaEpochs, replica_epochs
from format.verbs.diff.replica_log import ReplicaLog
from format.verbs.diff.replicas import Matching, Replicas, matched
from format.wording import counted_plainly, offset_range

#: Seconds for each byte, measured with replicas of equal bytes.
_COST = Cost(batch_s=0.0, byte_s=1.1e-9, compressed_byte_s=1.1e-9)
#: The kinds of differences, the gravest first.
KINDS = ("diverged", "behind", "different_bytes", "identical")


class ReplicaResult(msgspec.Struct, frozen=True):
    """One replica compared with the others. ``kind`` and ``offset`` compare it with the best one; None for that one.

    ``can_be_elected`` is false for a node to which the metadata does not assign the partition, and for replicas of the
    metadata log, whose controllers elect by themselves.
    """

    path: str
    node_id: int | None
    topic_id: str | None
    kind: str | None
    offset: int | None
    is_best: bool
    can_be_elected: bool
    epochs: ReplicaEpochs
    unique: Span
    lost: Span
    lost_committed: Span
    truncate_to: int | None
    damaged: list[Range]
    compacted_count: int
    size_bytes: int

    @property
    def lost_if_elected(self) -> int | None:
        """How many offsets of the other replicas are lost if this one is elected; None where it cannot be."""
        return self.lost.count if self.can_be_elected else None


class PartitionResult(msgspec.Struct, frozen=True):
    """The replicas of one partition, compared. ``truncate_to[leader][follower]`` is None for the leader itself.

    ``is_decided``: it is known for all differences whether records differ. ``assignment`` and ``voters`` are what the
    metadata at hand says of the partition.
    """

    topic: str | None
    number: int | None
    name: str
    kind: str
    offset: int | None
    replicas: list[ReplicaResult]
    truncate_to: list[list[int | None]]
    findings: list[Finding] = msgspec.field(default_factory=list)
    not_checked: list[str] = msgspec.field(default_factory=list)
    is_decided: bool = True
    is_complete: bool = True
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    voters: tuple[int, ...] | None = None

    @property
    def best(self) -> int:
        """The number of the replica that lacks least, and of those that can be elected if there are any."""
        return next(number for number, each in enumerate(self.replicas) if each.is_best)

    @property
    def is_metadata_log(self) -> bool:
        return self.topic == layout.CLUSTER_METADATA_TOPIC

    @property
    def missing_node_ids(self) -> tuple[int, ...] | None:
        """The nodes that should have a replica and have none here; None if the metadata at hand does not say it."""
        present = {each.node_id for each in self.replicas}
        if self.is_metadata_log:
            return None if self.voters is None else tuple(each for each in self.voters if each not in present)
        return self.assignment.missing(present)

    @property
    def is_whole(self) -> bool:
        """Whether all replicas that there are were compared to their ends, and none of them is damaged."""
        return self.missing_node_ids == () and self.is_complete and not any(each.damaged for each in self.replicas)

    def row(self) -> Row:
        """The fields in the order of columns.DIVERGENCE."""
        replicas = self.replicas
        values = {
            "topic": self.topic,
            "partition": self.number,
            "kind": self.kind,
            "offset": self.offset,
            "leader_epoch": [
                each.epochs.latest if self.offset is None else each.epochs.epoch_at(self.offset) for each in replicas
            ],
            "log_end_offset": [each.epochs.log_end_offset for each in replicas],
            "unique_from": [each.unique.first for each in replicas],
            "unique_to": [each.unique.last for each in replicas],
            "lost_if_elected": replicas[self.best].lost_if_elected,
            "damaged": [[list(one) for one in each.damaged] for each in replicas],
            "replicas": [each.path for each in replicas],
            "node_ids": [each.node_id for each in replicas],
            "topic_id": next((each.topic_id for each in replicas if each.topic_id is not None), None),
            "log_start_offset": [each.epochs.log_start_offset for each in replicas],
            "high_watermark": [each.epochs.high_watermark for each in replicas],
            "truncate_to": self.truncate_to,
            "elect_node_id": replicas[self.best].node_id if replicas[self.best].can_be_elected else None,
            "missing_node_ids": None if self.missing_node_ids is None else list(self.missing_node_ids),
        }
        return tuple(values[name] for name in DIVERGENCE.names)

    def replica_rows(self) -> Iterator[Row]:
        """Rows of columns.REPLICA."""
        for each in self.replicas:
            values = {
                "topic": self.topic,
                "partition": self.number,
                "path": each.path,
                "node_id": each.node_id,
                "kind": each.kind,
                "offset": each.offset,
                "elect": each.is_best and each.can_be_elected,
                "log_start_offset": each.epochs.log_start_offset,
                "log_end_offset": each.epochs.log_end_offset,
                "high_watermark": each.epochs.high_watermark,
                "leader_epoch": each.epochs.latest,
                "epochs": [[entry.leader_epoch, entry.start_offset] for entry in each.epochs.entries],
                "unique_from": each.unique.first,
                "unique_to": each.unique.last,
                "unique_count": each.unique.count,
                "lost_if_elected": each.lost_if_elected,
                "lost_from": each.lost.first,
                "lost_to": each.lost.last,
                "lost_count": each.lost.count,
                "lost_committed": each.lost_committed.ends,
                "lost_committed_count": each.lost_committed.count,
                "truncate_to": each.truncate_to,
                "damaged": [list(one) for one in each.damaged],
                "compacted_count": each.compacted_count,
                "size_bytes": each.size_bytes,
                "topic_id": each.topic_id,
            }
            yield tuple(values[name] for name in REPLICA.names)


def diff(
    targets: Sequence[Target],
    *,
    context: ClusterContext | None = None,
    limits: Limits = DEFAULT_LIMITS,
    jobs: int = 1,
    advance: Advance = no_progress,
) -> Iterator[PartitionResult | Finding | Matching]:
    """First the matched replicas, then findings about directories, and the result of each partition.

    ``context`` has the metadata that names the replicas of each partition. Raises InputError for paths that hold no
    partition, or single partitions that are not one, and WorkerDied.
    """
    matching = matched(targets, limits)
    context = context or read_context(targets, ContextTerms(limits=limits))
    for group in matching.groups:
        if group.topic == layout.CLUSTER_METADATA_TOPIC:
            group.voters = context.voters
        else:
            with_id = next((each for each in group.replicas if each.topic_id is not None), group.replicas[0])
            group.assignment = context.assignment_of(with_id.partition, with_id.topic_id)
    yield matching
    yield from matching.findings
    yield from scan_units(DiffScan(limits), matching.groups, jobs=jobs, advance=advance)


class DiffScan(msgspec.Struct, WholeUnits[Replicas, PartitionResult], frozen=True):
    """Compares partitions one by one."""

    limits: Limits

    @property
    def cost(self) -> Cost:
        return _COST

    def logs(self, unit: Replicas) -> Sequence[LogUnit]:
        """The logs of all replicas."""
        return tuple(log for replica in unit.replicas for log in every_log_of(replica.partition))

    def read(self, unit: Replicas, advance: Advance) -> Iterator[PartitionResult]:
        """The result of a partition."""
        yield compared(unit, self.limits, advance)


def compared(group: Replicas, limits: Limits, advance: Advance) -> PartitionResult:
    """Compare the replicas of one partition."""
    comparison = Comparison(group, limits, advance)
    comparison.run()
    logs = comparison.logs
    findings: list[Finding] = []
    not_checked: list[str] = []
    for log in logs:
        findings += log.findings
    epochs = [_epochs(log, findings, not_checked, limits) for log in logs]
    latest = max((each.latest for each in epochs if each.latest is not None), default=None)
    assignment = group.assignment.at_epoch(latest)
    can_be_elected = [_can_be_elected(log, group, assignment) for log in logs]
    best = min(range(len(logs)), key=lambda number: _order(number, comparison, epochs, can_be_elected, assignment))
    truncate_to = [
        [None if leader is follower else follower.truncated_by(leader) for follower in epochs] for leader in epochs
    ]
    replicas = []
    is_decided = True
    for number, (log, difference) in enumerate(zip(logs, comparison.differences, strict=True)):
        kind = offset = None
        if number != best:
            pair = comparison.pairs[min(number, best), max(number, best)]
            kind, offset = pair.kind, pair.offset
            if kind == "behind" and log.log_end_offset > logs[best].log_end_offset:
                kind = "diverged"  # it has records that the best one lacks
        if difference.undecided_count:
            count = difference.undecided_count
            records, were = counted_plainly(count, "record"), "was" if count == 1 else "were"
            not_checked.append(f"whether {records} that {log.replica.path} lacks {were} compacted away")
        is_decided &= not difference.undecided_count and difference.undecided_offsets.first is None
        is_decided &= difference.unknown.first is None
        not_checked += _not_in_headers(str(log.replica.path), difference)
        replicas.append(
            ReplicaResult(
                path=str(log.replica.path),
                node_id=log.replica.node_id,
                topic_id=log.replica.topic_id,
                kind=kind,
                offset=offset,
                is_best=number == best,
                can_be_elected=can_be_elected[number],
                epochs=epochs[number],
                unique=difference.unique,
                lost=difference.lost,
                lost_committed=difference.lost_committed,
                truncate_to=truncate_to[best][number],
                damaged=merged(log.damaged),
                compacted_count=difference.compacted_count,
                size_bytes=log.replica.size_bytes,
            )
        )
    kind, offset = _gravest(comparison.pairs.values())
    return PartitionResult(
        topic=group.topic,
        number=group.number,
        name=group.name,
        kind=kind,
        offset=offset,
        replicas=replicas,
        truncate_to=truncate_to,
        findings=findings,
        not_checked=not_checked,
        is_decided=is_decided,
        is_complete=is_decided and all(log.is_complete for log in logs),
        assignment=assignment,
        voters=group.voters,
    )


def _can_be_elected(log: ReplicaLog, group: Replicas, assignment: Assignment) -> bool:
    """Whether a replica may become the leader by an election: one that is assigned, or may be, and of no raft log."""
    node_id, assigned = log.replica.node_id, assignment.replicas
    return group.topic != layout.CLUSTER_METADATA_TOPIC and (not assigned or node_id is None or node_id in assigned)


def _not_in_headers(path: str, difference: ReplicaDifference) -> Iterator[str]:
    """Notes about what cannot be decided of a replica of which only the batch headers are known."""
    lacked, unknown = difference.undecided_offsets.ends, difference.unknown.ends
    if lacked is not None:
        were = "was" if lacked[0] == lacked[1] else "were"
        yield f"whether {offset_range(*lacked)} {were} compacted away in {path}: a bundle has no keys"
    if unknown is not None:
        has = "has the same record" if unknown[0] == unknown[1] else "have the same records"
        yield f"whether {offset_range(*unknown)} of {path} {has}: a bundle has none"


def _order(
    number: int,
    comparison: Comparison,
    epochs: list[ReplicaEpochs],
    can_be_elected: list[bool],
    assignment: Assignment,
) -> tuple[int, ...]:
    """The sort key of replicas: fewest committed records lost, latest epoch, longest log, fewest records lost.

    Those that can be elected come first. Of equal ones, a clean election is better than an unclean one.
    """
    difference, replica = comparison.differences[number], comparison.logs[number].replica
    latest = epochs[number].latest
    if comparison.replicas.topic == layout.CLUSTER_METADATA_TOPIC:  # controllers vote by the last epoch and the log end
        return 1 if latest is None else -latest, -epochs[number].log_end_offset, number
    return (
        not can_be_elected[number],
        difference.lost_committed.count,
        0 if latest is None else -latest,
        -epochs[number].log_end_offset,
        difference.lost.count,
        replica.node_id not in assignment.complete_replicas,
        number,
    )


def _gravest(pairs: Iterable[PairDifference]) -> tuple[str, int | None]:
    """The gravest kind of all pairs, and its first offset."""
    found = [(KINDS.index(pair.kind), pair.offset) for pair in pairs]
    gravest = min(rank for rank, _ in found)
    offsets = [offset for rank, offset in found if rank == gravest and offset is not None]
    return KINDS[gravest], min(offsets, default=None)


def _epochs(log: ReplicaLog, findings: list[Finding], not_checked: list[str], limits: Limits) -> ReplicaEpochs:
    """The leader epochs of a replica; adds findings, and notes about unknown facts."""
    replica = log.replica
    noted: tuple[EpochEntry, ...] = ()
    path = replica.partition.leader_epoch_checkpoint
    if path is None:
        not_checked.append(
            f"the leader epochs of {replica.path} are those of its batches: no {layout.LEADER_EPOCH_CHECKPOINT}"
        )
    else:
        try:
            noted = leader_epoch_checkpoint.read(path, limits).entries
        except KafkaLogError as error:
            findings.append(finding_of(error, replica.partition.location(path)))
    if replica.offsets.high_watermark is None:
        what, reason = str(replica.path), replica.offsets.unknown.get("high_watermark", "")
        if replica.partition.topic == layout.CLUSTER_METADATA_TOPIC:
            what, reason = layout.CLUSTER_METADATA_TOPIC, "its high watermark is not stored on disk"
        words = f"which records of {what} were committed: {reason}"
        if words not in not_checked:
            not_checked.append(words)
    return replica_epochs(
        noted,
        log.epochs,
        log_start_offset=replica.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=replica.offsets.high_watermark,
    )
