"""A node's part in its cluster: whether it is a broker, and whether it is a voter of the metadata quorum.

A controller alone has no log manager: it loads the metadata log and leaves every other file of its log directories
alone. The voters of a dynamic quorum (KIP-853) are pairs of node id and directory id. A controller whose metadata log
lies in a directory with another id is an observer: it never votes, and never becomes the leader.

Source: core KafkaRaftServer, SharedServer, KafkaRaftManager; raft KafkaRaftClient, VoterSet.isVoter.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from format.io.session import is_there
from format.kafka_uuid import canonical_uuid
from format.layout import CLEAN_SHUTDOWN, CLUSTER_METADATA_TOPIC, LOCK, META_PROPERTIES, OFFSET_CHECKPOINTS
from format.state.cluster_image import KRAFT_VERSION, ClusterImage
from format.verbs.boot.followed import why_closed
from format.verbs.boot.identity import METADATA_PARTITION, NodeIdentity
from format.verbs.boot.metadata_log import MetadataState
from format.verbs.boot.steps import Action, BootTerms, Step, StopsStart
from format.wording import counted

_RAFT = "KafkaRaftClient"
_OF_LOG_MANAGER = (CLEAN_SHUTDOWN, *OFFSET_CHECKPOINTS)


def is_broker(
    log_dirs: list[Path], identity: NodeIdentity | None, metadata: MetadataState, node_id: int | None, terms: BootTerms
) -> bool | None:
    """Whether the node runs a broker, by the option or its metadata log; None where nothing says so.

    Where the metadata log does not name the node, files that only a broker writes tell.
    """
    if terms.is_broker is not None:
        return terms.is_broker
    if identity is not None and identity.is_zookeeper:
        return True
    image = metadata.image
    if image is not None and node_id is not None:
        if node_id in image.brokers or any(image.assigned_to(node_id)):
            return True
        if image.problem is None and (node_id in image.controllers or node_id in (metadata.voters or ())):
            return False
    has_metadata_log = any(is_there(path / METADATA_PARTITION) for path in log_dirs)
    if terms.is_one_of_several and not has_metadata_log:
        return True  # a controller has nothing but the directory of its metadata log
    return True if any(is_there(path / name) for path in log_dirs for name in _OF_LOG_MANAGER) else None


def if_broker(step: Step) -> Step:
    """A refusal of the log manager, on a node of which it is not known whether it runs one."""
    if step.action is not Action.REFUSE:
        return step
    words = step.reason or step.broker_message
    reason = f"{words}; a broker stops here, a controller alone does not: process.roles decides"
    return replace(step, action=Action.UNKNOWN, reason=reason)


def controller_lock(metadata_dir: Path) -> StopsStart | None:
    """The end of the start of a controller that cannot lock the directory of its metadata log."""
    closed = why_closed(metadata_dir / LOCK)
    if closed is None:
        return None
    reason = f"{LOCK} cannot be opened"
    return StopsStart(f"{metadata_dir / LOCK}: {closed}", "KafkaRaftManager", path=metadata_dir / LOCK, reason=reason)


def observer_step(
    metadata_dir: Path, identity: NodeIdentity, own: ClusterImage, node_id: int, terms: BootTerms
) -> Step | None:
    """The step of a voter whose metadata log lies in a directory with another id than the voter set has."""
    image = own if terms.later is None else terms.later.image
    voters = image.voters
    if voters is None or node_id not in voters or not image.features.get(KRAFT_VERSION):
        return None
    expected = canonical_uuid(voters[node_id]["voterDirectoryId"])
    actual = identity.directory_ids.get(metadata_dir)
    if actual == expected:
        return None
    is_new = metadata_dir in identity.without_directory_id
    has = "has none, and gets a new one" if is_new else f"has {actual}"
    reason = (
        f"the voter {node_id} of the metadata quorum has the directory id {expected}, and {META_PROPERTIES} here {has}"
    )
    elsewhere = [path for path, each in identity.directory_ids.items() if each == expected]
    if elsewhere:
        reason += f" ({expected} is that of {elsewhere[0]})"
    reason += ": the node only observes the quorum, and never votes"
    others = len(voters) - 1
    if others > len(voters) // 2:
        reason += f"; {counted(others, 'other voter')} can still elect a leader"
        action = Action.OFFLINE
    else:
        reason += ". No leader can be elected without it: the node waits without end"
        action = Action.REFUSE
    return Step(action, metadata_dir / META_PROPERTIES, CLUSTER_METADATA_TOPIC, 0, reason=reason, kafka_class=_RAFT)
