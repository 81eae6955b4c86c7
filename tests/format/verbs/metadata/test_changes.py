"""What changed in words: one line for each subject, and which partitions have nothing to say."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from format.state.cluster_image import ClusterImage, PartitionState
from format.verbs.metadata.changes import KINDS, SubjectChanges, kind_of
from format.verbs.metadata.metadata import assignment_rows, is_usual

DAY_MS = 86_400_000


def lines(*rows: tuple[int, str, str, Any, Any]) -> list[str]:
    """The lines, without their time, for rows of (time, record type, subject, before, after)."""
    changes = SubjectChanges()
    for number, row in enumerate(rows):
        changes.take((number, *row))
    return [line.partition("Z  ")[2] for line in changes.lines()]


def sentence(*rows: tuple[int, str, str, Any, Any]) -> str:
    changes = SubjectChanges()
    for number, row in enumerate(rows):
        changes.take((number, *row))
    return changes.sentence()


CREATED = (
    (0, "TOPIC_RECORD", "topic orders", None, {"topic": "orders"}),
    (0, "CONFIG_RECORD", "config retention.ms of topic orders", None, "-1"),
    (0, "PARTITION_RECORD", "partition orders-0", None, {"leader": 1, "isr": [1, 2]}),
    (0, "PARTITION_RECORD", "partition orders-1", None, {"leader": 2, "isr": [1, 2]}),
)
DELETED = (5, "REMOVE_TOPIC_RECORD", "topic orders", {"topic": "orders"}, None)


def test_a_topic_is_created_with_its_partitions_and_configs() -> None:
    assert lines(*CREATED) == ["topic orders: created, 2 partitions, retention.ms=-1"]
    assert sentence(*CREATED).endswith(": orders created.")


def test_many_configs_of_a_new_topic_are_counted() -> None:
    configs = [(0, "CONFIG_RECORD", f"config {name} of topic orders", None, "1") for name in ("a", "b")]
    assert lines(*CREATED[:1], *configs) == ["topic orders: created, a=1, b=1"]
    assert lines(*CREATED, *configs) == ["topic orders: created, 2 partitions, 3 configs"]


def test_partitions_and_configs_that_are_added_later_have_their_own_lines() -> None:
    added = (9, "PARTITION_RECORD", "partition orders-2", None, {"leader": 1, "isr": [1]})
    config = (9, "CONFIG_RECORD", "config segment.ms of topic orders", None, "7")
    assert lines(*CREATED, added, config)[1:] == [
        "partition orders-2: created, leader 1, ISR [1]",
        "config segment.ms of topic orders: unset → 7",
        "topic orders: 2 → 3 partitions",
    ]
    assert ": orders segment.ms unset → 7 · orders 2 → 3 partitions · orders created · " in sentence(
        *CREATED, added, config
    )


def test_partitions_of_which_the_creation_of_the_topic_was_not_taken() -> None:
    """As with --kind partition."""
    assert ": orders 2 partitions created · " in sentence(*CREATED[2:])


def test_a_topic_that_is_made_again_was_deleted_before() -> None:
    again = [(9, *row[1:]) for row in CREATED[:3]]
    words = "topic orders: created, deleted, created, 1 partition, retention.ms=-1 (3 changes since 00:00:00.000Z)"
    assert lines(*CREATED, DELETED, *again) == [words]
    assert sentence(*CREATED, DELETED, *again).endswith(": orders created, deleted, created.")
    assert lines(DELETED, *again) == [words.replace("created, d", "d").replace("3 ch", "2 ch").replace("00Z", "05Z")]


def test_the_configs_and_partitions_of_a_deleted_topic_are_gone() -> None:
    """A partition that the topic has again is another one."""
    config = (1, "CONFIG_RECORD", "config segment.ms of topic orders", None, "7")
    added = (1, "PARTITION_RECORD", "partition orders-2", None, {"leader": 1})
    gone = [
        (5, "REMOVE_TOPIC_RECORD", "partition orders-0", {"leader": 1}, None),
        (5, "REMOVE_TOPIC_RECORD", "partition orders-2", {"leader": 1}, None),
        (5, "REMOVE_TOPIC_RECORD", "config segment.ms of topic orders", "7", None),
        (5, "REMOVE_TOPIC_RECORD", "config retention.ms of topic orders", "-1", None),
    ]
    assert lines(*CREATED, config, added, DELETED, *gone) == [
        "topic orders: created, deleted (2 changes since 00:00:00.000Z)",
        "config segment.ms of topic orders: unset → 7 → unset (2 changes since 00:00:00.001Z)",
    ]
    again = [(9, *row[1:]) for row in CREATED]
    assert lines(*CREATED, added, DELETED, *gone, *again) == [
        "topic orders: created, deleted, created, 2 partitions, retention.ms=-1 (3 changes since 00:00:00.000Z)",
    ]
    assert lines(*gone[2:]) == [
        "config segment.ms of topic orders: 7 → unset",
        "config retention.ms of topic orders: -1 → unset",
    ]


def test_many_steps_of_a_subject_are_shortened() -> None:
    """Tokens are one subject, as their ids are not shown."""
    token = {"owner": "User:alice", "expires": 1}
    made = (1, "DELEGATION_TOKEN_RECORD", "delegation token", None, token)
    expired = (2, "REMOVE_DELEGATION_TOKEN_RECORD", "delegation token", token, None)
    assert lines(*[made] * 20, expired)[0].startswith("delegation token: created 20 times, deleted (21 changes")
    assert lines(*[CREATED[0], DELETED] * 9)[0].startswith("topic orders: created, deleted, …, created, deleted (18")


def test_what_is_left_of_a_kind_is_counted() -> None:
    """Topics with more partitions, each by another number, and partitions with other replicas than one another."""
    names = [f"partition t{number}-{number}" for number in range(1, 9)]
    added = [(1, "PARTITION_RECORD", name, None, {"leader": number}) for number, name in enumerate(names)]
    moved = [(2, "PARTITION_CHANGE_RECORD", name, {"replicas": [1]}, {"replicas": [2]}) for name in names]
    found = sentence(*added, *moved)
    assert " · 5 other topics with more partitions · " in found
    assert found.endswith(" · 5 other partitions reassigned.")


def change(at_ms: int, before: dict[str, Any], after: dict[str, Any]) -> tuple[int, str, str, Any, Any]:
    return at_ms, "PARTITION_CHANGE_RECORD", "partition orders-0", before, after


def test_changes_of_a_partition_are_one_line() -> None:
    rows = (
        change(0, {"isr": [1, 2]}, {"isr": [2]}),
        change(1, {"leader": 1, "leader_epoch": 0}, {"leader": 2, "leader_epoch": 1}),
        change(DAY_MS, {"isr": [2]}, {"isr": [1, 2]}),
    )
    (line,) = lines(*rows)
    assert line == (
        "partition orders-0: leader 1 → 2, ISR [1,2] → [2] → [1,2] (3 changes since 1970-01-01T00:00:00.000Z)"
    )
    assert sentence(*rows).endswith(": 1 partition: leader of 1 and ISR of 1 changed.")


def test_an_unclean_election_is_named() -> None:
    rows = [
        change(number, {"leader_recovery_state": old}, {"leader_recovery_state": new})
        for number, (old, new) in enumerate(itertools.pairwise(("RECOVERED", "RECOVERING", "RECOVERED")))
    ]
    assert "recovery RECOVERED → RECOVERING (unclean election) → RECOVERED" in lines(*rows)[0]


def test_a_partition_that_flaps_is_cut_in_the_middle() -> None:
    states = [[1, 2] if number % 2 else [number] for number in range(20)]
    rows = [change(0, {"isr": old}, {"isr": new}) for old, new in itertools.pairwise(states)]
    assert "ISR [0] → [1,2] → … → [18] → [1,2] (19 changes" in lines(*rows)[0]


def test_a_partition_of_which_only_the_epoch_changed() -> None:
    assert lines(change(0, {"leader_epoch": 3}, {"leader_epoch": 4})) == ["partition orders-0: leader_epoch 3 → 4"]
    assert sentence(change(0, {"leader_epoch": 3}, {"leader_epoch": 4})).endswith(": 1 partition: no leader changed.")


def test_a_broker_that_is_new_and_fenced_in_the_end() -> None:
    rows = (
        (0, "REGISTER_BROKER_RECORD", "broker 3", None, {"brokerId": 3, "fenced": True}),
        (1, "UNFENCE_BROKER_RECORD", "broker 3", {"fenced": True}, {"fenced": False}),
        (2, "FENCE_BROKER_RECORD", "broker 3", {"fenced": False}, {"fenced": True}),
    )
    assert lines(*rows) == [
        "broker 3: created, fenced true → false → true (3 changes since 00:00:00.000Z)",
    ]
    assert sentence(*rows).startswith(
        "3 changes from 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:00.002Z: broker 3 registered, away from 00:00:00 "
    )


def fence(at_ms: int, broker: int, is_fenced: bool) -> tuple[int, str, str, Any, Any]:
    states = {"fenced": not is_fenced}, {"fenced": is_fenced}
    return at_ms, "BROKER_REGISTRATION_CHANGE_RECORD", f"broker {broker}", *states


def test_when_brokers_were_away() -> None:
    rows = [fence(1000, 3, True), fence(9000, 3, False), fence(20_000, 2, True), fence(20_000, 1, True)]
    assert sentence(*rows).endswith(": broker 3 away 00:00:01–00:00:09 · brokers 1 and 2 away from 00:00:20 on.")
    assert sentence(fence(9000, 3, False)).endswith(": broker 3 away until 00:00:09.")
    assert (
        sentence(*rows, fence(DAY_MS, 3, True))
        .partition(": ")[2]
        .startswith("broker 3 away 1970-01-01T00:00:01–1970-01-01T00:00:09 and from 1970-01-02T00:00:00 on")
    )
    often = [fence(number * 1000, 3, number % 2 == 0) for number in range(12)]
    assert sentence(*often).endswith(": broker 3 away 6 times and 00:00:10–00:00:11.")


def test_partitions_that_follow_brokers_are_one_line_if_they_are_many() -> None:
    states = {"leader": 1, "isr": [1, 2]}, {"leader": 2, "isr": [2]}
    rows = [(1, "PARTITION_CHANGE_RECORD", f"partition orders-{number}", *states) for number in range(4)]
    assert len(lines(*rows[:3])) == 3
    words = "4 partitions: leader of 4 and ISR of 4 changed"
    (line,) = lines(*rows)
    assert line == f"{words} (4 changes since 1970-01-01T00:00:00.001Z; --kind partition lists them)"
    assert sentence(*rows).endswith(f": {words}.")
    changes = SubjectChanges()
    for number, row in enumerate(rows):
        changes.take((number, *row))
    assert len(list(changes.lines(every_partition=True))) == 4
    moved = (2, "PARTITION_CHANGE_RECORD", "partition orders-0", {"replicas": [1, 2]}, {"replicas": [2, 3]})
    assert len(lines(*rows, moved)) == 4, "what people did has its own line, and three are left"
    assert ": orders-0 reassigned · 3 partitions: " in sentence(*rows, moved)


def test_ids_of_processes_and_producers_are_no_news() -> None:
    started = (1, "REGISTER_CONTROLLER_RECORD", "controller 3", {"incarnationId": "a"}, {"incarnationId": "b"})
    block = (1, "PRODUCER_IDS_RECORD", "producer ids", 1000, 2000)
    assert lines(started, block) == []
    assert sentence(started, block).endswith(": ids of producers and processes.")
    moved = (1, "REGISTER_CONTROLLER_RECORD", "controller 3", {"host": "a"}, {"host": "b"})
    assert lines(moved, block) == ["controller 3: host a → b"]


def test_many_changes_of_a_kind_are_named_once() -> None:
    alike = [(1, "CONFIG_RECORD", f"config retention.ms of topic t{number}", None, "1") for number in range(9)]
    assert sentence(*alike).endswith(": t0, t1, t2 and 6 others retention.ms unset → 1.")
    other = [(1, "CONFIG_RECORD", "config retention.ms of topic orders", None, str(number)) for number in range(9)]
    apart = [(*row[:2], f"{row[2]}{number}", *row[3:]) for number, row in enumerate(other)]
    assert sentence(*apart[:4]).endswith(" · orders3 retention.ms unset → 3.")
    assert sentence(*apart).endswith(" · orders2 retention.ms unset → 2 · 6 other configs.")


def test_a_record_type_has_one_kind() -> None:
    assert len(frozenset().union(*KINDS.values())) == sum(map(len, KINDS.values()))
    assert kind_of("CONFIG_RECORD", "config retention.ms of topic orders") == "config"
    assert kind_of("REMOVE_TOPIC_RECORD", "topic orders") == "topic"
    assert kind_of("REMOVE_TOPIC_RECORD", "config retention.ms of topic orders") == "config"
    assert kind_of("A_LATER_RECORD", "a later record") == "other"


SOUND = PartitionState(replicas=(1, 2), isr=(2, 1), leader=1)


@pytest.mark.parametrize(("last", "is_moved"), [("b", False), ("c", True)])
def test_a_new_replica_gets_its_log_directory(last: str, is_moved: bool) -> None:
    """A broker with several assigns it after the creation; only a later change is a move."""
    ids = {"": "A" * 21 + "Q", **{name: name * 21 + "A" for name in "abc"}}
    steps = [[ids[each] for each in names] for names in (("", ""), ("a", ""), ("a", "b"), ("a", last))]
    rows = [change(at, {"directories": steps[at]}, {"directories": steps[at + 1]}) for at in range(3)]
    assert ("reassigned" in sentence(*rows)) == is_moved


@pytest.mark.parametrize(
    ("changed", "is_one"),
    [
        ({}, True),
        ({"eligible_leader_replicas": (), "last_known_elr": ()}, True),
        ({"leader": -1}, False),
        ({"isr": (1,)}, False),
        ({"eligible_leader_replicas": (2,)}, False),
        ({"last_known_elr": (2,)}, False),
        ({"adding_replicas": (3,)}, False),
        ({"removing_replicas": (2,)}, False),
        ({"is_recovering": True}, False),
    ],
)
def test_which_partitions_are_only_counted(changed: dict[str, Any], is_one: bool) -> None:
    state = PartitionState(**{"replicas": SOUND.replicas, "isr": SOUND.isr, "leader": SOUND.leader, **changed})
    image = ClusterImage(names={"id": "orders"}, partitions={("id", 0): state})
    (row,) = assignment_rows(image, None)
    assert is_usual(row) is is_one
