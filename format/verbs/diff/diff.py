"""diff: where the replicas of a partition differ, which one is best, and what the election of each would lose.

Each partition is a unit of the scan, compared by one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from format import layout
from format.columns import DIVERGENCE, REPLICA
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind
from format.node.target import Target
from format.offset_ranges import Range, Span, is_covered, merged
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.whole_units import scan_units
from format.state.cluster_context import Assignment, ClusterContext, ContextTerms, named_nodes, read_context
from format.state.leader_epochs import ReplicaEpochs, replica_epochs
from format.state.quorum import can_lead, held_by_majority, read_metadata_copies
from format.verbs.diff.comparison import Comparison, PairDifference, ReplicaDifference
from format.verbs.diff.replica_log import Matching, OfReplicas, Replica, ReplicaLog, Replicas, matched
from format.wording import are, counted, counted_plainly, listed, offset_range

#: The most partitions that get a sentence; the rows have all.
MOST_SENTENCES = 10
NOTHING_TO_COMPARE = (
    "No partition has two readable replicas at the paths: give the log directories of several nodes of a cluster."
)


class ReplicaResult(msgspec.Struct, frozen=True):
    """One replica compared with the others. ``kind`` and ``offset`` compare it with the best one; None for that one.

    ``can_be_elected`` is false for a node to which the metadata does not assign the partition, where all are of one
    node, and for replicas of the metadata log, whose controllers elect by themselves: each asks its ``voters``.
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
    voters: tuple[int, ...] | None = None

    @property
    def lost_if_elected(self) -> int | None:
        """How many offsets of the other replicas are lost if this one is elected; None where it cannot be."""
        return self.lost.count if self.can_be_elected else None


class PartitionResult(msgspec.Struct, frozen=True):
    """The replicas of one partition, compared. ``truncate_to[leader][follower]`` is None for the leader itself.

    ``is_decided``: it is known for all differences whether records differ. ``assignment`` is what the metadata at hand
    says of the partition. ``unknown`` is what is not known of a replica: its path, and the words around it.
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
    unknown: list[tuple[str, str, str]] = msgspec.field(default_factory=list)
    is_decided: bool = True
    is_complete: bool = True
    assignment: Assignment = msgspec.field(default_factory=Assignment)

    @property
    def best(self) -> int:
        """The number of the replica that lacks least, and of those that can be elected if there are any."""
        return next(number for number, each in enumerate(self.replicas) if each.is_best)

    @property
    def is_of_one_node(self) -> bool:
        """Whether all are directories of one node, such as a log and its backup: no election decides between them."""
        return _is_of_one_node(each.node_id for each in self.replicas)

    @property
    def is_metadata_log(self) -> bool:
        return self.topic == layout.CLUSTER_METADATA_TOPIC

    @property
    def missing_node_ids(self) -> tuple[int, ...] | None:
        """The nodes that should have a replica and have none here; None if the metadata at hand does not say it."""
        present = {each.node_id for each in self.replicas}
        if self.is_metadata_log:
            if None in {each.voters for each in self.replicas}:
                return None
            return tuple(sorted({voter for each in self.replicas for voter in each.voters or ()} - present))
        return self.assignment.missing(present)

    @property
    def is_read(self) -> bool:
        """Whether the replicas here were compared to their ends, and none of them is damaged."""
        return self.is_complete and not any(each.damaged for each in self.replicas)

    @property
    def is_whole(self) -> bool:
        """Whether all replicas that there are were compared to their ends, and none of them is damaged."""
        return self.missing_node_ids == () and self.is_read

    def row(self) -> Row:
        replicas, state = self.replicas, self.assignment.state
        elr = None if state is None else state.eligible_leader_replicas
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
            "leader": self.assignment.leader,
            "isr": None if state is None else list(state.isr),
            "eligible_leader_replicas": None if elr is None else list(elr),
            "missing_node_ids": None if self.missing_node_ids is None else list(self.missing_node_ids),
        }
        return tuple(values[name] for name in DIVERGENCE.names)

    def replica_rows(self) -> Iterator[Row]:
        for each in self.replicas:
            values = msgspec.structs.asdict(each) | {
                "topic": self.topic,
                "partition": self.number,
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
                "damaged": [list(one) for one in each.damaged],
            }
            yield tuple(values[name] for name in REPLICA.names)


def diff(
    targets: Sequence[Target],
    *,
    context: ClusterContext | None = None,
    limits: Limits = DEFAULT_LIMITS,
    jobs: int = 1,
    advance: Advance = no_progress,
    takes: Callable[[Replicas], bool] | None = None,
) -> Iterator[PartitionResult | Finding | Matching]:
    """First the matched replicas, then findings about directories, and the result of each partition.

    ``context`` has the metadata that names the replicas of each partition. Only the partitions are compared for which
    ``takes`` is true. Raises InputError for paths that hold no
    partition, or single partitions that are not one, and WorkerDied.
    """
    matching = matched(targets, limits)
    if takes is not None:
        matching.groups = [group for group in matching.groups if takes(group)]
    context = context or read_context(targets, ContextTerms(limits=limits))
    for group in matching.groups:
        if group.topic == layout.CLUSTER_METADATA_TOPIC:
            group.replicas = _with_voters(group.replicas, context.voters, limits)
        else:
            group.assign(context)
    yield matching
    yield from matching.findings
    yield from scan_units(DiffScan(limits), matching.groups, jobs=jobs, advance=advance)


def _with_voters(replicas: Sequence[Replica], static: tuple[int, ...] | None, limits: Limits) -> list[Replica]:
    """The replicas of the metadata log with the voters of each: in a dynamic quorum those of its own log (KIP-853)."""
    copies = read_metadata_copies([Target(each.path, Kind.PARTITION) for each in replicas], limits)
    own = {each.path: tuple(voter.node_id for voter in each.voters or ()) for each in copies if each.kraft_version}
    return [replace(each, voters=own.get(each.path) or static) for each in replicas]


class DiffScan(msgspec.Struct, OfReplicas[PartitionResult], frozen=True):
    """Compares partitions one by one."""

    limits: Limits

    def read(self, unit: Replicas, advance: Advance) -> Iterator[PartitionResult]:
        yield compared(unit, self.limits, advance)


def compared(group: Replicas, limits: Limits, advance: Advance) -> PartitionResult:
    comparison = Comparison(group, limits, advance)
    comparison.run()
    logs = comparison.logs
    findings: list[Finding] = []
    not_checked: list[str] = []
    for log in logs:
        findings += log.findings
    unknown: list[tuple[str, str, str]] = []
    epochs = [_epochs(log, findings, unknown, limits) for log in logs]
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
                voters=log.replica.voters,
            )
        )
    gravest = PairDifference()
    for pair in comparison.pairs.values():
        if pair.offset is not None:
            gravest.note(pair.kind, [(pair.offset, pair.offset)])
    return PartitionResult(
        topic=group.topic,
        number=group.number,
        name=group.name,
        kind=gravest.kind,
        offset=gravest.offset,
        replicas=replicas,
        truncate_to=truncate_to,
        findings=findings,
        not_checked=not_checked,
        unknown=unknown,
        is_decided=is_decided,
        is_complete=is_decided and all(log.is_complete for log in logs),
        assignment=assignment,
    )


def _can_be_elected(log: ReplicaLog, group: Replicas, assignment: Assignment) -> bool:
    """Whether a replica may become the leader by an election: one that is assigned, or may be, and of no raft log."""
    node_id, assigned = log.replica.node_id, assignment.replicas
    if group.topic == layout.CLUSTER_METADATA_TOPIC or _is_of_one_node(each.node_id for each in group.replicas):
        return False
    return not assigned or node_id is None or node_id in assigned


def _is_of_one_node(node_ids: Iterable[int | None]) -> bool:
    found = set(node_ids)
    return len(found) == 1 and None not in found


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
    number: int, comparison: Comparison, epochs: list[ReplicaEpochs], can_be_elected: list[bool], assignment: Assignment
) -> tuple[int, ...]:
    """The sort key of replicas: fewest committed records lost, latest epoch, longest log, fewest records lost.

    Those that can be elected come first. Of equal ones, the leader is best, and a clean election better.
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
        not assignment.is_leader(replica.node_id),
        number,
    )


def _epochs(
    log: ReplicaLog, findings: list[Finding], unknown: list[tuple[str, str, str]], limits: Limits
) -> ReplicaEpochs:
    """The leader epochs of a replica; adds findings, and notes about unknown facts."""
    replica = log.replica
    noted: tuple[EpochEntry, ...] = ()
    path = replica.partition.leader_epoch_checkpoint
    if path is None:
        after = f"but for those of batches: no {layout.LEADER_EPOCH_CHECKPOINT}"
        unknown.append((str(replica.path), "the leader epochs of", after))
    else:
        try:
            noted = leader_epoch_checkpoint.read(path, limits).entries
        except KafkaLogError as error:
            findings.append(finding_of(error, replica.partition.location(path)))
    if replica.offsets.high_watermark is None:
        what, reason = str(replica.path), replica.offsets.unknown.get("high_watermark", "")
        if replica.partition.topic == layout.CLUSTER_METADATA_TOPIC:
            what, reason = layout.CLUSTER_METADATA_TOPIC, "its high watermark is not stored on disk"
        unknown.append((what, "which records of", f"were committed: {reason}"))
    return replica_epochs(
        noted,
        log.epochs,
        log_start_offset=replica.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=replica.offsets.high_watermark,
    )


def sentence(result: PartitionResult) -> str:
    """The conclusion, as "ledger-0  elect node 3, which loses none · node 1 loses 500 committed (1,250–1,749)".

    - What each election loses is said of replicas that lack records, and only of nodes that can be elected. "None" is
      "none of what these have" unless every assigned replica is here, whole.
    - "Elect" is "of these, elect" then, too; "unclean" follows where the node is in neither the ISR nor the ELR.
    - Of the metadata log it says who can win, if every voter is here, whole.
    - Other differences are said as facts, as is damage, and as are those of directories of one node.
    """
    names = replica_names(result.replicas)
    if result.kind not in _LACKING:
        parts = list(_same_parts(result, names) if result.kind == "identical" else _differences(result, names))
    elif result.is_of_one_node:
        lacks = [f"{name} lacks {_loss(each.lost, each.lost_committed, is_whole=True)}"
                 for each, name in zip(result.replicas, names, strict=True) if each.lost.count]  # fmt: skip
        own = f"all are of node {result.replicas[0].node_id}: no election decides between them"
        parts = [*_differences(result, names), *lacks, own]
    elif result.is_metadata_log:
        parts = list(_quorum_parts(result, names))
    else:
        parts = list(_election_parts(result, names))
    return f"{result.name}  {' · '.join((*parts, *_damage_parts(result, names)))}"


def gravity(result: PartitionResult) -> tuple[int, int, int]:
    """A key that sorts results: diverged replicas first, then those that lack the most committed records, or others."""
    replicas = result.replicas
    committed, lost = max(each.lost_committed.count for each in replicas), max(each.lost.count for each in replicas)
    return _GRAVEST_FIRST.index(result.kind), -committed, -lost


_GRAVEST_FIRST = ("diverged", "behind", "different_bytes", "identical")


def evidence(result: PartitionResult) -> str:
    """What the conclusion on replicas that lack records rests on, and what Kafka does; empty for other differences."""
    if result.kind not in _LACKING:
        return ""
    names = replica_names(result.replicas)
    sentences = [*_differences(result, names), *_truncations(result, names)]
    assignment = result.assignment
    if assignment.state is not None and not result.is_metadata_log:
        leader = "no leader" if assignment.leader is None else f"leader: node {assignment.leader}"
        sentences.append(f"by {assignment.source}: {leader}, {assignment.last_members}")
    first, *others = sentences
    return " ".join((f"{result.name}: {first}.", *(f"{each[:1].upper()}{each[1:]}." for each in others)))


#: The kinds of differences with which a replica lacks records.
_LACKING = ("diverged", "behind")
#: The verb for one replica and for several, by kind; the replica to elect follows.
_VERBS = {
    "diverged": ("diverges from", "diverge from"),
    "behind": ("is behind", "are behind"),
    "different_bytes": ("differs from", "differ from"),
}


def _same_parts(result: PartitionResult, names: list[str]) -> Iterator[str]:
    """That replicas are the same, from the offset on where all of them have begun.

    A follower moves its log start to that of its leader, and deletes the segments before it (ReplicaFetcherThread).
    """
    starts = [each.epochs.log_start_offset for each in result.replicas]
    if not result.is_read:
        yield f"{listed(names)} are the same as far as they can be read"
        return
    if not has_other_starts(result):
        yield f"{listed(names)} are the same"
        return
    latest = max(each or 0 for each in starts)
    yield f"{listed(names)} are the same from offset {latest} on"
    begins = [f"{name} at {start or 0}" for name, start in zip(names, starts, strict=True)]
    yield f"the log begins on {listed(begins)}"
    if not result.is_metadata_log:
        yield f"a leader that begins at {latest} makes the others delete what is before"


def has_other_starts(result: PartitionResult) -> bool:
    """Whether the logs of the replicas begin at different offsets."""
    return len({each.epochs.log_start_offset for each in result.replicas}) > 1


def _differences(result: PartitionResult, names: list[str]) -> Iterator[str]:
    """How the replicas differ from the best one, kind by kind."""
    for kind, verb in _VERBS.items():
        which = [number for number, each in enumerate(result.replicas) if each.kind == kind]
        if which:
            first = min(result.replicas[number].offset or 0 for number in which)
            subject = listed([names[number] for number in which])
            yield f"{subject} {verb[len(which) > 1]} {names[result.best]} {_where(kind, first, result)}"


def _where(kind: str, first: int, result: PartitionResult) -> str:
    if kind == "diverged":
        return f"at offset {first}"
    if kind == "behind":
        unread = [each for each in result.replicas if each.kind == kind and is_covered((first, first), each.damaged)]
        return f"from offset {first} on" + (", where one of them cannot be read" if unread else "")
    if any(each.damaged for each in result.replicas):
        return f"from offset {first} on, where one of them cannot be read"
    if not result.is_decided:
        return f"in bytes from offset {first} on; it is not known whether the records are the same"
    compacted = max(each.compacted_count for each in result.replicas)
    if compacted:
        gone = f"{counted(compacted, 'record')} {are(compacted)} gone from one of them"
        return f"from offset {first} on by compaction only: {gone}"
    return f"in bytes only, from offset {first} on: the records are the same"


def overview(results: Sequence[str], other_starts: int = 0, unread: int = 0) -> str:
    """The kinds of all partitions, counted.

    Of identical ones, ``other_starts`` begin at different offsets, and ``unread`` could not be read as a whole.
    """
    count = len(results)
    same = sum(kind == "identical" for kind in results)
    partitions = counted(count, "partition")
    if same == count:
        but = (
            f" where they overlap; {counted(other_starts, 'partition')} with different log starts"
            if other_starts
            else ""
        )
        but += f" as far as they can be read; {counted(unread, 'partition')} not read as a whole" if unread else ""
        return f"{partitions} compared: all replicas here are the same{but}."
    rest = f"; the replicas here of {counted(same - unread, 'partition')} are the same" if same > unread else ""
    rest += f"; those of {counted(unread, 'partition')} are the same as far as they can be read" if unread else ""
    return f"{partitions} compared: {count - same:,} with differences{rest}."


class LeftOut(msgspec.Struct):
    """What was not compared, counted over all results.

    By node, the replicas that are not here, or why these are not known; what is not known of others by log directory.
    """

    partitions: Counter[int] = msgspec.field(default_factory=Counter)
    unassigned: Counter[str] = msgspec.field(default_factory=Counter)
    unknown: dict[tuple[str, str, str], list[str]] = msgspec.field(default_factory=dict)

    def take(self, result: PartitionResult) -> None:
        """Add the result of a partition."""
        self.partitions.update(result.missing_node_ids or ())
        if result.assignment.unknown:
            self.unassigned[result.assignment.unknown] += 1
        for path, before, after in dict.fromkeys(result.unknown):
            self.unknown.setdefault((path.rpartition("/")[0], before, after), []).append(path)

    def not_checked(self) -> Iterator[str]:
        """What was not compared, in words."""
        for (around, before, after), paths in self.unknown.items():
            what = paths[0] if len(paths) == 1 else f"{len(paths):,} partitions in {around or '.'}"
            yield f"{before} {what} {after}"
        for node_id, count in sorted(self.partitions.items()):
            which = "replica" if count == 1 else "replicas"
            yield f"the {which} of node {node_id} of {counted(count, 'partition')}"
        for reason, count in self.unassigned.items():
            yield f"whether {counted(count, 'partition')} had other replicas: {reason}"


def _damage_parts(result: PartitionResult, names: list[str]) -> Iterator[str]:
    for each, name in zip(result.replicas, names, strict=True):
        if each.damaged:
            first, last = each.damaged[0]
            more = f" and {counted(len(each.damaged) - 1, 'other place')}" if len(each.damaged) > 1 else ""
            place = offset_range(first, last) if last < 2**63 - 1 else f"offset {first} and all after it"
            yield f"{name} cannot be read at {place}{more}"


def _election_parts(result: PartitionResult, names: list[str]) -> Iterator[str]:
    """Who is to be elected and what each election loses, the best one first; then which replicas are not here."""
    assignment = result.assignment
    of_these = "" if result.is_whole else "of these, "
    for number in sorted(range(len(names)), key=lambda number: not result.replicas[number].is_best):
        each, name = result.replicas[number], names[number]
        loss = _loss(each.lost, each.lost_committed, is_whole=result.is_whole)
        if not each.can_be_elected:
            yield f"{name} cannot be elected: it has no replica by {assignment.source}"
        elif assignment.is_leader(each.node_id):
            yield f"{name} is the leader, and lacks {loss}"
        elif each.is_best:
            is_unclean = assignment.state is not None and each.node_id not in (None, *assignment.complete_replicas)
            unclean = " (unclean)" if is_unclean else ""
            yield f"{of_these}elect {name}{unclean}, which loses {loss}{_deleted(result, each)}"
        else:
            yield f"{name} loses {loss}"
    if assignment.state is None:
        yield f"whether there are other replicas is not known: {assignment.unknown}"
        return
    missing = result.missing_node_ids
    nameless = nameless_words(result, names)
    if nameless:
        yield nameless
    elif missing:
        yield f"not here: {named_nodes(missing)}, whose records are not counted"
    if not nameless and not {each.node_id for each in result.replicas}.intersection(assignment.complete_replicas):
        yield "none of these is in the ISR or the ELR: committed records may be missing from all"


def nameless_words(result: PartitionResult, names: Sequence[str]) -> str:
    """The replicas whose nodes are not known, and the nodes whose replicas they may be; empty for none."""
    found = [name for each, name in zip(result.replicas, names, strict=True) if each.node_id is None]
    missing = result.missing_node_ids
    if not found or not missing:
        return ""
    which = "node of {} is" if len(found) == 1 else "nodes of {} are"
    return f"the {which.format(listed(found))} not known: {named_nodes(missing)} may not be here"


def _deleted(result: PartitionResult, best: ReplicaResult) -> str:
    """What the others delete when the best replica leads: what is before its log start, see ``_same_parts``."""
    start = best.epochs.log_start_offset or 0
    first = min(each.epochs.log_start_offset or 0 for each in result.replicas)
    return f"; the others delete what is before {start}" if first < start else ""


def _loss(lost: Span, committed: Span, *, is_whole: bool) -> str:
    """The records that an election loses, with how many are known as committed."""
    if not lost.count:
        return "none" if is_whole else "none of what these have"
    at = f"({lost.words})"
    if committed.count == lost.count:
        return f"{lost.count:,} committed {at}"
    known = f", {committed.count:,} of them known as committed" if committed.count else " not known as committed"
    return f"{lost.count:,}{known} {at}"


def _quorum_parts(result: PartitionResult, names: list[str]) -> Iterator[str]:
    """Who can win the election of the controllers: a voter votes for no log that ends before its own (KIP-595)."""
    ends = [(-1 if each.epochs.latest is None else each.epochs.latest, each.epochs.log_end_offset)
            for each in result.replicas]  # fmt: skip
    voters = result.replicas[result.best].voters
    missing = result.missing_node_ids
    if voters is None or missing is None:
        epoch, end = ends[result.best]
        yield f"of these, {names[result.best]} has the latest (epoch {epoch}, end {end}); who votes is not known"
        return
    numbers = {each.node_id: number for number, each in enumerate(result.replicas) if each.node_id is not None}
    sets = {each.voters or () for each in result.replicas}
    everyone = {voter for each in sets for voter in each}
    observers = [names[number] for node_id, number in sorted(numbers.items()) if node_id not in everyone]
    is_known = result.is_complete and not any(each.damaged for each in result.replicas)
    if is_known and len(missing) + sum(each.node_id in everyone for each in result.replicas) == len(everyone):
        winners = [names[number] for node_id, number in numbers.items() if _can_win(result, ends, numbers, node_id)]
        of = f"the {counted(len(voters), 'voter')}" if len(sets) == 1 else "the voters, each by those of its own log"
        if winners:
            yield f"of {of}, {' or '.join(winners)} can win the election"
        elif missing:
            yield f"of these, {names[result.best]} has the latest; who can win depends on those not here"
        else:
            yield f"of {of}, none can win the election"
        own = [ends[number][1] for node_id, number in numbers.items() if node_id in voters]
        shared, _ = held_by_majority(own, len(voters))
        if not missing and len(sets) == 1 and result.kind == "behind" and shared < max(own):
            yield f"no majority has the records from offset {shared} on"
    else:
        yield f"of these, {names[result.best]} has the latest"
    nameless = nameless_words(result, names)
    if nameless:
        yield nameless
    elif missing:
        yield f"not here: {named_nodes(missing)}, which {'votes' if len(missing) == 1 else 'vote'} too"
    if observers:
        yield f"{listed(observers)} {'is an observer' if len(observers) == 1 else 'are observers'}, never elected"


def _can_win(
    result: PartitionResult, ends: Sequence[tuple[int, int]], numbers: Mapping[int, int], node_id: int
) -> bool:
    """Whether a node can be elected by the voters of its own log that are here."""
    voters = result.replicas[numbers[node_id]].voters or ()
    own = {each: ends[numbers[each]] for each in voters if each in numbers}
    return node_id in own and can_lead(own, len(voters))[node_id] is True


def _truncations(result: PartitionResult, names: list[str]) -> Iterator[str]:
    if result.is_of_one_node:
        return
    leader = names[result.best]
    for each, name in zip(result.replicas, names, strict=True):
        if each.truncate_to is None or each.kind != "diverged":
            continue
        if each.truncate_to < each.epochs.log_end_offset:
            yield f"under {leader}, Kafka truncates {name} to {each.truncate_to}"
        if each.offset is not None and each.truncate_to > each.offset:
            yield f"Kafka does not repair {name} at {each.offset}: the leader epochs agree there"


def replica_names(replicas: list[ReplicaResult]) -> list[str]:
    """Node ids where all replicas have different ones, else paths."""
    ids = [each.node_id for each in replicas]
    if None not in ids and len(set(ids)) == len(ids):
        return [f"node {each}" for each in ids]
    return [each.path for each in replicas]
