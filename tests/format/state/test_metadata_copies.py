"""Copies of the metadata log: where a node's log ends after a start, its voters, and which copy is best."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.errors import InputError
from format.limits import DEFAULT_LIMITS
from format.node.partition import read_partition
from format.node.target import Target
from format.state.metadata_log import MetadataSource, Until, read_metadata
from format.state.quorum import MetadataCopy, Voter, best_copy, metadata_source, read_metadata_copies
from tests.metadata_logs import (
    control_batch,
    topic_id_of,
    voters_records,
    write_metadata_log,
    write_node,
    write_snapshot,
    write_voters,
)

_DATA = Path("tests/_data").resolve()
_NAMES = {1: "one", 2: "two", 3: "three"}


def copies(*paths: Path) -> list[MetadataCopy]:
    return read_metadata_copies([Target(path) for path in paths])


def sources(*paths: Path) -> list[MetadataSource]:
    """What the other verbs take, and then what they leave."""
    best, others = metadata_source([Target(path) for path in paths], DEFAULT_LIMITS)
    return [best, *others]


def log_of(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / f"{0:020}.log"


def turn_byte(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_copy_of_a_real_node() -> None:
    (found,) = copies(_DATA / "kafka-4.3-single" / "node-1")
    assert (found.node_id, found.directory_id, found.end) == (1, "qdjf3iRK0hQ-aXAzdHP3xg", (1, 1048))
    assert found.snapshot is not None
    assert (found.snapshot.end_offset, found.committed_end) == (1010, 1010)
    assert (found.kraft_version, found.voters) == (0, (Voter(1),))
    assert (found.refusal, found.gap, found.findings, found.dropped_from) == ("", "", (), None)


def test_voters_of_a_dynamic_quorum_are_in_snapshot_and_log(tmp_path: Path) -> None:
    """The last set counts, from the moment it is in the log."""
    node = write_node(tmp_path / "node-1", 1, directory="one")
    log = write_metadata_log(node)
    write_snapshot(log, 0, 0, {1: "one"})
    (found,) = copies(node)
    assert found.kraft_version == 1
    assert found.voters == (Voter(1, topic_id_of("one"), (("CONTROLLER", "host-1", 9093),), (0, 1)),)
    with log_of(node).open("ab") as segment:
        segment.write(control_batch(2, voters_records(_NAMES)))
    (found,) = copies(node)
    assert [each.node_id for each in found.voters or ()] == [1, 2, 3]
    assert [(each.offset, each.record_type) for each in found.records] == [
        (1, "KRAFT_VERSION"), (2, "KRAFT_VOTERS"), (2, "KRAFT_VERSION"), (3, "KRAFT_VOTERS"),
    ]  # fmt: skip


def test_a_start_truncates_the_log_at_a_damaged_batch(tmp_path: Path) -> None:
    node = write_node(tmp_path / "node-1", 1)
    write_metadata_log(node, extra_topics=8)
    size = log_of(node).stat().st_size
    turn_byte(log_of(node), size - 1)
    (found,) = copies(node)
    assert (found.end, found.dropped_from) == ((1, 9), 9)
    assert [each.code for each in found.findings] == ["batch-crc-mismatch"]


def test_a_log_behind_the_newest_snapshot_is_emptied(tmp_path: Path) -> None:
    node = write_node(tmp_path / "node-1", 1)
    write_snapshot(write_metadata_log(node), 70, 3)
    (found,) = copies(node)
    assert (found.end, found.is_usable, found.committed_end) == ((3, 70), True, 70)


@pytest.mark.parametrize(("keeps_older", "usable"), [(True, True), (False, False)])
def test_a_damaged_newest_snapshot_stops_a_node(tmp_path: Path, keeps_older: bool, usable: bool) -> None:
    """The older snapshot still has the records before the log."""
    node = write_node(tmp_path / "node-1", 1)
    log = write_metadata_log(node, extra_topics=8)
    log_of(node).rename(log / f"{5:020}.log")  # the batches before 5 do not belong to it
    if keeps_older:
        write_snapshot(log, 0, 1)
        (log / f"{5:020}.log").rename(log_of(node))
    turn_byte(write_snapshot(log, 7, 1), 40)
    (found,) = copies(node)
    assert "its newest snapshot" in found.refusal
    assert found.is_usable is usable


def test_the_copy_that_reaches_furthest_is_best(tmp_path: Path) -> None:
    nodes = []
    for node_id, (epoch, extra) in {1: (1, 9), 2: (2, 3), 3: (2, 2)}.items():
        node = write_node(tmp_path / f"node-{node_id}", node_id)
        write_voters(write_metadata_log(node, epoch=epoch, extra_topics=extra), (1, 2, 3), epoch)
        nodes.append(node)
    best = best_copy(copies(*nodes))
    assert best.copy.node_id == 2
    assert best.reasons == ("it ends at offset 5 of epoch 2, further than every other",)
    equal = best_copy(copies(nodes[1], shutil.copytree(nodes[1], tmp_path / "same")))
    assert equal.reasons == ("it ends at offset 5 of epoch 2, as 1 other copy does",)
    (nodes[1] / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(b"")
    assert best_copy(copies(*nodes)).copy.node_id == 3


def test_a_snapshot_shows_what_the_best_copy_lacks(tmp_path: Path) -> None:
    """A copy of an earlier epoch with a snapshot past the end of the best one: committed records are lost."""
    first, second = (write_node(tmp_path / f"node-{each}", each) for each in (1, 2))
    write_metadata_log(first, epoch=3)
    write_snapshot(write_metadata_log(second, extra_topics=9), 8, 1)
    best = best_copy(copies(first, second))
    assert best.copy.node_id == 1
    assert any("shows that records up to offset 7 were committed" in each for each in best.reasons)


def test_other_clusters_are_left_out(tmp_path: Path) -> None:
    nodes = [write_node(tmp_path / f"node-{each}", each, "b" if each == 3 else "a") for each in (1, 2, 3)]
    for each, node in enumerate(nodes):
        write_metadata_log(node, extra_topics=each)
    best = best_copy(copies(*nodes))
    assert (best.copy.node_id, best.reasons[-1]) == (2, "1 copy of another cluster left out")


def test_other_verbs_take_the_best_copy(tmp_path: Path) -> None:
    """Not the one whose headers reach furthest: the end of the first is damaged."""
    nodes = [write_node(tmp_path / f"node-{each}", each) for each in (1, 2)]
    logs = [write_metadata_log(node, extra_topics=3) for node in nodes]
    assert [each.node_id for each in sources(*nodes)] == [1, 2]
    path = logs[0] / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert [each.node_id for each in sources(*nodes)] == [2, 1]
    assert [each.node_id for each in sources(nodes[0])] == [1]


def _without_first_record(directory: Path) -> None:
    """Leave the log of a node that joined later: it begins with a snapshot of the first record."""
    log = log_of(directory)
    content = log.read_bytes()
    log.with_name(f"{1:020}.log").write_bytes(content[12 + int.from_bytes(content[8:12]) :])
    log.unlink()
    write_snapshot(log.parent, 1, 1)


def test_of_equal_copies_the_one_that_reaches_back_furthest_is_best(tmp_path: Path) -> None:
    for node_id in (1, 2):
        write_voters(write_metadata_log(write_node(tmp_path / f"node-{node_id}", node_id), extra_topics=2), (1, 2))
    _without_first_record(tmp_path / "node-1")
    found = copies(tmp_path / "node-1", tmp_path / "node-2")
    assert found[0].end == found[1].end
    assert best_copy(found).copy.node_id == 2


def test_an_earlier_state_is_read_from_a_shorter_copy_that_reaches_back(tmp_path: Path) -> None:
    for node_id, count in ((1, 3), (2, 2)):
        write_metadata_log(write_node(tmp_path / f"node-{node_id}", node_id), extra_topics=count)
    _without_first_record(tmp_path / "node-1")
    partition = tmp_path / "node-1" / "__cluster_metadata-0"
    (partition / f"{1:020}-{1:010}.checkpoint").rename(partition / f"{2:020}-{1:010}.checkpoint")
    targets = [Target(tmp_path / name) for name in ("node-1", "node-2")]
    chosen = [
        metadata_source(targets, DEFAULT_LIMITS, until)[0].node_id for until in (None, Until(), Until(1), Until(0))
    ]
    assert chosen == [1, 1, 1, 2]


def test_an_earlier_state_is_read_from_a_shorter_copy_that_is_whole(tmp_path: Path) -> None:
    """The copy that reaches furthest has damage before its newest snapshot, which no state after that needs."""
    nodes = [write_node(tmp_path / f"node-{each}", each) for each in (1, 2)]
    for node, count in zip(nodes, (8, 4), strict=True):
        write_metadata_log(node, extra_topics=count)
    log = log_of(nodes[0])
    turn_byte(log, log.read_bytes().index(b"extra-2"))
    write_snapshot(log.parent, 7, 1)
    targets = [Target(node) for node in nodes]

    def chosen(offset: int, *, is_history: bool = False) -> int | None:
        return metadata_source(targets, DEFAULT_LIMITS, Until(offset), is_history=is_history)[0].node_id

    assert [chosen(offset) for offset in (2, 4, 5, 6)] == [1, 2, 2, 1]
    assert [chosen(offset, is_history=True) for offset in (2, 5, 6)] == [1, 2, 1]  # only node 1 knows of record 6


def test_the_state_before_a_log_begins_is_not_known_and_no_damage(tmp_path: Path) -> None:
    write_metadata_log(write_node(tmp_path, 1), extra_topics=2)
    _without_first_record(tmp_path)
    partition = read_partition(tmp_path / "__cluster_metadata-0")
    assert not read_metadata(partition, Until(1)).findings
    (tmp_path / "__cluster_metadata-0" / f"{1:020}-{1:010}.checkpoint").unlink()
    write_snapshot(partition.path, 2, 1)
    with pytest.raises(InputError, match="begins with a snapshot of offset 1: the state before is not known"):
        read_metadata(read_partition(partition.path), Until(0))
