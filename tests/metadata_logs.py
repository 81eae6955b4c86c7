"""Builds small metadata logs: a topic, and what the cluster says of its partition 0."""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path

from format.files import quorum_state
from format.files.quorum_state import QuorumState
from format.internal_topics.schema import Message
from format.kafka_uuid import canonical_uuid
from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.format.internal_topics.known_messages import MESSAGES
from tests.format.internal_topics.message_encoder import encode
from tests.record_encoder import NewRecord, encode_record, encode_unsigned_varint

_TOPIC, _PARTITION = 2, 3


def topic_id_of(topic: str) -> str:
    """The topic id that the metadata logs here give a topic."""
    return canonical_uuid(base64.urlsafe_b64encode(uuid.uuid5(uuid.NAMESPACE_DNS, topic).bytes).decode().rstrip("="))


def _record(number: int, message: Message, version: int, data: dict[str, object]) -> bytes:
    return b"\x01" + encode_unsigned_varint(number) + encode_unsigned_varint(version) + encode(message, version, data)


def _topic_record(name: str, topic_id: str | None = None) -> bytes:
    return _record(_TOPIC, MESSAGES["TopicRecord"], 0, {"name": name, "topicId": topic_id or topic_id_of(name)})


def removal_of(topic: str) -> bytes:
    """The value of a record that deletes a topic."""
    return _record(9, MESSAGES["RemoveTopicRecord"], 0, {"topicId": topic_id_of(topic)})


def change_of(topic: str, **fields: object) -> bytes:
    """The value of a record that changes partition 0 of a topic."""
    data = {"partitionId": 0, "topicId": topic_id_of(topic), **fields}
    return _record(5, MESSAGES["PartitionChangeRecord"], 2, data)


def write_node(log_dir: Path, node_id: int, cluster_id: str = "cluster-a", directory: str | None = None) -> Path:
    """The meta.properties of a log directory; ``directory`` is the name from which its id is made."""
    log_dir.mkdir(parents=True, exist_ok=True)
    text = f"version=1\nnode.id={node_id}\ncluster.id={cluster_id}\n"
    (log_dir / "meta.properties").write_text(
        text if directory is None else f"{text}directory.id={topic_id_of(directory)}\n"
    )
    return log_dir


def write_metadata_log(
    log_dir: Path,
    topic: str = "orders",
    *,
    topic_id: str | None = None,
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] = (1, 2, 3),
    leader: int = 1,
    leader_epoch: int = 0,
    elr: Sequence[int] | None = None,
    epoch: int = 1,
    extra_topics: int = 0,
    adding: Sequence[int] = (),
) -> Path:
    """A metadata log in a log directory that assigns partition 0 of a topic; ``extra_topics`` make it longer."""
    data = {
        "partitionId": 0, "topicId": topic_id or topic_id_of(topic), "replicas": list(replicas), "isr": list(isr),
        "removingReplicas": [], "addingReplicas": list(adding), "leader": leader, "leaderEpoch": leader_epoch,
        "partitionEpoch": 0, "directories": [topic_id_of(f"directory-{each}") for each in replicas],
    }  # fmt: skip
    if elr is not None:
        data["eligibleLeaderReplicas"] = list(elr)
    values = [_topic_record(topic, topic_id), _record(_PARTITION, MESSAGES["PartitionRecord"], 2, data)]
    values += [_topic_record(f"extra-{number}") for number in range(extra_topics)]
    directory = log_dir / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    batches = [batch(at, [value], key=None, leader_epoch=epoch) for at, value in enumerate(values)]
    write_segment(directory, 0, batches)
    return directory


def write_grown_topic(log_dir: Path, counts: dict[int, int], topic: str = "orders") -> None:
    """A metadata log with a topic on node 1 that has so many partitions since these times."""
    batches: list[bytes] = []
    number = 0
    for timestamp, count in counts.items():
        values = [_topic_record(topic)] if not number else []
        for each in range(number, count):
            data = {
                "partitionId": each, "topicId": topic_id_of(topic), "replicas": [1], "isr": [1], "removingReplicas": [],
                "addingReplicas": [], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0,
                "directories": [topic_id_of("directory-1")],
            }  # fmt: skip
            values.append(_record(_PARTITION, MESSAGES["PartitionRecord"], 2, data))
        for value in values:
            batches.append(batch(len(batches), [value], key=None, leader_epoch=1, timestamp=timestamp))
        number = count
    directory = log_dir / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    write_segment(directory, 0, batches)


def control_batch(base_offset: int, records: Sequence[tuple[int, bytes]], epoch: int = 1) -> bytes:
    """A batch of control records, each with its type and value."""
    encoded = [NewRecord(at, at, struct.pack(">hh", 0, kind), value, ()) for at, (kind, value) in enumerate(records)]
    header = BatchHeader(
        base_offset=base_offset, last_offset_delta=len(records) - 1, record_count=len(records),
        base_timestamp=BASE_TIMESTAMP, max_timestamp=BASE_TIMESTAMP, leader_epoch=epoch, attributes=0x20,
    )  # fmt: skip
    return encode_batch(header, b"".join(map(encode_record, encoded)))


def voters_records(voters: dict[int, str], listeners: Sequence[str] = ("CONTROLLER",)) -> list[tuple[int, bytes]]:
    """The control records of a dynamic quorum with these voters, by the name from which their directory id is made."""
    data = {
        "version": 0,
        "voters": [
            {
                "voterId": node_id, "voterDirectoryId": topic_id_of(name),
                "endpoints": [{"name": each, "host": f"host-{node_id}", "port": 9093} for each in listeners],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for node_id, name in voters.items()
        ],
    }  # fmt: skip
    level = encode(MESSAGES["KRaftVersionRecord"], 0, {"version": 0, "kRaftVersion": 1})
    return [(5, level), (6, encode(MESSAGES["VotersRecord"], 0, data))]


def write_snapshot(
    metadata: Path,
    end_offset: int,
    epoch: int,
    voters: dict[int, str] | None = None,
    listeners: Sequence[str] = ("CONTROLLER",),
) -> Path:
    """A snapshot with no metadata but the voters, from its header to its footer."""
    head = encode(MESSAGES["SnapshotHeaderRecord"], 0, {"version": 0, "lastContainedLogTimestamp": BASE_TIMESTAMP})
    records = [(3, head), *(voters_records(voters, listeners) if voters else ())]
    foot = encode(MESSAGES["SnapshotFooterRecord"], 0, {"version": 0})
    path = metadata / f"{end_offset:020}-{epoch:010}.checkpoint"
    metadata.mkdir(parents=True, exist_ok=True)
    path.write_bytes(control_batch(0, records, 0) + control_batch(len(records), [(4, foot)], 0))
    return path


def write_voters(metadata: Path, voters: Sequence[int], epoch: int = 1) -> None:
    """The quorum-state of a static quorum with these voters."""
    state = QuorumState(
        path="", data_version=0, leader_id=-1, leader_epoch=epoch, voted_id=-1, voted_directory_id=None,
        cluster_id="", applied_offset=0, current_voters=tuple(voters), problems=(),
    )  # fmt: skip
    (metadata / "quorum-state").write_bytes(quorum_state.write(state))
