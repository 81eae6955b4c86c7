"""Snappy: raw blocks in snappy-java's stream of chunks ("xerial framing"), or a single raw block.

Java writes the stream (xerial snappy-java, SnappyOutputStream): 8 magic bytes, two version numbers, then chunks, each
an i32 length and a raw block. Other clients write a single raw block without a stream, which snappy-java reads too. A
raw block starts with its decompressed size. The size is checked before it is used, since the library would allocate it,
and a forged size would abort the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import cramjam
import snappy

from format.codecs.failures import LARGEST_ROOM_BYTES, MAX_PARTS, failed, output_over_limit, thread_room, too_many_parts
from format.limits import MIB, Limits

_NAME = "snappy"
_STREAM_MAGIC = b"\x82SNAPPY\x00"
_STREAM_HEADER = _STREAM_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")  # version, lowest compatible version
_CHUNK_LENGTH_BYTES = 4
_CHUNK_BYTES = 32 * 1024  # SnappyOutputStream.DEFAULT_BLOCK_SIZE, before compression
_MOST_BYTES_PER_BYTE = 22  # a copy of 64 bytes takes at least 3
_LARGE_BYTES = MIB // 16  # a larger result is not copied, but written to its final place


def decompress(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes:
    """Decompress all chunks, or the single raw block."""
    view = memoryview(payload)
    if not len(view):
        raise failed(_NAME, "the payload is empty")
    if len(view) >= len(_STREAM_HEADER) and view[: len(_STREAM_MAGIC)] == _STREAM_MAGIC:
        return _decompress_chunks(view, limits.max_decompressed_bytes)
    return _uncompress_block(view, limits.max_decompressed_bytes)


def decompress_briefly(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes | memoryview:
    """Decompress as ``decompress`` does, but a large stream of chunks into the thread's room."""
    view = memoryview(payload)
    if len(view) < _LARGE_BYTES // _MOST_BYTES_PER_BYTE or view[: len(_STREAM_MAGIC)] != _STREAM_MAGIC:
        return decompress(payload, magic, limits)
    chunks, total_bytes = _declared_chunks(view, limits.max_decompressed_bytes)
    if not _LARGE_BYTES < total_bytes <= LARGEST_ROOM_BYTES:
        return decompress(payload, magic, limits)
    room = thread_room(total_bytes)[:total_bytes]
    _uncompress_all(chunks, room)
    return room


def _uncompress_block(block: memoryview, limit_bytes: int) -> bytes:
    block_bytes = _declared_bytes(block, limit_bytes, limit_bytes)
    if block_bytes <= _LARGE_BYTES:
        return _uncompress(block)
    return _uncompress_in_place([(block, block_bytes)], block_bytes)


def _decompress_chunks(view: memoryview, limit_bytes: int) -> bytes:
    only_chunk = view[len(_STREAM_HEADER) + _CHUNK_LENGTH_BYTES :]  # most batches are smaller than one chunk
    if len(only_chunk) and view[len(_STREAM_HEADER) : -len(only_chunk)] == len(only_chunk).to_bytes(4, "big"):
        return _uncompress_block(only_chunk, limit_bytes)
    chunks, total_bytes = _declared_chunks(view, limit_bytes)
    if total_bytes <= _LARGE_BYTES:
        return b"".join([_uncompress(chunk) for chunk, _ in chunks])
    return _uncompress_in_place(chunks, total_bytes)


def _declared_chunks(view: memoryview, limit_bytes: int) -> tuple[list[tuple[memoryview, int]], int]:
    """The raw blocks, each with the size that it declares, and the sum of these sizes."""
    chunks: list[tuple[memoryview, int]] = []
    total_bytes = 0
    for chunk in _chunks(view):
        block_bytes = _declared_bytes(chunk, limit_bytes - total_bytes, limit_bytes)
        total_bytes += block_bytes
        chunks.append((chunk, block_bytes))
    return chunks, total_bytes


def _uncompress_in_place(blocks: list[tuple[memoryview, int]], total_bytes: int) -> bytes:
    """Decompress blocks into one object: ``getvalue()`` returns the memory of the BytesIO, not a copy."""
    out = io.BytesIO(bytes(total_bytes))
    with out.getbuffer() as room:
        _uncompress_all(blocks, room)
    return out.getvalue()


def _uncompress_all(blocks: list[tuple[memoryview, int]], room: memoryview) -> None:
    position = 0
    for block, block_bytes in blocks:
        with room[position : position + block_bytes] as own:
            _uncompress_into(block, own)
        position += block_bytes


def _chunks(view: memoryview) -> Iterator[memoryview]:
    """The raw blocks of a stream, or of several streams in a row; version numbers are ignored, as in Java."""
    position = len(_STREAM_HEADER)
    parts = 0
    while position < len(view):
        parts += 1
        if parts > MAX_PARTS:
            raise too_many_parts(_NAME, "chunks")
        length_field = view[position : position + _CHUNK_LENGTH_BYTES]
        if length_field == _STREAM_MAGIC[:_CHUNK_LENGTH_BYTES]:
            header = view[position : position + len(_STREAM_HEADER)]
            if len(header) < len(_STREAM_HEADER) or header[: len(_STREAM_MAGIC)] != _STREAM_MAGIC:
                raise failed(_NAME, f"byte {position} starts a stream header that is cut or damaged")
            position += len(_STREAM_HEADER)
            continue
        if len(length_field) < _CHUNK_LENGTH_BYTES:
            raise failed(_NAME, f"the {len(view)} bytes end inside the length of a chunk")
        length = int.from_bytes(length_field, "big", signed=True)
        if length <= 0:
            raise failed(_NAME, f"the chunk at byte {position} has the length {length}")
        position += _CHUNK_LENGTH_BYTES
        if length > len(view) - position:
            raise failed(_NAME, f"the {len(view)} bytes end inside the chunk of {length} at byte {position}")
        yield view[position : position + length]
        position += length


def _declared_bytes(block: memoryview, room_bytes: int, limit_bytes: int) -> int:
    """The decompressed size that a raw block declares; raises LimitExceeded or, if it is impossible, a failure."""
    try:
        declared = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise failed(_NAME, error) from None
    if declared > room_bytes:
        raise output_over_limit(_NAME, limit_bytes, limit_bytes - room_bytes + declared)
    if declared > len(block) * _MOST_BYTES_PER_BYTE:
        raise failed(_NAME, f"a block of {len(block)} bytes declares {declared}, more than it can hold")
    return declared


def _uncompress(block: memoryview) -> bytes:
    try:
        whole: bytes = snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise failed(_NAME, error.__cause__ if isinstance(error.__cause__, Exception) else error) from None
    return whole


def _uncompress_into(block: memoryview, room: memoryview) -> None:
    try:
        written = cramjam.snappy.decompress_raw_into(block, room)
    except cramjam.DecompressionError as error:
        raise failed(_NAME, error) from None
    if written != len(room):
        raise failed(_NAME, f"a block declares {len(room)} bytes and holds {written}")


def compress(payload: bytes | memoryview, level: int | None, magic: int) -> bytes:
    """Compress to a stream of chunks as snappy-java does; the same for every magic."""
    view = memoryview(payload)
    parts = [_STREAM_HEADER]
    for start in range(0, len(view), _CHUNK_BYTES):
        block = snappy.compress(view[start : start + _CHUNK_BYTES])
        parts += (len(block).to_bytes(_CHUNK_LENGTH_BYTES, "big"), block)
    return b"".join(parts)
