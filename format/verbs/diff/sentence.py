"""The answer of diff in sentences: where replicas differ, which one to elect, and what each election loses."""

from __future__ import annotations

from collections.abc import Sequence

from format.offset_ranges import Span
from format.verbs.diff.diff import PartitionResult, ReplicaResult
from format.wording import are, counted, listed

#: The most partitions that get a sentence; the rows have all.
MOST_SENTENCES = 10
NOTHING_TO_COMPARE = (
    "No partition has two replicas at the paths: give the log directories of several nodes of a cluster."
)


def sentence(result: PartitionResult) -> str:
    """Such as "ledger-0: node 1 diverges from node 2 at offset 1,250. Elect node 2: it loses …"."""
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
        words += _election_words(result, names) + _truncation_words(result, names)
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
        return f"{partitions} compared: all replicas are the same."
    return f"{partitions} compared: {count - same:,} with differences."


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
    order = sorted(range(len(names)), key=lambda number: not result.replicas[number].is_best)
    for number in order:
        each = result.replicas[number]
        subject = f" Elect {names[number]}: it" if each.is_best else f" {_capital(names[number])}, elected,"
        if not each.lost.count:
            words += f"{subject} loses nothing."
            continue
        committed = each.lost_committed.count
        note = f"{committed:,} of them committed" if committed else "none of them known as committed"
        words += f"{subject} loses {_offsets(each.lost)}, {note}."
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
