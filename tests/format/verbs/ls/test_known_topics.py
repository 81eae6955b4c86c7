"""ls beside a metadata log: topic ids and configs from it, and notes on directories that do not belong there."""

from __future__ import annotations

import shutil
from pathlib import Path

from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.ls.partition_listing import PartitionListing


def listed(*places: Path) -> dict[str, PartitionListing]:
    targets = [Target(each) for each in places]
    context = read_context(targets, ContextTerms())
    found = [item for target in targets for item in ls(target, ListTerms(scan=False, context=context))]
    return {Path(each.path).name: each for each in found if isinstance(each, PartitionListing)}


def node_of(data_dir: Path, place: Path) -> Path:
    """A node with a metadata log, two partitions and its meta.properties."""
    source = data_dir / "kafka-4.3-single" / "node-1"
    for name in ("__cluster_metadata-0", "users-0", "orders-0"):
        shutil.copytree(source / name, place / name)
    shutil.copy(source / "meta.properties", place)
    return place


def test_ids_and_configs_come_from_the_metadata_log(data_dir: Path, tmp_path: Path) -> None:
    node = node_of(data_dir, tmp_path / "node")
    before = listed(node)
    (node / "users-0" / "partition.metadata").unlink()
    after = listed(node)
    assert before["users-0"].topic_id == after["users-0"].topic_id is not None
    assert after["users-0"].configs is not None
    assert after["users-0"].configs["cleanup.policy"] == "compact"
    assert [each.notes for name, each in after.items() if name != "__cluster_metadata-0"] == [None, None]


def test_what_does_not_belong(data_dir: Path, tmp_path: Path) -> None:
    node = node_of(data_dir, tmp_path / "node")
    orders = node / "orders-0"
    for name in ("orders-9", "gone-0", "users-1", "users-9", "payments-0"):
        shutil.copytree(orders, node / name)
    (node / "gone-0" / "partition.metadata").unlink()
    (node / "payments-0" / "partition.metadata").write_text("version: 0\ntopic_id: ng9J8Mr_Tt-BCh-nUsouDA\n")
    notes = {name: each.notes for name, each in listed(node).items()}
    assert notes["orders-0"] is None
    assert notes["orders-9"] == "stray: the metadata log does not assign it to node 1"
    assert notes["gone-0"] == "stray: the metadata log has no topic of its name"
    assert notes["users-1"] == "not served: its topic id is that of orders"  # which has a partition 1 on this node
    assert notes["users-9"] == "stray: its topic id is that of orders"
    assert notes["payments-0"] == "stray: the metadata log has no topic of its id"


def test_nothing_is_stray_by_a_metadata_log_that_is_not_whole(data_dir: Path, tmp_path: Path) -> None:
    node = node_of(data_dir, tmp_path / "node")
    for each in (node / "__cluster_metadata-0").glob("*.checkpoint"):
        each.unlink()
    log = node / "__cluster_metadata-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[content.index(b"orders")] ^= 1
    log.write_bytes(content)
    assert {each.notes for each in listed(node).values()} == {None}
    log.write_bytes(b"")
    assert {each.notes for each in listed(node).values()} == {None}


def test_a_node_of_another_cluster_is_not_judged(data_dir: Path, tmp_path: Path) -> None:
    node = node_of(data_dir, tmp_path / "node")
    other = tmp_path / "other"
    shutil.copytree(node / "orders-0", other / "gone-0")
    (other / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    found = listed(node, other)
    assert found["gone-0"].notes is None
    assert found["gone-0"].configs is None
    assert found["orders-0"].configs is not None
