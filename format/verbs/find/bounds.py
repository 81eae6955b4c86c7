"""What bounds a look-up: the log start offset below, the high watermark above."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from format import layout
from format.errors import KafkaLogError
from format.files import offset_checkpoint
from format.findings import Finding, finding_of
from format.io.remote_path import absolute, is_there
from format.limits import Limits
from format.location import Location
from format.node.partition import Partition

#: The checkpoints of a log directory speak of its live and its future replicas; other marked directories are gone.
_MARKS_WITH_CHECKPOINTS = (None, "future")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets from ``log_start_offset`` up to, not including, ``high_watermark`` are served to consumers.

    ``log_start_source`` says where the first comes from; the second is None where no checkpoint names it.
    """

    log_start_offset: int
    log_start_source: str
    high_watermark: int | None


def read_bounds(partition: Partition, limits: Limits) -> Generator[Finding, None, Bounds]:
    """The bounds as a broker takes them at start (storage LogLoader, UnifiedLog.updateHighWatermark).

    A checkpoint that cannot be read gives a finding and bounds nothing.
    """
    log_start_offset = partition.segments[0].base_offset if partition.segments else 0
    log_start_source = "the first segment's base offset"
    high_watermark = None
    if partition.topic is not None and partition.mark in _MARKS_WITH_CHECKPOINTS:
        checkpointed = yield from _checkpointed(partition, layout.LOG_START_OFFSET_CHECKPOINT, limits)
        if checkpointed is not None and checkpointed > log_start_offset:
            log_start_offset, log_start_source = checkpointed, f"the {layout.LOG_START_OFFSET_CHECKPOINT}"
        high_watermark = yield from _checkpointed(partition, layout.REPLICATION_OFFSET_CHECKPOINT, limits)
        if high_watermark is not None:
            high_watermark = max(high_watermark, log_start_offset)
    return Bounds(log_start_offset, log_start_source, high_watermark)


def _checkpointed(partition: Partition, name: str, limits: Limits) -> Generator[Finding, None, int | None]:
    """The partition's offset in a checkpoint of the log directory that it lies in; None where there is none."""
    directory = partition.path if partition.path.name not in ("", "..") else absolute(partition.path)
    path = directory.parent / name
    if partition.topic is None or partition.number is None or not is_there(path):
        return None
    try:
        checkpoint = offset_checkpoint.read(path, limits)
    except KafkaLogError as error:
        yield finding_of(error, Location(str(path)))
        return None
    return checkpoint.by_partition().get((partition.topic, partition.number))
