"""New batches for an output log: their bytes, and the columns that the writer needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_chunk import BatchChunk
from format.log.encode_batches import batch_spans

Int64Column = NDArray[np.int64]


class Decision(IntEnum):
    """What is done with a batch."""

    COPIED = 0
    RECOMPRESSED = 1
    REBUILT = 2
    REFUSED = 3

    @property
    def word(self) -> str:
        """The word in rows and manifests, which never changes."""
        return self.name.lower()


class NewBatches(msgspec.Struct, frozen=True):
    """Whole batches, one after the other in ``content``; each column has an entry for each batch.

    ``decisions`` are values of Decision.
    """

    content: bytes | bytearray | memoryview
    sizes_bytes: Int64Column
    first_offsets: Int64Column
    last_offsets: Int64Column
    decisions: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.sizes_bytes)

    def each(self) -> Iterator[NewBatches]:
        """Every batch by itself."""
        view, end = memoryview(self.content), 0
        for row, size_bytes in enumerate(self.sizes_bytes.tolist()):
            start, end = end, end + size_bytes
            one = slice(row, row + 1)
            columns = (self.sizes_bytes[one], self.first_offsets[one], self.last_offsets[one], self.decisions[one])
            yield NewBatches(view[start:end], *columns)


def joined(portions: Sequence[NewBatches]) -> NewBatches:
    """All batches of several portions as one."""
    if len(portions) == 1:
        return portions[0]
    return NewBatches(
        b"".join([each.content for each in portions]),
        np.concatenate([each.sizes_bytes for each in portions]),
        np.concatenate([each.first_offsets for each in portions]),
        np.concatenate([each.last_offsets for each in portions]),
        np.concatenate([each.decisions for each in portions]),
    )


def new_batches(
    contents: Sequence[bytes], first_offsets: Sequence[int], last_offsets: Sequence[int], decision: Decision
) -> NewBatches:
    """Batches that were made one by one."""
    return NewBatches(
        contents[0] if len(contents) == 1 else b"".join(contents),
        np.array(list(map(len, contents)), np.int64),
        np.array(first_offsets, np.int64),
        np.array(last_offsets, np.int64),
        np.full(len(contents), decision, np.int8),
    )


def batch_bytes(chunk: BatchChunk, row: int) -> memoryview:
    """The bytes of one batch of a chunk."""
    start = int(chunk.table.position[row]) - chunk.buffer_position
    return chunk.bodies[start : start + int(chunk.table.size_bytes[row])]


def copied(chunk: BatchChunk, rows: Sequence[int] | NDArray[np.intp]) -> NewBatches:
    """The batches of these rows as they are."""
    buffer, which = chunk.bodies, np.asarray(rows, np.intp)
    starts, ends = batch_spans(chunk, which)
    content: bytes | memoryview
    if not len(which):
        content = b""
    elif (starts[1:] == ends[:-1]).all():
        content = buffer[int(starts[0]) : int(ends[-1])]
    else:
        content = b"".join([buffer[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    return NewBatches(content, ends - starts, *offsets_of(chunk, which), np.full(len(which), Decision.COPIED, np.int8))


def offsets_of(chunk: BatchChunk, which: NDArray[np.intp]) -> tuple[Int64Column, Int64Column]:
    """The first and last offsets of the batches of these rows."""
    first = chunk.table.base_offset[which]
    return first, first + chunk.table.last_offset_delta[which]
