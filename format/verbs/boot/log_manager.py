"""The log directories of a node as a broker's log manager loads them: checkpoints, logs, and what the metadata assigns.

Logs are sorted (live, future, stray, deleted) and held against the metadata: moves that end, logs to be made, offsets
that are lost.

Source: core LogManager, ReplicaManager, KafkaRaftServer.initializeLogDirs, storage LocalLog, UnifiedLog,
OffsetCheckpointFile, CheckpointFileWithFailureHandler, PartitionMetadataFile; metadata
ReplicationControlManager.handleAssignReplicasToDirs.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format import layout
from format.errors import KafkaLogError
from format.files.side_file import INT32_RANGE, decode_integer
from format.io.session import entries_of, is_there
from format.kafka_uuid import is_reserved
from format.limits import Limits
from format.node.log_dir import TopicPartition
from format.state.cluster_image import DELETED, ClusterImage
from format.verbs.boot.broker_files import (
    PartitionFiles,
    exists,
    followed_is,
    is_seen,
    read_partition_files,
    size_of,
    stop_at_pipe,
    why_closed,
)
from format.verbs.boot.one_log.checkpoints import BadText, EpochCache, read_offsets, read_topic_id
from format.verbs.boot.one_log.log_load import LoadedLog, LoadTerms, load_log
from format.verbs.boot.steps import Action, BootTerms, FailsLogDir, NotKnown, Step, StopsStart, problem_step
from format.wording import counted, counted_plainly, listed

_MARKED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")
_MARKS = ("-delete", "-future", "-stray")
_MANAGER = "LogManager"
_LEAST_SEGMENT_BYTES = 2**20
_SEGMENT_MINIMUM_SINCE = (4, 1)


class LogName(msgspec.Struct, frozen=True):
    """Topic, partition and mark (delete, future or stray) of a directory that a broker loads as a log."""

    topic: str
    partition: int
    mark: str | None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition


def log_name(path: Path) -> LogName | None:
    """The parsed name of a directory; None for one that a broker ignores. Raises StopsStart for any other name."""
    name = path.name
    if name == layout.REMOTE_INDEX_CACHE:
        return None
    mark = next((each for each in _MARKS if name.endswith(each)), None)
    stem = name if mark is None else name[: name.rfind(".")]
    topic, dash, number = stem.rpartition("-")
    partition = decode_integer(number, *INT32_RANGE)
    if (mark and _MARKED.fullmatch(name) is None) or not dash or not topic or partition is None:
        text = (
            f"'{name}' is not in the form of topic-partition or topic-partition.uniqueId-delete (if marked for "
            "deletion)."
        )
        reason = "in a log directory, a broker stops at each directory whose name is not that of a partition"
        raise StopsStart(text, "LocalLog.parseTopicPartitionName", path, reason)
    return None if topic == layout.CLUSTER_METADATA_TOPIC else LogName(topic, partition, mark and mark[1:])


class LogDirState(msgspec.Struct):
    """A log directory while it is loaded: the entries of its checkpoints, and the steps so far.

    ``failures`` are refusals that fail the directory, ``stops`` those that end the start.
    """

    path: Path
    directory_id: str | None = None
    clean: bool = False
    recovery_points: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    has_remote_indexes: bool = False
    high_watermarks: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    steps: list[Step] = msgspec.field(default_factory=list)
    failures: list[Step] = msgspec.field(default_factory=list)
    stops: list[Step] = msgspec.field(default_factory=list)

    def committed_end(self, key: TopicPartition) -> int | None:
        """The high watermark of a partition. A broker that stopped cleanly had nothing past its recovery point."""
        high_watermark = self.high_watermarks.get(key)
        if high_watermark is None or not self.clean or key not in self.recovery_points:
            return high_watermark
        return min(high_watermark, self.recovery_points[key])


def open_log_dir(path: Path, directory_id: str | None, terms: BootTerms) -> LogDirState:
    """The state of a log directory before any log is loaded: its clean-shutdown file and checkpoints are read."""
    state = LogDirState(path, directory_id)
    mark = path / layout.CLEAN_SHUTDOWN
    state.clean = exists(mark)
    state.has_remote_indexes = is_there(path / layout.REMOTE_INDEX_CACHE)
    try:
        stop_at_pipe(mark, "CleanShutdownFileHandler")
    except StopsStart as error:
        state.stops.append(problem_step(error, mark))
    if state.clean:
        reason = "a clean shutdown: no log is recovered; the file is removed before the logs are loaded"
        state.steps.append(Step(Action.DELETE, mark, reason=reason, kafka_class=_MANAGER))
    closed = why_closed(path / layout.LOCK)
    if closed is not None:
        state.failures.append(
            Step(
                Action.REFUSE, path / layout.LOCK, reason=f"{layout.LOCK} cannot be opened: {closed}",
                broker_message=f"Disk error while locking directory {path}", kafka_class="LogManager.lockLogDirs",
            )
        )  # fmt: skip
    for name, target, effect in (
        (layout.RECOVERY_POINT_CHECKPOINT, state.recovery_points, "every recovery point is taken as 0"),
        (layout.LOG_START_OFFSET_CHECKPOINT, state.log_starts, "every log starts at its first segment"),
        (layout.REPLICATION_OFFSET_CHECKPOINT, state.high_watermarks, "no partition of the directory is served"),
        (layout.CLEANER_OFFSET_CHECKPOINT, {}, "the cleaner begins at the start of each log"),
    ):
        _read_checkpoint(state, name, target, effect, terms)
    return state


def _read_checkpoint(
    state: LogDirState, name: str, target: dict[TopicPartition, int], effect: str, terms: BootTerms
) -> None:
    """Read an offset checkpoint. I/O errors fail the directory; ``effect`` is that of other errors."""
    path, text = state.path / name, f"it cannot be read: {effect}"
    if not is_there(path):
        return
    try:
        stop_at_pipe(path, "CheckpointFile")
        target.update(read_offsets(path, terms.limits))
    except StopsStart as error:
        if name == layout.CLEANER_OFFSET_CHECKPOINT:  # the cleaner runs beside the start
            reason = "it is a pipe: the cleaner waits for another process to open it, and cleans nothing"
            state.steps.append(Step(Action.KEEP, path, reason=reason, kafka_class="LogCleanerManager"))
        else:
            state.stops.append(problem_step(error, path))
    except BadText as error:
        is_fatal = error.is_fatal and name in (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_OFFSET_CHECKPOINT)
        if error.is_io_error or is_fatal:
            kafka_class = "CheckpointFileWithFailureHandler" if error.is_io_error else "CheckpointFile"
            reason = "the checkpoint cannot be read; a broker starts without the file"
            step = Step(Action.REFUSE, path, reason=reason, broker_message=error.text, kafka_class=kafka_class)
            (state.failures if error.is_io_error else state.stops).append(step)
        else:
            action = Action.OFFLINE if name == layout.REPLICATION_OFFSET_CHECKPOINT else Action.KEEP
            state.steps.append(Step(action, path, reason=text, broker_message=error.text, kafka_class=_MANAGER))
    except KafkaLogError as error:
        state.steps.append(problem_step(error, path))


_MOST_NAME_CHARACTERS = 255
_UNIQUE_CHARACTERS = 32


class FoundLog(msgspec.Struct):
    """A log that was loaded, its files with the steps on them, and the log directory it lies in."""

    path: Path
    log_dir: LogDirState
    name: LogName
    topic_id: str | None
    log: LoadedLog
    files: PartitionFiles

    def step(self, action: Action, reason: str, *, kafka_class: str = _MANAGER, **values: object) -> Step:
        """A step for the directory of the log."""
        return Step(action, self.path, *self.name.key, reason=reason, kafka_class=kafka_class, **values)  # type: ignore[arg-type]

    def step_with_ends(self, action: Action, reason: str, **values: object) -> Step:
        """A step for the directory of the log that has its first offset and its end."""
        ends = {"log_start_offset": self.log.log_start, "log_end_offset": self.log.log_end}
        return self.step(action, reason, **ends, **values)  # type: ignore[arg-type]


class LogsState(msgspec.Struct):
    """All logs after the load: live ones, future ones, strays, and what stops the broker or cannot be predicted."""

    terms: BootTerms = msgspec.field(default_factory=BootTerms)
    image: ClusterImage | None = None
    node_id: int | None = None
    live: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)
    future: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)
    strays: dict[TopicPartition, FoundLog] = msgspec.field(default_factory=dict)  # that this start finds
    problems: list[Step] = msgspec.field(default_factory=list)
    unread: list[Path] = msgspec.field(default_factory=list)  # directories, pipes and the like under the names of logs
    links: list[Path] = msgspec.field(default_factory=list)  # symbolic links to files, which were followed
    steps: list[Step] = msgspec.field(default_factory=list)


def load_logs(
    log_dirs: list[LogDirState], image: ClusterImage | None, node_id: int | None, terms: BootTerms
) -> LogsState:
    """Simulate the load of every log in these directories, and find those that do not belong to this node."""
    state = LogsState(terms, image, node_id)
    for log_dir in log_dirs:
        state.problems += log_dir.stops
        for path in _subdirectories(log_dir, state):
            key = None
            try:
                name = log_name(path)
                if name is not None:
                    key = name.key
                    _classify(_loaded(path, name, log_dir, state), state)
            except FailsLogDir as error:
                log_dir.failures.append(problem_step(error, path, key))
            except (StopsStart, NotKnown, KafkaLogError) as error:
                state.problems.append(problem_step(error, path, key))
    return state


def _subdirectories(log_dir: LogDirState, state: LogsState) -> list[Path]:
    try:
        with entries_of(log_dir.path) as entries:
            names = [each.name for each in entries if is_seen(each.name) and followed_is(each.is_dir)]
    except OSError as error:
        reason = f"the log directory cannot be listed: {error.strerror}"
        state.problems.append(Step(Action.UNKNOWN, log_dir.path, reason=reason))
        return []
    return [log_dir.path / name for name in sorted(names) if name != layout.CLEAN_SHUTDOWN]


def _loaded(path: Path, name: LogName, log_dir: LogDirState, state: LogsState) -> FoundLog:
    terms, image, key = state.terms, state.image, name.key
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
    files = read_partition_files(path, *key)
    state.unread += files.unread_logs
    state.links += [path / each for each in files.links]
    epochs = EpochCache(files, terms.limits)
    log = load_log(files, load)
    if not load.is_deleted:
        epochs.settle(log)
    return FoundLog(path, log_dir, name, _topic_id(files, terms), log, files)


def removed_by_start(path: Path, log_end: int, terms: BootTerms) -> tuple[int, int] | None:
    """First and last of the offsets that a start removes from the log in a directory, which ends at ``log_end``.

    None for a log that is not cut, or of which that is not known.
    """
    try:
        name = log_name(path)
        if name is None:
            return None
        found = _loaded(path, name, open_log_dir(path.parent, None, terms), LogsState(terms))
    except (StopsStart, NotKnown, KafkaLogError):
        return None
    for step in found.files.settled_steps(with_kept=False):
        if step.action is Action.TRUNCATE and step.path.name.endswith(layout.LOG_SUFFIX) and step.offset is not None:
            end = min(_later_bases(step, found.log), default=log_end)
            return (step.offset, end - 1) if end > step.offset else None
    return None


def _later_bases(step: Step, log: LoadedLog) -> list[int]:
    """The base offsets of the segments that are left after a cut."""
    own = int(step.path.name.partition(".")[0])
    bases = [each.base_offset for each in log.segments]
    return [base for base in bases if step.offset is not None and base > max(step.offset, own)]


def _topic_id(files: PartitionFiles, terms: BootTerms) -> str | None:
    try:
        return stored_topic_id(files, terms.limits)
    except BadText as error:
        text = error.text
        if terms.version < (4, 0):
            text = text.replace("Malformed line in partition metadata file", "Malformed line in checkpoint file")
        reason = "the topic id cannot be read; without the file the broker takes the log as stray"
        kind = FailsLogDir if error.is_io_error else StopsStart
        raise kind(text, "PartitionMetadataFile", files.path / layout.PARTITION_METADATA, reason) from error


def stored_topic_id(files: PartitionFiles, limits: Limits) -> str | None:
    """The topic id in partition.metadata, None without the file. Raises FailsLogDir, StopsStart and BadText."""
    path = files.path / layout.PARTITION_METADATA
    if layout.PARTITION_METADATA in files.folders:
        stop_at_pipe(path, "PartitionMetadataFile")
        text = f"Error while reading partition metadata file {path}"
        raise FailsLogDir(text, "PartitionMetadataFile", path, "it is a directory")
    return read_topic_id(path, limits) if layout.PARTITION_METADATA in files.present else None


def _classify(found: FoundLog, state: LogsState) -> None:
    """Add the steps of a loaded log: deleted, stray, future or live."""
    path, name = found.path, found.name
    if name.mark == "delete":
        reason = "the partition was deleted; its directory is removed a minute after the start"
        state.steps.append(found.step(Action.DELETE, reason))
        return
    steps = found.files.settled_steps(with_kept=state.terms.every_file)
    if name.mark == "stray":
        reason = "a stray log: it is loaded, not served, and not deleted"
        state.steps += steps
        state.steps.append(found.step_with_ends(Action.KEEP, reason, broker_message=f"Loaded stray log: {path}"))
        return
    why = _why_stray(found, state.image, state.node_id)
    if why is not None:
        state.strays[found.name.key] = found
        target = path.with_name(_stray_name(name))
        message = f"Log in {path} marked stray and renamed to {target}"
        state.steps += steps
        step = found.step_with_ends(Action.RENAME, why, broker_message=message, new_path=target)
        is_deleted = state.image is not None and found.topic_id in state.image.removed_topics
        state.steps.append(replace(step, is_needless=is_deleted or not _has_records(found)))
        return
    owner = None if state.image is None or found.topic_id is None else state.image.names.get(found.topic_id)
    if owner is not None and owner != name.topic:
        reason = (
            f"its topic id {found.topic_id} is that of the topic {owner} in the metadata: the broker loads the log, "
            "and no client can read it"
        )
        state.steps.append(found.step(Action.OFFLINE, reason))
    other = (state.future if name.mark == "future" else state.live).setdefault(found.name.key, found)
    if other is not found:
        message = f"Duplicate log directories for {name.topic}-{name.partition} are found"
        if name.mark:
            message = "Duplicate log directories found:"
        reason = (
            f"the same partition is in {other.path} too: compare both with kafkalog diff, unless one of the two log "
            "directories is a copy, or of another cluster"
        )
        state.problems.append(problem_step(StopsStart(message, "LogManager.loadLog", path, reason), path))
    state.steps += _steps_with_losses(steps, found)


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
        if found.topic_id in image.removed_topics:
            known = f": {DELETED}{known}"
        return f"the metadata log has no partition {found.name.partition} of the topic id {found.topic_id}{known}"
    if node_id is not None and node_id not in state.replicas:
        return f"its replicas are on {', '.join(map(str, state.replicas))}, not on node {node_id}"
    return None


def lost_range(first: int, end: int, log_start: int, high_watermark: int | None) -> tuple[int, int] | None:
    """First and last of the offsets from ``first`` to before ``end`` that lie between log start and high watermark."""
    if high_watermark is None:
        return None
    first, end = max(first, log_start), min(end, high_watermark)
    return (first, end - 1) if end > first else None


def _steps_with_losses(steps: list[Step], found: FoundLog) -> list[Step]:
    """The steps of one log with the offsets that they lose, and one step for the log itself."""
    log = found.log
    high_watermark = found.log_dir.committed_end(found.name.key)
    log_start = max(found.log_dir.log_starts.get(found.name.key, 0), 0)
    result: list[Step] = []
    end_is_reported = False
    for step in steps:
        if step.action is Action.TRUNCATE and step.path.name.endswith(layout.LOG_SUFFIX) and step.offset is not None:
            later = _later_bases(step, log)
            lost = lost_range(step.offset, min(later, default=2**63), log_start, high_watermark)
            end_is_reported |= not later
            reason = step.reason
            if high_watermark is None:
                reason += "; no high watermark is known, so it is not known whether this was committed"
            elif lost is None:
                reason += f"; nothing below the high watermark {high_watermark} is lost"
            step = replace(step, lost_offsets=lost, reason=reason, may_lose=high_watermark is None)
        result.append(step)
    if log.is_cleared and high_watermark is not None and log_start > high_watermark:
        return [*result, _cleared_step(found, steps, log_start, high_watermark)]
    return [*result, _log_step(found, high_watermark, None if end_is_reported else log_start)]


def _cleared_step(found: FoundLog, steps: list[Step], log_start: int, high_watermark: int) -> Step:
    """The step of a log that the broker deletes for a log start offset that it cannot have had."""
    deleted = [
        step.offset for step in steps if step.action is Action.DELETE and step.path.name.endswith(layout.LOG_SUFFIX)
    ]
    first = min((offset for offset in deleted if offset is not None), default=log_start)
    reason = (
        f"the log start offset {log_start} of the checkpoint is past the high watermark {high_watermark}: the broker "
        "deletes all segments, and the log starts again there"
    )
    lost = lost_range(first, high_watermark, first, high_watermark)
    return found.step_with_ends(Action.KEEP, reason, kafka_class="LogLoader", lost_offsets=lost)


def _log_step(found: FoundLog, high_watermark: int | None, log_start: int | None) -> Step:
    """The step of the log itself: where it starts and ends, and what was lost before this start."""
    log, log_dir = found.log, found.log_dir
    if not log.segments:
        return found.step(Action.KEEP, "the log is recovered", kafka_class="UnifiedLog")
    lost = None if log_start is None else lost_range(log.log_end, 2**63, log_start, high_watermark)
    reason = "the log is kept as it is"
    if log.is_cleared:
        reason = "the log is emptied and starts again at its log start offset"
    elif any(step.action is not Action.KEEP for step in found.files.steps):
        reason = "the log is served after these changes"
    checkpointed = max(log_dir.log_starts.get(found.name.key, 0), 0)
    if lost is not None:
        reason = f"the log ends at {log.log_end}, below its high watermark {high_watermark}; it goes on from there"
    elif found.name.key in log_dir.log_starts and log_dir.clean and checkpointed < log.log_start:
        lost = lost_range(checkpointed, log.log_start, checkpointed, high_watermark)
        reason = (
            f"the log starts at {log.log_start}, past the log start offset {checkpointed} of the clean stop, and the "
            "topic keeps nothing in remote storage: its first segments are gone"
        )
    step = found.step_with_ends(Action.KEEP, reason, kafka_class="UnifiedLog", lost_offsets=lost)
    end = log.segments[-1].end()
    behind = log.segments[-1].size_bytes - end.position
    if behind <= 0:
        return step
    what = "after its last batch" if end.has_batches else "that the broker does not see"
    they, them = ("stays", "it") if behind == 1 else ("stay", "them")
    reason += f"; {counted_plainly(behind, 'byte')} {what} {they}, and the next batch is written after {them}"
    return replace(step, position=end.position, bytes=behind, reason=reason)


def config_steps(image: ClusterImage, metadata: Path, terms: BootTerms) -> Iterator[Step]:
    """Refusals for topics whose segments earlier releases let be too small: a broker reads the configs of all topics.

    4.1.1 to 4.4.0 stopped, 4.0.0 started.
    """
    if terms.version < _SEGMENT_MINIMUM_SINCE or terms.is_one_of_several:  # the release may be an earlier one
        return
    for topic in sorted(image.names.values()):
        size = image.count_config(topic, "segment.bytes")
        if size is not None and size < _LEAST_SEGMENT_BYTES:
            reason = (
                f"topic {topic} has segment.bytes={size}, and brokers from 4.1 on take no less than "
                f"{_LEAST_SEGMENT_BYTES}: change it while an earlier release runs"
            )
            message = (
                f"Invalid value {size} for configuration segment.bytes: Value must be at least {_LEAST_SEGMENT_BYTES}"
            )
            yield Step(Action.REFUSE, metadata, reason=reason, broker_message=message, kafka_class=_MANAGER)


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
            f"the metadata assigns {which} to the directory id {assigned}, which no log directory of the node has: "
            f"{they} no leader on this node until it is started a second time; directory.id={assigned} in "
            "meta.properties prevents that"
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


def without_losses_of_futures(steps: Iterable[Step], logs: LogsState) -> Iterator[Step]:
    """The steps; what a future replica lacks is not lost where the current one has it: it is copied again."""
    lacking = [(found, logs.live.get(key)) for key, found in logs.future.items()]
    current_of = {found.path: current for found, current in lacking if current is not None and current is not found}
    for step in steps:
        current = current_of.get(step.path) or current_of.get(step.path.parent)
        lost = step.lost_offsets
        if current is None or not (lost or step.may_lose) or (lost and lost[1] >= current.log.log_end):
            yield step
            continue
        reason = f"{step.reason}; of the future replica: the broker copies it again from {current.path}"
        yield replace(step, lost_offsets=None, may_lose=False, reason=reason)


def lone_future_steps(logs: LogsState) -> Iterator[Step]:
    """Steps for future replicas without a current one, which a broker with ZooKeeper never takes for the current one.

    Without an offset there is nothing to lose.
    """
    for key, found in logs.future.items():
        if key in logs.live or not _has_records(found):
            continue
        first, end = found.log.log_start, found.log.log_end
        offsets = f", with offsets {first} to {end - 1}," if found.log.segments else ""
        reason = (
            "no log directory here has the current replica: if none of the node has it and ZooKeeper assigns the "
            f"partition to this broker, it makes an empty log, and may cut this future replica{offsets} to it: copy "
            "it before"
        )
        yield found.step(Action.TRUNCATE, reason, kafka_class="ReplicaAlterLogDirsThread", offset=0, may_lose=True)


def _has_records(found: FoundLog) -> bool:
    """Whether a log has an offset; of one that was not read, whether a segment has a byte."""
    if found.log.segments:
        return found.log.log_end > found.log.log_start
    names = (each for each in found.files.present if each.endswith(layout.LOG_SUFFIX))
    return any(size_of(place) for place in map(found.files.place, names) if place is not None)


def new_directory_steps(logs: LogsState, new: Collection[Path]) -> Iterator[Step]:
    """Steps for log directories without meta.properties and logs, of a node with ZooKeeper that has others.

    2.8.2 and 3.9.1 made empty logs there for all that they had held, as ZooKeeper assigned them to the broker.
    """
    held = {each.log_dir.path for found in (logs.live, logs.future) for each in found.values()}
    for path in new:
        if path not in held:
            reason = (
                "the log directory is empty, and the broker takes it for a new one: if it held logs, what they held is "
                "not known, and the broker makes empty ones"
            )
            yield Step(
                Action.CREATE, path / layout.META_PROPERTIES, reason=reason, kafka_class="KafkaServer", may_lose=True
            )


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
        place = home.path / f"{topic}-{partition}"
        if os.path.lexists(place) and not place.is_dir():
            yield _in_the_way(place, key, is_last=is_whole and len(serving) == 1)
            continue
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
        where = (
            "that of this log directory" if assigned == home.directory_id else "which no log directory of the node has"
        )
        reason += f", for the directory id {assigned}, {where}"
    if lost is not None:
        reason += f"; the high watermark in the checkpoint is {high_watermark}"
    return Step(
        Action.CREATE, home.path / f"{key[0]}-{key[1]}", *key, reason=reason, lost_offsets=lost,
        kafka_class="ReplicaManager", log_start_offset=0, log_end_offset=0,
    )  # fmt: skip


def _in_the_way(place: Path, key: TopicPartition, *, is_last: bool) -> Step:
    """The step where a broker is to make an empty log, and an entry with its name is no directory."""
    what = "a symbolic link to no directory" if place.is_symlink() else "no directory"
    reason = f"the metadata assigns the partition to this node, and the entry with its name is {what}: the log "
    reason += "directory fails when the broker makes the log" + (", and no other is left" if is_last else "")
    return Step(
        Action.REFUSE if is_last else Action.OFFLINE, place if is_last else place.parent, *key, reason=reason,
        kafka_class="LogManager",
        broker_message=f"Error while creating log for {key[0]}-{key[1]} in dir {place.parent}",
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


def of_topic_made_anew(step: Step, image: ClusterImage, unclean: Collection[Path]) -> Step:
    """Without a clean stop, a loss at the end of a log is not known where an earlier topic of its name was deleted.

    A broker writes its high watermarks every five seconds: after a crash that of the deleted topic may be there.
    ``unclean`` are the log directories without a clean stop.
    """
    is_end = (
        step.action is Action.KEEP and step.lost_offsets is not None and step.lost_offsets[0] == step.log_end_offset
    )
    if not is_end or step.path.parent not in unclean or step.topic not in image.removed_topics.values():
        return step
    words = "the high watermark may be that of an earlier topic of this name, which was deleted"
    return replace(step, lost_offsets=None, may_lose=True, reason=f"{step.reason}; {words}")


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
