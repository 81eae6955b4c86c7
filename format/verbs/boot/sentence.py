"""The answer of boot in sentences: whether a node would start, what that loses, and what else it does."""

from __future__ import annotations

from collections import Counter

from format import layout
from format.timestamps import iso_time
from format.verbs.boot.steps import Action, BootResult, BootTerms, Step
from format.wording import counted, first_of, listed

_MOST_NAMED = 3
_MOST_LISTED = 10


def sentence(result: BootResult, terms: BootTerms) -> str:
    """Whether the node would start, and what that stops or loses.

    - "A 4.4 broker would start.": no step is a refusal or unknown. After a colon it says what is not served, cut, made
      anew or lost; what every start does is left to ``otherwise``.
    - "would refuse to start: 2 reasons.": some steps are refusals with a message of the broker.
    - "would not start: 1 reason.": the broker waits without end and says nothing.
    - "It cannot be predicted whether … would start: 1 reason.": there is no refusal, and some step is unknown.
    """
    role = "controller" if result.is_controller else "broker"
    node = f"A {terms.release} {role}"
    refusals, unknown = result.having(Action.REFUSE), result.having(Action.UNKNOWN)
    if refusals:
        verb = "refuse to start" if any(each.broker_message is not None for each in refusals) else "not start"
        return f"{node} would {verb}: {counted(len(refusals), 'reason')}."
    if unknown:
        reasons = counted(len(unknown), "reason")
        return f"It cannot be predicted whether {node.lower()} would start: {reasons}."
    clauses = _clauses(result)
    by = _by(result, terms) + _absent_words(result)
    if not clauses:
        return f"{node} would start.{by}"
    if len(clauses) == 1:
        return f"{node} would start: it {clauses[0]}.{by}"
    return f"{node} would start: it {', '.join(clauses[:-1])}, and {clauses[-1]}.{by}"


#: What is deleted without a loss: the mark of a clean stop, side files, and what an earlier run had given up.
_SPARE_SUFFIXES = (
    layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.TRANSACTION_INDEX_SUFFIX,
    layout.PRODUCER_SNAPSHOT_SUFFIX, ".cleaned", ".deleted",
)  # fmt: skip


def is_usual(step: Step) -> bool:
    """Whether a step neither stops the node, nor cuts, renames, loses or leaves anything that matters."""
    if step.lost_offsets is not None or step.may_lose:
        return False
    if step.action is Action.DELETE:
        return step.path.name == layout.CLEAN_SHUTDOWN or step.path.suffix in _SPARE_SUFFIXES
    if step.action is Action.CREATE:
        return step.log_end_offset is None
    if step.action is Action.TRUNCATE:  # of an election after which nothing was written, as most leaders have
        return step.path.name == layout.LEADER_EPOCH_CHECKPOINT
    return step.action in (Action.RECOVER, Action.REBUILD_INDEX, Action.REBUILD_SNAPSHOT)


def listed_steps(result: BootResult) -> tuple[list[Step], str]:
    """The steps that people read, without the usual ones and with the first of each action, and how many are left."""
    left = Counter(step.action for step in result.steps if not is_usual(step))
    steps: list[Step] = []
    seen = Counter[Action]()
    for step in result.steps:
        if not is_usual(step) and seen[step.action] < _MOST_LISTED:
            seen[step.action] += 1
            steps.append(step)
    more = [f"{count:,} more of {action.value}" for action, count in (left - seen).items()]
    return steps, f"Not listed: {listed(more)} (--every-file lists them)." if more else ""


def otherwise(result: BootResult) -> str:
    """The usual steps, counted, as "Otherwise it recovers 15 logs and rebuilds 30 indexes."; empty for none.

    Without other steps it is "It recovers …". It says nothing where the node does not start.
    """
    if result.is_refused or result.is_unknown:
        return ""
    usual = [step for step in result.steps if is_usual(step)]
    count = Counter(step.action for step in usual)
    logs = {(step.topic, step.partition) for step in usual if step.action is Action.RECOVER}
    metadata_log = {(layout.CLUSTER_METADATA_TOPIC, 0)} & logs
    recovered = [counted(len(logs - metadata_log), "log")] if logs - metadata_log else []
    recovered += ["the metadata log"] if metadata_log else []
    words = [f"recovers {listed(recovered)}"] if recovered else []
    words += [
        f"{verb} {counted(count[action], noun)}"
        for action, verb, noun in (
            (Action.REBUILD_INDEX, "rebuilds", "index"),
            (Action.REBUILD_SNAPSHOT, "writes", "producer snapshot"),
            (Action.DELETE, "deletes", "spare file"),
            (Action.CREATE, "makes", "file"),
            (Action.TRUNCATE, "shortens", layout.LEADER_EPOCH_CHECKPOINT),
        )
        if count[action]
    ]
    if not words:
        return ""
    return f"{'It' if len(usual) == len(result.steps) else 'Otherwise it'} {listed(words)} (--every-file lists them)."


def _has_no_metadata(result: BootResult) -> bool:
    return any(step.topic == layout.CLUSTER_METADATA_TOPIC for step in result.having(Action.CREATE))


def _by(result: BootResult, terms: BootTerms) -> str:
    """The metadata on which the answer rests, where other nodes may have later metadata."""
    as_of = result.as_of
    if as_of is None:
        if _has_no_metadata(result) and result.strays:
            return (
                " Another log directory of the node may have the metadata: give it too. Other controllers may have it: "
                "give theirs with --metadata."
            )
        return ""
    time = "" if as_of.timestamp is None else f" of {iso_time(as_of.timestamp)}"
    if as_of is terms.later:
        return f" This is by the metadata{time} in {as_of.path}."
    return f" This is by its own metadata{time}; other controllers may have later metadata."


def _created(result: BootResult) -> list[Step]:
    """The steps for empty logs."""
    return [step for step in result.having(Action.CREATE) if step.log_end_offset is not None]


def _absent_words(result: BootResult) -> str:
    """The log directories that may hold the logs for which a broker without them makes empty ones."""
    if not result.absent_ids or not _created(result):
        return ""
    is_one = len(result.absent_ids) == 1
    which = f"directory {result.absent_ids[0]}" if is_one else f"directories {first_of(result.absent_ids, _MOST_NAMED)}"
    return f" The node registered the log {which}, not here: give {'it' if is_one else 'them'} too."


def _clauses(result: BootResult) -> list[str]:
    clauses: list[str] = []
    if _has_no_metadata(result) and result.strays:
        clauses.append("begins an empty metadata log, as none is here")
    offline = result.having(Action.OFFLINE)
    if any(step.topic == layout.CLUSTER_METADATA_TOPIC for step in offline):
        clauses.append("only observes the metadata quorum, in which it never votes")
        offline = [step for step in offline if step.topic != layout.CLUSTER_METADATA_TOPIC]
    failed = list(dict.fromkeys(map(str, result.failed_dirs)))
    noun = "log directory" if len(failed) == 1 else "log directories"
    unserved = [f"the {noun} {listed(failed)}"] if failed else []
    offline = [step for step in offline if not any(step.path.is_relative_to(each) for each in result.failed_dirs)]
    unserved += [_names(offline)] if offline else []
    if unserved:
        clauses.append(f"does not serve {listed(unserved)}")
    cut: Counter[str] = Counter()
    for step in result.having(Action.TRUNCATE):
        if step.bytes and step.path.name.endswith(layout.LOG_SUFFIX):
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
        them = "it" if len(set(map(_partition, result.strays))) == 1 else "them"
        clauses.append(f"renames {_names(result.strays)} to stray and does not serve {them}")
    created = _created(result)
    if created:
        clauses.append(f"makes empty logs for {_names(created)}")
    futures = [step for step in result.having(Action.TRUNCATE) if _is_of_future(step, step.path.name)]
    lone = [step for step in futures if step.may_lose]
    if lone:
        clauses.append(f"may cut {_names(lone)}, whose current one is not here (copy it before)")
    elif futures:
        clauses.append(f"then cuts {_names(futures)} to the empty log (copy it before)")
    new = [str(step.path.parent) for step in result.having(Action.CREATE) if _is_of_new_directory(step)]
    if new:
        held = "it" if len(new) == 1 else "they"
        clauses.append(f"takes the empty {first_of(new, _MOST_NAMED)} for new (what {held} held is not known)")
    return clauses + _losses(result)


def _is_of_new_directory(step: Step) -> bool:
    return step.may_lose and step.path.name == layout.META_PROPERTIES


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
    unknown = [step for step in result.steps if step.may_lose and not _is_of_new_directory(step)]
    anew = [step for step in unknown if step.action is Action.KEEP]
    unknown = [step for step in unknown if step.action is not Action.KEEP and not _is_of_future(step, step.path.name)]
    if unknown:
        clauses.append(f"may lose records of {_names(unknown)} (no high watermark is known)")
    if anew:
        which = "the high watermark" if len(anew) == 1 else "each high watermark"
        clauses.append(f"goes on, maybe without records of {_names(anew)} ({which} may be that of a deleted topic)")
    return clauses


def _partition(step: Step) -> str:
    name = step.path.name if step.topic is None else f"{step.topic}-{step.partition}"
    is_future = _is_of_future(step, step.path.name) or _is_of_future(step, step.path.parent.name)
    return f"the future replica of {name}" if is_future else name


def _is_of_future(step: Step, name: str) -> bool:
    """Whether a name is that of a directory with the future replica of the step's partition."""
    return name.startswith(f"{step.topic}-{step.partition}.") and name.endswith("-future")


def _names(steps: list[Step]) -> str:
    return first_of(list(dict.fromkeys(map(_partition, steps))), _MOST_NAMED)


def _ranges(steps: list[Step]) -> str:
    found = [f"{_partition(step)} {step.lost_offsets[0]} to {step.lost_offsets[1]}"
             for step in steps if step.lost_offsets is not None]  # fmt: skip
    shown = ", ".join(found[:_MOST_NAMED])
    return shown if len(found) <= _MOST_NAMED else f"{shown} and {len(found) - _MOST_NAMED:,} more"
