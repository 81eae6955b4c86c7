"""Changes to the headers of many v2 batches at once: lengths, codecs and CRCs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32c_function
from format.log.batch_chunk import BatchChunk

HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_LENGTH = np.arange(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
_CRC = np.arange(layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"))
#: The low byte of the attributes, which has the codec bits.
_CODEC_BYTE = layout.RECORD_BATCH.offset_of("attributes") + 1
#: The first byte that the CRC covers.
_CRC_START = layout.RECORD_BATCH.offset_of("attributes")


def batch_spans(chunk: BatchChunk, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The starts and ends (int64) of the batches of these rows in the chunk's buffer."""
    starts = chunk.table.position[rows] - chunk.buffer_position
    return starts, starts + chunk.table.size_bytes[rows]


def seal_batches(content: bytearray, size_bytes: NDArray[np.int64], codec: int) -> None:
    """Set the codec of consecutive v2 batches in ``content``, and compute their lengths and CRCs.

    ``size_bytes`` (int64) has the size of each batch.
    """
    octets = np.frombuffer(content, np.uint8)
    ends = np.cumsum(size_bytes)
    starts = ends - size_bytes
    octets[starts[:, None] + _LENGTH] = _fields(size_bytes - layout.LOG_ENTRY.size_bytes, ">i4")
    octets[starts + _CODEC_BYTE] = octets[starts + _CODEC_BYTE] & (0xFF & ~layout.CODEC_MASK) | codec
    crc32c, view = crc32c_function(), memoryview(content)
    spans = zip((starts + _CRC_START).tolist(), ends.tolist(), strict=True)
    octets[starts[:, None] + _CRC] = _fields(np.array([crc32c(view[start:end]) for start, end in spans]), ">u4")


def _fields(values: NDArray[np.int64], dtype: str) -> NDArray[np.uint8]:
    """Numbers as bytes (uint8), a row for each; ``dtype`` is the numpy dtype of the field, such as ``>u4``."""
    return values.astype(dtype).view(np.uint8).reshape(len(values), np.dtype(dtype).itemsize)
