"""The cluster as its metadata records describe it: topics, partitions, brokers, configs, features, ACLs, quotas.

Source: image MetadataDelta, TopicDelta, ClusterDelta, ConfigurationsDelta, metadata PartitionRegistration.merge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

#: Records that change a broker which must be registered, with the field that names it.
_BROKER_CHANGES = {
    "FENCE_BROKER_RECORD": "id",
    "UNFENCE_BROKER_RECORD": "id",
    "BROKER_REGISTRATION_CHANGE_RECORD": "brokerId",
}
#: Records that are kept as they are, and those that remove one again: the field of the image, and that with the key.
_KEPT = {
    "REGISTER_BROKER_RECORD": ("brokers", "brokerId"),
    "REGISTER_CONTROLLER_RECORD": ("controllers", "controllerId"),
    "ACCESS_CONTROL_ENTRY_RECORD": ("acls", "id"),
}
_DROPPED = {
    "UNREGISTER_BROKER_RECORD": ("brokers", "brokerId"),
    "UNREGISTER_CONTROLLER_RECORD": ("controllers", "controllerId"),
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": ("acls", "id"),
    "REMOVE_DELEGATION_TOKEN_RECORD": ("tokens", "tokenId"),
}
_LISTS = {
    "replicas": "replicas",
    "isr": "isr",
    "adding_replicas": "addingReplicas",
    "removing_replicas": "removingReplicas",
    "directories": "directories",
    "eligible_leader_replicas": "eligibleLeaderReplicas",
    "last_known_elr": "lastKnownElr",
}
_NO_LEADER_CHANGE = -2
_RECOVERED, _NO_RECOVERY_CHANGE = 0, -1
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"

Replicas = tuple[int, ...]
PartitionKey = tuple[str, int]
ConfigResource = tuple[int, str]
QuotaEntity = tuple[tuple[str, str | None], ...]
_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")


class BrokenImage(Exception):
    """A record that contradicts the records before it; ``text`` is the broker's message."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class PartitionState(msgspec.Struct, frozen=True):
    """One partition; ``directories`` has an id for each replica, or is empty. ``None`` is for an ELR never written."""

    replicas: Replicas = ()
    isr: Replicas = ()
    leader: int = -1
    leader_epoch: int = 0
    partition_epoch: int = 0
    is_recovering: bool = False
    adding_replicas: Replicas = ()
    removing_replicas: Replicas = ()
    directories: tuple[str, ...] = ()
    eligible_leader_replicas: Replicas | None = None
    last_known_elr: Replicas | None = None

    def directory_of(self, node_id: int | None) -> str | None:
        """The id of the log directory to which a node's replica is assigned, None if unknown."""
        if node_id not in self.replicas or len(self.directories) != len(self.replicas):
            return None
        return self.directories[self.replicas.index(node_id)]


#: Said of a stray log whose topic the metadata has deleted, as when a broker is killed just then.
DELETED = "the topic of that id was deleted"


class ClusterImage(msgspec.Struct):
    """The state after the records applied so far.

    ``names`` maps topic ids to names. ``brokers``, ``controllers`` and ``acls`` hold the fields of the records that
    registered them, brought up to date. ``scram_users`` and ``tokens`` hold no secret. ``problem`` says why the image
    may be incomplete.
    """

    names: dict[str, str] = msgspec.field(default_factory=dict)
    partitions: dict[PartitionKey, PartitionState] = msgspec.field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = msgspec.field(default_factory=dict)
    controllers: dict[int, dict[str, Any]] = msgspec.field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = msgspec.field(default_factory=dict)
    features: dict[str, int] = msgspec.field(default_factory=dict)
    acls: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = msgspec.field(default_factory=dict)
    scram_users: dict[tuple[str, int], int] = msgspec.field(default_factory=dict)  # (user, mechanism) -> iterations
    tokens: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    next_producer_id: int | None = None
    voters: dict[int, dict[str, Any]] | None = None  # None: they are in the controllers' configuration
    leader: tuple[int, int] | None = None  # node id and epoch
    removed_topics: dict[str, str] = msgspec.field(default_factory=dict)
    problem: str | None = None

    # -- what it says ------------------------------------------------------------------------------------------

    def topic_id(self, name: str) -> str | None:
        """The id of the topic of that name."""
        return next((topic_id for topic_id, each in self.names.items() if each == name), None)

    def partition_of(self, topic: str, number: int) -> PartitionState | None:
        """The state of a partition by the name of its topic."""
        topic_id = self.topic_id(topic)
        return None if topic_id is None else self.partitions.get((topic_id, number))

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic of that name has; 0 for one that is not there."""
        topic_id = self.topic_id(topic)
        return 0 if topic_id is None else sum(key[0] == topic_id for key in self.partitions)

    def topic_configs(self, name: str) -> dict[str, str]:
        """The configs that are set for a topic itself."""
        return self.configs.get((TOPIC_RESOURCE, name), {})

    def is_known_local(self, topic: str) -> bool:
        """Whether the metadata has a topic, and its config does not enable remote storage."""
        is_known = self.problem is None and self.topic_id(topic) is not None
        return is_known and self.topic_configs(topic).get("remote.storage.enable") != "true"

    def max_index_bytes(self, topic: str) -> int | None:
        """The config segment.index.bytes of a topic; None if the topic does not override it."""
        return self.count_config(topic, "segment.index.bytes")

    def count_config(self, topic: str, name: str) -> int | None:
        """A config of a topic that is a count, such as of bytes; None if the topic does not override it."""
        text = self.topic_configs(topic).get(name, "")
        return int(text) if text.isascii() and text.isdigit() else None

    def assigned_to(self, node_id: int) -> Iterator[tuple[str, str, int]]:
        """(topic id, topic, partition) of each partition that has a replica on a node, by topic and partition."""
        found = [(self.names.get(topic_id, ""), number, topic_id)
                 for (topic_id, number), state in self.partitions.items() if node_id in state.replicas]  # fmt: skip
        return ((topic_id, name, number) for name, number, topic_id in sorted(found))

    def directory_of(self, topic_id: str, partition: int, node_id: int) -> str | None:
        """The id of the log directory to which a node's replica is assigned, None if unknown."""
        state = self.partitions.get((topic_id, partition))
        return None if state is None else state.directory_of(node_id)

    # -- what changes it ---------------------------------------------------------------------------------------

    def apply(self, record_type: str, data: dict[str, Any]) -> None:
        """Take one record; those of other types change nothing. Raises BrokenImage."""
        if record_type in _BROKER_CHANGES:
            self._change_broker(record_type, data)
        elif record_type in _KEPT:
            name, key = _KEPT[record_type]
            getattr(self, name)[data[key]] = dict(data)
        elif record_type in _DROPPED:
            name, key = _DROPPED[record_type]
            getattr(self, name).pop(data[key], None)
        elif record_type == "USER_SCRAM_CREDENTIAL_RECORD":
            self.scram_users[data["name"], data["mechanism"]] = data["iterations"]
        elif record_type == "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
            self.scram_users.pop((data["name"], data["mechanism"]), None)
        elif record_type == "PRODUCER_IDS_RECORD":
            self.next_producer_id = data["nextProducerId"]
        elif record_type in _APPLIED:
            _APPLIED[record_type](self, data)

    def apply_control(self, control_type: str, data: dict[str, Any]) -> None:
        """Take the value of a control record of the raft layer: leaders, voters and the version of the protocol."""
        if control_type == "LEADER_CHANGE":
            self.leader = (data["leaderId"], data.get("leaderEpoch", -1))
        elif control_type == "KRAFT_VERSION":
            self.features[KRAFT_VERSION] = data["kRaftVersion"]
        elif control_type == "KRAFT_VOTERS":
            self.voters = {voter["voterId"]: voter for voter in data["voters"]}

    def _create_topic(self, data: dict[str, Any]) -> None:
        self.names[data["topicId"]] = data["name"]
        self.removed_topics.pop(data["topicId"], None)

    def _remove_topic(self, data: dict[str, Any]) -> None:
        topic_id = data["topicId"]
        name = self.names.pop(topic_id, None)
        if name is None:
            raise BrokenImage(f"Unable to delete topic with id {topic_id}: no such topic found.")
        for key in [key for key in self.partitions if key[0] == topic_id]:
            del self.partitions[key]
        self.removed_topics[topic_id] = name
        self.configs.pop((TOPIC_RESOURCE, name), None)

    def _create_partition(self, data: dict[str, Any]) -> None:
        self.partitions[data["topicId"], data["partitionId"]] = PartitionState(
            leader=data["leader"],
            leader_epoch=data["leaderEpoch"],
            partition_epoch=data["partitionEpoch"],
            is_recovering=data.get("leaderRecoveryState", _RECOVERED) != _RECOVERED,
            **_lists_of(data),
        )

    def _change_partition(self, data: dict[str, Any]) -> None:
        key = data["topicId"], data["partitionId"]
        state = self.partitions.get(key)
        if state is None:
            raise BrokenImage(f"Unable to find partition {key[0]}:{key[1]}")
        changed = _lists_of(data)
        leader = data.get("leader", _NO_LEADER_CHANGE)
        if leader != _NO_LEADER_CHANGE:
            changed |= {"leader": leader, "leader_epoch": state.leader_epoch + 1}
        recovery = data.get("leaderRecoveryState", _NO_RECOVERY_CHANGE)
        if recovery != _NO_RECOVERY_CHANGE:
            changed["is_recovering"] = recovery != _RECOVERED
        self.partitions[key] = replace(state, partition_epoch=state.partition_epoch + 1, **changed)

    def _clear_elr(self, data: dict[str, Any]) -> None:
        """Forget the eligible leader replicas of a topic, or of all."""
        for key, state in list(self.partitions.items()):
            if data["topicName"] not in ("", self.names.get(key[0])):
                continue
            if state.eligible_leader_replicas or state.last_known_elr:
                self.partitions[key] = replace(
                    state, partition_epoch=state.partition_epoch + 1, eligible_leader_replicas=(), last_known_elr=()
                )

    def _change_broker(self, record_type: str, data: dict[str, Any]) -> None:
        number = data[_BROKER_CHANGES[record_type]]
        if number not in self.brokers:
            raise BrokenImage(f"Tried to change broker {number}, but that broker was not registered.")
        broker = self.brokers[number] = dict(self.brokers[number])
        if record_type == "FENCE_BROKER_RECORD":
            broker["fenced"] = True
        elif record_type == "UNFENCE_BROKER_RECORD":
            broker["fenced"] = False
        else:
            for name in ("fenced", "inControlledShutdown"):
                if data.get(name, 0):
                    broker[name] = data[name] > 0
            if data.get("logDirs"):
                broker["logDirs"] = data["logDirs"]
            if data.get("cordonedLogDirs") is not None:
                broker["cordonedLogDirs"] = data["cordonedLogDirs"]

    def _set_config(self, data: dict[str, Any]) -> None:
        _set_in(self.configs, (data["resourceType"], data["resourceName"]), data["name"], data["value"])

    def _set_feature(self, data: dict[str, Any]) -> None:
        if data["featureLevel"]:
            self.features[data["name"]] = data["featureLevel"]
        else:
            self.features.pop(data["name"], None)

    def _set_quota(self, data: dict[str, Any]) -> None:
        _set_in(self.quotas, quota_entity(data), data["key"], None if data["remove"] else data["value"])

    def _set_token(self, data: dict[str, Any]) -> None:
        self.tokens[data["tokenId"]] = {name: value for name, value in data.items() if name != "tokenId"}


def _set_in(table: dict[_KeyT, dict[str, _ValueT]], key: _KeyT, name: str, value: _ValueT | None) -> None:
    """Set one of the values that a key has, or remove it (None); a key without values goes."""
    values = table.setdefault(key, {})
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if not values:
        del table[key]


def quota_entity(data: dict[str, Any]) -> QuotaEntity:
    """The entity of a quota record: pairs of type and name, None for the default of the type."""
    return tuple(sorted((each["entityType"], each["entityName"]) for each in data["entity"]))


def _lists_of(data: dict[str, Any]) -> dict[str, Any]:
    """The lists of a partition record by their names here, those that it has."""
    return {name: tuple(data[field]) for name, field in _LISTS.items() if data.get(field) is not None}


_APPLIED = {
    "TOPIC_RECORD": ClusterImage._create_topic,
    "REMOVE_TOPIC_RECORD": ClusterImage._remove_topic,
    "PARTITION_RECORD": ClusterImage._create_partition,
    "PARTITION_CHANGE_RECORD": ClusterImage._change_partition,
    "CLEAR_ELR_RECORD": ClusterImage._clear_elr,
    "CONFIG_RECORD": ClusterImage._set_config,
    "FEATURE_LEVEL_RECORD": ClusterImage._set_feature,
    "CLIENT_QUOTA_RECORD": ClusterImage._set_quota,
    "DELEGATION_TOKEN_RECORD": ClusterImage._set_token,
}
