"""Files beside the logs: what stops a broker stays out or is rebuilt, and redact writes only what it knows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from format import layout
from format.files import clean_shutdown, meta_properties, partition_metadata
from format.findings import Finding
from format.rewriting.publication import Publication
from format.rewriting.rewriter import WriteTerms
from format.rewriting.sources import read_write_sources
from format.verbs.redact.redact import Redaction, redact
from format.verbs.redact.replacements import Mode, Redactor
from format.verbs.salvage import salvage
from format.verbs.verify.verify import verify
from tests.building import batches, write_segment

pytestmark = pytest.mark.slow

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
DIRECTORY_ID = "qdjf3iRK0hQ-aXAzdHP3xg"
METADATA = "__cluster_metadata-0"


def salvaged(source: Path, target: Path) -> list[Finding]:
    sources = read_write_sources([source])
    with Publication(target, [source], job=sources.job("salvage")) as publication:
        return [each for each in salvage(sources, publication, WriteTerms()) if isinstance(each, Finding)]


def redacted(source: Path, target: Path) -> list[Finding]:
    sources = read_write_sources([source])
    terms = Redaction(redactor=Redactor(Mode.FILL))
    with Publication(target, [source], job=sources.job("redact", **terms.options())) as publication:
        return [each for each in redact(sources, publication, terms) if isinstance(each, Finding)]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A log directory of two partitions of one topic."""
    directory = tmp_path / "node"
    for name in ("t-0", "t-1"):
        write_segment(directory / name, 0, batches(2))
        (directory / name / layout.PARTITION_METADATA).write_bytes(partition_metadata.write(TOPIC_ID))
    (directory / layout.META_PROPERTIES).write_text("#\n#today\nversion=1\nnode.id=1\ncluster.id=c\nowner=alice\n")
    return directory


def copy_of_the_corpus(data_dir: Path, tmp_path: Path) -> Path:
    source = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node")
    for each in [source, *source.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return source


# -- partition.metadata --------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_", b"\0" * 40])
def test_a_torn_topic_id_is_taken_from_the_topics_other_partition(node: Path, tmp_path: Path, content: bytes) -> None:
    (node / "t-0" / layout.PARTITION_METADATA).write_bytes(content)
    found = salvaged(node, tmp_path / "out")
    assert partition_metadata.read(tmp_path / "out/t-0" / layout.PARTITION_METADATA).topic_id == TOPIC_ID
    assert [each.code for each in found] == ["checkpoint-invalid"]
    assert TOPIC_ID in found[0].message


def test_a_torn_topic_id_that_nothing_tells_is_left_out(node: Path, tmp_path: Path) -> None:
    for name in ("t-0", "t-1"):
        (node / name / layout.PARTITION_METADATA).write_bytes(b"")
    found = salvaged(node, tmp_path / "out")
    assert not list((tmp_path / "out").rglob(layout.PARTITION_METADATA))
    assert ["left out" in each.message for each in found if each.code == "checkpoint-invalid"] == [True, True]


def test_a_missing_topic_id_is_made_where_it_is_known(node: Path, tmp_path: Path) -> None:
    (node / "t-1" / layout.PARTITION_METADATA).unlink()
    assert [each.code for each in salvaged(node, tmp_path / "out")] == ["replica-stray"]
    assert partition_metadata.read(tmp_path / "out/t-1" / layout.PARTITION_METADATA).topic_id == TOPIC_ID


def test_topic_ids_come_from_the_metadata_log_too(data_dir: Path, tmp_path: Path) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    path = source / "users-0" / layout.PARTITION_METADATA
    topic_id = partition_metadata.read(path).topic_id
    path.write_bytes(b"")
    salvaged(source, tmp_path / "out")
    assert partition_metadata.read(tmp_path / "out/users-0" / layout.PARTITION_METADATA).topic_id == topic_id


def test_a_topic_id_comes_from_the_metadata_log_before_other_partitions(data_dir: Path, tmp_path: Path) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    path = source / "orders-1" / layout.PARTITION_METADATA
    topic_id = partition_metadata.read(path).topic_id
    path.write_bytes(b"")
    shutil.copy(source / "users-0" / layout.PARTITION_METADATA, source / "orders-0")
    salvaged(source, tmp_path / "out")
    assert partition_metadata.read(tmp_path / "out/orders-1" / layout.PARTITION_METADATA).topic_id == topic_id


# -- what stops a broker -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (layout.META_PROPERTIES, b"version=1\nnode.id=1\n"),
        (f"{METADATA}/{layout.QUORUM_STATE}", b'{"leaderId":1,'),
        ("orders-0/leader-epoch-checkpoint", b"0\n2\n0 0\n"),
    ],
)
def test_a_torn_file_stays_out(data_dir: Path, tmp_path: Path, name: str, content: bytes) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    (source / name).write_bytes(content)
    found = salvaged(source, tmp_path / "out")
    assert not (tmp_path / "out" / name).exists()
    assert [each for each in found if each.location.path == str(source / name) and "left out" in each.message]


@pytest.mark.parametrize("damage", ["zeros", "cut"])
def test_a_damaged_metadata_snapshot_stays_out(data_dir: Path, tmp_path: Path, damage: str) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    snapshots = [*(source / METADATA).glob("*.checkpoint"), source / layout.BOOTSTRAP_CHECKPOINT]
    assert snapshots
    for path in snapshots:
        content = path.read_bytes()
        path.write_bytes(bytes(len(content)) if damage == "zeros" else content[: len(content) // 2])
    salvaged(source, tmp_path / "out")
    assert not [path for path in snapshots if (tmp_path / "out" / path.relative_to(source)).exists()]


def test_sound_files_come_along_as_they_are(data_dir: Path, tmp_path: Path) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    salvaged(source, tmp_path / "out")
    for name in (layout.META_PROPERTIES, layout.BOOTSTRAP_CHECKPOINT, f"{METADATA}/{layout.QUORUM_STATE}",
                 f"orders-0/{layout.PARTITION_METADATA}", "orders-0/leader-epoch-checkpoint"):  # fmt: skip
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes(), name


# -- redact --------------------------------------------------------------------------------------------------


def test_redact_writes_only_what_kafka_writes(node: Path, tmp_path: Path) -> None:
    metadata = node / "t-0" / layout.PARTITION_METADATA
    metadata.write_bytes(metadata.read_bytes() + b"\nalice's laptop\n")
    (node / "t-0" / layout.LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    (node / "t-0" / "00000000000000000006-0000000001.checkpoint").write_bytes(b"alice")
    (node / "t-0" / layout.QUORUM_STATE).write_text('{"clusterId":"alice","leaderId":1,"data_version":1}')
    (node / layout.CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7,"by":"alice"}')
    redacted(node, tmp_path / "out")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file() and b"alice" in path.read_bytes()] == []
    kept = meta_properties.read(tmp_path / "out" / layout.META_PROPERTIES)
    assert (kept.node_id, kept.cluster_id, kept.comments) == (1, "c", ())
    assert partition_metadata.read(tmp_path / "out/t-0" / layout.PARTITION_METADATA).topic_id == TOPIC_ID
    assert clean_shutdown.read(tmp_path / "out" / layout.CLEAN_SHUTDOWN).broker_epoch == 7


def test_redact_names_no_path_of_the_source(node: Path, tmp_path: Path) -> None:
    redacted(node, tmp_path / "out")
    manifest = (tmp_path / "out" / layout.MANIFEST).read_text()
    assert str(node) not in manifest
    assert json.loads(manifest)["job"] == {
        "command": "redact",
        "options": Redaction(redactor=Redactor(Mode.FILL)).options(),
    }


def test_what_redact_writes_is_a_log_directory(data_dir: Path, tmp_path: Path) -> None:
    source = copy_of_the_corpus(data_dir, tmp_path)
    redacted(source, tmp_path / "out")
    assert [each for each in verify(tmp_path / "out") if each.severity >= 2] == []


# -- the identity of a node ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version=2\ncluster.id=c\nnode.id=1\n", {"cluster.id": "c", "node.id": "1"}),
        ("version=1\ncluster.id=c\nnode.id=x\n", {"cluster.id": "c", "node.id": "1"}),
        ("version=1\ncluster.id=c\n", {"cluster.id": "c", "node.id": "1"}),
        ("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=nonsense\n", {"cluster.id": "c", "node.id": "1"}),
        ("version=1\ncluster.id=c\nnode.id=x\ndirectory.id=nonsense\n", {"cluster.id": "c", "node.id": "1"}),
        ("version=1\nnode.id=1\n", None),
        ("\0" * 40, None),
        ("version=1\ncluster.id=\0\nnode.id=x\n", None),
    ],
)
def test_a_damaged_identity_is_made_anew_from_what_is_known(
    data_dir: Path, tmp_path: Path, text: str, expected: dict[str, str] | None
) -> None:
    source = tmp_path / "node"
    for name in (METADATA, "orders-0"):
        shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / name, source / name)
    (source / layout.META_PROPERTIES).write_text(text)
    found = salvaged(source, tmp_path / "out")
    [message] = [each.message for each in found if each.location.path == str(source / layout.META_PROPERTIES)]
    written = tmp_path / "out" / layout.META_PROPERTIES
    if expected is None:
        assert "left out" in message
        assert not written.exists()
    else:
        assert "rebuilt" in message
        expected_ids = {"version": "1", **expected, "directory.id": DIRECTORY_ID}
        assert dict(meta_properties.read(written).properties) == expected_ids


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "the property directory.id is missing"),
        ("directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ is reserved by Kafka"),
    ],
)
def test_a_directory_without_its_id_gets_the_one_that_the_metadata_log_has(
    data_dir: Path, tmp_path: Path, line: str, what: str
) -> None:
    """A broker with a new id leads no partition, as a consumer saw; with a reserved id it does not start."""
    source = tmp_path / "node"
    for name in (METADATA, "orders-0"):
        shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / name, source / name)
    identity = source / layout.META_PROPERTIES
    identity.write_text(f"version=1\ncluster.id=c\nnode.id=1\n{line}")
    found = salvaged(source, tmp_path / "out")
    [message] = [each.message for each in found if each.location.path == str(identity)]
    assert message == f"{what}; it is written, as the metadata log has it"
    assert meta_properties.read(tmp_path / "out" / layout.META_PROPERTIES).directory_id == DIRECTORY_ID
    identity.write_text(f"version=1\ncluster.id=c\nnode.id=7\n{line}")  # the metadata says nothing of such a node here
    salvaged(source, tmp_path / "other")
    assert meta_properties.read(tmp_path / "other" / layout.META_PROPERTIES).directory_id is None


def test_a_future_replica_beside_the_current_one_is_left_out(node: Path, tmp_path: Path) -> None:
    future = f"t-1.{'0' * 32}-future"
    write_segment(node / future, 0, batches(2))
    found = salvaged(node, tmp_path / "out")
    assert [(each.code, Path(each.location.path).name) for each in found] == [("boot-refused", future)]
    assert not (tmp_path / "out" / future).exists()
