"""Topics and their replicas as the metadata log says: from the newest snapshot and the log after it.

Source: metadata TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord; image MetadataDelta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from format.errors import CorruptDataError, KafkaLogError
from format.internal_topics.decoder import decoder_for
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.log.read_records import record_tables
from format.log.walker import batch_chunks

_DECODER = decoder_for(CLUSTER_METADATA_TOPIC)
#: Records that change a broker which must be registered, with the field that names it.
_BROKER_CHANGES = {
    "FENCE_BROKER_RECORD": "id",
    "UNFENCE_BROKER_RECORD": "id",
    "BROKER_REGISTRATION_CHANGE_RECORD": "brokerId",
}


class BrokenImage(Exception):
    """A record that contradicts what was replayed before it; ``text`` is what the broker says."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(slots=True)
class ClusterImage:
    """Topics by id, and the replicas of each partition; ``problem`` says why it may be incomplete."""

    names: dict[str, str] = field(default_factory=dict)
    replicas: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    directories: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)
    problem: str | None = None
    _open: list[tuple[str, dict[str, Any]]] | None = None

    def topic_id(self, name: str) -> str | None:
        """The id of the topic of that name."""
        return next((topic_id for topic_id, each in self.names.items() if each == name), None)

    def assigned_to(self, node_id: int) -> Iterator[tuple[str, str, int]]:
        """(topic id, topic, partition) of each partition that has a replica on a node, by topic and partition."""
        found = [(self.names.get(topic_id, ""), number, topic_id)
                 for (topic_id, number), replicas in self.replicas.items() if node_id in replicas]  # fmt: skip
        return ((topic_id, name, number) for name, number, topic_id in sorted(found))

    def load(self, path: Path, end: int, from_offset: int, limits: Limits) -> None:
        """Replay the data records of a log or snapshot file up to a byte, from an offset on.

        Raises BrokenImage, and what reading raises.
        """
        with FileSource(path) as source:
            for chunk in batch_chunks(source, 0, end, limits=limits):
                wanted = (chunk.table.last_offset >= from_offset) & ~chunk.table.is_control
                for table in record_tables(chunk, which=wanted & (chunk.table.crc_valid == 1), limits=limits):
                    if table.problems:
                        self.problem = self.problem or f"records of {path} cannot be read: {table.problems[0].error}"
                    for row in range(len(table)):
                        self._take(table.value(row))

    def _take(self, value: bytes | None) -> None:
        if _DECODER is None:
            return
        try:
            decoded = _DECODER.decode_value(None, value)
        except (CorruptDataError, KafkaLogError) as error:
            self.problem = self.problem or f"a metadata record cannot be read: {error}"
            return
        if decoded.data is None or decoded.record_type is None:
            self.problem = self.problem or f"a metadata record of type {decoded.type_id} is newer than this program"
            return
        if decoded.record_type == "BEGIN_TRANSACTION_RECORD":
            self._open = []
        elif decoded.record_type == "ABORT_TRANSACTION_RECORD":
            self._open = None
        elif decoded.record_type == "END_TRANSACTION_RECORD":
            records, self._open = self._open or [], None
            for record_type, data in records:
                self._apply(record_type, data)
        elif self._open is not None:
            self._open.append((decoded.record_type, decoded.data))
        else:
            self._apply(decoded.record_type, decoded.data)

    def _apply(self, record_type: str, data: dict[str, Any]) -> None:
        if record_type == "TOPIC_RECORD":
            self.names[data["topicId"]] = data["name"]
        elif record_type == "PARTITION_RECORD":
            self._place(data)
        elif record_type == "PARTITION_CHANGE_RECORD":
            if (data["topicId"], data["partitionId"]) not in self.replicas:
                raise BrokenImage(f"Tried to create partition {data['topicId']}:{data['partitionId']}")
            self._place(data)
        elif record_type == "REMOVE_TOPIC_RECORD":
            self.names.pop(data["topicId"], None)
            for key in [key for key in self.replicas if key[0] == data["topicId"]]:
                del self.replicas[key]
        elif record_type == "REGISTER_BROKER_RECORD":
            self.brokers.add(data["brokerId"])
        elif record_type == "UNREGISTER_BROKER_RECORD":
            self.brokers.discard(data["brokerId"])
        elif record_type in _BROKER_CHANGES and data[_BROKER_CHANGES[record_type]] not in self.brokers:
            broker = data[_BROKER_CHANGES[record_type]]
            raise BrokenImage(f"Tried to change broker {broker}, but that broker was not registered.")

    def _place(self, data: dict[str, Any]) -> None:
        key = data["topicId"], data["partitionId"]
        if data.get("replicas") is not None:
            self.replicas[key] = tuple(data["replicas"])
        if data.get("directories") is not None:
            self.directories[key] = tuple(data["directories"])

    def directory_of(self, topic_id: str, partition: int, node_id: int) -> str | None:
        """The id of the log directory that a node's replica is assigned to, where the metadata says."""
        replicas = self.replicas.get((topic_id, partition), ())
        directories = self.directories.get((topic_id, partition), ())
        if node_id not in replicas or len(directories) != len(replicas):
            return None
        return directories[replicas.index(node_id)]
