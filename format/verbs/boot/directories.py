"""A log directory while a start loads it: the names in it, its clean-shutdown file, checkpoints, and failures.

Source: core LogManager, storage LocalLog.parseTopicPartitionName, OffsetCheckpointFile,
CheckpointFileWithFailureHandler.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files.side_file import INT32_RANGE, decode_integer
from format.io.session import is_there
from format.layout import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    CLUSTER_METADATA_TOPIC,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE,
    REPLICATION_OFFSET_CHECKPOINT,
)
from format.node.log_dir import TopicPartition
from format.verbs.boot.broker_files import exists, stop_at_pipe, why_closed
from format.verbs.boot.one_log.checkpoints import BadText, read_offsets
from format.verbs.boot.steps import Action, BootTerms, Step, StopsStart, problem_step

_MARKED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")
_MARKS = ("-delete", "-future", "-stray")
_MANAGER = "LogManager"


class LogName(msgspec.Struct, frozen=True):
    """Topic, partition and mark (delete, future or stray) of a directory that a broker loads as a log."""

    topic: str
    partition: int
    mark: str | None


def log_name(path: Path) -> LogName | None:
    """The parsed name of a directory; None for one that a broker ignores. Raises StopsStart for any other name."""
    name = path.name
    if name == REMOTE_INDEX_CACHE:
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
    return None if topic == CLUSTER_METADATA_TOPIC else LogName(topic, partition, mark and mark[1:])


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
    mark = path / CLEAN_SHUTDOWN
    state.clean = exists(mark)
    state.has_remote_indexes = is_there(path / REMOTE_INDEX_CACHE)
    try:
        stop_at_pipe(mark, "CleanShutdownFileHandler")
    except StopsStart as error:
        state.stops.append(problem_step(error, mark))
    if state.clean:
        reason = "a clean shutdown: no log is recovered; the file is removed before the logs are loaded"
        state.steps.append(Step(Action.DELETE, mark, reason=reason, kafka_class=_MANAGER))
    closed = why_closed(path / LOCK)
    if closed is not None:
        state.failures.append(
            Step(
                Action.REFUSE, path / LOCK, reason=f"{LOCK} cannot be opened: {closed}",
                broker_message=f"Disk error while locking directory {path}", kafka_class="LogManager.lockLogDirs",
            )
        )  # fmt: skip
    for name, target, effect in (
        (RECOVERY_POINT_CHECKPOINT, state.recovery_points, "every recovery point is taken as 0"),
        (LOG_START_OFFSET_CHECKPOINT, state.log_starts, "every log starts at its first segment"),
        (REPLICATION_OFFSET_CHECKPOINT, state.high_watermarks, "no partition of the directory is served"),
        (CLEANER_OFFSET_CHECKPOINT, {}, "the cleaner begins at the start of each log"),
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
        if name == CLEANER_OFFSET_CHECKPOINT:  # the cleaner runs beside the start
            reason = "it is a pipe: the cleaner waits for another process to open it, and cleans nothing"
            state.steps.append(Step(Action.KEEP, path, reason=reason, kafka_class="LogCleanerManager"))
        else:
            state.stops.append(problem_step(error, path))
    except BadText as error:
        is_fatal = error.is_fatal and name in (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT)
        if error.is_io_error or is_fatal:
            kafka_class = "CheckpointFileWithFailureHandler" if error.is_io_error else "CheckpointFile"
            reason = "the checkpoint cannot be read; a broker starts without the file"
            step = Step(Action.REFUSE, path, reason=reason, broker_message=error.text, kafka_class=kafka_class)
            (state.failures if error.is_io_error else state.stops).append(step)
        else:
            action = Action.OFFLINE if name == REPLICATION_OFFSET_CHECKPOINT else Action.KEEP
            state.steps.append(Step(action, path, reason=text, broker_message=error.text, kafka_class=_MANAGER))
    except KafkaLogError as error:
        state.steps.append(problem_step(error, path))
