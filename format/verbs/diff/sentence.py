"""The answer of diff in sentences: where replicas differ, which one to elect, and what each election loses.

What an election loses is counted over the replicas at the paths. A sentence says so unless the metadata names no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from format.offset_ranges import Span
from format.state.cluster_context import named_nodes
from format.verbs.diff.diff import PartitionResult, ReplicaResult
from format.wording import are, counted, listed

#: The most partitions that get a sentence; the rows have all.
MOST_SENTENCES = 10
NOTHING_TO_COMPARE = (
    "No partition has two replicas at the paths: give the log directories of several nodes of a cluster."
)


def sentence(result: PartitionResult) -> str:
    """Such as "ledger-0: node 1 diverges from node 2 at offset 1,250. Of these replicas, elect node 2: it loses …"."""
    names = _names(result.replicas)
    best = names[result.best]
    words = f"{result.name}:"
    for kind, verb in _VERBS.items():
        which = [number for number, each in enumerate(result.replicas) if each.kind == kind]
        if not which:
            continue
        first = min(result.replicas[number].offset or 0 for number in which)
        subject = listed([names[number] for number in which])
        words += f" {subject} {verb[len(which) > 1]} {best} {_where(kind, first, result)}."
    if result.kind == "identical":
        words += f" {listed(names)} are the same."
    words += _damage_words(result, names)
    if result.kind in ("diverged", "behind"):
        says_who = _quorum_words if result.is_metadata_log else _election_words
        words += says_who(result, names) + _truncation_words(result, names)
    return words


#: The verb for one replica and for several, by kind; the replica to elect follows.
_VERBS = {
    "diverged": ("diverges from", "diverge from"),
    "behind": ("is behind", "are behind"),
    "different_bytes": ("differs from", "differ from"),
}


def _where(kind: str, first: int, result: PartitionResult) -> str:
    if kind == "diverged":
        return f"at offset {first:,}"
    if kind == "behind":
        return f"from offset {first:,} on"
    if any(each.damaged for each in result.replicas):
        return f"from offset {first:,} on, where one of them cannot be read"
    if not result.is_decided:
        return f"in bytes from offset {first:,} on; it is not known whether the records are the same"
    compacted = max(each.compacted_count for each in result.replicas)
    if compacted:
        gone = f"{counted(compacted, 'record')} {are(compacted)} gone from one of them"
        return f"from offset {first:,} on by compaction only: {gone}"
    return f"in bytes only, from offset {first:,} on: the records are the same"


def overview(results: Sequence[str]) -> str:
    """The kinds of all partitions, counted."""
    count = len(results)
    same = sum(kind == "identical" for kind in results)
    partitions = counted(count, "partition")
    if same == count:
        return f"{partitions} compared: all replicas here are the same."
    return f"{partitions} compared: {count - same:,} with differences."


class MissingReplicas(msgspec.Struct):
    """The replicas that are not at the paths, counted over all results: by node, or by why they are not known."""

    partitions: dict[int, int] = msgspec.field(default_factory=dict)
    unknown: dict[str, int] = msgspec.field(default_factory=dict)

    def take(self, result: PartitionResult) -> None:
        """Add the result of a partition."""
        for node_id in result.missing_node_ids or ():
            self.partitions[node_id] = self.partitions.get(node_id, 0) + 1
        reason = result.assignment.unknown
        if reason:
            self.unknown[reason] = self.unknown.get(reason, 0) + 1

    def not_checked(self) -> Iterator[str]:
        """What was not compared, in words."""
        for node_id, count in sorted(self.partitions.items()):
            yield f"node {node_id}, which is not here: its replicas of {counted(count, 'partition')}"
        for reason, count in self.unknown.items():
            yield f"whether {counted(count, 'partition')} had other replicas: {reason}"


def _damage_words(result: PartitionResult, names: list[str]) -> str:
    words = ""
    for each, name in zip(result.replicas, names, strict=True):
        if each.damaged:
            first, last = each.damaged[0]
            more = f" and {counted(len(each.damaged) - 1, 'other place')}" if len(each.damaged) > 1 else ""
            place = f"offsets {first:,} to {last:,}" if last < 2**63 - 1 else f"offset {first:,} and all after it"
            place = f"offset {first:,}" if first == last else place
            words += f" {_capital(name)} cannot be read at {place}{more}."
    return words


def _election_words(result: PartitionResult, names: list[str]) -> str:
    words = ""
    assignment = result.assignment
    order = sorted(range(len(names)), key=lambda number: not result.replicas[number].is_best)
    nothing = "nothing" if result.is_whole else "nothing that the others here have"
    for number in order:
        each = result.replicas[number]
        if not each.can_be_elected:
            words += f" {_capital(names[number])} has no replica of it, by {assignment.source}: it cannot be elected."
            continue
        loses = _loss(each.lost, each.lost_committed, nothing)
        if assignment.is_leader(each.node_id):
            words += f" {_capital(names[number])} is the leader. It lacks {loses}."
        elif each.is_best:
            is_unclean = assignment.state is not None and each.node_id not in assignment.complete_replicas
            election = f"{names[number]}{' (an unclean election)' if is_unclean else ''}"
            words += f" {'Elect' if result.is_whole else 'Of these replicas, elect'} {election}: it loses {loses}."
        else:
            words += f" {_capital(names[number])}, elected, loses {loses}."
    return words + _others_words(result)


def _loss(lost: Span, committed: Span, nothing: str) -> str:
    if not lost.count:
        return nothing
    return f"{_offsets(lost)}, {f'{committed.count:,}' if committed.count else 'none'} of them known as committed"


def _others_words(result: PartitionResult) -> str:
    """What the metadata says of the replicas, and of those that are not here."""
    assignment = result.assignment
    if assignment.state is None:
        return f" Whether there are other replicas is not known: {assignment.unknown}."
    leader = "no leader" if assignment.leader is None else f"leader: node {assignment.leader}"
    words = f" By {assignment.source}: {leader}, {assignment.last_members}."
    missing = result.missing_node_ids
    if missing:
        words += f" Not here: {named_nodes(missing)}, whose records are not counted."
    present = {each.node_id for each in result.replicas}
    if not present.intersection(assignment.complete_replicas):
        words += " None of these replicas is in the ISR or the ELR: committed records may be missing from all of them."
    return words


def _quorum_words(result: PartitionResult, names: list[str]) -> str:
    """Who can win the election of the controllers: a voter votes for no log that ends before its own (KIP-595)."""
    ends = [(-1 if each.epochs.latest is None else each.epochs.latest, each.epochs.log_end_offset)
            for each in result.replicas]  # fmt: skip
    words = " It has no unclean election: controllers elect by the last epoch and the log end."
    voters = result.voters
    if voters is None:
        epoch, end = ends[result.best]
        latest = f"of these, {names[result.best]} has the latest (epoch {epoch}, end {end:,})"
        return f"{words} Which nodes vote is not known; {latest}."
    observers = [name for each, name in zip(result.replicas, names, strict=True) if each.node_id not in voters]
    if observers:
        is_one = len(observers) == 1
        words += f" {_capital(listed(observers))} {'is an observer' if is_one else 'are observers'}, never elected."
    missing = result.missing_node_ids
    if missing:
        return f"{words} Not here: {named_nodes(missing)}, which {'votes' if len(missing) == 1 else 'vote'} too."
    if not result.is_whole or len(names) - len(observers) != len(voters):
        return words
    own = [end for each, end in zip(result.replicas, ends, strict=True) if each.node_id in voters]
    majority = len(own) // 2 + 1
    winners = [name for each, end, name in zip(result.replicas, ends, names, strict=True)
               if each.node_id in voters and sum(end >= other for other in own) >= majority]  # fmt: skip
    words += f" Of the {counted(len(own), 'voter')}, {' or '.join(winners)} can win."
    shared = sorted((end for _, end in own), reverse=True)[majority - 1]
    if result.kind == "behind" and shared < max(end for _, end in own):
        words += f" No majority of them has the records from offset {shared:,} on."
    return words


def _truncation_words(result: PartitionResult, names: list[str]) -> str:
    words = ""
    leader = names[result.best]
    for each, name in zip(result.replicas, names, strict=True):
        if each.truncate_to is None or each.kind != "diverged":
            continue
        if each.truncate_to < each.epochs.log_end_offset:
            words += f" Under {leader}, Kafka truncates {name} to {each.truncate_to:,}."
        if each.offset is not None and each.truncate_to > each.offset:
            words += f" Kafka does not repair {name} at {each.offset:,}: the leader epochs agree there."
    return words


def _offsets(span: Span) -> str:
    if span.count == 1:
        return f"offset {span.first:,}"
    return f"{span.count:,} offsets ({span.first:,} to {span.last:,})"


def _names(replicas: list[ReplicaResult]) -> list[str]:
    """Node ids where all replicas have different ones, else paths."""
    ids = [each.node_id for each in replicas]
    if None not in ids and len(set(ids)) == len(ids):
        return [f"node {each}" for each in ids]
    return [each.path for each in replicas]


def _capital(name: str) -> str:
    return f"Node{name[4:]}" if name.startswith("node ") else name
