"""What changed in a metadata log, in words: one line for each subject, and the counts of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from format.timestamps import iso_time
from format.verbs.metadata.rows import Row
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


def kind_of(record_type: str) -> str:
    """The kind of a change by its record type, "other" for what is in none."""
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


class Subject(msgspec.Struct):
    """The changes of one subject: ``values`` has, by field, the values that it had one after the other.

    ``steps`` are "created" and "deleted" in their order. A new topic also has its first partitions and configs.
    """

    kind: str
    first_ms: int
    last_ms: int
    count: int = 0
    steps: list[str] = msgspec.field(default_factory=list)
    values: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    partition_count: int = 0
    configs: list[str] = msgspec.field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Whether its last step was that it was created."""
        return self.steps[-1:] == ["created"]

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
        else:
            changed = {"": (before, after)}
        for name, (old, new) in changed.items():
            values = self.values.setdefault(name, [] if old is ... or (name and before is None) else [old])
            if not values or values[-1] != new:
                values.append(new)

    def words(self) -> str:
        """What changed, such as "leader 1 → 2, ISR [1,2] → [2]"."""
        words = [] if self.kind == "quorum" else list(self.steps)
        if self.kind == "acl":
            words += [" ".join(str(self.values[name][0]) for name in _OF_ACL if name in self.values)]
        elif self.kind == "topic":
            words += [f"{counted(self.partition_count, 'partition')}"] if self.partition_count else []
            is_long = len(self.configs) > _MOST_CONFIGS
            words += [counted(len(self.configs), "config")] if is_long else self.configs
        else:
            shown = [name for name in _NAMED if _says_something(self.values.get(name, []))]
            shown = shown or [name for name in self.values if not self.steps]
            words += [f"{_NAMED.get(name, name)} {_chain(self.values[name])}".lstrip() for name in shown]
        return ", ".join(filter(None, words)) or "written again"


class Changes(msgspec.Struct):
    """The changes of a history, by subject in the order of their first change."""

    subjects: dict[str, Subject] = msgspec.field(default_factory=dict)
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0

    def take(self, row: Row) -> None:
        """Add a row of columns.METADATA_CHANGE. What belongs to a topic's creation is added to the topic."""
        _, timestamp, record_type, subject, before, after = row
        if not self.count:
            self.first_ms = timestamp
        self.count += 1
        self.last_ms = timestamp
        kind = kind_of(record_type)
        if before is None and kind in ("partition", "config"):
            what, _, topic = subject.partition(" of topic " if kind == "config" else " ")
            made = self.subjects.get(f"topic {topic if kind == 'config' else topic.rpartition('-')[0]}")
            if made is not None and made.is_new and made.last_ms == timestamp:
                if kind == "partition":
                    made.partition_count += 1
                else:
                    made.configs.append(f"{what.partition(' ')[2]}={_value(after)}")
                return
        known = self.subjects.get(subject)
        if known is None:
            known = self.subjects[subject] = Subject(kind, timestamp, timestamp)
        known.take(timestamp, before, after)

    def lines(self) -> Iterator[str]:
        """A line for each subject, those that changed last at the end."""
        for name, subject in sorted(self.subjects.items(), key=lambda item: item[1].last_ms):
            first, last = iso_time(subject.first_ms), iso_time(subject.last_ms)
            since = first[len("2026-11-22T") :] if first[:10] == last[:10] else first
            often = f" ({subject.count:,} changes since {since})" if subject.count > 1 else ""
            yield f"{last}  {name}: {subject.words()}{often}"

    def sentence(self) -> str:
        """What changed, counted by kind: topics by creation and deletion, partitions by leader and ISR."""
        subjects = self.subjects.values()
        topics = [each for each in subjects if each.kind == "topic"]
        partitions = [each for each in subjects if each.kind == "partition"]
        found = [
            (sum("created" in each.steps for each in topics), "topic", " created"),
            (sum("deleted" in each.steps for each in topics), "topic", " deleted"),
            (sum(_has_changed(each, "leader") for each in partitions), "partition", " with another leader"),
            (sum(_has_changed(each, "isr") for each in partitions), "partition", " with another ISR"),
        ]
        kinds = Counter(each.kind for each in subjects if each.kind not in ("topic", "partition"))
        words = [f"{counted(count, noun)}{what}" for count, noun, what in found if count]
        words += [_counted_kind(count, kind) for kind, count in kinds.items()]
        times = f"from {iso_time(self.first_ms)} to {iso_time(self.last_ms)}"
        return f"{counted(self.count, 'change')} {times}: {listed(words or ['other partitions'])}."


def _counted_kind(count: int, kind: str) -> str:
    if kind in ("quorum", "producer-ids"):
        return {"quorum": "the quorum's leader or voters", "producer-ids": "the producer ids"}[kind]
    return counted(count, "other record" if kind == _OTHER else "ACL" if kind == "acl" else kind)


def _has_changed(subject: Subject, field: str) -> bool:
    return len(subject.values.get(field, ())) > 1


def _has_parts(state: Any) -> bool:
    """Whether a state has fields. What has them is created and deleted; a value alone is only set."""
    return isinstance(state, dict)


def _says_something(values: list[Any]) -> bool:
    """Whether a field is worth a word: one of a new subject is not where it is empty."""
    return len(values) > 1 or bool(values and values[0] not in (None, [], False, "RECOVERED"))


def _chain(values: list[Any]) -> str:
    if len(values) > _MOST_VALUES:
        values = [*values[:2], ..., *values[-2:]]
    return " → ".join("…" if each is ... else _value(each) for each in values)


def _value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
