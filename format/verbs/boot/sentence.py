"""The answer of boot in one sentence: whether a node would start, and what important steps it would take."""

from __future__ import annotations

from collections import Counter

from format.layout import CLUSTER_METADATA_TOPIC, LOG_SUFFIX
from format.timestamps import iso_time
from format.verbs.boot.steps import Action, BootResult, BootTerms, KnownMetadata, Step
from format.wording import counted, listed

_MOST_NAMED = 3


def sentence(result: BootResult, terms: BootTerms) -> str:
    """Such as "A 4.3 broker would start: it recovers 3 logs and truncates 17 bytes of orders-0."."""
    role = "controller" if result.is_controller else "broker"
    node = f"A {terms.version[0]}.{terms.version[1]} {role}"
    refusals = result.having(Action.REFUSE)
    if refusals:
        first = refusals[0]
        count = len(refusals) - 1
        more = f" {counted(count, 'more refusal')} {'follows' if count == 1 else 'follow'}." if count else ""
        if first.broker_message is None:
            return f"{node} would not start, at {first.path}: {first.reason}.{more}"
        reason = f" ({first.reason.rstrip('.')})" if first.reason else ""
        return f"{node} would refuse to start, at {first.path}: {first.broker_message.rstrip('.')}{reason}.{more}"
    if result.is_unknown:
        first = result.having(Action.UNKNOWN)[0]
        return f"It cannot be predicted whether {node.lower()} would start: {first.path}: {first.reason}."
    clauses = _clauses(result)
    by = _by(result.as_of, terms)
    if not clauses:
        return f"{node} would start and change nothing that matters.{by}"
    if len(clauses) == 1:
        return f"{node} would start: it {clauses[0]}.{by}"
    return f"{node} would start: it {', '.join(clauses[:-1])}, and {clauses[-1]}.{by}"


def _by(as_of: KnownMetadata | None, terms: BootTerms) -> str:
    """The metadata on which the answer rests, where other nodes may have later metadata."""
    if as_of is None:
        return ""
    time = "" if as_of.timestamp is None else f" of {iso_time(as_of.timestamp)}"
    if as_of is terms.later:
        return f" This is by the metadata{time} in {as_of.path}."
    return f" This is by its own metadata{time}; other controllers may have later metadata."


def _clauses(result: BootResult) -> list[str]:
    clauses: list[str] = []
    offline = result.having(Action.OFFLINE)
    if any(step.topic == CLUSTER_METADATA_TOPIC for step in offline):
        clauses.append("only observes the metadata quorum, in which it never votes")
        offline = [step for step in offline if step.topic != CLUSTER_METADATA_TOPIC]
    if offline:
        clauses.append(f"does not serve {_names(offline)}")
    recovered = {(step.topic, step.partition) for step in result.having(Action.RECOVER)}
    recovered -= {(CLUSTER_METADATA_TOPIC, 0)}  # recovered at every start
    if recovered:
        clauses.append(f"recovers {counted(len(recovered), 'log')}")
    cut: Counter[str] = Counter()
    for step in result.having(Action.TRUNCATE):
        if step.bytes and step.path.name.endswith(LOG_SUFFIX):
            cut[_partition(step)] += step.bytes
    for name, size_bytes in cut.most_common(_MOST_NAMED):
        clauses.append(f"truncates {counted(size_bytes, 'byte')} of {name}")
    if len(cut) > _MOST_NAMED:
        clauses.append(f"truncates {counted(len(cut) - _MOST_NAMED, 'more log')}")
    left = [step for step in result.having(Action.KEEP) if step.bytes]
    if left:
        size_bytes = sum(step.bytes or 0 for step in left)
        clauses.append(f"appends after {counted(size_bytes, 'unreadable byte')} at the end of {_names(left)}")
    if result.strays:
        clauses.append(f"renames {_names(result.strays)} to stray and does not serve {_them(result.strays)}")
    created = [step for step in result.having(Action.CREATE) if step.log_end_offset is not None]
    if created:
        clauses.append(f"makes empty logs for {_names(created)}")
    futures = [step for step in result.having(Action.TRUNCATE) if step.path.name.endswith("-future")]
    if futures:
        clauses.append(f"then cuts the future replica of {_names(futures)} to the empty log (copy it before)")
    return clauses + _losses(result)


def _losses(result: BootResult) -> list[str]:
    """What is lost below the high watermark: by this start or before it, from one replica or from the cluster."""
    lost = [step for step in result.steps if step.lost_offsets is not None]
    before = [step for step in lost if step.action is Action.KEEP]
    now = [step for step in lost if step.action is not Action.KEEP]
    only = [step for step in now if step.other_replicas == ()]
    clauses = []
    for steps, verb, end in (
        (only, "loses", ""),
        ([step for step in now if step.other_replicas != ()], "removes", " from this replica"),
        (before, "goes on without", ""),
    ):
        if steps:
            count = sum(last - first + 1 for first, last in (step.lost_offsets for step in steps if step.lost_offsets))
            clauses.append(f"{verb} {counted(count, 'offset')} below the high watermark{end} ({_ranges(steps)})")
    unknown = [step for step in result.steps if step.may_lose]
    if unknown:
        clauses.append(f"may lose records of {_names(unknown)} (no high watermark is known)")
    return clauses


def _partition(step: Step) -> str:
    return step.path.name if step.topic is None else f"{step.topic}-{step.partition}"


def _them(steps: list[Step]) -> str:
    return "it" if len({_partition(step) for step in steps}) == 1 else "them"


def _names(steps: list[Step]) -> str:
    names = list(dict.fromkeys(_partition(step) for step in steps))
    if len(names) <= _MOST_NAMED:
        return listed(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED:,} more"


def _ranges(steps: list[Step]) -> str:
    found = [f"{_partition(step)} {step.lost_offsets[0]} to {step.lost_offsets[1]}"
             for step in steps if step.lost_offsets is not None]  # fmt: skip
    shown = ", ".join(found[:_MOST_NAMED])
    return shown if len(found) <= _MOST_NAMED else f"{shown} and {len(found) - _MOST_NAMED:,} more"
