"""lz4: the frame format (lz4_Frame_format), and the wrong header checksum that Kafka writes with magic 0.

Kafka's first writer computed the header checksum of a frame over the magic number too (KAFKA-3160). Kafka's reader
(Lz4BlockInputStream) expects the right checksum for magic 1 and 2, and ignores it for magic 0, where both occur.
"""

from __future__ import annotations

import io
import threading
from functools import cache

import lz4.block
import lz4.frame

from format.codecs.failures import LARGEST_ROOM_BYTES, MAX_PARTS, failed, output_over_limit, thread_room, too_many_parts
from format.limits import MIB, Limits

_NAME = "lz4"
_FRAME_MAGIC = (0x184D2204).to_bytes(4, "little")
_DICTIONARY_FLAG = 0x01
_CONTENT_SIZE_FLAG = 0x08
_DESCRIPTOR_START = len(_FRAME_MAGIC)
_SMALLEST_FRAME_BYTES = 11  # magic, flags, block descriptor, header checksum, end mark
_STEP_OUT_BYTES = 8 * MIB
_MOST_BYTES_PER_BYTE = 255

_BLOCK_BYTES = 64 * 1024
_JAVA_DESCRIPTOR = bytes((0x60, 0x40))  # version 1, independent blocks, no checksums; blocks of 64 KiB
_BLOCK_LENGTH_BYTES = 4
_STORED_BLOCK_BIT = 0x80000000
_END_MARK = bytes(4)
#: A decompression context that reached the end of a frame. A context that did not is never used again: even after a
#: reset, the library counts the bytes of the unfinished frame.
_per_thread = threading.local()
_DEFAULT_LEVEL = 9  # means the fast compressor, which has no levels (Lz4BlockOutputStream)
_QUICK_BYTES = 1 * MIB  # larger frames rarely fit into the thread's room


def decompress(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes:
    """Decompress all frames. Bytes after the last frame that do not start another are ignored, as Kafka does."""
    return bytes(decompress_briefly(payload, magic, limits))


def decompress_briefly(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes | memoryview:
    """Decompress as ``decompress`` does, but a single frame as Kafka writes it into the thread's room."""
    view = memoryview(payload)
    header = _java_header(2)
    if magic and len(view) <= _QUICK_BYTES and view[: len(header)] == header:
        limit_bytes = min(limits.max_decompressed_bytes, LARGEST_ROOM_BYTES - _BLOCK_BYTES)
        found = _decompress_blocks(view, len(header), limit_bytes)
        if found is not None:
            return found
    return _decompress_frames(view, magic, limits.max_decompressed_bytes)


def _decompress_blocks(view: memoryview, position: int, limit_bytes: int) -> memoryview | None:
    """Decompress the blocks of the only frame, which start at ``position``, into the thread's room.

    None for damaged blocks, for bytes after the frame, and over the limit: ``_decompress_frames`` reports the error.
    """
    import cramjam  # here, because no other function of this module needs it

    decompress_block_into = cramjam.lz4.decompress_block_into
    written = 0
    while True:
        start = position + _BLOCK_LENGTH_BYTES
        length = int.from_bytes(view[position:start], "little")
        if not length:
            return thread_room(written)[:written] if start == len(view) and written <= limit_bytes else None
        is_stored = bool(length & _STORED_BLOCK_BIT)
        length &= ~_STORED_BLOCK_BIT
        position = start + length
        if length > _BLOCK_BYTES or position > len(view) or written > limit_bytes:
            return None
        room = thread_room(written + _BLOCK_BYTES)
        if is_stored:
            room[written : written + length] = view[start:position]
            written += length
        else:
            try:
                written += decompress_block_into(
                    view[start:position], room[written : written + _BLOCK_BYTES], _BLOCK_BYTES
                )
            except cramjam.DecompressionError:
                return None


def _decompress_frames(view: memoryview, magic: int, limit_bytes: int) -> bytes:
    """Decompress any frames with the library that checks all parts of the format."""
    out = io.BytesIO()
    position = 0
    for _ in range(MAX_PARTS):
        _check_frame_start(view[position:])
        context = _take_context()
        if magic == 0:
            header = _repaired_header(view[position:])
            _decompress_step(context, header, 0)
            position += len(header)
        room_bytes = min(_STEP_OUT_BYTES, limit_bytes + 1 - out.tell(), len(view) * _MOST_BYTES_PER_BYTE)
        whole, used, ended = _decompress_step(context, view[position:], room_bytes)
        position += used
        if ended:
            _per_thread.context = context
        out.write(whole)
        if not ended:
            position = _decompress_rest(context, view, position, out, limit_bytes)
            _per_thread.context = context
        if out.tell() > limit_bytes:
            raise output_over_limit(_NAME, limit_bytes)
        following = view[position : position + len(_FRAME_MAGIC)]
        if not len(following) or not _FRAME_MAGIC.startswith(following):
            return out.getvalue()
    raise too_many_parts(_NAME, "frames")


def _take_context() -> object:
    """A decompression context at its start; the thread's own is reused, since a new one takes as long as a frame."""
    context: object = getattr(_per_thread, "context", None)
    if context is None:
        return lz4.frame.create_decompression_context()
    _per_thread.context = None
    lz4.frame.reset_decompression_context(context)
    return context


def _decompress_rest(context: object, view: memoryview, position: int, out: io.BytesIO, limit_bytes: int) -> int:
    """Write the rest of a frame to ``out``, in steps; return the position after the frame."""
    ended = False
    while not ended:
        if out.tell() > limit_bytes:
            raise output_over_limit(_NAME, limit_bytes)
        room_bytes = min(_STEP_OUT_BYTES, limit_bytes + 1 - out.tell())
        piece, used, ended = _decompress_step(context, view[position:], room_bytes)
        if not piece and not used and not ended:
            raise failed(_NAME, f"the {len(view)} bytes end inside a frame")
        out.write(piece)
        position += used
    return position


def _check_frame_start(frame: memoryview) -> None:
    if len(frame) < _SMALLEST_FRAME_BYTES:
        raise failed(_NAME, f"{len(frame)} bytes are too few for a frame")
    if frame[: len(_FRAME_MAGIC)] != _FRAME_MAGIC:
        raise failed(_NAME, "the bytes do not start with the magic number of a frame")
    if frame[_DESCRIPTOR_START] & _DICTIONARY_FLAG:
        raise failed(_NAME, "the frame needs a dictionary, which Kafka never uses")


def _decompress_step(context: object, source: bytes | memoryview, room_bytes: int) -> tuple[bytes, int, bool]:
    """Decompress up to ``room_bytes``; return the result, the number of bytes read, and whether the frame ended."""
    try:
        step: tuple[bytes, int, bool] = lz4.frame.decompress_chunk(context, source, max_length=room_bytes)
    except RuntimeError as error:
        raise failed(_NAME, error) from None
    return step


def _repaired_header(frame: memoryview) -> bytes:
    """The header of a frame, with the checksum that the library expects."""
    checksum_position = _DESCRIPTOR_START + (10 if frame[_DESCRIPTOR_START] & _CONTENT_SIZE_FLAG else 2)
    if len(frame) <= checksum_position:
        raise failed(_NAME, "the bytes end inside a frame's header")
    header = bytes(frame[:checksum_position])
    return header + bytes((_header_checksum(header[_DESCRIPTOR_START:]),))


@cache
def _java_header(magic: int) -> bytes:
    """The header of all frames that Kafka writes; the wrong checksum of magic 0 covers the magic number too."""
    checksummed = _FRAME_MAGIC + _JAVA_DESCRIPTOR if magic == 0 else _JAVA_DESCRIPTOR
    return _FRAME_MAGIC + _JAVA_DESCRIPTOR + bytes((_header_checksum(checksummed),))


def _header_checksum(header: bytes) -> int:
    """The second byte of the xxHash32, with seed 0, of less than 16 bytes."""
    mask = 0xFFFFFFFF
    prime_1, prime_2, prime_3, prime_4, prime_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    digest = (prime_5 + len(header)) & mask
    words_end = len(header) & ~3
    for start in range(0, words_end, 4):
        digest = (digest + int.from_bytes(header[start : start + 4], "little") * prime_3) & mask
        digest = ((digest << 17 | digest >> 15) & mask) * prime_4 & mask
    for byte in header[words_end:]:
        digest = (digest + byte * prime_5) & mask
        digest = ((digest << 11 | digest >> 21) & mask) * prime_1 & mask
    digest = (digest ^ digest >> 15) * prime_2 & mask
    digest = (digest ^ digest >> 13) * prime_3 & mask
    return (digest ^ digest >> 16) >> 8 & 0xFF


def compress(payload: bytes | memoryview, level: int | None, magic: int) -> bytes:
    """Compress to one frame as Lz4BlockOutputStream does: independent blocks of 64 KiB, no content checksum or size."""
    view = memoryview(payload)
    parts = [_java_header(magic)]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = view[start : start + _BLOCK_BYTES]
        packed: bytes
        if level is None or level == _DEFAULT_LEVEL:
            packed = lz4.block.compress(block, store_size=False)
        else:
            packed = lz4.block.compress(block, mode="high_compression", compression=level, store_size=False)
        if len(packed) < len(block):
            parts += (len(packed).to_bytes(4, "little"), packed)
        else:
            parts += ((len(block) | _STORED_BLOCK_BIT).to_bytes(4, "little"), bytes(block))
    parts.append(_END_MARK)
    return b"".join(parts)
