"""zstd (RFC 8878): one or more frames, with or without skippable frames between them.

The block headers are read before anything is decoded, for the end of a frame and the most bytes that it can contain.
The library does not check these: it ignores its own limit if a frame declares a size, drops the bytes after a frame
that declares none, and its stream reader raises no error for a frame that was cut off.
"""

from __future__ import annotations

import io
import threading

import msgspec
import zstandard

from format.codecs.failures import MAX_PARTS, failed, output_over_limit, too_many_parts
from format.errors import LimitExceeded
from format.limits import MIB, Limits

_NAME = "zstd"
_SKIPPABLE_MAGIC = 0x184D2A50  # to ...5F
_MAGIC_BYTES = 4
_LONGEST_HEADER_BYTES = 18
_LARGEST_BLOCK_BYTES = 128 * 1024
_RAW_BLOCK, _REPEATED_BYTE_BLOCK, _COMPRESSED_BLOCK = range(3)
_BLOCK_HEADER_BYTES = 3
_CHECKSUM_BYTES = 4
_KAFKA_WINDOW_BYTES = 128 * MIB  # zstd-jni's default limit
_LARGEST_WINDOW_BYTES = 2**31  # the largest limit that the library allows

_DEFAULT_LEVEL = 3

_per_thread = threading.local()  # a compressor or decompressor that two threads share crashes the process


class _Frame(msgspec.Struct, frozen=True):
    """The place of a frame in the payload, the size that it declares (None if none), and its largest possible size."""

    start: int
    end: int
    declared_bytes: int | None
    most_bytes: int


def decompress(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes:
    """Decompress all frames. An empty payload is an empty stream, as for zstd-jni."""
    quick = _decompress_quickly(payload, limits)
    if quick is not None:
        return quick
    view = memoryview(payload)
    frames = _frames(view, limits)
    if len(frames) == 1:
        return _decompress_frame(view, frames[0], limits)
    if not frames:
        return b""
    return _decompress_frames(view, frames, limits)


def _decompress_quickly(payload: bytes | memoryview, limits: Limits) -> bytes | None:
    """Decompress one sound frame that declares its size; None for all other payloads.

    The library reports bytes after the frame only for such a frame.
    """
    try:
        if 0 < zstandard.frame_content_size(payload) <= limits.max_decompressed_bytes:
            return _decompressor(limits).decompress(payload, allow_extra_data=False)
    except zstandard.ZstdError:
        pass  # the slower path reports what is wrong
    return None


def _frames(view: memoryview, limits: Limits) -> list[_Frame]:
    frames: list[_Frame] = []
    parts_left = MAX_PARTS
    position = 0
    while position < len(view):
        if (int.from_bytes(view[position : position + _MAGIC_BYTES], "little") & ~0xF) == _SKIPPABLE_MAGIC:
            content_start = position + 2 * _MAGIC_BYTES
            position = content_start + int.from_bytes(view[position + _MAGIC_BYTES : content_start], "little")
            if max(position, content_start) > len(view):
                raise failed(_NAME, f"the {len(view)} bytes end inside a skippable frame")
            parts_left -= 1
            if parts_left < 0:
                raise too_many_parts(_NAME, "frames")
        else:
            frame, blocks = _frame_at(view, position, limits, parts_left)
            frames.append(frame)
            position = frame.end
            parts_left -= blocks
    return frames


def _frame_at(view: memoryview, start: int, limits: Limits, most_blocks: int) -> tuple[_Frame, int]:
    """The frame at ``start`` and its number of blocks."""
    header = view[start : start + _LONGEST_HEADER_BYTES]
    try:
        header_bytes = zstandard.frame_header_size(header)
        parameters = zstandard.get_frame_parameters(header)
    except zstandard.ZstdError as error:
        if "too much memory" in str(error):
            raise LimitExceeded(
                f"{_NAME}: the frame needs a window of more than {_LARGEST_WINDOW_BYTES} bytes"
            ) from None
        raise failed(_NAME, error) from None
    if parameters.dict_id:
        raise failed(_NAME, f"the frame needs the dictionary {parameters.dict_id}; Kafka uses none")
    declared: int | None = parameters.content_size
    if declared == zstandard.CONTENTSIZE_UNKNOWN:
        declared = None
    elif declared is not None and declared > limits.max_decompressed_bytes:
        raise output_over_limit(_NAME, limits.max_decompressed_bytes, declared)
    largest_block_bytes = min(parameters.window_size, _LARGEST_BLOCK_BYTES)
    position = start + header_bytes
    most_bytes = 0
    blocks = 0
    is_last = False
    while not is_last:
        blocks += 1
        if blocks > most_blocks:
            raise too_many_parts(_NAME, "blocks")
        field = view[position : position + _BLOCK_HEADER_BYTES]
        block_header = int.from_bytes(field, "little")
        kind, length = block_header >> 1 & 3, block_header >> 3
        position += _BLOCK_HEADER_BYTES + (1 if kind == _REPEATED_BYTE_BLOCK else length)
        if position > len(view) or len(field) < _BLOCK_HEADER_BYTES:
            raise failed(_NAME, f"the {len(view)} bytes end inside a frame")
        if kind > _COMPRESSED_BLOCK or length > _LARGEST_BLOCK_BYTES:
            raise failed(_NAME, "a block's header is not valid")
        most_bytes += largest_block_bytes if kind == _COMPRESSED_BLOCK else length
        is_last = bool(block_header & 1)
    if parameters.has_checksum:
        position += _CHECKSUM_BYTES
        if position > len(view):
            raise failed(_NAME, f"the {len(view)} bytes end inside a frame's checksum")
    if declared is None:  # otherwise the library uses the result as the window
        _check_window(parameters.window_size, most_bytes, limits.max_zstd_window_bytes)
    if declared is not None and (declared > most_bytes or (declared == 0 and most_bytes)):
        raise failed(_NAME, f"a frame declares {declared} bytes, its blocks hold up to {most_bytes}")
    return _Frame(start, position, declared, most_bytes), blocks


def _check_window(window_bytes: int, most_bytes: int, limit_bytes: int) -> None:
    """Raise LimitExceeded for a window that is too large.

    Java's level 22 writes a window of 128 MiB even for the smallest batch. Only as much of the window is used as the
    frame contains, so a small frame passes with any window that Kafka's own reader accepts.
    """
    if min(window_bytes, most_bytes) > limit_bytes or window_bytes > max(_KAFKA_WINDOW_BYTES, limit_bytes):
        raise LimitExceeded(
            f"{_NAME}: needs a window of {window_bytes} bytes, more than the limit of {limit_bytes} bytes"
        )


def _decompressor(limits: Limits) -> zstandard.ZstdDecompressor:
    """This thread's decompressor, which raises an error for windows that no limit allows."""
    window_bytes = min(max(_KAFKA_WINDOW_BYTES, limits.max_zstd_window_bytes), _LARGEST_WINDOW_BYTES)
    decompressor: zstandard.ZstdDecompressor | None = getattr(_per_thread, "decompressor", None)
    if decompressor is None or _per_thread.window_bytes != window_bytes:
        decompressor = zstandard.ZstdDecompressor(max_window_size=window_bytes)
        _per_thread.decompressor = decompressor
        _per_thread.window_bytes = window_bytes
    return decompressor


def _decompress_frame(view: memoryview, frame: _Frame, limits: Limits) -> bytes:
    """Decompress one frame into memory of its own, without a copy."""
    limit_bytes = limits.max_decompressed_bytes
    room_bytes = max(1, min(frame.most_bytes, limit_bytes))
    try:
        whole = _decompressor(limits).decompress(view[frame.start : frame.end], max_output_size=room_bytes)
    except zstandard.ZstdError as error:
        # The frame is whole, so if it was not finished, the room was too small.
        if frame.most_bytes > limit_bytes and "did not decompress full frame" in str(error):
            raise output_over_limit(_NAME, limit_bytes) from None
        raise failed(_NAME, error) from None
    if len(whole) > limit_bytes:
        raise output_over_limit(_NAME, limit_bytes)
    return whole


def _decompress_frames(view: memoryview, frames: list[_Frame], limits: Limits) -> bytes:
    """Decompress several frames into one object, made once: it may be as large as the limit."""
    limit_bytes = limits.max_decompressed_bytes
    most_bytes = sum(frame.most_bytes if frame.declared_bytes is None else frame.declared_bytes for frame in frames)
    room_bytes = min(most_bytes, limit_bytes) + 1
    out = io.BytesIO(bytes(room_bytes))
    written = 0
    with out.getbuffer() as room:
        for frame in frames:
            reader = _decompressor(limits).stream_reader(view[frame.start : frame.end])
            got = 1
            while got and written < room_bytes:
                try:
                    with room[written:] as left:
                        got = reader.readinto(left)
                except zstandard.ZstdError as error:
                    raise failed(_NAME, error) from None
                written += got
    if written > limit_bytes:
        raise output_over_limit(_NAME, limit_bytes)
    out.truncate(written)
    return out.getvalue()


def compress(payload: bytes | memoryview, level: int | None, magic: int) -> bytes:
    """Compress to one frame that declares its size, so that its window is not larger than its content."""
    return _compressor(_DEFAULT_LEVEL if level is None else level).compress(payload)


def _compressor(level: int) -> zstandard.ZstdCompressor:
    """This thread's compressor, kept while the level is the same: a new one takes as long as a small batch."""
    compressor: zstandard.ZstdCompressor | None = getattr(_per_thread, "compressor", None)
    if compressor is None or _per_thread.level != level:
        compressor = zstandard.ZstdCompressor(level=level)
        _per_thread.compressor = compressor
        _per_thread.level = level
    return compressor
