from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, UnreadableFile
from format.files import partition_metadata
from format.files.partition_metadata import PartitionMetadata
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

TOPIC_ID = "7jUNgAJLTqSkOyjMSfdIhA"
SOUND = f"version: 0\ntopic_id: {TOPIC_ID}".encode()


def read(content):
    return partition_metadata.read(BytesSource(content))


def test_every_file_of_a_broker_is_read_and_written_back(corpus):
    paths = list(corpus.files("partition.metadata"))
    if not paths:
        pytest.skip("this corpus has no partition metadata")
    for path in paths:
        metadata = partition_metadata.read(path)
        assert (metadata.version, metadata.problems) == (0, ())
        assert partition_metadata.write(metadata) == path.read_bytes()


def test_replicas_and_partitions_of_a_topic_share_its_id(data_dir):
    ids = {
        partition_metadata.read(data_dir / "kafka-4.3-single/node-1" / name / "partition.metadata").topic_id
        for name in ("orders-0", "orders-1", "orders-2")
    }
    assert len(ids) == 1
    metadata_topic = data_dir / "kafka-4.3-single/node-1/__cluster_metadata-0/partition.metadata"
    assert partition_metadata.read(metadata_topic).topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_what_is_written_is_read_back(content):
    topic_id = base64.urlsafe_b64encode(content).decode().rstrip("=")
    metadata = read(partition_metadata.write(topic_id))
    assert (metadata.topic_id, metadata.problems) == (topic_id, ())
    assert partition_metadata.write(metadata) == f"version: 0\ntopic_id: {topic_id}".encode()


@pytest.mark.parametrize("content", [SOUND + b"\n", SOUND.replace(b"\n", b"\r\n"), SOUND.replace(b": ", b":\t ")])
def test_what_a_broker_reads_is_read(content):
    assert (read(content).topic_id, read(content).problems) == (TOPIC_ID, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", 'expected a line "version: …", found the end of the file'),
        (b"version: 0\n", 'expected a line "topic_id: …", found the end of the file'),
        (b"version 0\n", "line 1: expected \"version: …\", found 'version 0'"),
        (b"version:0\n", "line 1: expected \"version: …\", found 'version:0'"),
        (b"version: x\n", "line 1: expected a version of 0 or more, found 'version: x'"),
        (b"version: -1\n", "line 1: expected a version of 0 or more, found 'version: -1'"),
        (b"topic_id: 0\n", "line 1: expected \"version: …\", found 'topic_id: 0'"),
        (b"version: 0\ntopic: x", "line 2: expected \"topic_id: …\", found 'topic: x'"),
    ],
)
def test_malformed_text_is_refused(content, message):
    with pytest.raises(InvalidCheckpoint) as caught:
        read(content)
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["", "short", "A" * 22, TOPIC_ID[:-1] + "+", TOPIC_ID + " ", TOPIC_ID + ": x"])
def test_what_is_no_topic_id_is_refused(text):
    with pytest.raises(InvalidCheckpoint, match="line 2: expected"):
        read(f"version: 0\ntopic_id: {text}".encode())


def test_a_newer_version_is_read_as_brokers_do():
    metadata = read(f"version: 3\ntopic_id: {TOPIC_ID}\nmore: 1\n".encode())
    assert (metadata.version, metadata.topic_id) == (3, TOPIC_ID)
    assert [(each.position, each.length, each.code) for each in metadata.problems] == [(0, 10, "version-unknown")]


def test_more_lines_and_another_spelling_are_problems():
    metadata = read(f"version: 0\ntopic_id: {TOPIC_ID[:-1]}D\nmore: 1\n".encode())
    assert metadata.topic_id == TOPIC_ID
    assert [each.position for each in metadata.problems] == [11, 44]


def test_every_changed_byte_and_every_truncation_is_noticed_or_means_another_id():
    for damaged in (single_byte_changes, truncations):
        for changed, metadata in outcomes(partition_metadata.read, damaged(SOUND)):
            if isinstance(metadata, PartitionMetadata) and not metadata.problems:
                assert metadata.topic_id != TOPIC_ID or changed.split() == SOUND.split() or b"+0" in changed


def test_a_missing_file_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile):
        partition_metadata.read(tmp_path / "partition.metadata")
