"""The sentences about a quorum, on both sides of each of their conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from format.columns import QUORUM_LOG
from format.files import quorum_state
from format.files.quorum_state import QuorumState
from format.node.target import Target
from format.state.metadata_log import Until
from format.verbs.metadata.metadata import MetadataTerms, metadata
from format.verbs.metadata.quorum import Quorum
from tests.metadata_logs import write_metadata_log, write_node


def quorum(
    directory: Path,
    lengths: dict[int, int],
    *,
    voters: tuple[int, ...] = (1, 2, 3),
    votes: dict[int, int] | None = None,
) -> Quorum | None:
    """The quorum of nodes whose logs have so many records."""
    for node_id, length in lengths.items():
        log = write_metadata_log(write_node(directory / f"node-{node_id}", node_id), extra_topics=length - 2)
        if voters:
            write_state(log, voters, (votes or {}).get(node_id, -1))
    return metadata([Target(directory / f"node-{node_id}") for node_id in lengths], MetadataTerms()).quorum


def write_state(log: Path, voters: tuple[int, ...], voted: int) -> None:
    state = QuorumState(
        path="", data_version=0, leader_id=2, leader_epoch=1, voted_id=voted, voted_directory_id=None,
        cluster_id="", applied_offset=0, current_voters=voters, problems=(),
    )  # fmt: skip
    (log / "quorum-state").write_bytes(quorum_state.write(state))


def set_epochs(log_dir: Path, epochs: list[int]) -> None:
    """Give each batch of a metadata log a leader epoch, which the CRC does not cover."""
    path = log_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    content, position = bytearray(path.read_bytes()), 0
    for epoch in epochs:
        content[position + 12 : position + 16] = epoch.to_bytes(4, "big")
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    assert position == len(content)
    path.write_bytes(content)


def words_of(found: Quorum | None) -> str:
    assert found is not None
    return found.sentence()


def test_all_voters_are_at_hand(tmp_path: Path) -> None:
    words = words_of(quorum(tmp_path, {1: 4, 2: 9, 3: 8}, votes={1: 2, 3: 2}))
    assert words == (
        "Of 3 voters, 3 logs are here; they end at: node 2 9 (epoch 1), node 3 8 (epoch 1), node 1 4 (epoch 1). "
        "A majority has the records before offset 8. "
        "Only node 2 has the records from offset 8 on: no majority has them. "
        "Nodes 2 and 3 can lead. Each of them has what a majority has. "
        "In epoch 1, by quorum-state, node 2 led; node 3 voted for node 2, node 1 voted for node 2."
    )


def test_equal_logs_have_nothing_that_only_a_minority_has(tmp_path: Path) -> None:
    words = words_of(quorum(tmp_path, {1: 5, 2: 5, 3: 5}))
    assert "Only" not in words
    assert "Nodes 1, 2 and 3 can lead." in words
    assert "voted" not in words


def test_a_voter_that_is_not_here_leaves_things_open(tmp_path: Path) -> None:
    found = quorum(tmp_path, {1: 4, 2: 9})
    words = words_of(found)
    assert "2 logs are here (not here: node 3)" in words
    assert "A majority has the records before offset 4. Whether it has those from 4 to 8 depends on node 3." in words
    assert "Node 2 can lead. Whether node 1 can lead depends on node 3." in words
    assert "what a majority has" not in words
    assert found is not None
    rows = [dict(zip(QUORUM_LOG.names, row, strict=True)) for row in found.rows()]
    assert [(each["node_id"], each["can_lead"], each["log_end_offset"]) for each in rows] == [
        (2, True, 9), (1, None, 4), (3, None, None),
    ]  # fmt: skip


def test_an_observer_is_no_voter(tmp_path: Path) -> None:
    words = words_of(quorum(tmp_path, {1: 9, 2: 5, 4: 9}, voters=(1, 2)))
    assert "Of 2 voters, 2 logs are here; " in words
    assert "Not a voter: node 4." in words
    assert "A majority has the records before offset 5." in words


def test_voters_that_are_not_known(tmp_path: Path) -> None:
    words = words_of(quorum(tmp_path, {1: 9, 2: 5}, voters=()))
    assert words == (
        "The metadata logs end at: node 1 9 (epoch 1), node 2 5 (epoch 1). Which nodes vote is not known, so neither "
        "is what was committed."
    )


def test_a_later_epoch_wins_and_drops_what_a_majority_has(tmp_path: Path) -> None:
    """As in figure 8 of the Raft paper: that a majority has them commits no records of an earlier epoch."""
    quorum(tmp_path, {1: 10, 2: 9, 3: 5})
    set_epochs(tmp_path / "node-1", [1] * 9 + [3])
    set_epochs(tmp_path / "node-3", [1] * 4 + [2])
    words = words_of(metadata([Target(tmp_path / f"node-{each}") for each in (1, 2, 3)], MetadataTerms()).quorum)
    assert "they end at: node 1 10 (epoch 3), node 3 5 (epoch 2), node 2 9 (epoch 1)." in words
    assert "A majority has the records before offset 9. Only node 1 has the records from offset 9 on" in words
    assert "Node 3 has other records from offset 4 on, of an earlier epoch." in words
    assert "Nodes 1 and 3 can lead. Node 3, elected, drops the records from offset 4 on." in words
    assert "Each of them" not in words


def test_one_log_or_an_earlier_state_is_no_quorum(tmp_path: Path) -> None:
    assert quorum(tmp_path, {1: 4}) is None
    terms: dict[str, Any] = {"until": Until(offset=2)}
    write_metadata_log(write_node(tmp_path / "node-2", 2))
    targets = [Target(tmp_path / f"node-{each}") for each in (1, 2)]
    assert metadata(targets, MetadataTerms(**terms)).quorum is None
    assert metadata(targets, MetadataTerms()).quorum is not None
