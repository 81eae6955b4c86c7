"""The remote part of tiered logs: segments in remote storage, joined with the local segments of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format.node.checkpoints import TopicPartition
from format.node.segment import Segment


class RemoteTier(msgspec.Struct):
    """The remote segments of each partition, by base offset and without overlaps."""

    segments: Mapping[TopicPartition, Sequence[Segment]] = msgspec.field(default_factory=dict)

    def joined(self, key: TopicPartition | None, local: list[Segment]) -> list[Segment]:
        """The segments of a partition as one log: remote segments before the first local one, then the local ones."""
        remote = () if key is None else self.segments.get(key, ())
        if not remote:
            return local
        first_local = local[0].base_offset if local else None
        return [each for each in remote if first_local is None or each.base_offset < first_local] + local


def remote_segment(directory: Path, base_offset: int, files: dict[str, Path]) -> Segment:
    """A segment whose files are in remote storage."""
    return replace(Segment(directory, base_offset, None, files), is_remote=True)
