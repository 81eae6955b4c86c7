"""An offset checkpoint: one offset for each partition of a log directory (storage OffsetCheckpointFile).

The offset is the high watermark in replication-offset-checkpoint, the recovery point in
recovery-point-offset-checkpoint, the log start offset in log-start-offset-checkpoint, and the first dirty offset in
cleaner-offset-checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from format.files.side_file import (
    INT32_RANGE,
    INT64_RANGE,
    CheckpointReader,
    PathOrSource,
    Problem,
    opened,
    shown,
    write_checkpoint,
)
from format.limits import DEFAULT_LIMITS, Limits

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicPartitionOffset(msgspec.Struct, frozen=True):
    """One line: a partition and its offset."""

    topic: str
    partition: int
    offset: int


class OffsetCheckpoint(msgspec.Struct, frozen=True):
    """The entries in the order of the file; ``version`` is None for an empty file.

    Repeated partitions, invalid topic names and offsets below 0, which have no entry, are ``problems``.
    """

    path: str
    version: int | None
    entries: tuple[TopicPartitionOffset, ...]
    problems: tuple[Problem, ...]

    def by_partition(self) -> dict[tuple[str, int], int]:
        """The offset of each (topic, partition); the last one for a repeated partition, as for a broker."""
        return {(entry.topic, entry.partition): entry.offset for entry in self.entries}


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> OffsetCheckpoint:
    """Read a checkpoint. Raises UnreadableFile, LimitExceeded, UnknownVersion, and InvalidCheckpoint for other text."""
    with opened(path_or_source) as source:
        reader = CheckpointReader(source, limits)
        entries: list[TopicPartitionOffset] = []
        seen: set[tuple[str, int]] = set()
        for line, (topic, partition_word, offset_word) in reader.entries(3, "a topic, a partition and an offset"):
            partition = reader.integer(line, partition_word, "a partition from 0 to 2147483647", INT32_RANGE[1])
            offset = reader.integer(
                line, offset_word, "an offset from 0 to 9223372036854775807", INT64_RANGE[1], least=INT64_RANGE[0]
            )
            if offset < 0:
                reader.add_problem(line, f"the offset {offset} is below 0: a broker starts, as without the line")
                continue
            if _TOPIC_NAME.fullmatch(topic) is None:
                reader.add_problem(line, f"{shown(topic)} is not a valid topic name")
            if (topic, partition) in seen:
                message = f"partition {shown(f'{topic}-{partition}')} has an earlier line; a broker uses the last one"
                reader.add_problem(line, message)
            seen.add((topic, partition))
            entries.append(TopicPartitionOffset(topic, partition, offset))
        return OffsetCheckpoint(source.path, reader.version, tuple(entries), reader.problems)


def write(entries: OffsetCheckpoint | Iterable[TopicPartitionOffset]) -> bytes:
    """Encode a checkpoint that was read, or entries with the current version."""
    return write_checkpoint(entries, lambda each: (each.topic, each.partition, each.offset))
