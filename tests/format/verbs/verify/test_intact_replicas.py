"""The next step for a damaged replica, on both sides of each of its conditions."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from format.findings import Finding
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.verify.intact_replicas import Remedy, ReplicasAtHand
from format.verbs.verify.verify import INSIDE_A_LOG, VerifyTerms, verify_all
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.metadata_logs import write_metadata_log, write_node

WHOLE = ModelReplica(plain(12), high_watermark=36)
DAMAGED = ModelReplica(plain(12), high_watermark=36, damaged={4})
ALSO_THERE = ModelReplica(plain(12), high_watermark=36, damaged={4, 6})
ELSEWHERE = ModelReplica(plain(12), high_watermark=36, damaged={8})
BEHIND = ModelReplica(plain(8), high_watermark=24)
TORN_OFF = ModelReplica(plain(4), high_watermark=12)
OTHER_EPOCH = ModelReplica([*plain(3), *plain(9, first=9, epoch=1)], high_watermark=9)
LOST = (12, 14)


def write(directory: Path, logs: dict[int, ModelReplica], metadata: dict[str, Any] | None) -> list[Target]:
    """The log directories of nodes; that of the last node has the metadata log, if there is one."""
    for node_id, replica in logs.items():
        replica.write(write_node(directory / f"node-{node_id}", node_id))
    if metadata is not None:
        write_metadata_log(directory / f"node-{max(logs)}", leader_epoch=1, **metadata)
    return [Target(directory / f"node-{node_id}") for node_id in logs]


def remedy(
    directory: Path, logs: dict[int, ModelReplica], *, deep: bool = True, known: bool = True, **metadata: Any
) -> Remedy:
    """The remedy for the replica of node 2, which is damaged at LOST."""
    targets = write(directory, {2: DAMAGED} | logs, metadata if known else None)
    context = read_context(targets, ContextTerms())
    at_hand = ReplicasAtHand(targets, DEFAULT_LIMITS, context)
    found = at_hand.remedy(directory / "node-2" / "orders-0", LOST, deep=deep)
    assert found is not None
    return found


def test_leadership_moves_to_the_intact_replica(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(2, 1), isr=(1, 2), leader=2)
    assert found.sentence == (
        "Its replica on node 1 is intact there: move leadership to it (node 2 leads), then let node 2 fetch anew."
    )
    echo, reassign, elect, remove = (shlex.split(each) for each in found.commands)
    assert json.loads(echo[1]) == {
        "version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}],
    }  # fmt: skip
    assert reassign[0] == "kafka-reassign-partitions.sh"
    assert reassign[-3:] == ["--reassignment-json-file", echo[-1], "--execute"]
    assert elect[0] == "kafka-leader-election.sh"
    assert elect[3:] == ["--election-type", "preferred", "--topic", "orders", "--partition", "0"]
    assert remove == ["mv", str(tmp_path / "node-2" / "orders-0"), str(tmp_path / "node-2.orders-0.damaged")]


def test_the_preferred_leader_needs_no_reassignment(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(1, 2), isr=(1, 2), leader=2)
    assert [each.split()[0] for each in found.commands] == ["kafka-leader-election.sh", "mv"]


def test_a_leader_that_is_intact_needs_no_move(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE, 3: WHOLE}, replicas=(3, 2, 1), isr=(1, 2, 3), leader=1)
    assert found.sentence == "Its replicas on nodes 1 and 3 are intact there, and node 1 leads: let node 2 fetch anew."
    assert [each.split()[0] for each in found.commands] == ["mv"]
    assert found.next_step.endswith(f"Stop the broker of node 2, run: {found.commands[0]}, and start it again.")


def test_one_out_of_sync_gets_no_leadership(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(1, 2), isr=(2,), leader=2)
    assert "but node 2 leads, and node 1 is out of sync (ISR: node 2, by the metadata of node 2" in found.sentence
    assert found.commands == ()


def test_a_leader_that_is_not_here_may_be_damaged_too(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(3, 1, 2), isr=(1, 2, 3), leader=3)
    assert found.sentence == (
        "Its replica on node 1 is intact there: move leadership to it (node 3 leads), then let node 2 fetch anew. "
        "Its replica on node 3 was not looked at (node 3 leads)."
    )
    assert found.not_at_hand == (3,)


@pytest.mark.parametrize(("elr", "is_clean"), [((1,), True), ((2,), False)])
def test_without_a_leader_only_a_member_of_the_isr_or_elr_is_started_first(
    tmp_path: Path, elr: tuple[int, ...], is_clean: bool
) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(1, 2), isr=(), leader=-1, elr=elr)
    assert ("start node 1, wait until it leads, then let node 2 fetch anew" in found.sentence) == is_clean
    assert ("node 1 may lack records" in found.sentence) == (not is_clean)
    assert bool(found.commands) == is_clean


def test_without_metadata_the_leader_is_not_known(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, known=False)
    assert (
        "intact there: if node 2 leads, move leadership to it, then let node 2 fetch anew (not known: "
        in found.sentence
    )
    assert found.sentence.endswith("Whether there are other replicas is not known.")
    assert [each.split()[0] for each in found.commands] == ["mv"]


@pytest.mark.parametrize("nameless", [1, 2, 3])
def test_without_its_meta_properties_the_node_of_a_replica_is_not_known(tmp_path: Path, nameless: int) -> None:
    """The damaged replica may be that of the leader: it is not one that nothing needs."""
    write(tmp_path, {1: WHOLE, 2: DAMAGED, 3: WHOLE}, {"replicas": (2, 1, 3), "isr": (1, 2, 3), "leader": 2})
    (tmp_path / f"node-{nameless}" / "meta.properties").unlink()
    targets = [Target(tmp_path / f"node-{each}") for each in (1, 2, 3)]
    at_hand = ReplicasAtHand(targets, DEFAULT_LIMITS, read_context(targets, ContextTerms()))
    found = at_hand.remedy(tmp_path / "node-2" / "orders-0", LOST, deep=True)
    assert found is not None
    assert found.sentence.endswith("Whether there are other replicas is not known.")
    place = str(tmp_path / "node-2" / "orders-0")
    if nameless == 2:
        assert f"if {place} leads, move leadership to node 1, then let {place} fetch anew" in found.sentence
        assert f"(not known: of which node {place} is)" in found.sentence
        assert [each.split()[0] for each in found.commands] == ["mv"]
    else:
        assert f"move leadership to node {4 - nameless} (node 2 leads), then let node 2 fetch anew" in found.sentence


def test_a_node_without_an_assigned_replica(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: WHOLE}, replicas=(1, 3), isr=(1, 3), leader=1)
    assert "and node 2 has no replica by the metadata of node 2" in found.sentence
    assert found.commands == ()


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (ALSO_THERE, "that of node 1 has no intact batch at offsets 12 to 14"),
        (TORN_OFF, "that of node 1 has no intact batch at offsets 12 to 14"),
        (OTHER_EPOCH, "that of node 1 has other records there, of the leader epoch 1, not 0"),
    ],
)
def test_salvage_comes_where_no_replica_is_intact(tmp_path: Path, other: ModelReplica, why: str) -> None:
    found = remedy(tmp_path, {1: other}, replicas=(1, 2, 3), isr=(1, 2, 3), leader=2)
    assert found.sentence == (f"No replica at hand is intact there: {why}. Its replica on node 3 was not looked at.")
    assert found.next_step.endswith(
        "Copy the directory first, then run salvage to keep the intact batches after the damage."
    )
    assert found.commands == ()


@pytest.mark.parametrize(
    ("other", "why"),
    [(ELSEWHERE, "is damaged at offsets 24 to 26"), (BEHIND, "lacks 12 committed records (offsets 24 to 35)")],
)
def test_nothing_is_fetched_from_a_replica_that_is_not_whole(tmp_path: Path, other: ModelReplica, why: str) -> None:
    found = remedy(tmp_path, {1: other}, replicas=(1, 2), isr=(1, 2), leader=2)
    assert found.sentence == f"Its replica on node 1 is intact there; that of node 1 {why}: fetch nothing anew from it."
    assert found.commands == ()
    assert "Together they may be whole: stop their brokers, and run: kafkalog salvage --merge " in found.next_step


def test_a_whole_replica_is_chosen_before_one_that_is_damaged_elsewhere(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: ELSEWHERE, 3: WHOLE}, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1)
    assert "move leadership to node 3 (node 1 leads), then let node 2 fetch anew" in found.sentence


def test_without_reading_all_there_are_no_commands(tmp_path: Path) -> None:
    found = remedy(tmp_path, {1: ELSEWHERE}, deep=False, replicas=(1, 2), isr=(1, 2), leader=2)
    assert (found.sentence, found.commands) == ("Its replica on node 1 is intact there.", ())


CUT = ModelReplica(plain(10), high_watermark=36)
INTACT_END = (
    "Nothing, if these are copies of a running broker's files; else orders-0: its replica on node 1 is intact there"
)


@pytest.mark.parametrize(
    ("other", "metadata", "words"),
    [
        (WHOLE, {"isr": (1, 2), "leader": 1}, f"{INTACT_END}, and node 1 leads by the metadata of node 2"),
        (WHOLE, {"isr": (1, 2), "leader": 2}, f"{INTACT_END} (ISR: nodes 1 and 2, by the metadata of node 2"),
        (WHOLE, {"isr": (2,), "leader": 2}, f"{INTACT_END}, but node 1 may lack committed records (ISR: node 2, by"),
        (WHOLE, None, f"{INTACT_END}: if node 2 may lead, start node 1 and wait until it leads"),
        (CUT, {"isr": (1, 2), "leader": 2}, "Nothing, if this is a copy"),
    ],
)
def test_a_lost_end_is_fetched_by_a_follower(
    tmp_path: Path, other: ModelReplica, metadata: dict[str, Any] | None, words: str
) -> None:
    targets = write(tmp_path, {1: other, 2: CUT}, metadata and {"replicas": (1, 2)} | metadata)
    found = [each for each in verify_all(targets, VerifyTerms()) if each.lost_offsets == (30, 35)]
    (step,) = [each.next_step for each in found if "node-2" in each.location.path]
    assert step.startswith(words)
    assert "mv " not in step
    heals = metadata is None or (other is WHOLE and len(metadata["isr"]) == 2)
    assert ("node 2 fetches them by itself" in step) == heals
    election = "kafka-leader-election.sh --bootstrap-server localhost:9092 --election-type unclean --topic orders"
    may_truncate_the_leader = heals and metadata is not None and metadata["leader"] == 2
    assert step.endswith(f"with only intact replicas up, run: {election} --partition 0") == may_truncate_the_leader


def test_a_wrong_log_start_offset_is_no_lost_end(tmp_path: Path) -> None:
    targets = write(tmp_path, {1: WHOLE, 2: WHOLE}, {"replicas": (1, 2), "isr": (1, 2), "leader": 1})
    (tmp_path / "node-2" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    (found,) = [each for each in verify_all(targets, VerifyTerms()) if each.code == "checkpoint-mismatch"]
    assert found.next_step.startswith("Remove the partition's line from the checkpoint")


def verified(targets: list[Target]) -> Finding:
    (found,) = [each for each in verify_all(targets, VerifyTerms()) if each.code in INSIDE_A_LOG]
    return found


def test_verify_names_the_replicas_that_are_not_at_hand(tmp_path: Path) -> None:
    targets = write(tmp_path, {2: DAMAGED}, {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 2})
    step = verified(targets).next_step
    assert step == (
        "orders-0: its replicas on nodes 1 and 3 were not looked at. Give their log directories too, before salvage."
    )


def test_verify_keeps_the_next_step_of_an_only_replica(tmp_path: Path) -> None:
    targets = write(tmp_path, {2: DAMAGED}, {"replicas": (2,), "isr": (2,), "leader": 2})
    assert "salvage" in verified(targets).next_step


def test_verify_says_how_to_heal(tmp_path: Path) -> None:
    targets = write(tmp_path, {1: WHOLE, 2: DAMAGED}, {"replicas": (2, 1), "isr": (1, 2), "leader": 2})
    step = verified(targets).next_step
    assert step.startswith("orders-0: its replica on node 1 is intact there: move leadership to it")
    assert "Run: echo " in step
    assert "When node 1 leads, stop the broker of node 2, run: mv " in step


@pytest.mark.parametrize(
    ("damage", "code"),
    [("zeros", "log-framing-broken"), ("cut", "log-truncated"), ("gone", "segment-missing")],
)
def test_other_damage_inside_a_log(tmp_path: Path, damage: str, code: str) -> None:
    without_keys = [
        dataclasses.replace(each, records={at: (None, value) for at, (_, value) in each.records.items()})
        for each in plain(12)
    ]
    whole = ModelReplica(without_keys, high_watermark=36, segment_starts=(0, 12, 24))
    targets = write(tmp_path, {1: whole, 2: whole}, {"replicas": (1, 2), "isr": (1, 2), "leader": 1})
    segment = tmp_path / "node-2" / "orders-0" / f"{12:020d}.log"
    content = segment.read_bytes()
    if damage == "gone":
        segment.unlink()
    else:
        half = len(content) // 2
        segment.write_bytes(
            content[: half - 5] if damage == "cut" else content[:half] + bytes(50) + content[half + 50 :]
        )
    found = verified(targets)
    assert found.code == code
    assert found.next_step.startswith("orders-0: its replica on node 1 is intact there, and node 1 leads: let node 2")
