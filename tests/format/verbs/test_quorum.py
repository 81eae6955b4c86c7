"""The sentences about a quorum, on both sides of each of their conditions; its rows; the changes that are lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from format.columns import LOST_CHANGE, QUORUM, QUORUM_LOG, QUORUM_VOTER
from format.errors import UnreadableFile
from format.files import leader_epoch_checkpoint, partition_metadata, quorum_state
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.quorum_state import QuorumState
from format.location import Location
from format.node import log_dir
from format.node.partition import Partition
from format.node.target import Target
from format.verbs.quorum import QuorumResult, quorum
from tests.building import batch, forbid_reading, write_segment
from tests.metadata_logs import (
    control_batch,
    topic_id_of,
    voters_records,
    write_metadata_log,
    write_node,
    write_snapshot,
)

NAMES = {1: "one", 2: "two", 3: "three"}


def result(directory: Path, *nodes: int) -> QuorumResult:
    return quorum([Target(directory / f"node-{each}") for each in nodes])


def made(
    directory: Path,
    lengths: dict[int, int],
    *,
    voters: tuple[int, ...] = (1, 2, 3),
    votes: dict[int, int] | None = None,
    **terms: Any,
) -> QuorumResult:
    """The quorum of nodes whose logs have so many records."""
    for node_id, length in lengths.items():
        log = write_metadata_log(write_node(directory / f"node-{node_id}", node_id), extra_topics=length - 2, **terms)
        if voters:
            write_state(log, voters, (votes or {}).get(node_id, -1))
    return result(directory, *lengths)


def write_state(log: Path, voters: tuple[int, ...], voted: int, epoch: int = 1) -> None:
    state = QuorumState(
        path="", data_version=0, leader_id=2, leader_epoch=epoch, voted_id=voted, voted_directory_id=None,
        cluster_id="", applied_offset=0, current_voters=voters, problems=(),
    )  # fmt: skip
    (log / "quorum-state").write_bytes(quorum_state.write(state))


def set_epochs(log_dir: Path, epochs: list[int]) -> None:
    """Give each batch of a metadata log a leader epoch, which the CRC does not cover, and quorum-state the last one."""
    path = log_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    content, position = bytearray(path.read_bytes()), 0
    for epoch in epochs:
        content[position + 12 : position + 16] = epoch.to_bytes(4, "big")
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    assert position == len(content)
    path.write_bytes(content)
    write_state(path.parent, (1, 2, 3), -1, epochs[-1])


def damage_end(log_dir: Path) -> None:
    path = log_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def words_of(found: QuorumResult) -> str:
    return " ".join(found.sentences())


def rows_of(found: QuorumResult, wanted: Any) -> list[dict[str, Any]]:
    return [
        dict(zip(schema.names, row, strict=True)) for schema, rows in found.rows() if schema is wanted for row in rows
    ]


def write_replica(log_dir: Path, name: str, epochs: list[int], topic_id: str | None = None) -> None:
    """A partition directory with these leader epochs."""
    directory = log_dir / name
    directory.mkdir(parents=True)
    write_segment(directory, 0, [batch(at, [b"x"], leader_epoch=epoch) for at, epoch in enumerate(epochs)])
    entries = [EpochEntry(epoch, at) for at, epoch in enumerate(epochs)]
    (directory / "leader-epoch-checkpoint").write_bytes(leader_epoch_checkpoint.write(entries))
    topic_id = topic_id or topic_id_of(name.rpartition("-")[0])
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    assert partition_metadata.read(directory / "partition.metadata").topic_id == topic_id


# -- who can lead, what a majority has -------------------------------------------------------------------------


def test_all_voters_are_at_hand(tmp_path: Path) -> None:
    found = made(tmp_path, {1: 4, 2: 9, 3: 8}, votes={1: 2, 3: 2})
    assert found.sentences() == [
        (
            "A leader can be elected: the 3 voters of the static quorum, nodes 1, 2 and 3, are here. "
            "Nodes 2 and 3 can lead."
        ),
        "A majority has the records before offset 8. Only node 2 has the record at offset 8: no majority.",
        "In epoch 1, by quorum-state, node 2 led; nodes 1 and 3 voted for it.",
    ]
    assert found.quorum.is_intact is True
    assert list(found.findings()) == []


def test_a_voter_whose_vote_is_not_known(tmp_path: Path) -> None:
    made(tmp_path, {1: 5, 2: 5, 3: 5}, votes={1: 2, 3: 2})
    (tmp_path / "node-2" / "__cluster_metadata-0" / "quorum-state").unlink()
    assert result(tmp_path, 1, 2, 3).sentences()[2] == (
        "In epoch 1, by quorum-state, node 2 led; nodes 1 and 3 voted for it. "
        "How node 2 voted is not known: its quorum-state is missing or not readable."
    )
    (tmp_path / "node-1" / "__cluster_metadata-0" / "quorum-state").write_text("{")
    assert "How nodes 1 and 2 voted is not known: their quorum-states are" in words_of(result(tmp_path, 1, 2, 3))


def test_equal_logs_have_nothing_that_only_a_minority_has(tmp_path: Path) -> None:
    words = words_of(made(tmp_path, {1: 5, 2: 5, 3: 5}))
    assert "Each can lead. A majority has the records before offset 5, the end. In epoch" in words
    assert "Only" not in words
    assert "voted" not in words


def test_a_voter_that_is_not_here_leaves_things_open(tmp_path: Path) -> None:
    found = made(tmp_path, {1: 4, 2: 9})
    words = words_of(found)
    assert "of the 3 voters of the static quorum, nodes 1 and 2 are here; node 3 is not. " in words
    assert "Node 2 can lead. Whether node 1 can lead depends on node 3." in words
    assert (
        "A majority has the records before offset 4. Whether a majority has the records 4 to 8 depends on node 3."
        in words
    )
    assert [(each["node_id"], each["can_lead"], each["log_end_offset"]) for each in rows_of(found, QUORUM_LOG)] == [
        (2, True, 9), (1, None, 4), (3, None, None),
    ]  # fmt: skip
    (row,) = rows_of(found, QUORUM)
    assert (row["is_intact"], row["absent_voters"], row["can_lead"]) == (True, [3], [2])
    assert (row["majority_end_offset"], row["possible_end_offset"], row["log_end_offset"]) == (4, 9, 9)


def test_a_log_that_cannot_be_read_is_as_one_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither damaged nor shorter than the others."""
    assert made(tmp_path, {1: 4, 2: 9, 3: 9}).quorum.held == (9, 9)
    forbid_reading(tmp_path / "node-3" / "__cluster_metadata-0" / f"{0:020d}.log", monkeypatch)
    found = result(tmp_path, 1, 2, 3)
    assert "Whether a majority has the records 4 to 8 depends on node 3." in words_of(found)
    assert "damage" not in words_of(found)
    assert [each.code for each in found.findings()] == ["file-unreadable"]
    assert f"{tmp_path}/node-3/__cluster_metadata-0, which cannot be read" in list(found.not_checked())
    with pytest.raises(UnreadableFile, match="Permission denied"):
        result(tmp_path, 3)


@pytest.mark.parametrize("name", ["quorum-state", "00000000000000000005-0000000001.checkpoint"])
def test_whether_a_node_starts_is_not_known_where_this_user_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its own user may read the file: only one that cannot be decoded keeps it from starting."""
    made(tmp_path, {1: 4, 2: 9, 3: 9})
    write_snapshot(tmp_path / "node-3" / "__cluster_metadata-0", 5, epoch=1)
    forbid_reading(tmp_path / "node-3" / "__cluster_metadata-0" / name, monkeypatch)
    found = result(tmp_path, 1, 2, 3)
    words = words_of(found)
    assert "A leader can be elected: the 3 voters of the static quorum, nodes 1, 2 and 3, are here." in words
    assert "Node 2 can lead. Whether node 1 can lead depends on node 3." in words
    newest = "" if name == "quorum-state" else "newest snapshot, "
    assert f"Whether node 3 starts is not known: its {newest}{name}{',' if newest else ''} cannot be read." in words
    assert "does not start" not in words
    assert found.quorum.can_lead == {1: None, 2: True, 3: None}
    assert [each.code for each in found.findings()] == ["file-unreadable"]
    (tmp_path / "node-3" / "__cluster_metadata-0" / name).write_bytes(b"x" * 100)
    monkeypatch.undo()
    assert "Node 3 does not start" in words_of(result(tmp_path, 1, 2, 3))
    forbid_reading(tmp_path / "node-3" / "__cluster_metadata-0" / name, monkeypatch)
    start = words_of(result(tmp_path, 1, 3))
    assert "without node 2 or node 3: of the 3 voters of the static quorum, only node 1 is known to start." in start


def test_the_disk_of_a_broker_without_its_metadata_log_is_here(tmp_path: Path) -> None:
    made(tmp_path, {1: 4, 2: 9})
    write_node(tmp_path / "node-3", 3)
    for nodes, is_here in (((1, 2), False), ((1, 2, 3), True)):
        found = result(tmp_path, *nodes)
        found.quorum.state.image.brokers[3] = {}
        assert ("the disks of brokers that are not here: node 3" in list(found.not_checked())) is not is_here


@pytest.mark.parametrize(
    ("field", "byte", "can_lead"),
    [
        (3, 1, False),  # base offset: past what the index can hold, a broker stops; tried with 4.3.1
        (7, 9, True),  # base offset: recovery looks at no order of offsets
        (16, 66, True),  # magic: above 2 it is read as 2
    ],
)
def test_damage_outside_of_crcs_is_what_boot_says_of_it(tmp_path: Path, field: int, byte: int, can_lead: bool) -> None:
    made(tmp_path, {1: 8}, voters=(1,))
    log = tmp_path / "node-1" / "__cluster_metadata-0" / f"{0:020d}.log"
    content, position = bytearray(log.read_bytes()), 0
    for _ in range(3):
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    content[position + field] = byte
    log.write_bytes(content)
    found = result(tmp_path, 1)
    assert found.quorum.can_lead == {1: can_lead}
    words = words_of(found)
    assert "drops its log" not in words
    assert ("Node 1 does not start: Split operation is only permitted" in words) is not can_lead
    assert [each["log_end_offset"] for each in rows_of(found, QUORUM_LOG)] == [8]


def test_a_cut_snapshot_may_lack_what_the_log_changes(data_dir: Path, tmp_path: Path) -> None:
    """A node reads such a snapshot as far as it goes, and may stop at the records after it; tried with 4.3.1."""
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    assert "A leader can be elected" in words_of(result(tmp_path, 1))
    newest = max((tmp_path / "node-1" / "__cluster_metadata-0").glob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    words = words_of(result(tmp_path, 1))
    assert "No leader can be elected" in words
    assert "Node 1 does not start: " in words


def test_a_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, {1: 4, 2: 9})
    read = log_dir.LogDir.partition

    def refuse(self: log_dir.LogDir, path: Path, **options: bool) -> Partition:
        if "node-2" in str(path):
            raise UnreadableFile("cannot list: Permission denied", Location(str(path)))
        return read(self, path, **options)

    monkeypatch.setattr(log_dir.LogDir, "partition", refuse)
    found = result(tmp_path, 1, 2)
    assert found.quorum.absent == (2, 3)
    assert [each.code for each in found.findings()] == ["file-unreadable"]
    with pytest.raises(UnreadableFile, match="Permission denied"):
        result(tmp_path, 2)


@pytest.mark.parametrize(
    ("voters", "words"),
    [
        ((1, 2, 3), "without node 2 or node 3: of the 3 voters of the static quorum, only node 1 is here."),
        ((1, 2, 3, 4, 5), "without 2 of nodes 2, 3, 4 and 5: of the 5 voters of the static quorum, only node 1 is"),
        ((1, 2), "without node 2: of the 2 voters of the static quorum, only node 1 is here."),
    ],
)
def test_no_majority_is_here(tmp_path: Path, voters: tuple[int, ...], words: str) -> None:
    found = made(tmp_path, {1: 4}, voters=voters)
    assert found.quorum.is_intact is None
    assert found.sentences()[0].startswith(f"No leader can be elected {words}")
    assert "Whether a majority has the records before 4 depends on" in words_of(found)
    assert "A majority has" not in words_of(found)
    assert "The best copy is " in words_of(found)
    lost = {2: "node 2 is", 3: "nodes 2 and 3 are", 5: "nodes 2, 3, 4 and 5 are"}[len(voters)]
    assert found.sentences()[-1] == f"If {lost} lost: kafkalog rebuild-quorum {tmp_path / 'node-1'} --dry-run"
    assert not list(found.findings())


def test_the_only_voter(tmp_path: Path) -> None:
    found = made(tmp_path, {1: 4}, voters=(1,))
    assert found.sentences()[0] == "A leader can be elected: node 1, the only voter, is here. Node 1 can lead."


@pytest.mark.parametrize("damaged", [(2,), (2, 3)])
def test_voters_that_cannot_start(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    """A node does not start on a damaged snapshot; two of three that do not are no quorum."""
    found = made(tmp_path, {1: 4, 2: 4, 3: 4})
    for node_id in damaged:
        path = write_snapshot(tmp_path / f"node-{node_id}" / "__cluster_metadata-0", 2, 1)
        path.write_bytes(path.read_bytes()[:-3])
    cut = result(tmp_path, 1, 2, 3)  # a node reads it up to its last whole batch
    assert cut.quorum.is_intact
    assert {each.code for each in cut.findings()} <= {"tail-torn", "log-truncated"}
    for node_id in damaged:
        path = write_snapshot(tmp_path / f"node-{node_id}" / "__cluster_metadata-0", 2, 1)
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    found = result(tmp_path, 1, 2, 3)
    words = words_of(found)
    assert (
        "Node 2 does not start: its newest snapshot, 00000000000000000002-0000000001.checkpoint, is damaged." in words
    )
    is_lost = len(damaged) == 2
    assert found.quorum.is_intact is not is_lost
    assert found.quorum.can_lead == {node: not is_lost and node not in damaged for node in (1, 2, 3)}
    start = "No leader can be elected: of the 3 voters of the static quorum, only node 1 can start."
    assert words.startswith(start) == is_lost
    steps = [each.next_step for each in found.findings() if each.code == "quorum-lost"]
    paths = " ".join(str(tmp_path / f"node-{each}") for each in (1, 2, 3))
    assert [each.partition("none: ")[2] for each in steps] == [f"kafkalog rebuild-quorum {paths} --dry-run"] * is_lost


def test_a_voter_that_drops_its_damaged_end(tmp_path: Path) -> None:
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    damage_end(tmp_path / "node-2")
    words = words_of(found := result(tmp_path, 1, 2, 3))
    assert "Nodes 1 and 3 can lead. Node 2 drops its log from 8 on when it starts: damage." in words
    assert [each.code for each in found.findings()] == ["batch-crc-mismatch"]


def test_a_snapshot_shows_what_was_committed(tmp_path: Path) -> None:
    made(tmp_path, {1: 9})
    write_snapshot(tmp_path / "node-1" / "__cluster_metadata-0", 6, 1)
    words = words_of(result(tmp_path, 1))
    assert (
        "A snapshot shows that the records before offset 6 were committed. Whether a majority has the records" in words
    )
    assert "6 to 8 depends on nodes 2 and 3." in words


def test_an_observer_is_no_voter(tmp_path: Path) -> None:
    found = made(tmp_path, {1: 7, 2: 5, 4: 9}, voters=(1, 2))
    words = words_of(found)
    assert "the 2 voters of the static quorum, nodes 1 and 2, are here. Node 1 can lead." in words
    assert "A majority has the records before offset 5. Only node 1 has the records 5 to 6: no majority." in words
    assert "No voter here has the records 7 to 8, only node 4." in words
    assert "No voter here" not in words_of(result(tmp_path, 1, 2))


def test_a_copy_of_a_node_that_is_not_known(tmp_path: Path) -> None:
    made(tmp_path, {1: 7, 2: 5, 3: 5})
    (tmp_path / "node-1" / "meta.properties").unlink()
    found = result(tmp_path, 1, 2, 3)
    path = tmp_path / "node-1" / "__cluster_metadata-0"
    words = words_of(found)
    assert f"{path} is of a node that is not known: no meta.properties is beside it." in words
    assert f"No voter here has the records 5 to 6, only {path}." in words
    assert found.quorum.absent == (1,)
    assert rows_of(found, QUORUM_LOG)[0]["is_voter"] is None


def test_voters_that_are_not_known(tmp_path: Path) -> None:
    words = words_of(made(tmp_path, {1: 9, 2: 5}, voters=()))
    assert words.startswith(
        "Which nodes vote is not known, so neither is what was committed. "
        "The logs end at: node 1 9 (epoch 1), node 2 5 (epoch 1). The best copy is "
    )


def test_a_later_epoch_wins_and_drops_what_a_majority_has(tmp_path: Path) -> None:
    """As in figure 8 of the Raft paper: that a majority has them commits no records of an earlier epoch."""
    made(tmp_path, {1: 10, 2: 9, 3: 5})
    set_epochs(tmp_path / "node-1", [1] * 9 + [3])
    set_epochs(tmp_path / "node-3", [1] * 4 + [2])
    words = words_of(result(tmp_path, 1, 2, 3))
    assert "A majority has the records before offset 9. Only node 1 has the record at offset 9" in words
    assert "Node 3 has other records from offset 4 on, of another epoch." in words
    assert "Nodes 1 and 3 can lead. Node 3, elected, drops what a majority has from offset 4 on." in words


def test_a_false_epoch_in_a_header_makes_no_best_copy(tmp_path: Path) -> None:
    """No CRC covers the epoch. The node is elected for it, and makes the others drop what they have."""
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    set_epochs(tmp_path / "node-2", [1] * 6 + [9] + [1] * 2)
    found = result(tmp_path, 1, 2, 3)
    words = words_of(found)
    assert "Each can lead. Node 2, elected, drops what a majority has from offset 6 on." in words
    assert "The copy of node 2 is not whole: at offset 7, leader epoch 1 follows 9." in words
    assert [each.code for each in found.findings()] == ["leader-epoch-decreasing"]
    assert found.quorum.best.copy.node_id != 2


@pytest.mark.parametrize(
    ("base_offset", "words"), [(8, "lacks the records from 6 to 7."), (4, "has the records from 4 to 5 twice.")]
)
def test_segments_that_do_not_follow_each_other(tmp_path: Path, base_offset: int, words: str) -> None:
    """As where the files of two nodes were copied into one directory."""
    made(tmp_path, {1: 6, 2: 6})
    log_dir = tmp_path / "node-2" / "__cluster_metadata-0"
    write_segment(
        log_dir, base_offset, [batch(base_offset, [b"\x01\x02\x00\x02a" + bytes(17)], key=None, leader_epoch=1)]
    )
    assert f"The copy of node 2 is not whole: its log {words}" in words_of(result(tmp_path, 1, 2))


def test_an_epoch_that_no_quorum_state_has_makes_no_best_copy(tmp_path: Path) -> None:
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    set_epochs(tmp_path / "node-2", [1] * 8 + [9])
    assert result(tmp_path, 1, 2, 3).quorum.best.copy.node_id == 2
    write_state(tmp_path / "node-2" / "__cluster_metadata-0", (1, 2, 3), -1)
    best = result(tmp_path, 1, 2, 3).quorum.best
    assert best.copy.node_id != 2
    assert any("but is not whole: no quorum-state here has such an epoch" in each for each in best.reasons)


def test_committed_metadata_that_the_best_copy_lacks(tmp_path: Path) -> None:
    made(tmp_path, {1: 4, 2: 9, 3: 4})
    set_epochs(tmp_path / "node-1", [1, 1, 1, 2])
    assert not list(result(tmp_path, 1, 2, 3).findings())
    write_snapshot(tmp_path / "node-2" / "__cluster_metadata-0", 8, 1)
    found = result(tmp_path, 1, 2, 3)
    (lost,) = found.findings()
    assert (lost.code, lost.lost_offsets) == ("metadata-committed-lost", (3, 7))
    assert "Committed metadata is lost: the best copy lacks the records 3 to 7, by a snapshot of node 2." in words_of(
        found
    )


def test_copies_that_are_left_out_are_named(tmp_path: Path) -> None:
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    older, foreign = tmp_path / "node-8", tmp_path / "node-9"
    write_metadata_log(write_node(older, 1), extra_topics=2)
    write_metadata_log(write_node(foreign, 2, "another"))
    found = result(tmp_path, 1, 8, 2, 9, 3)
    assert [each.node_id for each in found.quorum.members] == [1, 2, 3]
    notes = list(found.not_checked())
    assert f"{older}/__cluster_metadata-0, a copy of node 1, which has one that reaches further" in notes
    assert f"{foreign}/__cluster_metadata-0, a copy of cluster another" in notes


# -- dynamic quorums -------------------------------------------------------------------------------------------


def dynamic(directory: Path, *names: tuple[int, str]) -> QuorumResult:
    """Nodes of a dynamic quorum, in directories of these names."""
    for node_id, name in names:
        log = write_metadata_log(write_node(directory / f"node-{node_id}", node_id, directory=name))
        write_snapshot(log, 0, 0, NAMES)
    return result(directory, *(node_id for node_id, _ in names))


def test_the_voters_of_a_dynamic_quorum(tmp_path: Path) -> None:
    found = dynamic(tmp_path, *NAMES.items())
    assert "the 3 voters of the dynamic quorum, nodes 1, 2 and 3, are here. Each can lead." in words_of(found)
    assert rows_of(found, QUORUM_VOTER)[1] == {
        "node_id": 2, "directory_id": topic_id_of("two"), "endpoints": ["CONTROLLER://host-2:9093"],
        "kraft_versions": [0, 1], "is_dynamic": True, "is_here": True,
    }  # fmt: skip


def test_a_controller_in_another_directory_is_no_voter(tmp_path: Path) -> None:
    found = dynamic(tmp_path, (1, "one"), (2, "new"), (3, "three"))
    words = words_of(found)
    assert "nodes 1 and 3 are here; node 2 is not." in words
    ids = f"{topic_id_of('new')}, the voter {topic_id_of('two')}"
    assert f"Node 2 does not vote: its directory has the id {ids}." in words


def test_voters_of_before_elect_where_too_few_have_their_change(tmp_path: Path) -> None:
    """An observer fetched the record that removes node 1; of its voters, only one is here. A broker truncates it."""
    for node_id, name in ((1, "one"), (2, "two"), (5, "five")):
        log = write_metadata_log(write_node(tmp_path / f"node-{node_id}", node_id, directory=name))
        write_snapshot(log, 0, 0, NAMES)
    path = tmp_path / "node-5" / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + control_batch(2, voters_records({2: "two", 3: "three"})))
    words = words_of(result(tmp_path, 1, 2, 5))
    assert (
        "of the 3 voters of the dynamic quorum, nodes 1 and 2 are here; node 3 is not. Nodes 1 and 2 can lead." in words
    )
    words = words_of(result(tmp_path, 1, 5))
    assert (
        "No leader can be elected without nodes 2 and 3: of the 2 voters of the dynamic quorum, none is here." in words
    )


def test_each_candidate_asks_the_voters_of_its_own_log(tmp_path: Path) -> None:
    """Node 2 led, and wrote that node 4 votes; no other node has that. As 4.3.1 does."""
    for node_id, count in ((1, 0), (2, 2), (3, 2)):
        log = write_node(tmp_path / f"node-{node_id}", node_id, directory=NAMES[node_id])
        write_snapshot(write_metadata_log(log, extra_topics=count), 0, 0, NAMES)
    path = tmp_path / "node-2" / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + control_batch(4, voters_records({**NAMES, 4: "four"})))
    found = result(tmp_path, 1, 2, 3)
    assert found.quorum.can_lead == {2: True, 3: True, 1: False}
    assert "Nodes 2 and 3 can lead. " in words_of(found)
    found = result(tmp_path, 1, 2)
    assert (found.quorum.can_lead, found.quorum.is_intact) == ({2: None, 1: None}, None)
    assert words_of(found).startswith(
        "No leader can be elected without node 3 or node 4: of the 4 voters of the dynamic quorum, only nodes 1 and 2 "
    )
    found = result(tmp_path, 1, 3)
    assert (found.quorum.can_lead, found.quorum.is_intact) == ({3: True, 1: None}, True)
    assert "Whether node 1 can lead depends on node 2." in words_of(found)


# -- changes that are lost -------------------------------------------------------------------------------------


def test_a_later_leader_epoch_on_disk_is_a_lost_change(tmp_path: Path) -> None:
    made(tmp_path, {1: 4}, voters=(1,), leader_epoch=3)
    write_replica(tmp_path / "node-1", "orders-0", [1, 3])
    found = result(tmp_path, 1)
    assert "No lost change shows: of 1 partition directory here, none is ahead of the metadata." in words_of(found)
    assert rows_of(found, LOST_CHANGE) == []
    write_node(tmp_path / "node-2", 2)
    write_replica(tmp_path / "node-2", "orders-0", [1, 3, 7])
    found = result(tmp_path, 1, 2)
    words = "Changes are lost: 1 partition on disk is ahead of the metadata: orders-0 (epoch 7, there 3)."
    assert words in words_of(found)
    (row,) = rows_of(found, LOST_CHANGE)
    assert (row["kind"], row["epoch_on_disk"], row["epoch_in_metadata"]) == ("leader_epoch", 7, 3)
    assert (row["node_id"], row["certainty"]) == (2, "proven")
    assert row["path"] == str(tmp_path / "node-2" / "orders-0")
    assert [(each.code, each.expected, each.actual) for each in found.findings()] == [("metadata-change-lost", 3, 7)]


def test_voters_that_are_not_here_may_have_the_changes(tmp_path: Path) -> None:
    made(tmp_path, {1: 4}, leader_epoch=3)
    write_replica(tmp_path / "node-1", "orders-0", [1, 3, 7])
    found = result(tmp_path, 1)
    assert "The copies here lack changes: 1 partition on disk is ahead of the metadata: orders-0" in words_of(found)
    assert [(each.code, each.severity.label) for each in found.findings()] == [("metadata-change-lost", "warning")]


def test_a_partition_and_a_topic_that_the_metadata_lacks(tmp_path: Path) -> None:
    """The log begins with the cluster, so that the topic was not deleted before."""
    made(tmp_path, {1: 4}, voters=(1,))
    write_replica(tmp_path / "node-1", "orders-1", [0])
    write_replica(tmp_path / "node-1", "late-0", [0])
    write_replica(tmp_path / "node-1", "late-1", [0])
    write_replica(tmp_path / "node-1", "gone-0.0123456789abcdef0123456789abcdef-delete", [0], topic_id_of("gone"))
    found = result(tmp_path, 1)
    words = words_of(found)
    assert "Changes are lost: 1 partition on disk is ahead of the metadata: orders-1 (not in it)." in words
    assert "Changes are lost: 1 topic on disk that the metadata lacks: late." in words
    assert [(each["kind"], each["topic"], each["partition"]) for each in rows_of(found, LOST_CHANGE)] == [
        ("partition", "orders", 1), ("topic", "late", 0), ("topic", "late", 1),
    ]  # fmt: skip


def test_a_topic_may_have_been_deleted_before_the_metadata_begins(tmp_path: Path) -> None:
    made(tmp_path, {1: 4}, voters=(1,))
    write_replica(tmp_path / "node-1", "late-0", [0])
    log = tmp_path / "node-1" / "__cluster_metadata-0"
    (log / f"{0:020}.log").unlink()
    write_segment(log, 4, [])
    write_snapshot(log, 4, 1)
    found = result(tmp_path, 1)
    assert "1 topic on disk is not in the metadata: late; created after its end, or deleted before its beginning." in (
        words_of(found)
    )
    (one,) = found.findings()
    assert (one.code, one.severity.label, one.certainty.value) == ("metadata-change-lost", "info", "possible")


@pytest.mark.parametrize(("epochs", "is_lost"), [([3], True), ([1], False), ([], False)])
def test_a_replica_on_a_node_that_has_none_by_the_metadata(tmp_path: Path, epochs: list[int], is_lost: bool) -> None:
    """It was added later if it has the epoch of the metadata: the removal of a replica raises the epoch."""
    made(tmp_path, {1: 4}, voters=(1,), leader_epoch=3, replicas=(1, 3), isr=(1,))
    write_replica(write_node(tmp_path / "node-2", 2), "orders-0", epochs)
    found = result(tmp_path, 1, 2)
    words = "Changes are lost: 1 partition on disk is ahead of the metadata: orders-0 (there not on node 2)."
    assert (words in words_of(found)) == is_lost
    assert [each["kind"] for each in rows_of(found, LOST_CHANGE)] == ["replica"] * is_lost
    assert [each.message for each in found.findings()] == ["the metadata assigns no replica to node 2"] * is_lost


def test_the_disks_of_a_node_that_are_not_here_are_named(tmp_path: Path) -> None:
    """They may have changes that the metadata lacks."""
    made(tmp_path, {1: 4}, voters=(1,))
    disks = [write_node(tmp_path / name, 1, directory=name) for name in ("node-1", "disk-2")]
    found = quorum([Target(disks[0])])
    ids = [topic_id_of("node-1"), topic_id_of("disk-2"), topic_id_of("disk-3")]
    found.quorum.state.image.brokers[1] = {"logDirs": ids}
    assert "2 of the 3 log directories of node 1: not here" in list(found.not_checked())
    found.quorum.state.image.brokers[1] = {"logDirs": ids[:1]}
    assert not any("log director" in each for each in found.not_checked())


def test_directories_of_another_cluster_prove_nothing(tmp_path: Path) -> None:
    made(tmp_path, {1: 4}, voters=(1,))
    write_replica(write_node(tmp_path / "node-2", 2, "another"), "orders-0", [9])
    found = result(tmp_path, 1, 2)
    assert found.lost.changes == []
    assert "lost changes: no partition of a topic is here" in list(found.not_checked())
