"""The leader epoch checkpoint of a log while a start works on it.

Source: storage LeaderEpochFileCache, LogLoader.
"""

from __future__ import annotations

from collections.abc import Sequence

from format.layout import LEADER_EPOCH_CHECKPOINT
from format.limits import Limits
from format.verbs.boot.one_log.kafka_text import BadText, read_epochs
from format.verbs.boot.one_log.loaded_log import LoadedLog
from format.verbs.boot.one_log.partition_files import PartitionFiles
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import Action, FailsLogDir, StopsStart
from format.wording import counted

_CLASS = "LeaderEpochFileCache"


class EpochCache:
    """The epochs in the broker's memory: read from the checkpoint, then adjusted to the log."""

    def __init__(self, files: PartitionFiles, limits: Limits, known: Sequence[tuple[int, int]] | None = None) -> None:
        """Read the checkpoint. Raises FailsLogDir, or StopsStart, where the broker cannot.

        ``known`` are the entries that an earlier start of the same command has read.
        """
        self._files = files
        self.entries: list[tuple[int, int]] = []
        if LEADER_EPOCH_CHECKPOINT in (*files.folders, *files.dangling):
            path = files.path / LEADER_EPOCH_CHECKPOINT
            stop_at_pipe(path, "CheckpointFile")
            raise FailsLogDir(
                f"Error while reading checkpoint file {path}", "LeaderEpochCheckpointFile", path=path,
                reason="it is no regular file",
            )  # fmt: skip
        if LEADER_EPOCH_CHECKPOINT not in files.present:
            files.create(LEADER_EPOCH_CHECKPOINT)
            return
        if known is not None:
            self.entries = list(known)
            return
        path = files.path / LEADER_EPOCH_CHECKPOINT
        try:
            for epoch, offset in read_epochs(path, limits):
                if epoch < 0 or offset < 0:
                    text = "Received invalid partition leader epoch entry EpochEntry"
                    raise StopsStart(text, "LeaderEpochFileCache", path=path, reason="an epoch or offset is negative")
                self._assign(epoch, offset)
        except BadText as error:
            kind = FailsLogDir if error.is_io_error else StopsStart
            reason = "the leader epochs cannot be read; if the file is deleted, a broker starts and creates it"
            raise kind(error.text, "LeaderEpochCheckpointFile", path=path, reason=reason) from error

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1][0] if self.entries else -1

    def _assign(self, epoch: int, offset: int) -> None:
        """Add an entry, after removing the last entries whose epoch or offset is not below its own."""
        if self.entries and self.entries[-1][0] == epoch and offset >= self.entries[-1][1]:
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= offset):
            self.entries.pop()
        self.entries.append((epoch, offset))

    def settle(self, log: LoadedLog) -> None:
        """Add the epochs that recovery saw, and drop those that begin at or past the end of the log."""
        for epoch, offset in log.epochs:
            if epoch > self.latest_epoch:
                self._assign(epoch, offset)
        gone = [each for each in self.entries if each[1] >= log.log_end]
        if log.is_cleared:
            gone = self.entries
        is_empty = log.log_end == log.log_start and not log.is_cleared
        if not gone or is_empty or LEADER_EPOCH_CHECKPOINT not in self._files.present:
            return
        self.entries = [each for each in self.entries if each not in gone]
        self._files.step(
            Action.TRUNCATE,
            LEADER_EPOCH_CHECKPOINT,
            f"{counted(len(gone), 'leader epoch')} at or past the end of the log: dropped",
            offset=log.log_end,
            kafka_class=_CLASS,
        )
