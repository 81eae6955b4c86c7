"""Loads the logs of all log directories as a broker's log manager does, and sorts them: live, future, stray, deleted.

Source: core LogManager, storage UnifiedLog, LocalLog.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.io.session import entries_of
from format.layout import CLEAN_SHUTDOWN, PARTITION_METADATA
from format.node.log_dir import TopicPartition
from format.state.cluster_image import ClusterImage
from format.verbs.boot.directory_names import LogName, log_name
from format.verbs.boot.followed import is_directory, is_seen
from format.verbs.boot.log_dir_state import FoundLog, LogDirState
from format.verbs.boot.losses import steps_with_losses
from format.verbs.boot.one_log.kafka_text import BadText, read_topic_id
from format.verbs.boot.one_log.leader_epochs import EpochCache
from format.verbs.boot.one_log.loaded_log import LoadedLog, LoadTerms
from format.verbs.boot.one_log.log_load import load_log
from format.verbs.boot.one_log.partition_files import PartitionFiles, read_partition_files
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import Action, BootTerms, FailsLogDir, NotKnown, Step, StopsStart

_MANAGER = "LogManager"
_MOST_NAME_CHARACTERS = 255
_UNIQUE_CHARACTERS = 32


class LogsState(msgspec.Struct):
    """All logs after the load: live ones, future ones, strays, and what stops the broker."""

    live: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)
    future: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)
    strays: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)  # that this start finds
    stops: list[StopsStart] = msgspec.field(default_factory=list)
    unknown: list[NotKnown] = msgspec.field(default_factory=list)
    unread: list[Path] = msgspec.field(default_factory=list)  # directories, pipes and the like under the names of logs
    links: list[Path] = msgspec.field(default_factory=list)  # symbolic links to files, which were followed
    steps: list[Step] = msgspec.field(default_factory=list)


class _Loaded(msgspec.Struct, frozen=True):
    """A log after its load, on which terms, and its files with the steps on them.

    ``epochs`` are the entries of its leader epoch checkpoint before the load.
    """

    terms: tuple[object, ...]
    files: PartitionFiles
    epochs: tuple[tuple[int, int], ...]
    log: LoadedLog
    topic_id: str | None


def load_logs(
    log_dirs: list[LogDirState], image: ClusterImage | None, node_id: int | None, terms: BootTerms
) -> LogsState:
    """Simulate the load of every log in these directories, and find those that do not belong to this node."""
    state = LogsState()
    for log_dir in log_dirs:
        state.stops += log_dir.stops
        for path in _subdirectories(log_dir, state):
            try:
                name = log_name(path)
            except StopsStart as error:
                state.stops.append(error)
                continue
            if name is not None:
                _load_one(path, name, log_dir, state, image, node_id, terms)
    return state


def _subdirectories(log_dir: LogDirState, state: LogsState) -> list[Path]:
    try:
        with entries_of(log_dir.path) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if is_seen(entry.name) and is_directory(entry) and entry.name != CLEAN_SHUTDOWN
            )
            return [log_dir.path / name for name in names]
    except OSError as error:
        state.unknown.append(NotKnown(f"the log directory cannot be listed: {error.strerror}", log_dir.path))
        return []


def _load_one(
    path: Path,
    name: LogName,
    log_dir: LogDirState,
    state: LogsState,
    image: ClusterImage | None,
    node_id: int | None,
    terms: BootTerms,
) -> None:
    key = (name.topic, name.partition)
    load = LoadTerms(
        terms,
        log_dir.clean,
        log_dir.recovery_points.get(key, 0),
        log_dir.log_starts.get(key, 0),
        is_deleted=name.mark == "delete",
        may_be_remote=key in log_dir.log_starts
        and (log_dir.clean or log_dir.has_remote_indexes)
        and not (image is not None and image.is_known_local(name.topic)),
        max_index_bytes=None if image is None else image.max_index_bytes(name.topic),
    )
    try:
        loaded = _loaded(path, key, state, load)
    except FailsLogDir as error:
        error.key = key
        log_dir.failures.append(error)
        return
    except StopsStart as error:
        error.key = key
        state.stops.append(error)
        return
    except NotKnown as error:
        state.unknown.append(error)
        return
    except KafkaLogError as error:
        state.unknown.append(NotKnown(error.message, path))
        return
    found = FoundLog(path, log_dir, name, loaded.topic_id, loaded.log, loaded.files)
    _classify(found, state, image, node_id, terms)


def _loaded(path: Path, key: TopicPartition, state: LogsState, load: LoadTerms) -> _Loaded:
    """The load of one log, or that of an earlier start of the same command on the same terms."""
    terms = load.boot
    known: _Loaded | None = terms.earlier.logs.pop(path, None) if terms.earlier is not None else None
    files = read_partition_files(path, *key) if known is None else known.files
    state.unread += files.unread_logs
    state.links += [path / each for each in files.links]
    on = _conditions(load)
    if known is not None:
        if known.terms == on and load.is_whole:
            return known
        files = files.untouched()
    epochs = EpochCache(files, terms.limits, None if known is None else known.epochs)
    read_epochs = tuple(epochs.entries)
    log = load_log(files, load)
    if not load.is_deleted:
        epochs.settle(log)
    topic_id = _topic_id(files, terms) if known is None else known.topic_id
    loaded = _Loaded(on, files, read_epochs, log, topic_id)
    if terms.kept is not None:
        terms.kept.logs[path] = loaded
    return loaded


def _conditions(load: LoadTerms) -> tuple[object, ...]:
    """What the load of a log depends on, apart from the logs that were read before: two starts may differ in these."""
    return (
        load.boot.version, load.boot.index_interval_bytes, load.is_whole, load.clean, load.recovery_point,
        load.log_start, load.is_deleted, load.may_be_remote, load.max_index_bytes,
    )  # fmt: skip


def _topic_id(files: PartitionFiles, terms: BootTerms) -> str | None:
    if PARTITION_METADATA in files.folders:
        path = files.path / PARTITION_METADATA
        stop_at_pipe(path, "PartitionMetadataFile")
        raise FailsLogDir(
            f"Error while reading partition metadata file {path}", "PartitionMetadataFile", path=path,
            reason="it is a directory",
        )  # fmt: skip
    if PARTITION_METADATA not in files.present:
        return None
    path = files.path / PARTITION_METADATA
    try:
        return read_topic_id(path, terms.limits)
    except BadText as error:
        kind = FailsLogDir if error.is_io_error else StopsStart
        text = error.text
        if terms.version < (4, 0):
            text = text.replace("Malformed line in partition metadata file", "Malformed line in checkpoint file")
        reason = "the topic id cannot be read; without the file the broker takes the log as stray"
        raise kind(text, "PartitionMetadataFile", path=path, reason=reason) from error


def _classify(
    found: FoundLog, state: LogsState, image: ClusterImage | None, node_id: int | None, terms: BootTerms
) -> None:
    """Add the steps of a loaded log: deleted, stray, future or live."""
    path, name, log = found.path, found.name, found.log
    if name.mark == "delete":
        reason = "the partition was deleted; its directory is removed a minute after the start"
        state.steps.append(Step(Action.DELETE, path, name.topic, name.partition, reason=reason, kafka_class=_MANAGER))
        return
    if name.mark == "stray":
        reason = "a stray log: it is loaded, not served, and not deleted"
        message = f"Loaded stray log: {path}"
        state.steps += found.files.settled_steps(with_kept=terms.every_file)
        state.steps.append(
            Step(
                Action.KEEP,
                path,
                *found.key,
                reason=reason,
                broker_message=message,
                kafka_class=_MANAGER,
                log_start_offset=log.log_start,
                log_end_offset=log.log_end,
            )
        )
        return
    why = _why_stray(found, image, node_id)
    if why is not None:
        state.strays[found.key] = found
        message = f"Log in {path} marked stray and renamed to"
        target = path.with_name(_stray_name(name))
        state.steps += found.files.settled_steps(with_kept=terms.every_file)
        state.steps.append(
            Step(
                Action.RENAME, path, *found.key, reason=why, broker_message=message, kafka_class=_MANAGER,
                new_path=target, log_start_offset=log.log_start, log_end_offset=log.log_end,
            )
        )  # fmt: skip
        return
    owner = None if image is None or found.topic_id is None else image.names.get(found.topic_id)
    if owner is not None and owner != name.topic:
        state.steps.append(
            Step(
                Action.OFFLINE, path, *found.key, kafka_class=_MANAGER,
                reason=f"its topic id {found.topic_id} is that of the topic {owner} in the metadata: the broker loads "
                "the log, and no client can read it",
            )
        )  # fmt: skip
    group = state.future if name.mark == "future" else state.live
    other = group.setdefault(found.key, found)
    if other is not found:
        start = (
            "Duplicate log directories found:"
            if name.mark
            else f"Duplicate log directories for {name.topic}-{name.partition} are found"
        )
        state.stops.append(
            StopsStart(
                start,
                "LogManager.loadLog",
                path=path,
                reason=f"the same partition is in {other.path} too; remove one of the two",
            )
        )
    state.steps += steps_with_losses(found.files.settled_steps(with_kept=terms.every_file), found)


def _stray_name(name: LogName) -> str:
    """The new name of a stray log's directory; a long topic is cut to what file systems allow."""
    end = f"-{name.partition}.UNIQUE-stray"
    most = _MOST_NAME_CHARACTERS - len(end) - _UNIQUE_CHARACTERS + len("UNIQUE")
    return name.topic[:most] + end


def _why_stray(found: FoundLog, image: ClusterImage | None, node_id: int | None) -> str | None:
    """Why a log does not belong to this node; None where it does, or where no metadata says so."""
    if image is None:
        return None
    if found.topic_id is None:
        return "it has no partition.metadata, and so no topic id"
    state = image.partitions.get((found.topic_id, found.name.partition))
    if state is None:
        here = image.topic_id(found.name.topic)
        if here == found.topic_id:
            return f"the topic {found.name.topic} has no partition {found.name.partition} in the metadata log"
        known = f"; the topic {found.name.topic} has the id {here}" if here else ""
        return f"the metadata log has no partition {found.name.partition} of the topic id {found.topic_id}{known}"
    if node_id is not None and node_id not in state.replicas:
        return f"its replicas are on {', '.join(map(str, state.replicas))}, not on node {node_id}"
    return None
