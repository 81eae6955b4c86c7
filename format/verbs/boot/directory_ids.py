"""Steps for logs in a directory whose id is not in the metadata: they have no leader until the second start.

A broker writes a new id where meta.properties has none, and registers with it. It then reports where its logs lie. The
controller records that, but elects no leader before the broker registers once more.

Source: core KafkaRaftServer.initializeLogDirs, ReplicaManager.maybeUpdateTopicAssignment; metadata
ReplicationControlManager.handleAssignReplicasToDirs, BrokerRegistration.hasOnlineDir.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from format.kafka_uuid import is_reserved
from format.node.log_dir import TopicPartition
from format.state.cluster_image import ClusterImage
from format.verbs.boot.log_dir_state import LogDirState
from format.verbs.boot.log_dirs import LogsState
from format.verbs.boot.steps import Action, Step

_CLASS = "ReplicationControlManager"


def unknown_directory_steps(
    logs: LogsState, opened: Sequence[LogDirState], image: ClusterImage, node_id: int, *, is_whole: bool
) -> Iterator[Step]:
    """A step for each directory id that no directory has, and to which the metadata assigns logs that lie here.

    ``is_whole``: ``opened`` are all log directories of the node. Otherwise an id is certainly gone only where it is the
    only one that the node registered.
    """
    known = {each.directory_id for each in opened}
    found: dict[tuple[Path, str], list[TopicPartition]] = {}
    for key, each in sorted(logs.live.items()):
        topic_id = each.topic_id
        assigned = None if topic_id is None else image.directory_of(topic_id, key[1], node_id)
        if assigned is None or is_reserved(assigned) or assigned in known:
            continue
        found.setdefault((each.log_dir.path, assigned), []).append(key)
    registered = image.brokers.get(node_id, {}).get("logDirs") or []
    for (path, assigned), keys in found.items():
        if not is_whole and registered != [assigned]:
            continue
        which, they = f"{keys[0][0]}-{keys[0][1]}", "it has"
        if len(keys) > 1:
            which, they = f"{len(keys)} partitions that lie here", "they have"
        reason = (
            f"the metadata assigns {which} to the directory id {assigned}, which no log directory has: {they} no "
            f"leader on this node until it is started a second time; directory.id={assigned} in meta.properties "
            "prevents that"
        )
        yield Step(Action.OFFLINE, path, reason=reason, kafka_class=_CLASS)
