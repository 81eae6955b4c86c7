"""boot: simulates what a broker's start does to the log directories of one node, from its identity to each file.

The order is the broker's own: meta.properties, bootstrap metadata, the metadata log, then all other logs. All
refusals that can be found are reported, though a broker stops at the first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from format.errors import KafkaLogError
from format.io import broker_lock
from format.io.remote_path import is_there
from format.layout import CLUSTER_METADATA_TOPIC, LOCK
from format.verbs.boot.bootstrap import check_bootstrap
from format.verbs.boot.directory_ids import unknown_directory_steps
from format.verbs.boot.identity import METADATA_PARTITION, NodeIdentity, read_identity
from format.verbs.boot.log_dir_state import FoundLog, LogDirState, open_log_dir
from format.verbs.boot.log_dirs import LogsState, load_logs
from format.verbs.boot.losses import lost_range
from format.verbs.boot.metadata_log import MetadataState, load_metadata
from format.verbs.boot.permissions import closed_to_the_owner, closed_to_this_user
from format.verbs.boot.steps import (
    Action,
    BootResult,
    BootTerms,
    FailsLogDir,
    NotKnown,
    Step,
    StopsStart,
)
from format.wording import counted

_ORDER = {action: number for number, action in enumerate(Action)}


def boot(log_dirs: list[Path], terms: BootTerms, node_id: int | None = None) -> BootResult:
    """What a broker would do with these log directories of one node, given in the order of its configuration.

    ``node_id`` is the node id in the broker's configuration; None stands for the one in meta.properties.
    """
    result = BootResult(steps=[_unknown(error) for error in closed_to_this_user(log_dirs)])
    if result.is_unknown:
        result.not_checked.append("what the start would do: not every log directory can be listed")
        return result
    metadata_dir = next((path for path in log_dirs if is_there(path / METADATA_PARTITION)), log_dirs[0])
    identity = _identity(log_dirs, metadata_dir, node_id, terms, result)
    metadata = MetadataState()
    if identity is not None and not identity.is_zookeeper:
        metadata = _metadata(metadata_dir, terms, result)
    offline = {error.path: error for error in identity.offline} if identity is not None else {}
    directory_ids = identity.directory_ids if identity is not None else {}
    result.steps += [_unknown(NotKnown("a broker runs on this log directory, and changes it", path))
                     for path in log_dirs if broker_lock.probe(path / LOCK).is_held]  # fmt: skip
    opened = [open_log_dir(path, directory_ids.get(path), terms)
              for path in log_dirs if path not in offline and path.is_dir()]  # fmt: skip
    node_id = identity.node_id if identity is not None else node_id
    logs = load_logs(opened, metadata.image, node_id, terms)
    result.steps += [_refusal(error) for error in logs.stops]
    result.steps += [_unknown(error) for error in logs.unknown]
    result.steps += [_unknown(error) for error in closed_to_the_owner(log_dirs)]
    result.unread += logs.unread
    has_metadata = identity is not None and not identity.is_zookeeper
    has_metadata = has_metadata and (not terms.is_one_of_several or is_there(metadata_dir / METADATA_PARTITION))
    _offline_directories(opened, offline, result, metadata_dir if has_metadata else None, terms)
    for log_dir in opened:
        result.steps += log_dir.steps
    result.steps += logs.steps
    if metadata.image is not None and node_id is not None:
        _future_logs(logs, metadata, node_id, result)
        is_whole = not offline and not terms.is_one_of_several
        result.steps += unknown_directory_steps(logs, opened, metadata.image, node_id, is_whole=is_whole)
        _missing_logs(logs, opened, metadata, node_id, result, is_whole=is_whole)
        if metadata.image.problem is not None:
            result.steps.append(_unknown(NotKnown(metadata.image.problem, metadata_dir / METADATA_PARTITION)))
    _not_checked(result, identity, metadata, node_id)
    if logs.links:
        result.not_checked.append(
            f"whether symbolic links lead to the same files on the broker's host: {counted(len(logs.links), 'link')} "
            f"followed, as a broker does; the first is {logs.links[0]}"
        )
    if metadata_dir != log_dirs[0]:
        result.not_checked.append(
            f"metadata.log.dir: the metadata log lies in {metadata_dir}; unless that property names the directory, a "
            "broker looks in the first one of log.dirs, and stops: Found unexpected metadata location"
        )
    if not terms.every_file:
        result.steps = [step for step in result.steps if _is_remarkable(step)]
    result.steps = sorted(result.steps, key=lambda step: _ORDER[step.action])
    return result


def _is_remarkable(step: Step) -> bool:
    return (
        step.action is not Action.KEEP or step.lost_offsets is not None or bool(step.bytes) or bool(step.broker_message)
    )


def _identity(
    log_dirs: list[Path], metadata_dir: Path, node_id: int | None, terms: BootTerms, result: BootResult
) -> NodeIdentity | None:
    try:
        identity = read_identity(log_dirs, metadata_dir, node_id, terms.version, terms.limits)
        if not identity.is_zookeeper:
            check_bootstrap(metadata_dir, terms)
    except StopsStart as error:
        result.steps.append(_refusal(error))
        return None
    except NotKnown as error:
        result.steps.append(_unknown(error))
        return None
    except KafkaLogError as error:
        result.steps.append(_unknown(NotKnown(error.message, metadata_dir)))
        return None
    for path in identity.without_directory_id:
        reason = "it has no directory.id: the broker makes up a new id, and rewrites the file"
        result.steps.append(Step(Action.CREATE, path / "meta.properties", reason=reason, kafka_class="KafkaRaftServer"))
    return identity


def _metadata(metadata_dir: Path, terms: BootTerms, result: BootResult) -> MetadataState:
    try:
        state = load_metadata(metadata_dir, terms)
    except StopsStart as error:
        result.steps.append(_refusal(error, (CLUSTER_METADATA_TOPIC, 0)))
        return MetadataState()
    except NotKnown as error:
        result.steps.append(_unknown(error))
        return MetadataState()
    except KafkaLogError as error:
        result.steps.append(_unknown(NotKnown(error.message, metadata_dir / METADATA_PARTITION)))
        return MetadataState()
    result.steps += state.steps
    return state


def _refusal(error: StopsStart, key: tuple[str, int] | None = None) -> Step:
    topic, partition = error.key or key or (None, None)
    return Step(
        Action.REFUSE,
        error.path,
        topic,
        partition,
        position=error.position,
        reason=error.reason,
        broker_message=error.text,
        kafka_class=error.kafka_class,
    )


def _unknown(error: NotKnown) -> Step:
    return Step(Action.UNKNOWN, error.path, reason=error.text)


def _offline_directories(
    opened: list[LogDirState],
    offline: dict[Path, FailsLogDir],
    result: BootResult,
    metadata_dir: Path | None,
    terms: BootTerms,
) -> None:
    """Add steps for log directories that fail; the broker exits with the last one, or with that of the metadata log."""
    failed = list(offline.items())
    failed += [(log_dir.path, error) for log_dir in opened for error in log_dir.failures]
    none_is_left = not terms.is_one_of_several and bool(failed)
    none_is_left = none_is_left and {path for path, _ in failed} >= {each.path for each in opened} | set(offline)
    for path, error in failed:
        step = _refusal(error)
        if none_is_left:
            result.steps.append(replace(step, reason=f"{step.reason}; the log directory fails, and no other is left"))
        elif path == metadata_dir:
            reason = f"{step.reason}; the log directory fails, and with it the metadata log"
            result.steps.append(replace(step, reason=reason))
        else:
            reason = f"{step.reason}; the log directory {path} fails, and none of its partitions is served"
            result.steps.append(replace(step, action=Action.OFFLINE, reason=reason))


def _future_logs(logs: LogsState, metadata: MetadataState, node_id: int, result: BootResult) -> None:
    """Add steps for future replicas whose directory the metadata already has: they replace the current ones."""
    for key, found in logs.future.items():
        image, topic_id = metadata.image, found.topic_id
        if image is None or topic_id is None or found.log_dir.directory_id is None:
            continue
        if image.directory_of(topic_id, key[1], node_id) != found.log_dir.directory_id:
            continue
        current = logs.live.get(key)
        if current is not None and current.log_dir is found.log_dir:
            text = f"Error while renaming dir for {key[0]}-{key[1]} in log dir {found.log_dir.path}"
            reason = "the future replica is to take the place of the current one in the same log directory"
            result.steps.append(_refusal(StopsStart(text, "LocalLog.renameDir", path=found.path, reason=reason)))
            continue
        result.steps.append(
            Step(
                Action.RENAME, found.path, *key, new_path=found.path.with_name(f"{key[0]}-{key[1]}"),
                reason="the metadata assigns the partition to this directory: the future replica becomes the current",
                kafka_class="LogManager.recoverAbandonedFutureLogs", log_start_offset=found.log.log_start,
                log_end_offset=found.log.log_end,
            )
        )  # fmt: skip
        if current is not None:
            result.steps.append(
                Step(
                    Action.DELETE, current.path, *key, kafka_class="LogManager.replaceCurrentWithFutureLog",
                    reason="its future replica in another log directory takes its place",
                )
            )  # fmt: skip
        logs.live[key] = found


def _missing_logs(
    logs: LogsState,
    opened: list[LogDirState],
    metadata: MetadataState,
    node_id: int,
    result: BootResult,
    *,
    is_whole: bool,
) -> None:
    """Add steps for partitions that the metadata assigns to this node and that no directory holds as a live log."""
    image = metadata.image
    if image is None or logs.unknown or logs.stops:
        return
    serving = [log_dir for log_dir in opened if not log_dir.failures]
    is_whole = is_whole and len(serving) == len(opened)
    for topic_id, topic, partition in image.assigned_to(node_id):
        found = logs.live.get((topic, partition))
        if found is not None and not found.log_dir.failures:
            _check_topic_id(found, topic_id, result)
            continue
        homes = {log_dir.directory_id for log_dir in serving}
        if not is_whole and image.directory_of(topic_id, partition, node_id) not in homes:
            continue  # it may lie in a directory that failed, or that was not given
        high_watermark, log_start, home = _checkpointed(opened, (topic, partition))
        lost = lost_range(log_start, 2**63, log_start, high_watermark)
        reason = "the metadata assigns the partition to this node, and its log is missing: a broker makes an empty one"
        if (topic, partition) in logs.future:
            reason += f"; after the start its future replica {logs.future[topic, partition].path} is cut to that one"
        if lost is not None:
            reason += f"; the high watermark in the checkpoint is {high_watermark}"
        result.steps.append(
            Step(
                Action.CREATE, home / f"{topic}-{partition}", topic, partition, reason=reason, lost_offsets=lost,
                kafka_class="ReplicaManager", log_start_offset=0, log_end_offset=0,
            )
        )  # fmt: skip


def _checkpointed(opened: list[LogDirState], key: tuple[str, int]) -> tuple[int | None, int, Path]:
    """High watermark, log start offset and log directory of a partition, from the first checkpoint that has it."""
    for log_dir in opened:
        if key in log_dir.high_watermarks:
            return log_dir.committed_end(key), log_dir.log_starts.get(key, 0), log_dir.path
    return None, 0, opened[0].path


def _check_topic_id(found: FoundLog, topic_id: str, result: BootResult) -> None:
    if found.topic_id in (None, topic_id):
        return
    result.steps.append(
        Step(
            Action.OFFLINE, found.path, *found.key, kafka_class="UnifiedLog.assignTopicId",
            broker_message=f"Tried to assign topic ID {topic_id} to log for topic partition",
            reason=f"the log has the topic id {found.topic_id} of another topic: the partition is not served, nor are "
            "others of which the broker becomes the leader at the same moment: the error ends that change",
        )
    )  # fmt: skip


def _not_checked(
    result: BootResult, identity: NodeIdentity | None, metadata: MetadataState, node_id: int | None
) -> None:
    """Note what the log directories cannot show."""
    notes = result.not_checked
    notes.append("the broker's configuration: listeners, log.dirs, segment.index.bytes, remote storage")
    notes += [f"{path} is not a regular file: a broker ignores it" for path in result.unread]
    if identity is None:
        notes.append("strays and missing partitions: the node's identity cannot be read")
        return
    if identity.is_zookeeper:
        notes.append("strays and missing partitions: in ZooKeeper mode, the assignment of partitions is in ZooKeeper")
        notes.append("the cluster id in ZooKeeper: a broker does not start with another one")
    elif metadata.image is None:
        notes.append("strays and missing partitions: the metadata log cannot be loaded")
    elif metadata.voters is not None and (len(metadata.voters) > 1 or node_id not in metadata.voters):
        notes.append("metadata that other controllers have and this node does not")
