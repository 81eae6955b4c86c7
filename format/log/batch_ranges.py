"""Ranges of a log that can be read independently: each is a chunk of a reader of the whole log.

So, in a log without damage, readers of single ranges get the same chunks as a reader of the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format import layout
from format.io.source import Source
from format.kernel.headers import hop, skip_batches
from format.kernel.tables import BATCH_COLUMNS
from format.log.batch_table import BatchTable

_WINDOW_BYTES = 16 * 1024
_FOUND, _NEEDS_MORE = 0, 1  # returned by skip_batches, as 2 is for damage


class BatchRange(msgspec.Struct, frozen=True):
    """The bytes of a log from ``start`` to ``end``; an end of None is the end of the log.

    ``after_offset`` is the last offset before the range, None if unknown. ``read_from`` is the start of the first range
    of the log, None if this is the first.
    """

    start: int = 0
    end: int | None = None
    after_offset: int | None = None
    read_from: int | None = None


WHOLE_LOG = BatchRange()


def batch_ranges(source: Source, chunk_bytes: int, *, start: int = 0) -> Iterator[BatchRange]:
    """The ranges of a log that ``batch_chunks`` reads as chunks of ``chunk_bytes``, from batch boundary ``start`` on.

    Reads only the headers of batches. After damage, the rest is one range. Raises only the errors of the source.
    """
    status = np.zeros(3, np.int64)
    range_start, after_offset = start, None
    position, before = start, -1
    while source.size_bytes - range_start > chunk_bytes:
        room = source.size_bytes - position
        window = memoryview(source.read_at(position, min(_WINDOW_BYTES, room)))
        target = range_start + chunk_bytes - position
        outcome = skip_batches(window, 0, len(window), room, target, memoryview(status))
        at, last, size_bytes = (int(number) for number in status)
        if last >= 0:
            before = position + last
        position += at
        if outcome == _FOUND:
            if position == range_start:  # one batch larger than a chunk
                before, position = position, position + size_bytes
            yield BatchRange(range_start, position, after_offset, start)
            range_start, after_offset = position, _last_offset(source, before)
        elif outcome != _NEEDS_MORE or (at == 0 and len(window) == room):
            break
    if range_start == start or range_start < source.size_bytes:
        yield BatchRange(range_start, None, after_offset, start)


def _last_offset(source: Source, position: int) -> int:
    """The last offset of the batch at a position, from its header."""
    header = memoryview(source.read_at(position, layout.RECORD_BATCH.size_bytes))
    row = np.zeros((1, len(BATCH_COLUMNS)), np.int64)
    hop(header, 0, len(header), position, memoryview(row), 0, memoryview(np.array([0, 0, -1], np.int64)))
    table = BatchTable(row)
    return int(table.base_offset[0]) + int(table.last_offset_delta[0])
