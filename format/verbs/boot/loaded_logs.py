"""Loads the logs of all log directories as a broker does, sorts them (live, future, stray, deleted), and counts losses.

Source: core LogManager, storage UnifiedLog, LocalLog, PartitionMetadataFile.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.io.session import entries_of
from format.layout import CLEAN_SHUTDOWN, LOG_SUFFIX, PARTITION_METADATA
from format.limits import Limits
from format.node.log_dir import TopicPartition
from format.state.cluster_image import ClusterImage
from format.verbs.boot.broker_files import PartitionFiles, is_directory, is_seen, read_partition_files, stop_at_pipe
from format.verbs.boot.directories import LogDirState, LogName, log_name
from format.verbs.boot.one_log.checkpoints import BadText, EpochCache, read_topic_id
from format.verbs.boot.one_log.log_load import load_log
from format.verbs.boot.one_log.recovery import LoadedLog, LoadTerms
from format.verbs.boot.steps import Action, BootTerms, FailsLogDir, NotKnown, Step, StopsStart, problem_step
from format.wording import counted_plainly

_MANAGER = "LogManager"
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

    @property
    def key(self) -> TopicPartition:
        return self.name.topic, self.name.partition

    def step(self, action: Action, reason: str, *, kafka_class: str = _MANAGER, **values: object) -> Step:
        """A step for the directory of the log."""
        return Step(action, self.path, *self.key, reason=reason, kafka_class=kafka_class, **values)  # type: ignore[arg-type]

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
            name = None
            try:
                name = log_name(path)
                if name is not None:
                    _classify(_loaded(path, name, log_dir, state), state)
            except FailsLogDir as error:
                log_dir.failures.append(problem_step(error, path, _key_of(name)))
            except (StopsStart, NotKnown, KafkaLogError) as error:
                state.problems.append(problem_step(error, path, _key_of(name)))
    return state


def _key_of(name: LogName | None) -> TopicPartition | tuple[None, None]:
    return (None, None) if name is None else (name.topic, name.partition)


def _subdirectories(log_dir: LogDirState, state: LogsState) -> list[Path]:
    try:
        with entries_of(log_dir.path) as entries:
            names = [each.name for each in entries if is_seen(each.name) and is_directory(each)]
    except OSError as error:
        reason = f"the log directory cannot be listed: {error.strerror}"
        state.problems.append(Step(Action.UNKNOWN, log_dir.path, reason=reason))
        return []
    return [log_dir.path / name for name in sorted(names) if name != CLEAN_SHUTDOWN]


def _loaded(path: Path, name: LogName, log_dir: LogDirState, state: LogsState) -> FoundLog:
    """The load of one log, or that of an earlier start of the same command on the same terms."""
    terms, image, key = state.terms, state.image, (name.topic, name.partition)
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
    on = (
        path, terms.version, load.is_whole, load.clean, load.recovery_point,
        load.log_start, load.is_deleted, load.may_be_remote, load.max_index_bytes,
    )  # fmt: skip
    known = None if terms.kept is None else terms.kept.get(on)
    files = read_partition_files(path, *key) if known is None else known.files
    state.unread += files.unread_logs
    state.links += [path / each for each in files.links]
    if known is None:
        epochs = EpochCache(files, terms.limits)
        log = load_log(files, load)
        if not load.is_deleted:
            epochs.settle(log)
        known = FoundLog(path, log_dir, name, _topic_id(files, terms), log, files)
        if terms.kept is not None:
            terms.kept[on] = known
    return replace(known, log_dir=log_dir)


def _topic_id(files: PartitionFiles, terms: BootTerms) -> str | None:
    try:
        return stored_topic_id(files, terms.limits)
    except BadText as error:
        text = error.text
        if terms.version < (4, 0):
            text = text.replace("Malformed line in partition metadata file", "Malformed line in checkpoint file")
        reason = "the topic id cannot be read; without the file the broker takes the log as stray"
        kind = FailsLogDir if error.is_io_error else StopsStart
        raise kind(text, "PartitionMetadataFile", files.path / PARTITION_METADATA, reason) from error


def stored_topic_id(files: PartitionFiles, limits: Limits) -> str | None:
    """The topic id in partition.metadata, None without the file. Raises FailsLogDir, StopsStart and BadText."""
    path = files.path / PARTITION_METADATA
    if PARTITION_METADATA in files.folders:
        stop_at_pipe(path, "PartitionMetadataFile")
        text = f"Error while reading partition metadata file {path}"
        raise FailsLogDir(text, "PartitionMetadataFile", path, "it is a directory")
    return read_topic_id(path, limits) if PARTITION_METADATA in files.present else None


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
        state.strays[found.key] = found
        message = f"Log in {path} marked stray and renamed to"
        target = path.with_name(_stray_name(name))
        state.steps += steps
        state.steps.append(found.step_with_ends(Action.RENAME, why, broker_message=message, new_path=target))
        return
    owner = None if state.image is None or found.topic_id is None else state.image.names.get(found.topic_id)
    if owner is not None and owner != name.topic:
        reason = (
            f"its topic id {found.topic_id} is that of the topic {owner} in the metadata: the broker loads the log, "
            "and no client can read it"
        )
        state.steps.append(found.step(Action.OFFLINE, reason))
    other = (state.future if name.mark == "future" else state.live).setdefault(found.key, found)
    if other is not found:
        message = f"Duplicate log directories for {name.topic}-{name.partition} are found"
        if name.mark:
            message = "Duplicate log directories found:"
        reason = f"the same partition is in {other.path} too; remove one of the two"
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
    high_watermark = found.log_dir.committed_end(found.key)
    log_start = max(found.log_dir.log_starts.get(found.key, 0), 0)
    bases = [segment.base_offset for segment in log.segments]
    result: list[Step] = []
    end_is_reported = False
    for step in steps:
        if step.action is Action.TRUNCATE and step.path.name.endswith(LOG_SUFFIX) and step.offset is not None:
            later = [base for base in bases if base > step.offset and base > int(step.path.name.partition(".")[0])]
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
    deleted = [step.offset for step in steps if step.action is Action.DELETE and step.path.name.endswith(LOG_SUFFIX)]
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
    checkpointed = max(log_dir.log_starts.get(found.key, 0), 0)
    if lost is not None:
        reason = f"the log ends at {log.log_end}, below its high watermark {high_watermark}; it goes on from there"
    elif found.key in log_dir.log_starts and log_dir.clean and checkpointed < log.log_start:
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
