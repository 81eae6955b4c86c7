"""The answer of boot in one sentence: whether a broker would start, and what important steps it would take."""

from __future__ import annotations

from collections import Counter

from format.layout import LOG_SUFFIX
from format.verbs.boot.steps import Action, BootResult, BootTerms, Step
from format.wording import counted, listed

_MOST_NAMED = 3


def sentence(result: BootResult, terms: BootTerms) -> str:
    """Such as "A 4.3 broker would start: it recovers 3 logs and truncates 17 bytes of orders-0."."""
    broker = f"A {terms.version[0]}.{terms.version[1]} broker"
    refusals = result.having(Action.REFUSE)
    if refusals:
        first = refusals[0]
        count = len(refusals) - 1
        more = f" {counted(count, 'more refusal')} {'follows' if count == 1 else 'follow'}." if count else ""
        if first.broker_message is None:
            return f"{broker} would not start, at {first.path}: {first.reason}.{more}"
        reason = f" ({first.reason.rstrip('.')})" if first.reason else ""
        return f"{broker} would refuse to start, at {first.path}: {first.broker_message.rstrip('.')}{reason}.{more}"
    if result.is_unknown:
        first = result.having(Action.UNKNOWN)[0]
        return f"It cannot be predicted whether {broker.lower()} would start: {first.path}: {first.reason}."
    clauses = _clauses(result)
    if not clauses:
        return f"{broker} would start and change nothing that matters."
    if len(clauses) == 1:
        return f"{broker} would start: it {clauses[0]}."
    return f"{broker} would start: it {', '.join(clauses[:-1])}, and {clauses[-1]}."


def _clauses(result: BootResult) -> list[str]:
    clauses: list[str] = []
    offline = result.having(Action.OFFLINE)
    if offline:
        clauses.append(f"does not serve {_names(offline)}")
    recovered = {(step.topic, step.partition) for step in result.having(Action.RECOVER)}
    recovered -= {("__cluster_metadata", 0)}  # recovered at every start
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
    strays = [step for step in result.having(Action.RENAME) if str(step.new_path).endswith("-stray")]
    if strays:
        clauses.append(f"renames {_names(strays)} to stray")
    created = [step for step in result.having(Action.CREATE) if step.log_end_offset is not None]
    if created:
        clauses.append(f"makes empty logs for {_names(created)}")
    lost = [step for step in result.steps if step.lost_offsets is not None]
    if lost:
        count = sum(last - first + 1 for first, last in (step.lost_offsets for step in lost if step.lost_offsets))
        clauses.append(f"loses {counted(count, 'offset')} below the high watermark ({_ranges(lost)})")
    return clauses


def _partition(step: Step) -> str:
    return step.path.name if step.topic is None else f"{step.topic}-{step.partition}"


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
