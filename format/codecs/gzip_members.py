"""gzip (RFC 1952): one or more members in a row; inflated by ISA-L if the package isal is installed.

ISA-L is twice as fast as zlib. ``max_length`` bounds the output of both. For a payload that was cut off, both return
short data without an error, so only their ``eof`` shows that a member is whole. A member whose header has undefined
flags is an error for zlib; ISA-L reads it, as Java does.
"""

from __future__ import annotations

import io
import zlib
from types import ModuleType
from typing import Any

from format.codecs.failures import MAX_PARTS, failed, output_over_limit, too_many_parts
from format.limits import MIB, Limits

inflate_library: ModuleType
try:
    from isal import isal_zlib

    inflate_library = isal_zlib
except ImportError:
    inflate_library = zlib

_NAME = "gzip"
_MEMBER_START = b"\x1f\x8b\x08"  # the magic number and the only compression method
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS  # a gzip header and trailer around the deflate stream
_SMALLEST_MEMBER_BYTES = 18  # header of 10, trailer of 8
_MOST_BYTES_PER_BYTE = 1032  # what deflate can reach
_FIRST_STEP_IN_BYTES = 512  # short, since the library copies the input that a small member leaves unused
_STEP_IN_BYTES = 64 * 1024
_STEP_OUT_BYTES = 4 * MIB


def decompress(payload: bytes | memoryview, magic: int, limits: Limits) -> bytes:
    """Decompress all members. Bytes after the last member that do not start another are ignored, as Java does."""
    view = memoryview(payload)
    if len(view) < _SMALLEST_MEMBER_BYTES:
        raise failed(_NAME, f"{len(view)} bytes are too few for a member")
    # The last four bytes are the decompressed size if there is one member. They are only a hint for the first call.
    size_hint = int.from_bytes(view[-4:], "little")
    if size_hint <= min(_STEP_OUT_BYTES, limits.max_decompressed_bytes, len(view) * _MOST_BYTES_PER_BYTE):
        member = inflate_library.decompressobj(_GZIP_WINDOW_BITS)
        try:
            whole: bytes = member.decompress(view, size_hint + 1)
        except inflate_library.error as error:
            raise failed(_NAME, error) from None
        if member.eof and not member.unused_data:
            return whole
    return _decompress_stepwise(view, limits.max_decompressed_bytes)


def _decompress_stepwise(view: memoryview, limit_bytes: int) -> bytes:
    """Decompress in bounded steps of input and output: each call of the library copies the input that is left over."""
    out = io.BytesIO()
    position = 0
    for _ in range(MAX_PARTS):
        position = _decompress_member(view, position, out, limit_bytes)
        if not _another_member_starts(view[position : position + len(_MEMBER_START)]):
            return out.getvalue()
    raise too_many_parts(_NAME, "members")


def _decompress_member(view: memoryview, position: int, out: io.BytesIO, limit_bytes: int) -> int:
    """Write the content of one member to ``out``; return the position after the member."""
    member: Any = inflate_library.decompressobj(_GZIP_WINDOW_BITS)
    step: bytes | memoryview = view[position : position + _FIRST_STEP_IN_BYTES]
    position += len(step)
    while not member.eof:
        if not step:
            step = view[position : position + _STEP_IN_BYTES]
            position += len(step)
        room = min(_STEP_OUT_BYTES, limit_bytes + 1 - out.tell())
        try:
            piece = member.decompress(step, room)
        except inflate_library.error as error:
            raise failed(_NAME, error) from None
        out.write(piece)
        if out.tell() > limit_bytes:
            raise output_over_limit(_NAME, limit_bytes)
        if not piece and not step and not member.eof:
            raise failed(_NAME, f"the {len(view)} bytes end inside a member")
        step = member.unconsumed_tail
    return position - len(member.unused_data)


def _another_member_starts(following: memoryview) -> bool:
    """Whether the next bytes, up to three, start a member; a start that is cut off counts too, and fails later."""
    return len(following) > 0 and _MEMBER_START.startswith(following)


def compress(payload: bytes | memoryview, level: int | None, magic: int) -> bytes:
    """Compress to one member, as Java's GZIPOutputStream does (no name, no time)."""
    member = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return member.compress(payload) + member.flush()
