"""The state of a log directory while a start loads it: clean shutdown, checkpoints, and the logs in it.

Source: core LogManager, storage OffsetCheckpointFile, CheckpointFileWithFailureHandler.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.io.session import is_there
from format.layout import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE,
    REPLICATION_OFFSET_CHECKPOINT,
)
from format.node.log_dir import TopicPartition
from format.verbs.boot.directory_names import LogName
from format.verbs.boot.followed import exists, why_closed
from format.verbs.boot.one_log.kafka_text import BadText, read_offsets
from format.verbs.boot.one_log.loaded_log import LoadedLog
from format.verbs.boot.one_log.partition_files import PartitionFiles
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import Action, BootTerms, FailsLogDir, Step, StopsStart

_MANAGER = "LogManager"


class LogDirState(msgspec.Struct):
    """A log directory while it is loaded: the entries of its checkpoints, and the steps and failures so far."""

    path: Path
    directory_id: str | None = None
    clean: bool = False
    recovery_points: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    has_remote_indexes: bool = False
    high_watermarks: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    steps: list[Step] = msgspec.field(default_factory=list)
    failures: list[FailsLogDir] = msgspec.field(default_factory=list)
    stops: list[StopsStart] = msgspec.field(default_factory=list)

    def committed_end(self, key: TopicPartition) -> int | None:
        """The high watermark of a partition. A broker that stopped cleanly had nothing past its recovery point."""
        high_watermark = self.high_watermarks.get(key)
        if high_watermark is None or not self.clean or key not in self.recovery_points:
            return high_watermark
        return min(high_watermark, self.recovery_points[key])

    def note_pipe(self, path: Path, kafka_class: str) -> bool:
        """Note a file of the directory that is a pipe: the start waits for it, or the cleaner, which runs beside it."""
        try:
            stop_at_pipe(path, kafka_class)
        except StopsStart as error:
            if path.name == CLEANER_OFFSET_CHECKPOINT:
                reason = "it is a pipe: the cleaner waits for another process to open it, and cleans nothing"
                self.steps.append(Step(Action.KEEP, path, reason=reason, kafka_class="LogCleanerManager"))
            else:
                self.stops.append(error)
            return True
        return False

    def note_problem(self, error: BadText, path: Path, words: str) -> None:
        """Note a checkpoint that cannot be read: I/O errors fail the directory, ``words`` is the effect of others."""
        reason = "the checkpoint cannot be read; a broker starts without the file"
        if error.is_io_error:
            self.failures.append(FailsLogDir(error.text, "CheckpointFileWithFailureHandler", path=path, reason=reason))
        elif error.is_fatal and path.name in (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT):
            self.stops.append(StopsStart(error.text, "CheckpointFile", path=path, reason=reason))
        else:
            action = Action.OFFLINE if path.name == REPLICATION_OFFSET_CHECKPOINT else Action.KEEP
            text = f"it cannot be read: {words}"
            self.steps.append(Step(action, path, reason=text, broker_message=error.text, kafka_class=_MANAGER))


class FoundLog(msgspec.Struct):
    """A log that was loaded, and the log directory it lies in."""

    path: Path
    log_dir: LogDirState
    name: LogName
    topic_id: str | None
    log: LoadedLog
    files: PartitionFiles

    @property
    def key(self) -> TopicPartition:
        return self.name.topic, self.name.partition


def open_log_dir(path: Path, directory_id: str | None, terms: BootTerms) -> LogDirState:
    """The state of a log directory before any log is loaded: its clean-shutdown file and checkpoints are read."""
    state = LogDirState(path, directory_id)
    mark = path / CLEAN_SHUTDOWN
    state.clean = exists(mark)
    state.note_pipe(mark, "CleanShutdownFileHandler")
    state.has_remote_indexes = is_there(path / REMOTE_INDEX_CACHE)
    if state.clean:
        reason = "a clean shutdown: no log is recovered; the file is removed before the logs are loaded"
        state.steps.append(Step(Action.DELETE, mark, reason=reason, kafka_class=_MANAGER))
    closed = why_closed(path / LOCK)
    if closed is not None:
        reason = f"{LOCK} cannot be opened: {closed}"
        message = f"Disk error while locking directory {path}"
        state.failures.append(FailsLogDir(message, "LogManager.lockLogDirs", path=path / LOCK, reason=reason))
    for name, target, words in (
        (RECOVERY_POINT_CHECKPOINT, state.recovery_points, "every recovery point is taken as 0"),
        (LOG_START_OFFSET_CHECKPOINT, state.log_starts, "every log starts at its first segment"),
        (REPLICATION_OFFSET_CHECKPOINT, state.high_watermarks, "no partition of the directory is served"),
        (CLEANER_OFFSET_CHECKPOINT, {}, "the cleaner begins at the start of each log"),
    ):
        checkpoint = path / name
        if not is_there(checkpoint) or state.note_pipe(checkpoint, "CheckpointFile"):
            continue
        try:
            target.update(read_offsets(checkpoint, terms.limits))
        except BadText as error:
            state.note_problem(error, checkpoint, words)
        except KafkaLogError as error:
            state.steps.append(Step(Action.UNKNOWN, checkpoint, reason=error.message))
    return state
