"""The parts of a value that say something, each with its place in the bytes, and what may stand in its place."""

from __future__ import annotations

import msgspec

from format.decoding.plain import Undecodable

#: The names of fields and the keys of maps around a part. Arrays and unions add nothing to it.
Path = tuple[bytes, ...]

MAX_U64 = 2**64 - 1
_VARINT_BYTES = 10


class Leaf(msgspec.Struct, frozen=True):
    """A part of a value: bytes from ``start`` to ``end``, which ``form`` says how to read.

    | form | what the bytes are |
    | --- | --- |
    | text | UTF-8 |
    | words | UTF-8 with small letters only |
    | bytes | any bytes |
    | zigzag | a varint of a signed number |
    | varint | a varint of a number, of 64 bits in two's complement if it may be below 0 |
    | float | a float or a double, the byte with the sign last |
    | decimal | a big-endian number |

    A varint may be from ``least`` to ``most``, or where there are ``choices`` one of them. ``is_name``: it is the key
    of a map's entry, which ends the path.
    """

    form: str
    path: Path
    start: int
    end: int
    least: int = 0
    most: int = 0
    choices: tuple[int, ...] = ()
    is_name: bool = False


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint as it is, without sign, and where it ends. Raises Undecodable."""
    value = 0
    for number, byte in enumerate(data[at : min(end, at + _VARINT_BYTES)]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            if value > MAX_U64:
                break
            return value, at + number + 1
    raise Undecodable("a number is cut off, or has more than 64 bits")


def zigzag_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint of a signed number, and where it ends. Raises Undecodable."""
    value, at = varint_at(data, at, end)
    return value >> 1 ^ -(value & 1), at
