"""The log directories of one node: partitions that lie in two of them, and copies of one directory."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from format.findings import Finding, Severity
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.verbs.verify.verify import VerifyTerms, other_clusters, verify_all
from tests.building import batches, write_segment
from tests.format.verbs.doctor.looking import codes
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node
from tests.oracle.boot_mutations.node import Node, copied_node


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Node:
    return copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")


def found(node: Node) -> list[Finding]:
    """The findings from severity warning on, of all log directories together."""
    verified = verify_all([Target(path) for path in node.log_dirs], VerifyTerms())
    return [each for each in verified if each.severity >= Severity.WARNING]


def test_a_partition_that_was_moved_by_hand_is_not_missed(node: Node) -> None:
    shutil.move(node.partition("orders-1"), node.second() / "orders-1")
    assert found(node) == []
    shutil.rmtree(node.log_dirs[1] / "orders-1")
    assert "replica-missing" in {each.code for each in found(node)}


def test_the_same_partition_stops_a_broker_unless_one_has_no_topic_id(node: Node) -> None:
    there = node.second() / "orders-1"
    shutil.copytree(node.partition("orders-1"), there)
    (twice,) = found(node)
    assert (twice.code, twice.location.topic, twice.location.partition) == ("boot-refused", "orders", 1)
    (there / "partition.metadata").unlink()
    assert "boot-refused" not in {each.code for each in found(node)}


@pytest.mark.parametrize("with_ids", [True, False])
def test_copies_of_one_directory_are_not_taken_for_two(node: Node, with_ids: bool) -> None:
    if not with_ids:
        (node.first / "meta.properties").write_text(re.sub("(?m)^directory.id=.*\n", "", node.meta()))
    shutil.copytree(node.first, node.work / "backup")
    node.log_dirs.append(node.work / "backup")
    assert not [each for each in found(node) if "Duplicate" in each.message]


def test_log_directories_of_two_clusters_are_named(tmp_path: Path) -> None:
    nodes = [write_node(tmp_path / f"node-{each}", each, f"cluster-{each % 2}") for each in (1, 2, 3, 4)]
    for each in nodes:
        (each / "orders-0").mkdir()
    words = f"{nodes[1]} against {nodes[0]}: they are of two clusters, cluster-0 and cluster-1"
    assert list(other_clusters(map(Target, nodes), DEFAULT_LIMITS)) == [words]
    assert list(other_clusters([Target(nodes[0]), Target(nodes[2])], DEFAULT_LIMITS)) == []


def write_log(log_dir: Path, topic: str) -> None:
    write_segment(log_dir / f"{topic}-0", 0, batches(1))
    (log_dir / f"{topic}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of(topic)}\n")


def test_the_metadata_log_of_a_node_judges_its_other_log_directories(tmp_path: Path) -> None:
    first = write_node(tmp_path / "first", 1, directory="of the metadata")
    second = write_node(tmp_path / "second", 1, directory="directory-1")
    write_metadata_log(first, "orders", replicas=(1,), isr=(1,))
    write_log(second, "gone")
    node = Node(tmp_path, [first, second])
    codes = {each.location.path: each.code for each in found(node) if each.code.startswith("replica-")}
    assert codes == {str(second / "gone-0"): "replica-stray", str(second / "orders-0"): "replica-missing"}
    assert not [each for each in found(Node(tmp_path, [second])) if each.code.startswith("replica-")]
    write_log(second, "orders")
    shutil.rmtree(second / "gone-0")
    (second / "bootstrap.checkpoint").touch()  # a broker reads only that beside its metadata log
    assert not [each for each in found(node) if each.code.startswith(("replica-", "boot-"))]


def test_of_one_log_directory_a_log_without_a_high_watermark_may_never_have_been_made(tmp_path: Path) -> None:
    """The controller assigns a new partition to the only directory of a broker, before the broker makes its log."""
    only = write_node(tmp_path / "node", 1, directory="directory-1")
    write_metadata_log(only, "orders", replicas=(1,), isr=(1,))
    assert not [each for each in found(Node(tmp_path, [only])) if each.code == "replica-missing"]


def test_a_log_without_a_topic_id_is_stray_though_the_metadata_assigns_the_partition(tmp_path: Path) -> None:
    only = write_node(tmp_path / "node", 1, directory="directory-1")
    write_metadata_log(only, "orders", replicas=(1,), isr=(1,))
    write_log(only, "orders")
    strays = [each for each in found(Node(tmp_path, [only])) if each.code == "replica-stray"]
    assert strays == []
    (only / "orders-0" / "partition.metadata").unlink()
    (stray,) = [each for each in found(Node(tmp_path, [only])) if each.code == "replica-stray"]
    assert stray.severity is Severity.ERROR
    assert "directory-stray" in codes(only)
    assert "replica-missing" not in codes(only)
    for log in (only / "orders-0").glob("*.log"):
        log.write_bytes(b"")  # killed while it made the log: there is nothing to lose
    (stray,) = [each for each in found(Node(tmp_path, [only])) if each.code == "replica-stray"]
    assert stray.severity is Severity.WARNING
