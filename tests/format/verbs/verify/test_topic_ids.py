"""Topic ids over the directories of several nodes: by the newest metadata, without any, and where nothing is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.files import partition_metadata
from format.findings import Finding, Severity
from format.node.target import Target
from format.verbs.verify.verify import Level, VerifyTerms, verify_all
from tests.building import batches, write_segment
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node, write_voters

NEW, OLD = topic_id_of("orders"), topic_id_of("extra-0")


def node(directory: Path, node_id: int, topic_id: str | None, *, cluster_id: str = "cluster-a") -> Path:
    """A log directory with orders-0."""
    log_dir = write_node(directory / f"node-{node_id}", node_id, cluster_id)
    write_segment(log_dir / "orders-0", 0, batches(1))
    if topic_id is not None:
        (log_dir / "orders-0" / "partition.metadata").write_bytes(partition_metadata.write(topic_id))
    return log_dir


def found(*paths: Path, level: Level = Level.FULL) -> list[Finding]:
    """The findings about topic ids."""
    items = verify_all([Target(path) for path in paths], VerifyTerms(level=level))
    return [each for each in items if each.code in ("replica-stray", "topic-id-conflict")]


def test_older_metadata_beside_the_directory_proves_that_the_topic_was_deleted(tmp_path: Path) -> None:
    fresh, stale = node(tmp_path, 1, NEW), node(tmp_path, 3, OLD)
    write_metadata_log(fresh, epoch=2)
    write_metadata_log(stale, topic_id=OLD)
    (stray,) = found(fresh, stale)
    assert (stray.code, stray.severity) == ("replica-stray", Severity.ERROR)
    assert (stray.location.path, stray.expected, stray.actual) == (str(stale / "orders-0"), NEW, OLD)
    assert f"the topic id is {OLD}, but by the metadata of node 1" in stray.message
    assert f"has the id {NEW}: it was deleted and made again; a broker that starts here renames" in stray.message
    assert [each.location.path for each in found(stale, fresh)] == [stray.location.path], "in any order"


def test_one_node_with_its_own_older_metadata_is_not_accused(tmp_path: Path) -> None:
    fresh, stale = node(tmp_path, 1, NEW), node(tmp_path, 3, OLD)
    write_metadata_log(stale, topic_id=OLD)
    write_metadata_log(fresh)
    assert found(stale) == found(fresh) == []


def test_what_differs_from_the_metadata_may_be_newer_than_it(tmp_path: Path) -> None:
    fresh, other = node(tmp_path, 1, NEW), node(tmp_path, 3, topic_id_of("never seen"))
    write_metadata_log(fresh)
    (conflict,) = found(fresh, other)
    assert (conflict.code, conflict.location.path) == ("topic-id-conflict", str(other / "orders-0"))
    assert conflict.message.endswith("which of the two is newer is not known here")


def test_without_metadata_they_differ_and_neither_is_said_to_be_right(tmp_path: Path) -> None:
    first, second = node(tmp_path, 1, NEW), node(tmp_path, 2, OLD)
    (conflict,) = found(first, second)
    assert (conflict.code, conflict.severity) == ("topic-id-conflict", Severity.ERROR)
    assert OLD in conflict.message
    assert f"in {first / 'orders-0'} it is {NEW}" in conflict.message
    assert "no metadata at hand says which" in conflict.message
    assert len(found(first / "orders-0", second / "orders-0")) == 1, "partitions too"
    assert found(first, second, level=Level.CRC) == []


@pytest.mark.parametrize("has_metadata", [True, False])
def test_the_same_ids_are_nothing(tmp_path: Path, has_metadata: bool) -> None:
    nodes = [node(tmp_path, node_id, NEW) for node_id in (1, 2)]
    nodes.append(node(tmp_path, 3, None))
    if has_metadata:
        shutil.rmtree(nodes[2] / "orders-0")
        write_metadata_log(nodes[0])
    assert found(*nodes) == []


def test_two_clusters_and_copies_of_one_node_are_not_compared(tmp_path: Path) -> None:
    here, elsewhere = node(tmp_path, 1, NEW), node(tmp_path, 2, OLD, cluster_id="cluster-b")
    earlier = node(tmp_path / "backup", 1, OLD)
    assert found(here, elsewhere) == found(here, earlier) == []
    write_metadata_log(here)
    assert found(here, elsewhere) == found(here, earlier) == []


def test_a_directory_that_is_judged_by_the_metadata_beside_it_is_accused_once(tmp_path: Path) -> None:
    fresh, stale = node(tmp_path, 1, NEW), node(tmp_path, 3, topic_id_of("never seen"))
    write_metadata_log(fresh, epoch=2)
    write_metadata_log(stale)
    assert [each.location.path for each in found(fresh, stale)].count(str(stale / "orders-0")) == 1


def test_a_topic_that_is_gone_by_the_newest_metadata(tmp_path: Path) -> None:
    fresh, stale = node(tmp_path, 1, NEW), node(tmp_path, 3, OLD)
    shutil.rmtree(fresh / "orders-0")
    write_metadata_log(fresh, "payments", extra_topics=3, epoch=2)
    assert found(fresh, stale) == [], "it may be newer than the metadata"
    write_metadata_log(stale, topic_id=OLD)
    (stray,) = found(fresh, stale)
    assert (stray.code, stray.expected, stray.actual) == ("replica-stray", None, OLD)
    assert "the topic orders does not exist any more: it was deleted;" in stray.message


def test_a_log_is_no_stray_where_the_newest_metadata_assigns_it(tmp_path: Path) -> None:
    """A broker fetches what its own metadata log lacks before it looks at its logs; tried with 4.4.0."""
    one, two, three = (node(tmp_path, number, NEW) for number in (1, 2, 3))
    write_voters(write_metadata_log(one, "before"), (1, 2))
    assert [each.code for each in found(one)] == ["replica-stray"], "nothing later is here"
    write_voters(write_metadata_log(two, "orders", replicas=(1, 2), isr=(1,), extra_topics=3), (1, 2))
    assert found(one, two) == []
    write_voters(write_metadata_log(three, "orders", replicas=(2, 3), isr=(2,), leader=2, extra_topics=3), (1, 2))
    assert [each.location.path for each in found(one, three)] == [str(one / "orders-0")]


def test_damaged_metadata_proves_nothing(tmp_path: Path) -> None:
    fresh, stale = node(tmp_path, 1, NEW), node(tmp_path, 3, OLD)
    log = next(write_metadata_log(fresh, epoch=2).glob("*.log"))
    log.write_bytes(log.read_bytes()[:-4] + bytes(4))
    (conflict,) = [each for each in found(fresh, stale) if each.location.path == str(stale / "orders-0")]
    assert (conflict.code, "no metadata at hand says which" in conflict.message) == ("topic-id-conflict", True)


def test_the_metadata_of_a_controller_judges_the_directory_of_a_broker(tmp_path: Path) -> None:
    controller, broker = write_node(tmp_path / "node-9", 9), node(tmp_path, 3, OLD)
    write_metadata_log(controller)
    (conflict,) = found(controller, broker)
    assert (conflict.code, conflict.expected, conflict.actual) == ("topic-id-conflict", NEW, OLD)
