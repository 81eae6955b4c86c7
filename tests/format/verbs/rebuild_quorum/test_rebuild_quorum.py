"""rebuild-quorum: what is written for which voters, what it refuses, and which later changes are named."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from format.errors import InputError, Refused
from format.files import leader_epoch_checkpoint, meta_properties, partition_metadata
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.offset_checkpoint import TopicPartitionOffset
from format.files.offset_checkpoint import write as checkpoint
from format.internal_topics.encoder import encode_message, encode_metadata_record
from format.layout import REPLICATION_OFFSET_CHECKPOINT
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.rewriting.publication import Publication
from format.state.quorum import MetadataCopy, read_metadata_copies
from format.verbs.quorum import quorum
from format.verbs.rebuild_quorum.corrections import corrections_by_disks, read_disks
from format.verbs.rebuild_quorum.rebuild_quorum import Address, Rebuilding, WantedQuorum, rebuilding, write_rebuilt
from format.verbs.rebuild_quorum.surviving import surviving_records
from tests.building import batch, forbid_reading, write_segment
from tests.format.internal_topics.known_messages import MESSAGES, records_of
from tests.format.internal_topics.message_encoder import encode
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node, write_snapshot, write_voters

_NAMES = {11: "eleven", 12: "twelve", 13: "thirteen"}
_ORDERS = (topic_id_of("orders"), 0)


def planned(*paths: Path, **wanted: Any) -> Rebuilding:
    return rebuilding([Target(path) for path in paths], WantedQuorum(**wanted))


def rebuilt(plan: Rebuilding, sources: Sequence[Path], target: Path) -> dict[int, MetadataCopy]:
    """Write a plan; the copies that were written, by node."""
    with Publication(target, sources) as publication:
        write_rebuilt(plan, publication)
    copies = read_metadata_copies([Target(target / f"node-{each.node_id}") for each in plan.voters])
    return {each.node_id: each for each in copies if each.node_id is not None}


def broker(root: Path, node_id: int = 1, **metadata: Any) -> Path:
    """A broker of a dynamic quorum with the controllers 11 to 13, and a copy of its metadata."""
    node = write_node(root / f"node-{node_id}", node_id)
    log = write_metadata_log(node, **metadata)
    write_snapshot(log, 0, 0, _NAMES)
    return node


def replica(
    node: Path,
    epochs: Sequence[int],
    *,
    topic: str = "orders",
    number: int = 0,
    watermark: int | None = None,
    producer_id: int = -1,
    topic_id: str | None = None,
) -> None:
    """A replica with a batch of three records of each of these leader epochs, and its high watermark."""
    directory = node / f"{topic}-{number}"
    content = [batch(3 * at, leader_epoch=epoch, producer_id=producer_id) for at, epoch in enumerate(epochs)]
    write_segment(directory, 0, content)
    (directory / "partition.metadata").write_bytes(partition_metadata.write(topic_id or topic_id_of(topic)))
    noted = [EpochEntry(epoch, 3 * epochs.index(epoch)) for epoch in sorted(set(epochs))]
    (directory / "leader-epoch-checkpoint").write_bytes(leader_epoch_checkpoint.write(noted))
    entries = [] if watermark is None else [TopicPartitionOffset(topic, number, watermark)]
    (node / REPLICATION_OFFSET_CHECKPOINT).write_bytes(checkpoint(entries))


def damage(node: Path, value: bytes) -> Path:
    """Change a byte of a metadata record, so that the CRC of its batch is wrong; the log."""
    path = node / "__cluster_metadata-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes().replace(value, b"X" + value[1:]))
    return path


def changes(plan: Rebuilding) -> list[tuple[str, str]]:
    return [(each.action, each.subject) for each in plan.changes]


def digest(root: Path) -> dict[str, str]:
    files = [each for each in root.rglob("*") if each.is_file()]
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() + str(each.stat().st_mtime_ns) for each in files}


# -- what is written ------------------------------------------------------------------------------------------------


def test_the_records_of_a_real_node_are_written_byte_for_byte(data_dir: Path, tmp_path: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    before = digest(node)
    plan = planned(node, is_forced=True)
    (copy,) = rebuilt(plan, [node], tmp_path / "new").values()
    assert digest(node) == before
    assert plan.changes == []
    written = surviving_records(copy, DEFAULT_LIMITS)
    assert written.values == plan.found.values
    assert written.image == plan.found.image
    assert copy.end[0] > plan.copy.end[0]
    assert copy.end[1] > plan.copy.end[1]
    assert (copy.directory_id, copy.cluster_id) == (plan.copy.directory_id, plan.copy.cluster_id)
    in_log = [value for path in sorted((node / "__cluster_metadata-0").glob("*.log"))
              for _, is_control, _, value in records_of(path) if not is_control]  # fmt: skip
    assert written.values[-1] in in_log


def test_the_controllers_of_a_dynamic_quorum_keep_their_identity(tmp_path: Path) -> None:
    node = broker(tmp_path / "old")
    found = rebuilt(planned(node), [node], tmp_path / "new")
    assert {number: copy.directory_id for number, copy in found.items()} == {
        number: topic_id_of(name) for number, name in _NAMES.items()
    }
    for copy in found.values():
        assert copy.kraft_version == 1
        assert [each.node_id for each in copy.voters or ()] == [11, 12, 13]
        assert [each.name for each in copy.path.iterdir()] == ["00000000000001000002-0000001001.checkpoint"]
        assert copy.findings == ()


def test_voters_can_be_changed(tmp_path: Path) -> None:
    """A known voter keeps the id of its directory, a new one gets one, and both get the new addresses."""
    node = broker(tmp_path / "old")
    voters = (Address(12, "new-12", 19093), Address(21, "::1", 19094))
    plan = planned(node, voters=voters)
    found = rebuilt(plan, [node], tmp_path / "new")
    for copy in found.values():
        assert [(each.node_id, each.endpoints) for each in copy.voters or ()] == [
            (12, (("CONTROLLER", "new-12", 19093),)), (21, (("CONTROLLER", "::1", 19094),)),
        ]  # fmt: skip
        assert (copy.node_id, copy.directory_id) in {(each.node_id, each.directory_id) for each in copy.voters or ()}
    assert found[12].directory_id == topic_id_of("twelve")
    assert any(
        "controller.quorum.bootstrap.servers=new-12:19093,[::1]:19094" in each for each in plan.steps(Path("new"))
    )


def test_new_addresses_are_those_of_every_listener_of_the_controllers(tmp_path: Path) -> None:
    """4.3.1 ended, "Unknown endpoint for voter": its controller.listener.names began with the other name."""
    node = broker(tmp_path / "old")
    write_snapshot(node / "__cluster_metadata-0", 0, 0, _NAMES, ("SECURE", "CONTROLLER"))
    found = rebuilt(planned(node, voters=(Address(12, "new-12", 19093),)), [node], tmp_path / "new")
    assert [each.endpoints for each in found[12].voters or ()] == [
        (("CONTROLLER", "new-12", 19093), ("SECURE", "new-12", 19093))
    ]


def test_the_voters_of_a_static_quorum(tmp_path: Path) -> None:
    """They are in quorum-state; new ones go into the configuration."""
    node = write_node(tmp_path / "old" / "node-1", 1)
    write_voters(write_metadata_log(node), [11, 12, 13])
    found = rebuilt(planned(node), [node], tmp_path / "new")
    assert {number: copy.voters for number, copy in found.items()} == {11: None, 12: None, 13: None}
    properties = meta_properties.read(tmp_path / "new" / "node-11" / "meta.properties")
    assert (properties.cluster_id, properties.node_id, properties.directory_id) == ("cluster-a", 11, None)
    plan = planned(node, voters=(Address(14, "h", 9093),))
    steps = list(plan.steps(Path("new")))
    assert any("controller.quorum.voters=14@h:9093" in each for each in steps)
    assert any("Only these nodes may have controller in process.roles" in each for each in steps)
    moved = planned(node, voters=tuple(Address(each, "h", 9000 + each) for each in (11, 12, 13)))
    assert not any("process.roles" in each for each in moved.steps(Path("new")))


def test_a_copy_that_is_asked_for(tmp_path: Path) -> None:
    old, later = broker(tmp_path / "a"), broker(tmp_path / "b", 2, extra_topics=2, isr=(1, 2))
    assert planned(old, later).copy.node_id == 2
    plan = planned(old, later, copy=old)
    assert plan.copy.node_id == 1
    assert plan.snapshot.end_offset > 4
    assert changes(plan) == [("lost", "topic extra-0"), ("lost", "topic extra-1"), ("set", "producer ids")]


# -- what is refused ------------------------------------------------------------------------------------------------


def controller(root: Path, node_id: int, directory: str | None = None) -> Path:
    node = write_node(root / f"node-{node_id}", node_id, directory=directory or _NAMES[node_id])
    write_snapshot(write_metadata_log(node), 0, 0, _NAMES)
    return node


def test_an_intact_majority_is_to_be_started(tmp_path: Path) -> None:
    nodes = [controller(tmp_path, 11), controller(tmp_path, 12)]
    with pytest.raises(Refused, match="nodes 11 and 12 of the voters 11, 12 and 13 have intact metadata logs"):
        planned(*nodes)
    assert planned(*nodes, is_forced=True).copy.node_id in (11, 12)
    assert planned(nodes[0]).copy.node_id == 11


def test_a_directory_with_another_id_does_not_vote(tmp_path: Path) -> None:
    assert planned(controller(tmp_path, 11), controller(tmp_path, 12, "another")).copy.node_id in (11, 12)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"__cluster_metadata-0/{0:020d}.log", "cannot open: Permission denied"),
        ("meta.properties", "its meta.properties cannot be read"),
    ],
)
def test_a_copy_that_cannot_be_read_is_left_out_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    nodes = [controller(tmp_path, each) for each in (11, 12)]
    for each in nodes:
        forbid_reading(each / name, monkeypatch)
    with pytest.raises(Refused, match=f"cannot be read, and may be intact: {words}"):
        planned(broker(tmp_path), *nodes)
    assert planned(broker(tmp_path / "again"), *nodes, is_forced=True).copy.node_id == 1


@pytest.mark.parametrize("name", [f"{0:020d}.log", "partition.metadata", "leader-epoch-checkpoint"])
def test_a_replica_that_cannot_be_read_is_left_out_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is not gone, and its node stays in the ISR."""
    node = broker(tmp_path)
    replica(node, [0])
    assert planned(node).not_checked == planned(node, is_forced=True).not_checked
    forbid_reading(node / "orders-0" / name, monkeypatch)
    with pytest.raises(Refused, match=f"1 partition on disks that cannot be read, such as .*{name}"):
        planned(node)
    assert any("1 partition on disks that cannot be read" in each for each in planned(node, is_forced=True).not_checked)


def test_a_copy_with_a_gap_is_taken_only_by_force(tmp_path: Path) -> None:
    node = broker(tmp_path)
    log = node / "__cluster_metadata-0" / f"{0:020}.log"
    log.rename(log.with_name(f"{5:020}.log"))
    with pytest.raises(Refused, match="not whole"):
        planned(node)


def test_unknown_ids(tmp_path: Path) -> None:
    write_metadata_log(tmp_path / "lone")
    with pytest.raises(InputError, match="cluster id"):
        planned(tmp_path / "lone")
    node = write_node(tmp_path / "node-1", 1)
    write_metadata_log(node)
    with pytest.raises(InputError, match="--voter"):
        planned(node)


# -- what the disks show --------------------------------------------------------------------------------------------


def test_a_leader_epoch_that_brokers_have_passed_is_raised(tmp_path: Path) -> None:
    """The partition gets a higher one, and the replica that reaches furthest leads."""
    nodes = [broker(tmp_path, number) for number in (1, 2, 3)]
    replica(nodes[0], (0, 0), watermark=3)
    replica(nodes[1], (0, 4, 5), watermark=6)
    replica(nodes[2], (0, 4, 5, 5), watermark=6)
    plan = planned(*nodes)
    assert changes(plan) == [("set", "partition orders-0"), ("set", "producer ids")]
    assert plan.changes[0].after == {"leader": 3, "leader_epoch": 6, "isr": [2, 3]}
    copy = rebuilt(plan, nodes, tmp_path / "new")[11]
    state = surviving_records(copy, DEFAULT_LIMITS).image.partitions[_ORDERS]
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (3, 6, (2, 3), 1)
    assert state.directories == plan.found.image.partitions[_ORDERS].directories


@pytest.mark.parametrize(
    ("here", "ending"),
    [
        ((1, 2, 3), "the metadata knows none after 0"),
        ((1, 2), "; records that only node 3 has are lost unless its log directories are given"),
        ((1,), "; records that only nodes 2 and 3 have are lost unless their log directories are given"),
    ],
)
def test_an_absent_replica_may_have_records_of_a_later_epoch(
    tmp_path: Path, here: tuple[int, ...], ending: str
) -> None:
    """Who was in sync in an epoch that the metadata does not know is not known, so also a node outside the ISR."""
    nodes = [broker(tmp_path, number, isr=(1, 2)) for number in here]
    for node in nodes:
        replica(node, (0, 5), watermark=6)
    assert planned(*nodes).changes[0].reason.endswith(ending)


def test_an_absent_replica_of_the_isr_may_have_what_the_others_lack(tmp_path: Path) -> None:
    """In an epoch that the metadata knows, only the ISR counts."""
    for isr, ending in (
        ((1, 2, 3), "of node 2; records that only node 3 has are lost unless its log directories are given"),
        ((1, 2), "of node 2"),
    ):
        nodes = [broker(tmp_path / str(len(isr)), number, isr=isr) for number in (1, 2)]
        replica(nodes[0], (0,), watermark=0)
        replica(nodes[1], (0, 0), watermark=6)
        assert planned(*nodes).changes[0].reason.endswith(ending)


def test_the_epoch_of_an_empty_new_segment_is_in_the_checkpoint(tmp_path: Path) -> None:
    node = broker(tmp_path)
    replica(node, (0,))
    write_segment(node / "orders-0", 3, [])
    (node / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 3\n")
    assert planned(node).changes[0].after["leader_epoch"] == 8


def test_a_replica_that_lacks_committed_records_leaves_the_isr(tmp_path: Path) -> None:
    nodes = [broker(tmp_path, number) for number in (1, 2, 3)]
    replica(nodes[0], (0,), watermark=0)
    for node in nodes[1:]:
        replica(node, (0, 0), watermark=6)
    plan = planned(*nodes)
    assert plan.changes[0].after == {"leader": 3, "leader_epoch": 1, "isr": [2, 3]} or (
        plan.changes[0].after == {"leader": 2, "leader_epoch": 1, "isr": [2, 3]}
    )
    assert "ends before the high watermark 6 of node" in plan.changes[0].reason


_ALONE = ("set", {"leader": 1, "leader_epoch": 1, "isr": [1]})


@pytest.mark.parametrize(
    ("isr", "elr", "leader", "absent", "has_disk", "expected"),
    [
        ((1, 2, 3), None, 2, {2, 3}, True, [_ALONE]),
        ((2, 3), None, 2, {2, 3}, True, [("at_risk", None), _ALONE]),
        ((1, 2, 3), None, 1, {3}, True, [("set", {"leader": 1, "leader_epoch": 1, "isr": [1, 2]})]),
        ((2, 3), None, 2, {2}, False, [("set", {"leader": 3, "leader_epoch": 1, "isr": [3]})]),
        ((2,), (1,), 2, {2}, True, [_ALONE]),
        ((2,), (3,), 2, {2}, True, [("at_risk", None), _ALONE]),
        ((2, 3), None, 2, {2, 3}, False, [("at_risk", None)]),
        ((1, 2), None, 1, {3}, True, []),
    ],
)
def test_a_node_that_may_come_back_without_its_log_leaves_the_isr(
    tmp_path: Path,
    isr: tuple[int, ...],
    elr: tuple[int, ...] | None,
    leader: int,
    absent: set[int],
    has_disk: bool,
    expected: list[tuple[str, Any]],
) -> None:
    """Under the directory id of before it would be taken for the replica that it was, lead, and empty the others."""
    node = broker(tmp_path, isr=isr, leader=leader, elr=elr)
    if has_disk:
        replica(node, [0, 0], watermark=3)
    (copy,) = read_metadata_copies([Target(node)])
    found = surviving_records(copy, DEFAULT_LIMITS)
    disks = read_disks([Target(node)], str(copy.cluster_id), DEFAULT_LIMITS)
    made = corrections_by_disks(found, disks, is_stale=False, absent=frozenset(absent))
    assert [(each.action, each.after) for each in made] == expected
    assert corrections_by_disks(found, disks, is_stale=False) == []


def test_records_that_only_absent_nodes_have_are_at_risk(data_dir: Path, tmp_path: Path) -> None:
    """All three nodes have both roles, and the ISRs are nodes 2, 3 or both: nobody knows whether they are lost.

    With one voter, the two others come back as brokers, maybe with new disks.
    """
    node = tmp_path / "node-1"
    shutil.copytree(data_dir / "trials/metadata/node-1", node)
    for number in range(2):  # metadata alone, and then a disk without any replica
        for plan in (planned(node), planned(node, voters=(Address(1, "h", 9093),))):
            assert {each.action for each in plan.changes} == {"at_risk"}
            assert len(plan.changes) == len(plan.found.image.partitions)
            said = " ".join(plan.sentences())
            assert not plan.lost
            assert "No copy and no disk here shows a later change" in said
            assert "At risk: records of partitions temporary-0 and users-3, since the in-sync replicas " in said
            assert "were on node 3, which is not here: lost unless it keeps its log directories." in said
            assert (
                "were on nodes 2 and 3, which are not here: safe only if all of them keep their log directories."
                in said
            )
            missing = "nodes 2 and 3" if number else "nodes 1, 2 and 3"
            assert plan.not_checked == [f"whether the disks of {missing} show later changes: they are not here"]
        (node / REPLICATION_OFFSET_CHECKPOINT).write_bytes(checkpoint([]))


def test_what_a_new_leader_lacks_is_at_risk(data_dir: Path, tmp_path: Path) -> None:
    """Node 1 is in no ISR: what it lacks is lost if it leads, also where the others keep their logs."""
    node = tmp_path / "node-1"
    shutil.copytree(data_dir / "trials/metadata/node-1", node)
    replica(node, [0, 0], topic="users", number=3, topic_id="296q-w8aRpyzVyN7FLhcOw")
    plan = planned(node)
    risk, new = (each for each in plan.changes if "users-3" in each.subject)
    assert (risk.action, risk.subject) == ("at_risk", "records of partition users-3 from offset 6 on")
    assert risk.reason == (
        "the in-sync replicas were on node 3, which is not here: lost unless its log directories are given, as node 1 "
        "leads"
    )
    assert (new.action, new.after) == ("set", {"leader": 1, "leader_epoch": 3, "isr": [1]})
    assert new.reason == "node 3 is not here: it may come back without its log"


def test_replicas_that_agree_with_the_metadata_change_nothing(tmp_path: Path) -> None:
    """A follower may lack the last records, and the last epoch of an elected leader that has written nothing."""
    nodes = [broker(tmp_path, number, leader_epoch=3) for number in (1, 2, 3)]
    replica(nodes[0], (0, 3, 3), watermark=6)
    replica(nodes[1], (0, 3), watermark=6)
    replica(nodes[2], (0, 3), watermark=3)
    assert planned(*nodes).changes == []


def test_copies_without_segments_are_enough_where_no_leader_has_to_be_chosen(tmp_path: Path) -> None:
    """Of large disks only the small files are copied. Where replicas reach is not known then, nor accused."""
    nodes = [broker(tmp_path, number, leader_epoch=3) for number in (1, 2, 3)]
    for node in nodes:
        replica(node, (0, 3), watermark=6)
        next((node / "orders-0").glob("*.log")).unlink()
    assert planned(*nodes).changes == []
    replica(nodes[1], (0, 3, 4), watermark=6)
    assert planned(*nodes).changes[0].after == {"leader": 2, "leader_epoch": 5, "isr": [2]}
    next((nodes[1] / "orders-0").glob("*.log")).unlink()
    with pytest.raises(Refused, match=r"partition orders-0 is to lead depends on their ends.*whole log directories"):
        planned(*nodes)


def test_what_is_after_damage_is_lost(tmp_path: Path) -> None:
    """A node drops it, so it is not written. What can be read of it is named, by quorum as well."""
    node = broker(tmp_path, extra_topics=7)
    shutil.copytree(node, untouched := tmp_path / "untouched")
    path = damage(node, b"extra-3")
    replica(node, (0,), topic="extra-5")
    plan, before = planned(node), planned(untouched)
    assert plan.copy.end == (1, 5)
    assert set(before.found.image.names.values()) - set(plan.found.image.names.values()) == {
        f"extra-{number}" for number in (3, 4, 5, 6)
    }
    assert [each.subject for each in plan.lost] == [f"topic extra-{number}" for number in (4, 5, 6)]
    assert plan.lost[0].reason == ("it is in records from offset 5 on, after damage in the copy of node 1")
    assert plan.not_checked[0] == f"what is damaged in {path.parent} at offset 5"
    found = quorum([Target(node)])
    assert found.quorum.state.image == plan.found.image
    assert [(each.topic, each.is_proven) for each in found.lost.changes] == [("extra-5", True)]


@pytest.mark.parametrize(("length", "lost"), [(7, []), (9, ["topic extra-7", "topic extra-8"])])
def test_damage_in_another_copy(tmp_path: Path, length: int, lost: list[str]) -> None:
    """What the copy that is taken has as well is not lost, and known."""
    node, other = broker(tmp_path, extra_topics=7), broker(tmp_path, 2, extra_topics=length)
    damage(other, b"extra-3")
    plan = planned(node, other)
    assert (plan.copy.node_id, plan.copy.end) == (1, (1, 9))
    assert [each.subject for each in plan.lost] == lost
    assert not [each for each in plan.not_checked if "damaged" in each]


def test_damage_before_the_newest_snapshot(tmp_path: Path) -> None:
    """The node empties its log, and goes on from the snapshot: nothing is missing before that."""
    node = broker(tmp_path, extra_topics=7)
    path = damage(node, b"extra-1")
    write_snapshot(path.parent, 6, 1, _NAMES)
    plan = planned(node)
    assert (plan.copy.end, plan.copy.gap) == ((1, 6), "")
    assert [each.subject for each in plan.lost] == [f"topic extra-{number}" for number in (4, 5, 6)]
    assert not quorum([Target(node)]).quorum.state.is_damaged


def test_producer_ids_in_use_are_not_handed_out_again(tmp_path: Path) -> None:
    node = broker(tmp_path)
    replica(node, (0,), producer_id=4321)
    plan = planned(node)
    assert changes(plan) == [("set", "producer ids")]
    copy = rebuilt(plan, [node], tmp_path / "new")[11]
    assert (surviving_records(copy, DEFAULT_LIMITS).image.next_producer_id or 0) >= 5000


def test_topics_and_partitions_that_only_disks_have(tmp_path: Path) -> None:
    node = broker(tmp_path)
    for topic, number in (("orders", 0), ("orders", 1), ("new", 0), ("new", 1)):
        replica(node, (0,), topic=topic, number=number)
    plan = planned(node)
    assert changes(plan)[:2] == [("lost", "partition orders-1"), ("lost", "topic new")]
    assert plan.changes[1].after == {"topic_id": topic_id_of("new"), "partitions": [0, 1]}
    assert "Lost: partition orders-1 and topic new." in list(plan.sentences())


def test_a_replica_on_a_node_that_has_none_by_the_metadata(tmp_path: Path) -> None:
    """It was added later, unless the metadata has a later epoch: then it was removed, and is a leftover."""
    for epoch, expected in ((3, [("lost", "partition orders-0"), ("set", "producer ids")]), (2, [])):
        nodes = [broker(tmp_path / str(epoch), number, leader_epoch=3, replicas=(1,), isr=(1,)) for number in (1, 2)]
        replica(nodes[0], (3,), watermark=3)
        replica(nodes[1], (epoch,))
        plan = planned(*nodes)
        assert changes(plan) == expected
    plan = planned(*[tmp_path / "3" / f"node-{number}" for number in (1, 2)])
    assert plan.changes[0].reason == "node 2 has a replica, and the metadata assigns it to [1]"


def test_a_topic_may_have_been_deleted_before_the_metadata_begins(tmp_path: Path) -> None:
    """It is named, with both possibilities; not where the log shows that it was deleted."""
    node = broker(tmp_path)
    replica(node, (0,), topic="other")
    log = node / "__cluster_metadata-0"
    assert "deleted" not in planned(node).changes[0].reason
    write_snapshot(log, 2, 0, _NAMES)
    (log / f"{0:020}.log").unlink()
    (log / f"{0:020}-{0:010}.checkpoint").unlink()
    write_segment(log, 2, [])
    assert planned(node).changes[0].reason == "node 1 has it; or it was deleted before the metadata here begins"


def test_a_topic_that_no_disk_has(tmp_path: Path) -> None:
    """It was deleted later where the disks show other changes, and all disks that should have it are here."""
    node = broker(tmp_path, replicas=(1,), isr=(1,))
    replica(node, (0,), topic="other")
    assert ("lost", "topic orders") in changes(planned(node))
    node = broker(tmp_path / "two", replicas=(1, 2), isr=(1, 2))
    replica(node, (0,), topic="other")
    plan = planned(node)
    assert changes(plan)[:1] == [("lost", "topic other")]
    assert ("lost", "topic orders") not in changes(plan)
    node = broker(tmp_path / "three", replicas=(1,), isr=(1,))
    (node / REPLICATION_OFFSET_CHECKPOINT).write_bytes(checkpoint([]))
    plan = planned(node)
    assert plan.changes == []
    assert "whether topic orders was deleted later: no disk here has it" in plan.not_checked


def test_a_topic_may_be_in_a_log_directory_that_is_not_given(tmp_path: Path) -> None:
    """Of a node with two disks, one was enough to say that the topic was deleted."""
    node = broker(tmp_path, replicas=(1,), isr=(1,))
    write_node(node, 1, directory="one")
    replica(node, (0,), topic="other")
    data = {
        "brokerId": 1, "isMigratingZkBroker": False, "incarnationId": topic_id_of("run"), "brokerEpoch": 2,
        "endPoints": [], "features": [], "rack": None, "fenced": False, "inControlledShutdown": False,
        "logDirs": [topic_id_of("one"), topic_id_of("two")],
    }  # fmt: skip
    with (node / "__cluster_metadata-0" / f"{0:020d}.log").open("ab") as log:
        log.write(batch(2, [encode_metadata_record("REGISTER_BROKER_RECORD", 3, data)], key=None, leader_epoch=1))
    plan = planned(node)
    assert ("lost", "topic other") in changes(plan)
    assert ("lost", "topic orders") not in changes(plan)
    assert plan.not_checked == ["1 of the 2 log directories of node 1: not here"]
    replica(write_node(tmp_path / "disk-2", 1, directory="two"), (0,), topic="third")
    plan = planned(node, tmp_path / "disk-2")
    assert ("lost", "topic orders") in changes(plan)
    assert plan.not_checked == []


# -- the encoder ----------------------------------------------------------------------------------------------------


def test_records_are_encoded_as_kafka_encodes_them() -> None:
    """The encoder of the tests is written against Kafka's description of the format."""
    data = {
        "partitionId": 3, "topicId": topic_id_of("a"), "replicas": [1, 2], "isr": [2], "removingReplicas": [],
        "addingReplicas": [], "leader": 2, "leaderRecoveryState": 1, "leaderEpoch": 9, "partitionEpoch": 4,
        "directories": [topic_id_of("b"), topic_id_of("c")], "eligibleLeaderReplicas": [1], "lastKnownElr": [],
    }  # fmt: skip
    for version in (0, 1, 2):
        message = MESSAGES["PartitionRecord"]
        assert encode_message(message, version, data) == encode(message, version, data)
    del data["leaderRecoveryState"]
    assert encode_message(message, 1, data) == encode(message, 1, data)
    ids = {"brokerId": 1, "brokerEpoch": -1, "nextProducerId": 7000}
    assert encode_metadata_record("PRODUCER_IDS_RECORD", 0, ids) == (
        bytes.fromhex("010f0000000001ffffffffffffffff0000000000001b5800")
    )  # fmt: skip
