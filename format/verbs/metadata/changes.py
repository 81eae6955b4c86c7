"""What changed in a metadata log, in words: one line for each subject, and a sentence that names what people did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec

from format.kafka_uuid import is_reserved
from format.timestamps import iso_time
from format.verbs.metadata.metadata import Row
from format.wording import counted, listed

#: The kinds of changes, with their record types.
KINDS: Mapping[str, frozenset[str]] = {
    "topic": frozenset(("TOPIC_RECORD", "REMOVE_TOPIC_RECORD")),
    "partition": frozenset(("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD")),
    "config": frozenset(("CONFIG_RECORD",)),
    "broker": frozenset(
        (
            "REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD", "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD",
            "BROKER_REGISTRATION_CHANGE_RECORD",
        )
    ),
    "controller": frozenset(("REGISTER_CONTROLLER_RECORD", "UNREGISTER_CONTROLLER_RECORD")),
    "quorum": frozenset(("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS")),
    "feature": frozenset(("FEATURE_LEVEL_RECORD", "REMOVE_FEATURE_LEVEL_RECORD")),
    "acl": frozenset(
        ("ACCESS_CONTROL_RECORD", "ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD")
    ),
    "quota": frozenset(("CLIENT_QUOTA_RECORD",)),
    "credential": frozenset(
        (
            "USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", "DELEGATION_TOKEN_RECORD",
            "REMOVE_DELEGATION_TOKEN_RECORD",
        )
    ),
    "producer-ids": frozenset(("PRODUCER_IDS_RECORD",)),
}  # fmt: skip
_OTHER = "other"


def kind_of(record_type: str, subject: str) -> str:
    """The kind of a change, "other" for what is in none. A topic's record may remove its partitions and configs."""
    if record_type == "REMOVE_TOPIC_RECORD":
        return subject.partition(" ")[0]
    return next((kind for kind, types in KINDS.items() if record_type in types), _OTHER)


#: Fields in words, in the order in which they are shown; of partitions and brokers the others only by themselves.
_NAMED = {
    "leader": "leader",
    "isr": "ISR",
    "eligible_leader_replicas": "ELR",
    "replicas": "replicas",
    "adding_replicas": "adding",
    "removing_replicas": "removing",
    "leader_recovery_state": "recovery",
    "fenced": "fenced",
    "inControlledShutdown": "in controlled shutdown",
}
_OF_ACL = ("permission_type", "principal", "operation", "resource_type", "resource_name", "pattern_type", "host")
_MOST_VALUES = 5
#: The most configs of a new topic that are shown with their values.
_MOST_CONFIGS = 2
_MOST_CHARACTERS = 60
#: Fields of a partition that follow from brokers that come and go, with what the sentence calls them.
_FOLLOWING = {
    "leader": "leader",
    "isr": "ISR",
    "eligible_leader_replicas": "ELR",
    "last_known_elr": "",
    "leader_epoch": "",
    "partition_epoch": "",
    "leader_recovery_state": "",
}
#: Ids of processes: they change with every start, and say nothing else.
_OF_PROCESSES = frozenset(("incarnationId", "brokerEpoch"))
#: The most partitions in which only what follows has changed that have a line each.
_MOST_PARTITIONS = 3
#: The most names with one change, and changes of one kind, in the sentence.
_MOST_NAMES = 4


class Subject(msgspec.Struct):
    """The changes of one subject: ``values`` has, by field, the values that it had one after the other.

    ``steps`` are "created" and "deleted" in their order. A new topic also has its first partitions and configs.
    ``away`` has, of a broker, when it was fenced and when it was no more, None for what is not in the history.
    """

    kind: str
    first_ms: int
    last_ms: int
    count: int = 0
    steps: list[str] = msgspec.field(default_factory=list)
    values: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    partition_count: int = 0
    configs: list[str] = msgspec.field(default_factory=list)
    away: list[tuple[int | None, int | None]] = msgspec.field(default_factory=list)

    @property
    def follows(self) -> bool:
        """Whether it is a partition in which nothing changed but what follows from brokers that come and go."""
        changed = {name for name, values in self.values.items() if len(values) > 1}
        if not _are_moved(self.values.get("directories", [])):
            changed.discard("directories")
        return self.kind == "partition" and "deleted" not in self.steps and changed <= {*_FOLLOWING, ""}

    @property
    def is_noise(self) -> bool:
        """Whether nothing changed but ids of producers or processes."""
        changed = {name for name, values in self.values.items() if len(values) > 1}
        return self.kind == "producer-ids" or bool(not self.steps and changed and changed <= _OF_PROCESSES)

    @property
    def is_new(self) -> bool:
        """Whether its last step was that it was created."""
        return self.steps[-1:] == ["created"]

    @property
    def is_gone(self) -> bool:
        """Whether its last step was that it was deleted."""
        return self.steps[-1:] == ["deleted"]

    def take(self, timestamp: int, before: Any, after: Any) -> None:
        """Add a change."""
        self.last_ms = timestamp
        self.count += 1
        if _has_parts(before) or _has_parts(after):
            if before is None or after is None:
                self.steps.append("created" if before is None else "deleted")
                self.partition_count, self.configs = 0, []
            if after is None:
                return
            changed = {name: (None if before is None else before.get(name, ...), after[name]) for name in after}
            if self.kind == "broker" and before is not None and "fenced" in after:
                self._fence(timestamp, is_fenced=after["fenced"])
        else:
            changed = {"": (before, after)}
        for name, (old, new) in changed.items():
            values = self.values.setdefault(name, [] if old is ... or (name and before is None) else [old])
            if not values or values[-1] != new:
                values.append(new)

    def _fence(self, timestamp: int, *, is_fenced: bool) -> None:
        if is_fenced:
            self.away.append((timestamp, None))
        elif self.away and self.away[-1][1] is None:
            self.away[-1] = (self.away[-1][0], timestamp)
        elif not self.steps:  # a new broker is fenced until it has started
            self.away.append((None, timestamp))

    def words(self) -> str:
        """What changed, such as "leader 1 → 2, ISR [1,2] → [2]"."""
        words = [] if self.kind == "quorum" else _step_words(self.steps)
        if self.kind == "acl":
            words += [" ".join(str(self.values[name][0]) for name in _OF_ACL if name in self.values)]
        elif self.kind == "topic":
            words += [f"{counted(self.partition_count, 'partition')}"] if self.partition_count else []
            is_long = len(self.configs) > _MOST_CONFIGS
            words += [counted(len(self.configs), "config")] if is_long else self.configs
        else:
            shown = [name for name in _NAMED if _says_something(self.values.get(name, []))]
            shown = shown or [name for name in self.values if not self.steps and name not in _OF_PROCESSES]
            unset = "unset" if self.kind in ("config", "quota") else "none"
            words += [f"{_NAMED.get(name, name)} {_chain(self.values[name], unset)}".lstrip() for name in shown]
        return ", ".join(filter(None, words)) or "written again"


def _are_moved(directories: list[list[str] | None]) -> bool:
    """Whether a replica went from one log directory to another. The broker of a new one assigns its directory."""
    of_replicas = zip(*(each for each in directories if each), strict=False)
    return any(len({each for each in ids if not is_reserved(each)}) > 1 for ids in of_replicas)


class SubjectChanges(msgspec.Struct):
    """The changes of a history, by subject in the order of their first change."""

    subjects: dict[str, Subject] = msgspec.field(default_factory=dict)
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0

    def take(self, row: Row) -> None:
        """Add a row of columns.METADATA_CHANGE. What belongs to the creation or deletion of a topic is added to it."""
        _, timestamp, record_type, subject, before, after = row
        if not self.count:
            self.first_ms = timestamp
        self.count += 1
        self.last_ms = timestamp
        kind = kind_of(record_type, subject)
        known = self.subjects.get(subject)
        if kind in ("partition", "config"):
            what, _, topic = subject.partition(" of topic " if kind == "config" else " ")
            owner = self.subjects.get(f"topic {topic if kind == 'config' else topic.rpartition('-')[0]}")
            if owner is not None and owner.last_ms == timestamp:
                if before is None and owner.is_new:
                    if kind == "partition":
                        owner.partition_count += 1
                    else:
                        owner.configs.append(f"{what.partition(' ')[2]}={_value(after)}")
                    return
                if after is None and owner.is_gone and (kind == "partition" or known is None):
                    self.subjects.pop(subject, None)
                    return
        if known is None:
            known = self.subjects[subject] = Subject(kind, timestamp, timestamp)
        known.take(timestamp, before, after)

    def lines(self, *, every_partition: bool = False) -> Iterator[str]:
        """A line for each subject, those that changed last at the end, without ids of producers and processes.

        Many partitions in which only leaders, ISRs and ELRs changed have one line, unless ``every_partition``.
        """
        following = [each for each in self.subjects.values() if each.follows]
        is_folded = len(following) > _MOST_PARTITIONS and not every_partition
        if is_folded:
            since = iso_time(min(each.first_ms for each in following))
            count = counted(sum(each.count for each in following), "change")
            last = iso_time(max(each.last_ms for each in following))
            yield f"{last}  {_following_words(following)} ({count} since {since}; --kind partition lists them)"
        shown = [(name, each, each.words()) for name, each in self.subjects.items()
                 if not (each.is_noise or (is_folded and each.follows))]  # fmt: skip
        shown += [(f"topic {topic}", each, words) for topic, each, words in self._added()]
        for name, subject, words in sorted(shown, key=lambda item: item[1].last_ms):
            first, last = iso_time(subject.first_ms), iso_time(subject.last_ms)
            since = first[len("2026-11-22T") :] if first[:10] == last[:10] else first
            often = f" ({subject.count:,} changes since {since})" if subject.count > 1 else ""
            yield f"{last}  {name}: {words}{often}"

    def sentence(self) -> str:
        """What changed by name: what people did first, then which brokers were away, then the partitions, counted.

        Subjects with one change are named together, and of many changes of a kind the first are named.
        """
        parts: dict[str, dict[str, list[str]]] = {kind: {} for kind in (*_BY_PEOPLE, "broker", "quorum")}
        following = [each for each in self.subjects.values() if each.follows]
        for topic, _, words in self._added():
            parts["added"].setdefault(words, []).append(topic)
        for name, subject in self.subjects.items():
            if not subject.follows and not subject.is_noise:
                kind, words, named = self._named(name, subject)
                parts.setdefault(kind, {}).setdefault(words, []).append(named)
        parts["broker"] = {words: sorted(names) for words, names in parts["broker"].items()}
        found = []
        for kind, changes in parts.items():
            shown = list(changes.items())
            most = len(shown) if len(shown) <= _MOST_NAMES else _MOST_NAMES - 1
            found += [f"{_names(kind, names)} {words}".strip() for words, names in shown[:most]]
            rest = sum(len(names) for _, names in shown[most:])
            noun, suffix = _NOUNS.get(kind, (f"other {kind} change", ""))
            found += [counted(rest, noun) + suffix] if rest else []
        found += [_following_words(following)] if following else []
        times = f"from {iso_time(self.first_ms)} to {iso_time(self.last_ms)}"
        return f"{counted(self.count, 'change')} {times}: {' · '.join(found or ['ids of producers and processes'])}."

    def _added(self) -> Iterator[tuple[str, Subject, str]]:
        """Topics that got more partitions, with the first of these and how many there were and are."""
        added: dict[str, list[tuple[int, Subject]]] = {}
        for name, subject in self.subjects.items():
            if subject.kind == "partition" and subject.is_new:
                topic, _, number = name.removeprefix("partition ").rpartition("-")
                added.setdefault(topic, []).append((int(number), subject))
        for topic, partitions in added.items():
            numbers = [number for number, _ in partitions]
            since = min(subject.first_ms for _, subject in partitions)
            before, after = min(numbers), max(numbers) + 1
            words = f"{before} → {after} partitions" if before else f"{counted(after, 'partition')} created"
            yield topic, Subject("topic", since, since), words

    def _named(self, name: str, subject: Subject) -> tuple[str, str, str]:
        """The kind of a part of the sentence, its words, and the name of its subject."""
        kind, words = subject.kind, subject.words()
        if kind == "config":
            what, _, owner = name.removeprefix("config ").partition(" of ")
            return kind, f"{what} {words}", owner.removeprefix("topic ")
        if kind == "topic":
            return kind, ", ".join(_step_words(subject.steps)) or words, name.removeprefix("topic ")
        if kind == "partition":
            return "reassigned", "reassigned" if not subject.steps else words, name.removeprefix("partition ")
        if kind == "acl":
            return kind, words, "ACL"
        if kind == "broker" and (subject.away or subject.steps):
            steps = ["registered" if step == "created" else "unregistered" for step in subject.steps]
            return kind, ", ".join(filter(None, (*steps, self._away_words(subject)))), name.removeprefix("broker ")
        return kind, words, name.removeprefix("leader of the ").removeprefix(f"{kind} ")

    def _away_words(self, broker: Subject) -> str:
        """When a broker was fenced, such as "away 16:10:22–16:10:30 and from 16:10:35 on"; empty where it was not."""
        is_one_day = iso_time(self.first_ms)[:10] == iso_time(self.last_ms)[:10]
        words, away = [], broker.away
        if len(away) > _MOST_NAMES:
            words, away = [f"{len(away):,} times"], away[-1:]
        for start, end in away:
            first, last = (None if each is None else iso_time(each)[11 if is_one_day else 0 : 19]
                           for each in (start, end))  # fmt: skip
            words.append(f"until {last}" if start is None else f"from {first} on" if end is None else f"{first}–{last}")
        return f"away {listed(words)}" if words else ""


#: The parts of the sentence that people did, in its order: kinds of subjects, topics with more partitions, and
#: partitions with other replicas.
_BY_PEOPLE = ("config", "added", "topic", "reassigned", "acl", "quota", "credential", "feature", _OTHER)
_NOUNS = {
    "added": ("other topic", " with more partitions"),
    "reassigned": ("other partition", " reassigned"),
    "acl": ("other ACL", ""),
    "config": ("other config", ""),
    "topic": ("other topic", ""),
    "broker": ("other broker", ""),
    _OTHER: ("other record", ""),
}


def _names(kind: str, names: list[str]) -> str:
    """The names of subjects with one change; of many the first."""
    count = len(names)
    if kind == "acl" and count > 1:
        return f"{count:,} ACLs"
    if count > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{count - _MOST_NAMES + 1:,} others"]
    noun = f"{kind}{'s' * (count > 1)} " if kind in ("broker", "controller", "quota", "credential") else ""
    return f"{noun}{listed(names)}"


def _following_words(partitions: list[Subject]) -> str:
    """How many partitions have another leader, ISR and ELR."""
    counts = {words: sum(len(each.values.get(field, ())) > 1 for each in partitions)
              for field, words in _FOLLOWING.items() if words}  # fmt: skip
    found = [f"{words} of {count:,}" for words, count in counts.items() if count]
    return f"{counted(len(partitions), 'partition')}: {listed(found or ['no leader'])} changed"


def _has_parts(state: Any) -> bool:
    """Whether a state has fields. What has them is created and deleted; a value alone is only set."""
    return isinstance(state, dict)


def _says_something(values: list[Any]) -> bool:
    """Whether a field is worth a word: one of a new subject is not where it is empty."""
    return len(values) > 1 or bool(values and values[0] not in (None, [], False, "RECOVERED"))


def _step_words(steps: list[str]) -> list[str]:
    """The steps, of many the first and the last. Only tokens have the same one twice: their ids are not shown."""
    runs = [(step, len(list(run))) for step, run in groupby(steps)]
    words = [step if count == 1 else f"{step} {count:,} times" for step, count in runs]
    return words if len(words) <= _MOST_VALUES else [*words[:2], "…", *words[-2:]]


def _chain(values: list[Any], unset: str) -> str:
    if len(values) > _MOST_VALUES:
        values = [*values[:2], ..., *values[-2:]]
    return " → ".join("…" if each is ... else unset if each is None else _value(each) for each in values)


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if value == "RECOVERING":  # which only an unclean election sets (metadata PartitionChangeBuilder)
        return "RECOVERING (unclean election)"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
