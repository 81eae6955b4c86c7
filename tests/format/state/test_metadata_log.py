"""What the replay of the metadata log makes of records that are newer than this program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.errors import InputError
from format.findings import Severity
from format.internal_topics.schema import schema_of
from format.layout import CONTROL_BIT, CONTROL_KEY, CONTROL_TYPES
from format.limits import DEFAULT_LIMITS
from format.node.partition import read_partition
from format.node.target import Target
from format.state.metadata_log import MetadataState, Until, metadata_sources, read_metadata
from tests.building import batch
from tests.format.internal_topics.message_encoder import UNKNOWN_TAGS, encode, zero_message
from tests.metadata_logs import write_metadata_log, write_node, write_snapshot

_RAFT_TYPES = [each for each in CONTROL_TYPES if each not in ("ABORT", "COMMIT")]


def _read(folder: Path, type_number: int, value: bytes) -> MetadataState:
    metadata = write_metadata_log(write_node(folder, 1))
    key = CONTROL_KEY.struct.pack(0, type_number)
    log = metadata / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + batch(2, [value], key=key, attributes=CONTROL_BIT, leader_epoch=1))
    return read_metadata(read_partition(metadata))


@pytest.mark.parametrize("type_number", [*range(2, len(CONTROL_TYPES)), len(CONTROL_TYPES), 0x7FFF])
def test_a_newer_control_record_is_said_and_the_rest_is_read(tmp_path: Path, type_number: int) -> None:
    state = _read(tmp_path, type_number, b"\x00\x63" + bytes(8))
    assert [(each.code, each.location.offset) for each in state.findings] == [("version-unknown", 2)]
    assert len(state.image.partitions) == 1


@pytest.mark.parametrize("name", _RAFT_TYPES)
def test_a_control_record_with_unknown_tagged_fields_takes_effect(tmp_path: Path, name: str) -> None:
    message = schema_of("control_records").types[CONTROL_TYPES.index(name)].value
    value = encode(message, 0, zero_message(message, 0, tags=UNKNOWN_TAGS))
    state = _read(tmp_path, CONTROL_TYPES.index(name), value)
    assert not state.findings
    if name == "LEADER_CHANGE":
        assert state.image.leader == (0, 1)


@pytest.mark.parametrize("type_number", [0, 1])
def test_a_marker_of_a_transaction_changes_nothing(tmp_path: Path, type_number: int) -> None:
    assert not _read(tmp_path, type_number, bytes(6)).findings


def test_a_node_that_ran_with_zookeeper_has_no_metadata(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the node ran with ZooKeeper, which has the metadata"):
        metadata_sources([Target(data_dir / "kafka-0.8-to-2.8" / "data")], DEFAULT_LIMITS)
    with pytest.raises(InputError, match=r"with a log or a snapshot here$"):
        metadata_sources([Target(data_dir / "kafka-4.3-single" / "node-1" / "orders-0")], DEFAULT_LIMITS)
    # The second disk of a broker that 3.9.1 took to KRaft: its file stays of version 0, and gets a directory id.
    (tmp_path / "t-0").mkdir()
    text = "broker.id=1\ndirectory.id=GX4D67fxP8fItdmQclIavg\nversion=0\ncluster.id=b1DYJetbSEaSOavTsoVbhg\n"
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(InputError, match=r"with a log or a snapshot here$"):
        metadata_sources([Target(tmp_path)], DEFAULT_LIMITS)


def test_an_empty_meta_properties_is_not_of_zookeeper(data_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(data_dir / "field" / "4.3.1-jbod" / "node-1-0", tmp_path / "node")
    (tmp_path / "node" / "meta.properties").write_bytes(b"")
    with pytest.raises(InputError, match=r"there is no __cluster_metadata-0 with a log or a snapshot here$"):
        metadata_sources([Target(tmp_path / "node")], DEFAULT_LIMITS)


def test_records_that_only_a_snapshot_has_are_missing_before_it(tmp_path: Path) -> None:
    """A node starts by the snapshot, and goes on. What was between it and the log's end, and when, is not known."""
    metadata = write_metadata_log(write_node(tmp_path, 1), extra_topics=2)
    write_snapshot(metadata, 9, 1)
    partition = read_partition(metadata)
    assert read_metadata(partition).findings == []
    assert read_metadata(partition, Until(offset=3)).findings == []
    for until, watch in ((Until(offset=5), None), (None, lambda *_: None)):
        state = read_metadata(partition, until, watch=watch)
        (missing,) = state.findings
        assert (missing.code, missing.severity, missing.location.offset) == ("metadata-incomplete", Severity.WARNING, 4)
        assert "no file has the records 4 to 8" in missing.message
        assert state.is_damaged
