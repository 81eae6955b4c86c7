"""The bounds of a look-up: the log start offset and the high watermark."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from format import layout
from format.findings import Finding
from format.io.session import is_there
from format.limits import Limits
from format.node.log_dir import Checkpoints, directory_around, read_checkpoints
from format.node.offsets import MARKS_OF_REPLICAS, PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import Partition

_CHECKPOINTS = (layout.LOG_START_OFFSET_CHECKPOINT, layout.REPLICATION_OFFSET_CHECKPOINT)


class Bounds(msgspec.Struct, frozen=True):
    """Offsets from ``log_start_offset`` up to, not including, ``high_watermark`` are served to consumers.

    ``log_start_source`` names the source of the log start offset. ``high_watermark`` is None if no checkpoint has it.
    ``offsets`` are all that files and checkpoints say.
    """

    log_start_offset: int
    log_start_source: str
    high_watermark: int | None
    offsets: PartitionOffsets


def read_bounds(partition: Partition, limits: Limits) -> Generator[Finding, None, Bounds]:
    """The bounds that a broker sets at its start (storage LogLoader, UnifiedLog.updateHighWatermark).

    A checkpoint that cannot be read gives a finding and sets no bound.
    """
    checkpoints = Checkpoints()
    if partition.key is not None and partition.mark in MARKS_OF_REPLICAS:
        directory = directory_around(partition.path)
        paths = {name: directory / name for name in _CHECKPOINTS}
        checkpoints = read_checkpoints(
            {name: path for name, path in paths.items() if is_there(path)},
            limits,
            is_clean_shutdown=is_there(directory / layout.CLEAN_SHUTDOWN),
            has_remote_storage=is_there(directory / layout.REMOTE_INDEX_CACHE),
        )
        yield from checkpoints.findings
    offsets = offsets_of(partition, checkpoints)
    yield from remote_head_findings(offsets, partition.location())
    log_start_offset, log_start_source = offsets.log_start_offset or 0, "the first segment's base offset"
    if log_start_offset != (offsets.local_start_offset or 0):
        log_start_source = f"the {layout.LOG_START_OFFSET_CHECKPOINT}"
    high_watermark = offsets.high_watermark
    if high_watermark is not None:
        high_watermark = max(high_watermark, log_start_offset)
    return Bounds(log_start_offset, log_start_source, high_watermark, offsets)
