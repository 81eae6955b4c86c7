"""The leader-epoch-checkpoint: the first offset of each leader epoch (KIP-101, storage LeaderEpochCheckpointFile).

When a broker loads it, each entry removes the earlier entries whose epoch or start offset is not below its own (storage
LeaderEpochFileCache).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from format.files.side_file import (
    INT32_RANGE,
    INT64_RANGE,
    CheckpointReader,
    PathOrSource,
    Problem,
    opened,
    write_checkpoint,
)
from format.limits import DEFAULT_LIMITS, Limits


class EpochEntry(msgspec.Struct, frozen=True):
    """One leader epoch and its first offset (Kafka's EpochEntry)."""

    leader_epoch: int
    start_offset: int


class LeaderEpochCheckpoint(msgspec.Struct, frozen=True):
    """The entries in the order of the file; ``version`` is None for an empty file.

    Entries whose epoch or start offset does not rise are ``problems``.
    """

    path: str
    version: int | None
    entries: tuple[EpochEntry, ...]
    problems: tuple[Problem, ...]


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> LeaderEpochCheckpoint:
    """Read a checkpoint. Raises UnreadableFile, LimitExceeded, UnknownVersion, and InvalidCheckpoint for other text."""
    with opened(path_or_source) as source:
        reader = CheckpointReader(source, limits)
        entries: list[EpochEntry] = []
        for line, (epoch_word, offset_word) in reader.entries(2, "a leader epoch and a start offset"):
            entry = EpochEntry(
                reader.integer(line, epoch_word, "a leader epoch from 0 to 2147483647", INT32_RANGE[1]),
                reader.integer(line, offset_word, "a start offset from 0 to 9223372036854775807", INT64_RANGE[1]),
            )
            if entries and entry.leader_epoch <= entries[-1].leader_epoch:
                message = f"leader epoch {entry.leader_epoch} is not above the previous one, {entries[-1].leader_epoch}"
                reader.add_problem(line, message)
            if entries and entry.start_offset <= entries[-1].start_offset:
                message = f"start offset {entry.start_offset} is not above the previous one, {entries[-1].start_offset}"
                reader.add_problem(line, message)
            entries.append(entry)
        return LeaderEpochCheckpoint(source.path, reader.version, tuple(entries), reader.problems)


def write(entries: LeaderEpochCheckpoint | Iterable[EpochEntry]) -> bytes:
    """Encode a checkpoint that was read, or entries with the current version."""
    return write_checkpoint(entries, lambda each: (each.leader_epoch, each.start_offset))
