"""The logs that the metadata assigns to a node, held against those that were found: moves that end, logs to be made.

Source: core LogManager.getOrCreateLog, LogManager.recoverAbandonedFutureLogs, ReplicaManager,
KafkaRaftServer.initializeLogDirs; metadata ReplicationControlManager.handleAssignReplicasToDirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from format.kafka_uuid import is_reserved
from format.node.log_dir import TopicPartition
from format.state.cluster_image import ClusterImage
from format.verbs.boot.directories import LogDirState
from format.verbs.boot.loaded_logs import FoundLog, LogsState, lost_range
from format.verbs.boot.steps import Action, Step
from format.wording import counted, listed


def unknown_directory_steps(
    logs: LogsState, opened: Sequence[LogDirState], image: ClusterImage, node_id: int, *, is_whole: bool
) -> Iterator[Step]:
    """A step for each directory id that no directory has, and to which the metadata assigns logs that lie here.

    A broker writes a new id where meta.properties has none, and registers with it. It then reports where its logs lie.
    The controller records that, but elects no leader before the broker registers once more.
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
        which, they = f"{len(keys)} partitions that lie here", "they have"
        if len(keys) == 1:
            which, they = f"{keys[0][0]}-{keys[0][1]}", "it has"
        reason = (
            f"the metadata assigns {which} to the directory id {assigned}, which no log directory has: {they} no "
            f"leader on this node until it is started a second time; directory.id={assigned} in meta.properties "
            "prevents that"
        )
        yield Step(Action.OFFLINE, path, reason=reason, kafka_class="ReplicationControlManager")


def future_log_steps(logs: LogsState, image: ClusterImage, node_id: int) -> Iterator[Step]:
    """Steps for future replicas whose directory the metadata already has: they replace the current ones."""
    for key, found in logs.future.items():
        topic_id = found.topic_id
        if topic_id is None or found.log_dir.directory_id is None:
            continue
        if image.directory_of(topic_id, key[1], node_id) != found.log_dir.directory_id:
            continue
        current = logs.live.get(key)
        if current is not None and current.log_dir is found.log_dir:
            yield Step(
                Action.REFUSE, found.path, kafka_class="LocalLog.renameDir",
                broker_message=f"Error while renaming dir for {key[0]}-{key[1]} in log dir {found.log_dir.path}",
                reason="the future replica is to take the place of the current one in the same log directory",
            )  # fmt: skip
            continue
        reason = "the metadata assigns the partition to this directory: the future replica becomes the current"
        kafka_class, new_path = "LogManager.recoverAbandonedFutureLogs", found.path.with_name(f"{key[0]}-{key[1]}")
        yield found.step_with_ends(Action.RENAME, reason, kafka_class=kafka_class, new_path=new_path)
        if current is not None:
            reason = "its future replica in another log directory takes its place"
            yield current.step(Action.DELETE, reason, kafka_class="LogManager.replaceCurrentWithFutureLog")
        logs.live[key] = found


def missing_log_steps(
    logs: LogsState,
    opened: list[LogDirState],
    image: ClusterImage,
    node_id: int,
    *,
    is_whole: bool,
    earlier: ClusterImage | None = None,
) -> Iterator[Step]:
    """Steps for partitions that the metadata assigns to this node and that no directory holds as a live log.

    ``is_whole``: ``opened`` are all log directories of the node. ``earlier`` is the metadata by which the node worked
    before it stopped, if the image is later: what that does not assign to the node, the node never held.
    """
    if logs.problems:
        return
    serving = [log_dir for log_dir in opened if not log_dir.failures]
    is_whole = is_whole and len(serving) == len(opened)
    by_id = {log_dir.directory_id: log_dir for log_dir in serving}
    held = Counter(found.log_dir.path for found in (*logs.live.values(), *logs.future.values()))
    for topic_id, topic, partition in image.assigned_to(node_id):
        key = (topic, partition)
        found = logs.live.get(key)
        if found is not None and not found.log_dir.failures:
            if found.topic_id not in (None, topic_id):
                yield _other_topic(found, topic_id)
            continue
        assigned = image.directory_of(topic_id, partition, node_id)
        if assigned not in by_id and not is_whole:
            continue  # it may lie in a directory that failed, or that was not given
        if not serving:
            continue
        home = by_id.get(assigned) or min(serving, key=lambda each: held[each.path])
        held[home.path] += 1
        before = None if earlier is None else earlier.partitions.get((topic_id, partition))
        is_new = earlier is not None and (before is None or node_id not in before.replicas)
        stray = logs.strays.get(key)
        is_other = stray is not None and (is_new or stray.topic_id in image.removed_topics)
        high_watermark, log_start = (None, 0) if is_other else _checkpointed(opened, key)
        step = _made(key, home, assigned, high_watermark, log_start)
        if high_watermark is None and (is_new or is_other):
            step = replace(step, reason=f"{step.reason}; it is new to this node, which never held it")
        elif high_watermark is None:
            words = "what it held is not known: no checkpoint has its high watermark"
            step = replace(step, reason=f"{step.reason}; {words}", may_lose=True)
        yield step
        if key in logs.future:
            yield _cut_future(logs.future[key], is_counted=step.lost_offsets is not None)


def _checkpointed(opened: list[LogDirState], key: TopicPartition) -> tuple[int | None, int]:
    """High watermark and log start offset of a partition, from the first checkpoint that has it."""
    for log_dir in opened:
        if key in log_dir.high_watermarks:
            return log_dir.committed_end(key), log_dir.log_starts.get(key, 0)
    return None, 0


def _made(
    key: TopicPartition, home: LogDirState, assigned: str | None, high_watermark: int | None, log_start: int
) -> Step:
    """The step of an empty log that a broker makes."""
    lost = lost_range(log_start, 2**63, log_start, high_watermark)
    reason = "the metadata assigns the partition to this node, and its log is missing: a broker makes an empty one"
    if assigned is not None and not is_reserved(assigned):
        where = "that of this log directory" if assigned == home.directory_id else "which no log directory has"
        reason += f", for the directory id {assigned}, {where}"
    if lost is not None:
        reason += f"; the high watermark in the checkpoint is {high_watermark}"
    return Step(
        Action.CREATE, home.path / f"{key[0]}-{key[1]}", *key, reason=reason, lost_offsets=lost,
        kafka_class="ReplicaManager", log_start_offset=0, log_end_offset=0,
    )  # fmt: skip


def _cut_future(future: FoundLog, *, is_counted: bool) -> Step:
    """The step of a future replica that is cut to the empty log; ``is_counted``: that log's step has the loss."""
    first, end = future.log.log_start, future.log.log_end
    held = f"offsets {first} to {end - 1}" if end > first else "no offset"
    reason = f"soon after the start, this future replica is cut to the empty log; it holds {held}: copy it before"
    lost = (first, end - 1) if end > first and not is_counted else None
    kafka_class = "ReplicaAlterLogDirsThread"
    return future.step(Action.TRUNCATE, reason, kafka_class=kafka_class, offset=0, lost_offsets=lost)


def _other_topic(found: FoundLog, topic_id: str) -> Step:
    reason = (
        f"the log has the topic id {found.topic_id} of another topic: the partition is not served, nor are others of "
        "which the broker becomes the leader at the same moment: the error ends that change"
    )
    message = f"Tried to assign topic ID {topic_id} to log for topic partition"
    return found.step(Action.OFFLINE, reason, kafka_class="UnifiedLog.assignTopicId", broker_message=message)


def with_other_replicas(step: Step, image: ClusterImage, node_id: int) -> Step:
    """A step that costs offsets or may, with what the metadata says of the other replicas of its partition."""
    if (step.lost_offsets is None and not step.may_lose) or step.topic is None or step.partition is None:
        return step
    state = image.partition_of(step.topic, step.partition)
    if state is None or node_id not in state.replicas:
        return step
    others = tuple(each for each in state.replicas if each != node_id)
    if not others:
        return replace(step, other_replicas=(), reason=f"{step.reason}; no other node has a replica")
    in_sync = [str(each) for each in others if each in state.isr]
    words = f"in sync: {', '.join(in_sync)}" if in_sync else "none of them in sync"
    eligible = [str(each) for each in others if each in (state.eligible_leader_replicas or ())]
    words += f", ELR: {', '.join(eligible)}" if eligible else ""
    leader = "no node" if state.leader < 0 else "this node" if state.leader == node_id else f"node {state.leader}"
    nodes = f"{'node' if len(others) == 1 else 'nodes'} {listed([str(each) for each in others])}"
    told = f"{counted(len(others), 'other replica')} on {nodes}, {words}, and {leader} led, by the metadata"
    return replace(step, other_replicas=others, reason=f"{step.reason}; {told}")
