"""The verdicts of diff, on both sides of each of their conditions: which replicas there are, and what they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from format.columns import DIVERGENCE
from format.node.target import Target
from format.verbs.diff.diff import PartitionResult, diff, evidence, overview, sentence
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.metadata_logs import (
    control_batch,
    voters_records,
    write_metadata_log,
    write_node,
    write_snapshot,
    write_voters,
)

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
    assert words == "orders-0  elect node 2, which loses none · node 1 loses 6 not known as committed (30 to 35)"
    assert evidence(result).startswith("orders-0: node 1 is behind node 2 from offset 30 on. By the metadata of node 1")
    assert result.is_whole
    row = row_of(result)
    assert (row["elect_node_id"], row["lost_if_elected"], row["missing_node_ids"]) == (2, 0, [])
    assert (row["leader"], row["isr"], row["eligible_leader_replicas"]) == (None, [1, 2], None)


def test_no_election_decides_between_the_directories_of_one_node(tmp_path: Path) -> None:
    """A log and its backup."""
    for name, replica in (("backup", SHORT), ("live", LONG)):
        replica.write(write_node(tmp_path / name, 1), "orders-0")
    paths = [tmp_path / name / "orders-0" for name in ("backup", "live")]
    (result,) = [each for each in diff([Target(each) for each in paths]) if isinstance(each, PartitionResult)]
    assert sentence(result) == (
        f"orders-0  {paths[0]} is behind {paths[1]} from offset 30 on · "
        f"{paths[0]} lacks 6 not known as committed (30 to 35) · all are of node 1: no election decides between them"
    )
    assert (row_of(result)["elect_node_id"], row_of(result)["lost_if_elected"]) == (None, None)


def test_a_leader_that_begins_later_makes_the_others_delete(tmp_path: Path) -> None:
    later = ModelReplica(plain(10, first=6), high_watermark=27, segment_starts=(6,))
    verdict(tmp_path, {1: SHORT, 2: later}, replicas=(1, 2), isr=(1, 2), leader=-1)
    (tmp_path / "node-2" / "orders-0" / f"{0:020d}.log").unlink()
    (result,) = [
        each
        for each in diff([Target(tmp_path / f"node-{number}") for number in (1, 2)])
        if isinstance(each, PartitionResult) and each.topic == "orders"
    ]
    words = sentence(result)
    assert words.startswith("orders-0  elect node 2, which loses none; the others delete what is before 6 · node 1 ")


def test_a_leader_that_is_not_here_is_named(tmp_path: Path) -> None:
    """The records that only the dead leader has are not known here."""
    result, words = verdict(tmp_path, {2: SHORT, 3: LONG}, replicas=(1, 2, 3), isr=(1,), leader=-1)
    assert "of these, elect node 3 (unclean), which loses none of what these have" in words
    assert "not here: node 1, whose records are not counted" in words
    assert words.endswith("none of these is in the ISR or the ELR: committed records may be missing from all")
    assert evidence(result).endswith("no leader, ISR: node 1.")
    assert row_of(result)["missing_node_ids"] == [1]


def test_without_metadata_other_replicas_are_not_known(tmp_path: Path) -> None:
    result, words = verdict(tmp_path, {2: SHORT, 3: LONG})
    assert "of these, elect node 3, which loses none of what these have" in words
    assert words.endswith(
        "whether there are other replicas is not known: there is no metadata log here (--metadata PATH)"
    )
    assert "By the metadata" not in evidence(result)
    assert row_of(result)["missing_node_ids"] is None
    assert "unclean" not in words


def test_a_member_of_the_elr_is_elected_cleanly(tmp_path: Path) -> None:
    logs = {1: SHORT, 2: LONG}
    _, clean = verdict(tmp_path / "clean", logs, replicas=(1, 2, 3), isr=(), elr=(2,), leader=-1)
    _, unclean = verdict(tmp_path / "unclean", logs, replicas=(1, 2, 3), isr=(), elr=(3,), leader=-1)
    assert "elect node 2, which" in clean
    assert "elect node 2 (unclean), which" in unclean
    assert "none of these is in the ISR or the ELR" not in clean
    assert "none of these is in the ISR or the ELR" in unclean


def test_of_equal_replicas_the_clean_election_is_better(tmp_path: Path) -> None:
    result, _ = verdict(tmp_path, {1: SHORT, 2: LONG, 3: LONG}, replicas=(1, 2, 3), isr=(), elr=(3,), leader=-1)
    assert row_of(result)["elect_node_id"] == 3


def test_a_leader_that_is_here_needs_no_election(tmp_path: Path) -> None:
    _, words = verdict(tmp_path, {1: SHORT, 2: LONG}, replicas=(1, 2), isr=(1, 2), leader=2)
    assert "node 2 is the leader, and lacks none" in words
    assert "elect node 2" not in words


def test_a_node_without_a_replica_is_not_elected(tmp_path: Path) -> None:
    result, words = verdict(tmp_path, {1: SHORT, 4: LONG}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert "node 4 cannot be elected: it has no replica by the metadata of node 1" in words
    assert "elect node 1" in words
    by_node = {each.node_id: each.lost_if_elected for each in result.replicas}
    assert by_node == {1: 6, 4: None}
    assert row_of(result)["elect_node_id"] == 1


def test_damage_takes_the_comfort_away(tmp_path: Path) -> None:
    damaged = ModelReplica(plain(12), high_watermark=27, damaged={3})
    result, words = verdict(tmp_path, {1: SHORT, 2: damaged}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert not result.is_whole
    assert words == (
        "orders-0  of these, elect node 1, which loses 6 not known as committed (30 to 35) · "
        "node 2 loses 3 committed (9 to 11) · node 2 cannot be read at offsets 9 to 11"
    )


@pytest.mark.parametrize("voters", [(1, 2, 3), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6, 7)])
def test_controllers_elect_by_themselves(tmp_path: Path, voters: tuple[int, ...]) -> None:
    ends = {1: 4, 2: 6, 3: 5}
    for node_id, extra in ends.items():
        node = write_node(tmp_path / f"node-{node_id}", node_id)
        write_voters(write_metadata_log(node, extra_topics=extra), voters)
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in ends]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    words = sentence(result)
    assert "elect " not in words
    row = row_of(result)
    assert (row["elect_node_id"], row["lost_if_elected"]) == (None, None)
    if len(voters) == 3:
        assert words == (
            "__cluster_metadata-0  of the 3 voters, node 2 or node 3 can win the election · "
            "no majority has the records from offset 7 on"
        )
    elif len(voters) == 5:  # three of five are here: node 2 wins without the others
        assert words.endswith("of the 5 voters, node 2 can win the election · not here: nodes 4 and 5, which vote too")
        assert row["missing_node_ids"] == [4, 5]
    else:
        assert "of these, node 2 has the latest; who can win depends on those not here" in words


def test_an_observer_is_never_elected(tmp_path: Path) -> None:
    for node_id, extra in {1: 4, 2: 6}.items():
        node = write_node(tmp_path / f"node-{node_id}", node_id)
        write_voters(write_metadata_log(node, extra_topics=extra), (1,))
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in (1, 2)]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    words = sentence(result)
    assert words.endswith("node 1 can win the election · node 2 is an observer, never elected")


def test_each_controller_asks_the_voters_of_its_own_log(tmp_path: Path) -> None:
    """A change of the voters that reached the longer log only (KIP-853)."""
    names = {each: f"node-{each}" for each in range(1, 6)}
    for node_id in (1, 2):
        node = write_node(tmp_path / names[node_id], node_id, directory=names[node_id])
        log = write_metadata_log(node)
        write_snapshot(log, 0, 0, {2: names[2]})
        if node_id == 1:
            with (log / f"{0:020}.log").open("ab") as segment:
                segment.write(control_batch(2, voters_records(names)))
    (result,) = [
        each for each in diff([Target(tmp_path / names[each]) for each in (1, 2)]) if isinstance(each, PartitionResult)
    ]
    assert sentence(result) == (
        "__cluster_metadata-0  of the voters, each by those of its own log, node 2 can win the election · "
        "not here: nodes 3, 4 and 5, which vote too"
    )


def test_voters_that_are_not_known(tmp_path: Path) -> None:
    for node_id, extra in {1: 4, 2: 6}.items():
        write_metadata_log(write_node(tmp_path / f"node-{node_id}", node_id), extra_topics=extra)
    targets = [Target(tmp_path / f"node-{node_id}") for node_id in (1, 2)]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    assert sentence(result).endswith("of these, node 2 has the latest (epoch 1, end 8); who votes is not known")


def test_an_overview_counts_what_differs() -> None:
    assert overview(["identical"] * 27) == "27 partitions compared: all replicas here are the same."
    assert overview(["identical"] * 25 + ["behind", "diverged"]) == (
        "27 partitions compared: 2 with differences; the replicas here of 25 partitions are the same."
    )
    assert overview(["behind"]) == "1 partition compared: 1 with differences."
    assert overview(["identical", "behind"], unread=1) == (
        "2 partitions compared: 1 with differences; those of 1 partition are the same as far as they can be read."
    )
    assert overview(["identical"] * 2, unread=1) == (
        "2 partitions compared: all replicas here are the same as far as they can be read; "
        "1 partition not read as a whole."
    )


@pytest.mark.parametrize(
    ("high_watermark", "words"),
    [
        (30, "loses 6 not known as committed (30 to 35)"),
        (33, "loses 6, 3 of them known as committed (30 to 35)"),
        (36, "loses 6 committed (30 to 35)"),
    ],
)
def test_a_loss_says_how_much_was_committed(tmp_path: Path, high_watermark: int, words: str) -> None:
    long = ModelReplica(plain(12), high_watermark=high_watermark)
    _, found = verdict(tmp_path, {1: SHORT, 2: long}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert found.endswith(f"node 1 {words}")


def test_equal_records_in_other_bytes_are_no_loss(tmp_path: Path) -> None:
    other = ModelReplica([replace(each, codec=1) for each in plain(10)], high_watermark=27)
    result, words = verdict(tmp_path, {1: SHORT, 2: other}, replicas=(1, 2), isr=(1, 2), leader=-1)
    assert words.endswith("in bytes only, from offset 0 on: the records are the same")
    assert "elect" not in words
    assert evidence(result) == ""
