"""Reading big-endian integers and varints, and writing numbers in decimal digits.

Compiled modules use the C functions in ``numbers.pxd``; this file is never compiled.
"""

from __future__ import annotations

import struct

from format.kernel.memory import Bytes, Room

__all__ = (
    "MAX_I32",
    "MAX_I64",
    "MIN_I64",
    "TWO_31",
    "put_number",
    "read_f32",
    "read_f64",
    "read_i16",
    "read_i32",
    "read_i64",
    "read_u32",
    "read_unsigned",
    "read_varint",
)

MAX_I32 = 0x7FFFFFFF
TWO_31 = 0x80000000
MAX_I64 = 0x7FFFFFFFFFFFFFFF
MIN_I64 = -0x7FFFFFFFFFFFFFFF - 1


def read_i16(source: Bytes, at: int) -> int:
    """A signed 16-bit integer."""
    return int.from_bytes(source[at : at + 2], "big", signed=True)


def read_u32(source: Bytes, at: int) -> int:
    """An unsigned 32-bit integer."""
    return int.from_bytes(source[at : at + 4], "big")


def read_i32(source: Bytes, at: int) -> int:
    """A signed 32-bit integer."""
    return int.from_bytes(source[at : at + 4], "big", signed=True)


def read_i64(source: Bytes, at: int) -> int:
    """A signed 64-bit integer."""
    return int.from_bytes(source[at : at + 8], "big", signed=True)


def read_f32(source: Bytes, at: int) -> float:
    """A little-endian float."""
    return float(struct.unpack_from("<f", source, at)[0])


def read_f64(source: Bytes, at: int) -> float:
    """A little-endian double."""
    return float(struct.unpack_from("<d", source, at)[0])


def read_varint(source: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of 32 bits: the value, and the index after it.

    The index is -1 if the varint is cut off or longer than five bytes, and -2 if it overflows 32 bits.
    """
    shift = 0
    value = 0
    while at < end:
        byte = source[at]
        at += 1
        if shift == 28 and byte > 0x0F:
            return 0, (-1 if byte & 0x80 else -2)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            half = value >> 1
            return (-half - 1 if value & 1 else half), at
        shift += 7
    return 0, -1


def read_unsigned(source: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits: the value, and the index after it, -1 if it is cut off or longer."""
    shift = 0
    value = 0
    while at < end and shift < 35:
        byte = source[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (0, -1) if value > MAX_I32 else (value, at)
        shift += 7
    return 0, -1


def put_number(out: Room, at: int, value: int) -> int:
    """Write a 64-bit number in decimal digits; return the index after them. C may write up to 8 bytes past them."""
    digits = b"%d" % value
    stop = at + len(digits)
    out[at:stop] = digits
    return stop
