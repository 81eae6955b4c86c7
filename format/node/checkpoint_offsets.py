"""The four offsets that a log directory's checkpoints hold for each of its partitions."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from format import layout
from format.errors import KafkaLogError
from format.files import offset_checkpoint
from format.files.side_file import problem_findings
from format.findings import Finding, finding_of
from format.io.remote_path import absolute
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

TopicPartition = tuple[str, int]
_NO_OFFSETS: Mapping[TopicPartition, int] = {}


@dataclass(frozen=True, slots=True)
class CheckpointOffsets:
    """Offsets by topic and partition, by the checkpoint file's name; a file that is missing or unreadable has none."""

    by_name: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)

    def offset(self, name: str, partition: TopicPartition | None) -> int | None:
        """What the checkpoint of that file name says about a partition."""
        return None if partition is None else self.by_name.get(name, _NO_OFFSETS).get(partition)


def read_checkpoint_offsets(
    paths: Mapping[str, Path], limits: Limits = DEFAULT_LIMITS
) -> Generator[Finding, None, CheckpointOffsets]:
    """Read the checkpoints at ``paths`` (by file name): yields what is wrong with them, returns what they say."""
    found: dict[str, Mapping[TopicPartition, int]] = {}
    for name, path in paths.items():
        location = Location(str(path))
        try:
            checkpoint = offset_checkpoint.read(path, limits)
        except KafkaLogError as error:
            yield finding_of(error, location)
            continue
        yield from problem_findings(checkpoint.problems, location)
        found[name] = checkpoint.by_partition()
    return CheckpointOffsets(found)


def checkpoints_beside(partition: Path) -> dict[str, Path]:
    """The checkpoints of the log directory that a partition directory lies in; none where that is no log directory."""
    parent = partition.parent if partition.name not in ("", "..") else absolute(partition).parent
    found = {name: parent / name for name in layout.OFFSET_CHECKPOINTS}
    return {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}
