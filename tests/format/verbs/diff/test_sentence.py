"""The verdicts of diff, on both sides of each of their conditions: which replicas there are, and what they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from format.columns import DIVERGENCE
from format.node.target import Target
from format.verbs.diff.diff import PartitionResult, diff, overview, sentence
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.metadata_logs import write_metadata_log, write_node, write_voters

SHORT, LONG = ModelReplica(plain(10), high_watermark=27), ModelReplica(plain(12), high_watermark=27)


def verdict(
    directory: Path, logs: dict[int, ModelReplica], *, topic: str = "orders", **metadata: Any
) -> tuple[PartitionResult, str]:
    """The result for these replicas by node, and its sentence; the first node has a metadata log if any is given."""
    for node_id, replica in logs.items():
        replica.write(write_node(directory / f"node-{node_id}", node_id), f"{topic}-0")
    if metadata:
        write_metadata_log(directory / f"node-{min(logs)}", **metadata)
    targets = [Target(directory / f"node-{node_id}") for node_id in logs]
    found = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    (result,) = [each for each in found if each.topic == topic]
    return result, sentence(result)


def row_of(result: PartitionResult) -> dict[str, Any]:
    return dict(zip(DIVERGENCE.names, result.row(), strict=True))


def test_nothing_is_lost_only_if_every_assigned_replica_is_here(tmp_path: Path) -> None:
    result, words = verdict(tmp_path, {1: SHORT, 2: LONG}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert "Elect node 2: it loses nothing. Node 1, elected, loses 6 offsets (30 to 35)" in words
    assert "not known" not in words
    assert result.is_whole
    row = row_of(result)
    assert (row["elect_node_id"], row["lost_if_elected"], row["missing_node_ids"]) == (2, 0, [])
    assert (row["leader"], row["isr"], row["eligible_leader_replicas"]) == (None, [1, 2], None)


def test_a_leader_that_is_not_here_is_named(tmp_path: Path) -> None:
    """The records that only the dead leader has are not known here."""
    result, words = verdict(tmp_path, {2: SHORT, 3: LONG}, replicas=(1, 2, 3), isr=(1,), leader=-1)
    assert "Of these replicas, elect node 3 (an unclean election): it loses nothing that the others here have." in words
    assert "no leader, ISR: node 1. Not here: node 1, whose records are not counted." in words
    assert "None of these replicas is in the ISR or the ELR: committed records may be missing from all" in words
    assert row_of(result)["missing_node_ids"] == [1]


def test_without_metadata_other_replicas_are_not_known(tmp_path: Path) -> None:
    result, words = verdict(tmp_path, {2: SHORT, 3: LONG})
    assert "Of these replicas, elect node 3: it loses nothing that the others here have." in words
    assert words.endswith(
        "Whether there are other replicas is not known: there is no metadata log here (--metadata PATH)."
    )
    assert row_of(result)["missing_node_ids"] is None
    assert "unclean" not in words


def test_a_member_of_the_elr_is_elected_cleanly(tmp_path: Path) -> None:
    logs = {1: SHORT, 2: LONG}
    _, clean = verdict(tmp_path / "clean", logs, replicas=(1, 2, 3), isr=(), elr=(2,), leader=-1)
    _, unclean = verdict(tmp_path / "unclean", logs, replicas=(1, 2, 3), isr=(), elr=(3,), leader=-1)
    assert "elect node 2: it" in clean
    assert "elect node 2 (an unclean election): it" in unclean
    assert "None of these replicas is in the ISR or the ELR" not in clean
    assert "None of these replicas is in the ISR or the ELR" in unclean


def test_of_equal_replicas_the_clean_election_is_better(tmp_path: Path) -> None:
    result, _ = verdict(tmp_path, {1: SHORT, 2: LONG, 3: LONG}, replicas=(1, 2, 3), isr=(), elr=(3,), leader=-1)
    assert row_of(result)["elect_node_id"] == 3


def test_a_leader_that_is_here_needs_no_election(tmp_path: Path) -> None:
    _, words = verdict(tmp_path, {1: SHORT, 2: LONG}, replicas=(1, 2), isr=(1, 2), leader=2)
    assert "Node 2 is the leader. It lacks nothing." in words
    assert "lect node 2" not in words


def test_a_node_without_a_replica_is_not_elected(tmp_path: Path) -> None:
    result, words = verdict(tmp_path, {1: SHORT, 4: LONG}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert "Node 4 has no replica of it" in words
    assert "elect node 1" in words
    by_node = {each.node_id: each.lost_if_elected for each in result.replicas}
    assert by_node == {1: 6, 4: None}
    assert row_of(result)["elect_node_id"] == 1


def test_damage_takes_the_comfort_away(tmp_path: Path) -> None:
    damaged = ModelReplica(plain(12), high_watermark=27, damaged={3})
    result, words = verdict(tmp_path, {1: SHORT, 2: damaged}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert not result.is_whole
    assert "it loses nothing." not in words


@pytest.mark.parametrize("voters", [(1, 2, 3), (1, 2, 3, 4, 5)])
def test_controllers_elect_by_themselves(tmp_path: Path, voters: tuple[int, ...]) -> None:
    ends = {1: 4, 2: 6, 3: 5}
    for node_id, extra in ends.items():
        node = write_node(tmp_path / f"node-{node_id}", node_id)
        write_voters(write_metadata_log(node, extra_topics=extra), voters)
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in ends]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    words = sentence(result)
    assert "Elect" not in words
    row = row_of(result)
    assert (row["elect_node_id"], row["lost_if_elected"]) == (None, None)
    if len(voters) == 3:
        assert (
            "Of the 3 voters, node 2 or node 3 can win. No majority of them has the records from offset 7 on." in words
        )
    else:
        assert words.endswith("Not here: nodes 4 and 5, which vote too.")
        assert row["missing_node_ids"] == [4, 5]


def test_an_observer_is_never_elected(tmp_path: Path) -> None:
    for node_id, extra in {1: 4, 2: 6}.items():
        node = write_node(tmp_path / f"node-{node_id}", node_id)
        write_voters(write_metadata_log(node, extra_topics=extra), (1,))
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in (1, 2)]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    words = sentence(result)
    assert "Node 2 is an observer, never elected." in words
    assert "node 1 can win" in words


def test_voters_that_are_not_known(tmp_path: Path) -> None:
    for node_id, extra in {1: 4, 2: 6}.items():
        write_metadata_log(write_node(tmp_path / f"node-{node_id}", node_id), extra_topics=extra)
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in (1, 2)]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    assert "Which nodes vote is not known; of these, node 2 has the latest (epoch 1, end 8)." in sentence(result)


def test_an_overview_counts_what_differs() -> None:
    assert overview(["identical"] * 27) == "27 partitions compared: all replicas here are the same."
    assert overview(["identical"] * 25 + ["behind", "diverged"]) == "27 partitions compared: 2 with differences."
