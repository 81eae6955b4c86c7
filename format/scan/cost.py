"""The cost model: whether several processes read some logs faster than one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from format.errors import KafkaLogError
from format.io.source import FileSource
from format.limits import MIB
from format.log.walker import batch_chunks
from format.scan.protocol import Cost

#: The least work, in seconds of processor time, for which it is worth starting processes.
_WORTH_S = 0.15


def is_worth_sharing(paths: Sequence[Path], cost: Cost) -> bool:
    """Whether several processes are faster than one, estimated from the first batches of the largest log."""
    sizes = [size_of(path) for path in paths]
    if sum(sizes) < MIB:
        return False
    try:
        with FileSource(paths[sizes.index(max(sizes))]) as source:
            chunk = next(batch_chunks(source, with_bodies=False), None)
    except KafkaLogError:
        return False
    if chunk is None or not len(chunk.table):
        return False
    table = chunk.table
    byte_s = cost.compressed_byte_s if table.codec.any() else cost.byte_s
    work_s = cost.batch_s / float(table.size_bytes.mean()) + byte_s
    return work_s * sum(sizes) > _WORTH_S


def size_of(path: Path) -> int:
    """The size of a file; 0 if it cannot be determined, which the reader of the file reports."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
