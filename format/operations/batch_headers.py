"""The headers of many v2 batches as one array, a row each: to change a field of all, or to compare all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BatchChunk

HEADER_BYTES = layout.RECORD_BATCH.size_bytes
#: Columns of the array: the batch's length and its CRC.
LENGTH = slice(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
CRC = slice(layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"))
#: What of the header the CRC covers; all that comes after the header too.
COVERED_BY_CRC = slice(layout.RECORD_BATCH.offset_of("attributes"), HEADER_BYTES)
#: The codec bits are in the attributes' low byte.
CODEC_BYTE = layout.RECORD_BATCH.offset_of("attributes") + 1

Headers = NDArray[np.uint8]
_EVERY_BYTE = np.arange(HEADER_BYTES)


def batch_spans(chunk: BatchChunk, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the batches of these rows start and end in the chunk's buffer."""
    starts = chunk.table.position[rows] - chunk.buffer_position
    return starts, starts + chunk.table.size_bytes[rows]


def headers_at(buffer: memoryview, starts: NDArray[np.int64]) -> Headers:
    """A copy of the v2 headers that start at these places of a buffer, (n, 61)."""
    headers: Headers = np.frombuffer(buffer, np.uint8)[starts[:, None] + _EVERY_BYTE]
    return headers


def as_fields(values: list[int], dtype: str) -> Headers:
    """Numbers as the bytes of a big-endian field, a row each; ``dtype`` is numpy's name, as in ``>u4``."""
    fields: Headers = np.array(values, dtype).view(np.uint8).reshape(len(values), np.dtype(dtype).itemsize)
    return fields
