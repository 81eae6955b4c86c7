"""The changes that metadata records made: the fields of each subject that differ before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from format.state.cluster_image import TOPIC_RESOURCE, ClusterImage, quota_entity
from format.state.metadata_log import MetadataRecord
from format.verbs.metadata.names import CONFIG_RESOURCES, SCRAM_MECHANISMS, name_of
from format.verbs.metadata.rows import Row, Topics, acl_fields, partition_fields
from format.verbs.metadata.secret_configs import shown_value

#: Records that are not part of the cluster's state: fillers, and the frame of a snapshot.
_LEFT_OUT = ("NO_OP_RECORD", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")

Read = Callable[[ClusterImage], Any]


class History:
    """Collects ``metadata_change`` rows while a log is replayed; ``write`` receives each."""

    def __init__(self, write: Callable[[Row], None], topics: Topics = None, since: int | None = None) -> None:
        self._write = write
        self._topics = topics
        self._since = since

    def watch(self, image: ClusterImage, record: MetadataRecord) -> Callable[[], None] | None:
        """Note the subject's state before a record is applied; the returned function writes the change afterwards."""
        if record.record_type in _LEFT_OUT or (self._since is not None and record.timestamp < self._since):
            return None
        topic, subject, read = _subject(image, record)
        if self._topics is not None and topic not in self._topics:
            return None
        before = read(image)

        def after() -> None:
            old, new = _changed_fields(before, read(image))
            if old is None and new is None:
                return  # the image does not have the subject
            self._write((record.offset, record.timestamp, record.record_type, subject, old, new))

        return after


def _changed_fields(before: Any, after: Any) -> tuple[Any, Any]:
    """The fields in which two states differ; both as a whole where one of them has no fields."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before, after
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def _subject(image: ClusterImage, record: MetadataRecord) -> tuple[str | None, str, Read]:
    """The topic that a record is about, its subject in words, and how to read the subject's state."""
    data = record.data
    kind = record.record_type
    if kind == "TOPIC_RECORD" or kind == "REMOVE_TOPIC_RECORD":
        topic_id = data["topicId"]
        name = data.get("name") or image.names.get(topic_id, topic_id)
        return name, f"topic {name}", lambda now: _topic(now, topic_id)
    if kind in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
        key = data["topicId"], data["partitionId"]
        name = image.names.get(key[0], key[0])
        return name, f"partition {name}-{key[1]}", lambda now: _partition(now, key)
    if kind == "CLEAR_ELR_RECORD":
        name = data["topicName"]
        return name or None, f"topic {name}" if name else "all topics", lambda now: None
    if kind == "CONFIG_RECORD":
        return _config_subject(data)
    return (None, *_other_subject(kind, data))


def _config_subject(data: dict[str, Any]) -> tuple[str | None, str, Read]:
    resource = data["resourceType"], data["resourceName"]
    name = data["name"]
    of = name_of(CONFIG_RESOURCES, resource[0])
    owner = resource[1] or "(default)"

    def read(now: ClusterImage) -> str | None:
        return shown_value(resource[0], name, now.configs.get(resource, {}).get(name))

    return resource[1] if resource[0] == TOPIC_RESOURCE else None, f"config {name} of {of} {owner}", read


def _other_subject(kind: str, data: dict[str, Any]) -> tuple[str, Read]:
    if kind in ("ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"):
        acl_id = data["id"]
        return f"acl {acl_id}", lambda now: acl_fields(now.acls[acl_id]) if acl_id in now.acls else None
    if kind == "CLIENT_QUOTA_RECORD":
        entity = quota_entity(data)
        words = ", ".join(f"{of} {name if name is not None else '(default)'}" for of, name in entity)
        return f"quota {data['key']} of {words}", lambda now: now.quotas.get(entity, {}).get(data["key"])
    if kind == "FEATURE_LEVEL_RECORD":
        return f"feature {data['name']}", lambda now: now.features.get(data["name"])
    if kind in ("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"):
        scram = data["name"], data["mechanism"]
        mechanism = name_of(SCRAM_MECHANISMS, scram[1])
        return f"credential {mechanism} of {scram[0]}", lambda now: "set" if scram in now.scram_users else None
    if kind in ("DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"):
        token = data["tokenId"]
        return "delegation token", lambda now: _token(now, token)
    if kind in ("REGISTER_CONTROLLER_RECORD", "UNREGISTER_CONTROLLER_RECORD"):
        number = data["controllerId"]
        return f"controller {number}", lambda now: dict(now.controllers.get(number, {})) or None
    if kind == "PRODUCER_IDS_RECORD":
        return "producer ids", lambda now: now.next_producer_id
    if kind == "LEADER_CHANGE":
        return "leader of the quorum", lambda now: _leader(now)
    if kind == "KRAFT_VERSION":
        return "feature kraft.version", lambda now: now.features.get("kraft.version")
    if kind == "KRAFT_VOTERS":
        return "voters", lambda now: None if now.voters is None else sorted(now.voters)
    broker = data.get("brokerId", data.get("id"))
    if broker is not None:
        return f"broker {broker}", lambda now: dict(now.brokers.get(broker, {})) or None
    return kind.lower(), lambda now: None


def _topic(image: ClusterImage, topic_id: str) -> dict[str, Any] | None:
    if topic_id not in image.names:
        return None
    partitions = sum(each == topic_id for each, _ in image.partitions)
    return {"topic": image.names[topic_id], "topic_id": topic_id, "partition_count": partitions}


def _partition(image: ClusterImage, key: tuple[str, int]) -> dict[str, Any] | None:
    state = image.partitions.get(key)
    if state is None:
        return None
    return {name: value for name, value in partition_fields(state).items() if name != "partition_epoch"}


def _token(image: ClusterImage, token: str) -> dict[str, Any] | None:
    found = image.tokens.get(token)
    return None if found is None else {"owner": found["owner"], "expires": found["expirationTimestamp"]}


def _leader(image: ClusterImage) -> dict[str, int] | None:
    return None if image.leader is None else {"leader": image.leader[0], "leader_epoch": image.leader[1]}
