"""metadata against what an AdminClient said of a real cluster, and on logs with transactions and damage."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from format.columns import ASSIGNMENT, TOPIC
from format.errors import InputError
from format.files import partition_metadata
from format.findings import finding
from format.location import Location
from format.node.partition import Partition
from format.node.target import Target
from format.state.cluster_image import TOPIC_RESOURCE, ClusterImage, PartitionState
from format.state.metadata_log import MetadataRecord, MetadataSource, MetadataState, Until
from format.verbs.metadata.metadata import HIDDEN, MetadataResult, MetadataTerms, history, metadata, shown_value
from tests.building import batch, write_segment
from tests.metadata_logs import write_metadata_log, write_node, write_snapshot
from tests.oracle.metadata_trial import differences

#: Of the oldest records: a frame version, a type and a version, each one byte here.
BEGIN, END, ABORT = b"\x01\x17\x00\x00", b"\x01\x18\x00\x00", b"\x01\x19\x00\x00"


def topic_record(name: str) -> bytes:
    return b"\x01\x02\x00" + bytes([len(name) + 1]) + name.encode() + uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes + b"\0"


def node_with(tmp_path: Path, values: list[bytes], *, base_offset: int = 0) -> Path:
    """A log directory whose metadata log has these records, a batch each."""
    partition = tmp_path / "node" / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    write_segment(
        partition,
        base_offset,
        [batch(base_offset + at, [value], key=None, leader_epoch=1) for at, value in enumerate(values)],
    )
    return partition.parent


def read(path: Path, until: Until | None = None, **terms: Any) -> MetadataResult:
    return metadata([Target(path)], MetadataTerms(until or Until(), **terms))


def names(result: MetadataResult) -> list[str]:
    return sorted(result.state.image.names.values())


@pytest.fixture
def sample(data_dir: Path) -> Path:
    return data_dir / "trials" / "metadata"


@pytest.fixture
def truths(sample: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((sample / "truth" / "metadata.json").read_text())
    assert len(found) == 4
    return found


def test_equals_what_an_admin_client_said(sample: Path, truths: list[dict[str, Any]]) -> None:
    for truth in truths:
        for until in (Until(offset=truth["end_offset"] - 1), Until(timestamp=truth["time"])):
            result = read(sample / "node-1", until)
            assert not differences(truth, result)
            assert not result.state.findings
            assert (result.state.snapshot is None) == (truth is truths[0])


def test_the_trial_would_see_a_difference(sample: Path, truths: list[dict[str, Any]]) -> None:
    result = read(sample / "node-1", Until(offset=truths[0]["end_offset"] - 1))
    assert {each.split(":")[0] for each in differences(truths[1], result)} >= {"topics", "acls", "quotas", "scram"}


def test_the_history_leads_to_the_same_image(sample: Path) -> None:
    changes: list[tuple[Any, ...]] = []
    result = metadata([Target(sample / "node-1")], MetadataTerms(), changes.append)
    assert result.state.snapshot is None  # from the first record on
    assert result.state.image.partitions == read(sample / "node-1").state.image.partitions
    retention = [each for each in changes if each[3] == "config retention.ms of topic orders"]
    assert [each[4:] for each in retention] == [(None, "3600000"), ("3600000", "7200000")]
    moved = [each for each in changes if each[3] == "partition orders-1" and "replicas" in (each[5] or {})]
    assert moved[-1][5]["replicas"] == [1, 2]


def test_the_history_has_everything_that_a_record_changes() -> None:
    """The partitions and configs of a topic that is removed, and eligible leader replicas that are cleared."""
    image, changes = ClusterImage(), list[tuple[Any, ...]]()
    watch = history(changes.append, None, None)
    partition = {"leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "replicas": [1, 2], "isr": [1]}
    records: list[tuple[str, dict[str, Any]]] = []
    for name in ("a", "b"):
        records += [
            ("TOPIC_RECORD", {"topicId": name, "name": name}),
            ("PARTITION_RECORD", partition | {"topicId": name, "partitionId": 0, "eligibleLeaderReplicas": [2]}),
            ("PARTITION_RECORD", partition | {"topicId": name, "partitionId": 1}),
            ("CONFIG_RECORD", {"resourceType": TOPIC_RESOURCE, "resourceName": name, "name": "x", "value": "7"}),
        ]
    records += [("CLEAR_ELR_RECORD", {"topicName": "b"}), ("CLEAR_ELR_RECORD", {"topicName": ""})]
    records += [("REMOVE_TOPIC_RECORD", {"topicId": "a"})]
    for offset, (record_type, data) in enumerate(records):
        after = watch(image, MetadataRecord(offset, 0, record_type, data))
        image.apply(record_type, data)
        assert after is not None
        after()
    assert [(offset, subject) for offset, _, _, subject, _, _ in changes[8:]] == [
        (8, "partition b-0"),
        (9, "partition a-0"),
        (10, "topic a"),
        (10, "partition a-0"),
        (10, "partition a-1"),
        (10, "config x of topic a"),
    ]
    for _, _, record_type, _, before, then in changes[8:10]:
        assert record_type == "CLEAR_ELR_RECORD"
        assert (before["eligible_leader_replicas"], then["eligible_leader_replicas"]) == ([2], [])
    assert [row[5] for row in changes[10:]] == [None] * 4
    assert changes[-1][4] == "7"


def test_a_controller_is_registered_until_it_is_unregistered(data_dir: Path) -> None:
    """By AdminClient.unregisterController, from 4.4 on."""
    node = data_dir / "trials" / "metadata-4.4" / "node-1"
    before, after = read(node, Until(offset=61)), read(node)
    assert sorted(before.state.image.controllers) == [1, 2]
    assert sorted(after.state.image.controllers) == [1]
    assert after.state.image.features["metadata.version"] == 33
    changes: list[tuple[Any, ...]] = []
    metadata([Target(node)], MetadataTerms(), changes.append)
    (change,) = [each for each in changes if each[2] == "UNREGISTER_CONTROLLER_RECORD"]
    assert (change[0], change[3], change[4]["controllerId"], change[5]) == (62, "controller 2", 2, None)


def test_no_secret_is_shown(sample: Path) -> None:
    changes: list[tuple[Any, ...]] = []
    result = metadata([Target(sample / "node-1")], MetadataTerms(), changes.append)
    shown = repr([row for _, rows in result.rows() for row in rows]) + repr(changes)
    assert "credential SCRAM-SHA-256 of alice" in shown
    for name in ("salt", "storedKey", "serverKey"):
        assert name not in shown
    assert shown_value(4, "listener.name.external.ssl.keystore.password", "hunter2") == HIDDEN
    assert shown_value(4, "my.plugin.setting", "hunter2") == HIDDEN
    assert shown_value(4, "log.retention.ms", "1") == "1"
    assert shown_value(TOPIC_RESOURCE, "retention.ms", "1") == "1"


def test_topic_ids_are_those_of_the_directories(data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    rows = dict(read(log_dir).rows())
    ids = {row[0]: row[1] for row in rows[TOPIC]}
    found = 0
    for path in log_dir.glob("*/partition.metadata"):
        topic = path.parent.name.rpartition("-")[0]
        if topic != "__cluster_metadata":
            assert ids[topic] == partition_metadata.read(path).topic_id
            found += 1
    assert found == len(list(rows[ASSIGNMENT])) == 23


def test_a_transaction_takes_effect_at_its_end(tmp_path: Path) -> None:
    values = [
        topic_record("a"),
        BEGIN,
        topic_record("b"),
        END,
        BEGIN,
        topic_record("c"),
        ABORT,
        BEGIN,
        topic_record("d"),
    ]
    log_dir = node_with(tmp_path, values)
    result = read(log_dir)
    assert names(result) == ["a", "b"]
    [found] = result.state.findings
    assert found.code == "metadata-transaction-open"
    assert found.location.offset == 7
    assert names(read(log_dir, Until(offset=2))) == ["a"]
    assert names(read(log_dir, Until(offset=3))) == ["a", "b"]


def test_a_damaged_snapshot_is_passed_over(data_dir: Path, tmp_path: Path) -> None:
    log_dir = tmp_path / "node-1"
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / "__cluster_metadata-0", log_dir / "__cluster_metadata-0")
    sound = read(log_dir)
    newest = sound.state.snapshot
    assert newest is not None
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    result = read(log_dir)
    assert [found.code for found in result.state.findings] == ["batch-crc-mismatch"]
    assert result.state.snapshot is not None
    assert result.state.snapshot < newest
    assert result.state.image.partitions == sound.state.image.partitions
    assert result.state.image.configs == sound.state.image.configs


def test_a_lost_head_is_reported_and_the_rest_read(tmp_path: Path) -> None:
    change = b"\x01\x07\x00" + (5).to_bytes(4, "big") + (9).to_bytes(8, "big") + b"\0"  # fences broker 5
    result = read(node_with(tmp_path, [topic_record("a"), change, change], base_offset=100))
    assert names(result) == ["a"]
    assert [found.code for found in result.state.findings] == ["metadata-incomplete", "metadata-incomplete"]
    assert "begins at offset 100" in result.state.findings[0].message
    assert "and 1 records after it" in result.state.findings[1].message


def test_a_damaged_record_does_not_end_the_replay(tmp_path: Path) -> None:
    log_dir = node_with(tmp_path, [topic_record("a"), b"\x01\x02\x00\x7f", topic_record("b"), b"\x01\x7f\x00\x00"])
    result = read(log_dir)
    assert names(result) == ["a", "b"]
    assert [found.code for found in result.state.findings] == ["internal-record-invalid", "version-unknown"]


def test_the_log_that_reaches_furthest_is_read(tmp_path: Path) -> None:
    short = node_with(tmp_path / "one", [topic_record("a")])
    long = node_with(tmp_path / "two", [topic_record("a"), topic_record("b")])
    result = metadata([Target(short), Target(long)], MetadataTerms())
    assert names(result) == ["a", "b"]
    assert result.source.partition.path.parent == long
    assert len(result.others) == 1


def test_no_metadata_log(data_dir: Path) -> None:
    with pytest.raises(InputError, match="no __cluster_metadata-0"):
        read(data_dir / "kafka-4.3" / "node-2")


_SOUND = {"replicas": (1, 2), "isr": (1, 2), "leader": 1}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "; every partition has a leader, and all its replicas are in sync."),
        ({"leader": -1}, "; 1 partition without a leader."),
        ({"isr": (1,)}, "; 1 partition with replicas out of sync."),
        ({"leader": -1, "isr": ()}, "; 1 partition without a leader and 1 partition with replicas out of sync."),
        ({"adding_replicas": (3,)}, "; 1 partition being reassigned."),
    ],
)
def test_the_sentence_names_what_is_odd(changed: dict[str, Any], words: str) -> None:
    image = ClusterImage(names={"id": "orders"}, partitions={("id", 0): PartitionState(**{**_SOUND, **changed})})
    state = MetadataState(path=Path("/node"), image=image, last_offset=7)
    result = MetadataResult(MetadataSource(Partition(Path("/node")), None, None), [], state, MetadataTerms())
    assert result.sentence() == f"The metadata at offset 7: 1 topic, 1 partition, 0 brokers{words}"
    state.findings = [finding("metadata-incomplete", Location("/node"), "the head is gone")]
    assert result.sentence().endswith(f"; records may be missing{words if changed else '.'}")
    state.findings, state.image = [], ClusterImage()
    assert result.sentence() == "The metadata at offset 7: 0 topics, 0 partitions, 0 brokers."


def test_another_copy_that_has_the_missing_records_is_named(tmp_path: Path) -> None:
    """Of a history: only the damaged copy has its end."""
    nodes = [write_node(tmp_path / f"node-{each}", each) for each in (1, 2)]
    for node, count in zip(nodes, (8, 4), strict=True):
        write_metadata_log(node, extra_topics=count)
    log = nodes[0] / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes().replace(b"extra-2", b"extra-X"))
    write_snapshot(log.parent, 7, 1)
    result = metadata([Target(each) for each in nodes], MetadataTerms(), lambda row: None)
    assert result.source.node_id == 1
    other = nodes[1] / "__cluster_metadata-0"
    assert f"; records may be missing (the first of them: see {other})" in result.sentence()
    alone = metadata([Target(nodes[0])], MetadataTerms(), lambda row: None)
    assert "see" not in alone.sentence()
