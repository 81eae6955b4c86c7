"""The cost model: whether several processes would read some logs faster than one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from format.errors import KafkaLogError
from format.io.source import FileSource
from format.limits import MIB
from format.log.walker import batch_chunks
from format.scan.protocol import Cost

#: What processes cost before they have done anything, and what they must save to pay.
_WORTH_S = 0.15


def is_worth_sharing(paths: Sequence[Path], cost: Cost) -> bool:
    """Whether there is enough work for several processes to be faster than one.

    Estimated from the first batches of the largest log.
    """
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
    """A file's size; 0 if it is unknown, since the reader of the file reports why."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
