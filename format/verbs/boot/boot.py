"""boot: simulates what a broker's start does to the log directories of one node, from its identity to each file.

The order is the broker's own: meta.properties, bootstrap metadata, the metadata log, then all other logs. All
refusals that can be found are reported, though a broker stops at the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.io import live_broker
from format.io.session import is_on_disk, is_there
from format.layout import CLUSTER_METADATA_TOPIC, LOCK
from format.verbs.boot.assigned_logs import future_log_steps, missing_log_steps, with_other_replicas
from format.verbs.boot.bootstrap import check_bootstrap
from format.verbs.boot.directory_ids import unknown_directory_steps
from format.verbs.boot.identity import METADATA_PARTITION, NodeIdentity, read_identity
from format.verbs.boot.log_dir_state import LogDirState, open_log_dir
from format.verbs.boot.log_dirs import load_logs
from format.verbs.boot.metadata_log import MetadataState, load_metadata
from format.verbs.boot.permissions import closed_to_the_owner, closed_to_this_user
from format.verbs.boot.quorum import controller_lock, if_broker, is_broker, observer_step
from format.verbs.boot.steps import (
    Action,
    BootResult,
    BootTerms,
    FailsLogDir,
    KnownMetadata,
    NotKnown,
    Step,
    StopsStart,
)
from format.wording import counted

_MUCH_SPACE = 2**30  # bytes, of which a start needs a part
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
    result.steps += [_unknown(NotKnown("a broker runs on this log directory, and changes it", path))
                     for path in log_dirs if live_broker.probe(path / LOCK).is_held]  # fmt: skip
    result.steps += [_unknown(error) for error in closed_to_the_owner(log_dirs)]
    node_id = identity.node_id if identity is not None else node_id
    has_broker = is_broker(log_dirs, identity, metadata, node_id, terms)
    image = metadata.image
    if image is not None and image.problem is not None:
        result.steps.append(_unknown(NotKnown(image.problem, metadata_dir / METADATA_PARTITION)))
    if identity is not None and image is not None and node_id is not None:
        observer = observer_step(metadata_dir, identity, image, node_id, terms)
        result.steps += [] if observer is None else [observer]
    if has_broker is False:
        result.is_controller = True
        closed = controller_lock(metadata_dir)
        result.steps += [] if closed is None else [_refusal(closed)]
    else:
        steps = _logs(log_dirs, metadata_dir, identity, metadata, node_id, terms, result)
        result.steps += steps if has_broker else map(if_broker, steps)
    _not_checked(result, identity, metadata, node_id, terms)
    _note_roles(result, has_broker, node_id, terms)
    if not terms.is_one_of_several:
        _space(log_dirs, result)
    if metadata_dir != log_dirs[0]:
        result.not_checked.append(
            f"metadata.log.dir: the metadata log lies in {metadata_dir}; unless that property names the directory, a "
            "broker looks in the first one of log.dirs, and stops: Found unexpected metadata location"
        )
    if not terms.every_file:
        result.steps = [step for step in result.steps if _is_remarkable(step)]
    result.steps = sorted(result.steps, key=lambda step: _ORDER[step.action])
    return result


def _logs(
    log_dirs: list[Path],
    metadata_dir: Path,
    identity: NodeIdentity | None,
    metadata: MetadataState,
    node_id: int | None,
    terms: BootTerms,
    result: BootResult,
) -> list[Step]:
    """The steps of a broker's log manager on all logs but the metadata log."""
    offline = {error.path: error for error in identity.offline} if identity is not None else {}
    directory_ids = identity.directory_ids if identity is not None else {}
    image = metadata.image if terms.later is None else terms.later.image
    if image is not None and image.problem is not None:
        image = None  # what belongs to the node may be in what cannot be read
    opened = [open_log_dir(path, directory_ids.get(path), terms)
              for path in log_dirs if path not in offline and path.is_dir()]  # fmt: skip
    logs = load_logs(opened, image, node_id, terms)
    steps = [_refusal(error) for error in logs.stops]
    steps += [_unknown(error) for error in logs.unknown]
    result.unread += logs.unread
    has_metadata = identity is not None and not identity.is_zookeeper
    has_metadata = has_metadata and (not terms.is_one_of_several or is_there(metadata_dir / METADATA_PARTITION))
    steps += _offline_directories(opened, offline, metadata_dir if has_metadata else None, terms)
    for log_dir in opened:
        steps += log_dir.steps
    steps += logs.steps
    if logs.links:
        result.not_checked.append(
            f"whether symbolic links lead to the same files on the broker's host: {counted(len(logs.links), 'link')} "
            f"followed, as a broker does; the first is {logs.links[0]}"
        )
    if image is None or node_id is None:
        return steps
    steps += future_log_steps(logs, image, node_id)
    is_whole = not offline and not terms.is_one_of_several
    steps += unknown_directory_steps(logs, opened, image, node_id, is_whole=is_whole)
    is_later = terms.later is not None and metadata.path is not None
    earlier = metadata.image if is_later else None
    steps += missing_log_steps(logs, opened, image, node_id, is_whole=is_whole, earlier=earlier)
    return [with_other_replicas(step, image, node_id) for step in steps]


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
    metadata_dir: Path | None,
    terms: BootTerms,
) -> Iterator[Step]:
    """Steps for log directories that fail; the broker exits with the last one, or with that of the metadata log."""
    failed = list(offline.items())
    failed += [(log_dir.path, error) for log_dir in opened for error in log_dir.failures]
    none_is_left = not terms.is_one_of_several and bool(failed)
    none_is_left = none_is_left and {path for path, _ in failed} >= {each.path for each in opened} | set(offline)
    for path, error in failed:
        step = _refusal(error)
        if none_is_left:
            yield replace(step, reason=f"{step.reason}; the log directory fails, and no other is left")
        elif path == metadata_dir:
            reason = f"{step.reason}; the log directory fails, and with it the metadata log"
            yield replace(step, reason=reason)
        else:
            reason = f"{step.reason}; the log directory {path} fails, and none of its partitions is served"
            yield replace(step, action=Action.OFFLINE, reason=reason)


def _not_checked(
    result: BootResult, identity: NodeIdentity | None, metadata: MetadataState, node_id: int | None, terms: BootTerms
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
    elif metadata.image is None or metadata.image.problem is not None:
        notes.append("strays and missing partitions: the metadata log cannot be read as a whole")
    elif metadata.voters != (node_id,):
        notes.append("whether a majority of the controllers runs: the node waits for their leader")
        if terms.later is not None:
            result.as_of = terms.later
        elif metadata.path is not None:
            result.as_of = KnownMetadata(metadata.path, metadata.image, metadata.timestamp)
            notes.append("metadata that other controllers have and this node does not: give theirs with --metadata")
    else:
        result.as_of = terms.later


def _note_roles(result: BootResult, has_broker: bool | None, node_id: int | None, terms: BootTerms) -> None:
    """Note on what the roles of the node rest where its configuration was not given."""
    if terms.is_broker is not None or has_broker:
        return
    if has_broker is None:
        result.not_checked.append("whether the node is a broker: neither its metadata log nor its files say so")
    else:
        result.not_checked.append(
            f"process.roles: the metadata log has a controller {node_id} and no broker {node_id}, so the node is taken "
            "for a controller alone, which reads nothing but the metadata log; --process-roles says otherwise"
        )


def _space(log_dirs: list[Path], result: BootResult) -> None:
    """Note where little space is free on this host's file systems; without any, a start cannot be predicted."""
    seen = set()
    for path in log_dirs:
        if not is_on_disk(path):
            continue
        try:
            status = os.statvfs(path)
        except OSError:
            continue  # the simulated start reports it
        if status.f_fsid in seen or status.f_flag & os.ST_RDONLY:
            continue  # an image that is mounted to be read is no place where a broker starts
        seen.add(status.f_fsid)
        free = status.f_bavail * status.f_frsize
        need = "a start needs some, for indexes and checkpoints"
        if not free:
            text = f"the file system has no byte free, on this host and now: {need}"
            result.steps.append(_unknown(NotKnown(text, path)))
        elif free < _MUCH_SPACE:
            words = f"{counted(free, 'byte')} free, on this host and now"
            result.not_checked.append(f"whether the disk has room: {path} has {words}; {need}")
