"""What the metadata beside some logs says of a partition, and when it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.errors import UnreadableFile
from format.files import partition_metadata
from format.location import Location
from format.node.log_dir import Checkpoints, LogDir
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.state.cluster_context import Assignment, ContextTerms, named_nodes, read_context
from tests.building import batch, write_segment
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node, write_voters


def assignment_at(directory: Path, *others: Path, metadata: Path | None = None) -> Assignment:
    """The assignment of a partition directory; ``others`` are further paths."""
    context = read_context([Target(each) for each in (directory, *others)], ContextTerms(metadata=metadata))
    return context.assignment_of(read_partition(directory))


def node_with_orders(log_dir: Path, node_id: int, cluster_id: str = "cluster-a") -> Path:
    """A partition directory orders-0 in the log directory of a node."""
    write_node(log_dir, node_id, cluster_id)
    write_segment(log_dir / "orders-0", 0, [batch(0)])
    return log_dir / "orders-0"


def test_the_metadata_beside_a_partition_names_its_leader(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    write_metadata_log(tmp_path / "node-2", isr=(1, 3), leader=1, elr=(2,))
    found = assignment_at(orders)
    assert (found.leader, found.replicas, found.complete_replicas) == (1, (1, 2, 3), (1, 3, 2))
    assert (found.is_leader(1), found.is_leader(2), found.is_leader(None)) == (True, False, None)
    assert (found.missing([2, 3]), found.missing([1, 2, 3, 4])) == ((1,), ())
    assert found.last_members == "ISR: nodes 1 and 3, ELR: node 2"
    assert found.source.startswith("the metadata of node 2 as of 20")


def test_the_directory_to_which_a_replica_is_assigned(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    write_metadata_log(tmp_path / "node-2", leader=1)
    properties = tmp_path / "node-2" / "meta.properties"
    text = properties.read_text()
    assert assignment_at(orders).other_directory == ""  # the directory has no id
    for name, other in (("directory-2", ""), ("directory-3", topic_id_of("directory-2"))):
        properties.write_text(f"{text}directory.id={topic_id_of(name)}\n")
        assert assignment_at(orders).other_directory == other


def test_the_newest_metadata_of_the_nodes_counts(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    other = write_node(tmp_path / "node-3", 3)
    write_metadata_log(tmp_path / "node-2", leader=1)
    write_metadata_log(other, leader=3, extra_topics=2)
    assert assignment_at(orders).leader == 1
    found = assignment_at(orders, other)
    assert (found.leader, found.source[:22]) == (3, "the metadata of node 3")
    assert assignment_at(orders, metadata=other).leader == 3


def test_without_metadata_nothing_is_known(tmp_path: Path) -> None:
    found = assignment_at(node_with_orders(tmp_path / "node-2", 2))
    assert (found.state, found.leader, found.missing([1]), found.is_leader(2)) == (None, None, None, None)
    assert found.unknown == "there is no metadata log here (--metadata PATH)"


def test_metadata_that_cannot_be_listed_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    write_metadata_log(tmp_path / "node-2", leader=1)
    metadata, read = tmp_path / "node-2" / "__cluster_metadata-0", LogDir.partition

    def refuse(self: LogDir, path: Path, **options: bool) -> Partition:
        if path == metadata:
            raise UnreadableFile("cannot list: Permission denied", Location(str(path)))
        return read(self, path, **options)

    monkeypatch.setattr(LogDir, "partition", refuse)
    assert assignment_at(orders).unknown == f"{metadata} cannot be read"


def test_metadata_that_is_in_zookeeper_is_not_asked_for(data_dir: Path) -> None:
    """No path could be given with --metadata."""
    found = assignment_at(data_dir / "kafka-0.8-to-2.8" / "data" / "legacy-0")
    assert found.unknown == "the node ran with ZooKeeper, which has the metadata"


def test_metadata_that_is_older_than_the_log_says_nothing(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    write_metadata_log(tmp_path / "node-2", leader=1, leader_epoch=4)
    (orders / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    assert assignment_at(orders).leader == 1
    (orders / "leader-epoch-checkpoint").write_text("0\n2\n4 0\n5 2\n")
    found = assignment_at(orders)
    assert found.state is None
    assert found.unknown.endswith("is older than the log: its leader epoch is 4, that of the log 5")


def test_a_topic_that_was_made_again_is_another_topic(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    write_metadata_log(tmp_path / "node-2", leader=1)
    (orders / "partition.metadata").write_bytes(partition_metadata.write(topic_id_of("orders")))
    assert assignment_at(orders).leader == 1
    (orders / "partition.metadata").write_bytes(partition_metadata.write(topic_id_of("orders before")))
    found = assignment_at(orders)
    assert found.state is None
    assert "is not in the metadata of node 2" in found.unknown


def test_metadata_of_another_cluster_says_nothing(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    other = write_node(tmp_path / "elsewhere", 1, "cluster-b")
    write_metadata_log(other, leader=1)
    assert assignment_at(orders, metadata=other).unknown.endswith("is that of another cluster")


def test_configs_are_not_those_of_a_topic_of_another_cluster(tmp_path: Path) -> None:
    orders = read_partition(node_with_orders(tmp_path / "node-2", 2))
    for cluster_id, unknown in (("cluster-a", 0), ("cluster-b", 1)):
        other = write_node(tmp_path / cluster_id, 1, cluster_id)
        write_metadata_log(other)
        context = read_context([Target(orders.path)], ContextTerms(metadata=other))
        context.configs_of(orders, Checkpoints())
        assert context.unknown_topic_count == unknown


def test_damaged_metadata_says_nothing(tmp_path: Path) -> None:
    orders = node_with_orders(tmp_path / "node-2", 2)
    log = write_metadata_log(tmp_path / "node-2", leader=1) / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    assert assignment_at(orders).unknown.endswith("cannot be read as a whole")


def test_voters_are_those_of_the_quorum_state(tmp_path: Path) -> None:
    node = write_node(tmp_path / "node-2", 2)
    metadata = write_metadata_log(node)
    assert read_context([Target(node)], ContextTerms()).voters is None
    write_voters(metadata, (3, 1, 2))
    assert read_context([Target(node)], ContextTerms()).voters == (1, 2, 3)


def test_nodes_in_words() -> None:
    assert [named_nodes(each) for each in ((), (1,), (1, 2), (1, 2, 3))] == [
        "none", "node 1", "nodes 1 and 2", "nodes 1, 2 and 3",
    ]  # fmt: skip
