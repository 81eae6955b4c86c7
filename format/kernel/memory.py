"""Access to memory: views in Python, addresses and block copies in C.

Compiled modules use the C functions in ``memory.pxd``; this file is never compiled. A Cython memoryview is a struct of
some 200 bytes that every call would copy, so compiled functions pass addresses to each other. Indexing looks the same
in both.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = (
    "PIECE_BYTES",
    "Bytes",
    "Room",
    "Row",
    "Table",
    "Words",
    "bring_near",
    "bytes_at",
    "copy_ascii",
    "copy_bytes",
    "copy_escaped",
    "copy_piece",
    "end_turn",
    "find_bytes",
    "room_at",
    "same_bytes",
    "take_turn",
    "words_at",
)

#: Bytes to read, and bytes to write.
Bytes: TypeAlias = bytes | bytearray | memoryview
Room: TypeAlias = bytearray | memoryview
#: int64, with two dimensions and with one.
Table: TypeAlias = memoryview
Row: TypeAlias = memoryview
#: uint32, with one dimension.
Words: TypeAlias = memoryview

#: How many bytes past the end copy_piece may read, and copy_piece, copy_escaped and copy_ascii may write.
PIECE_BYTES = 32


def bytes_at(view: Bytes) -> Bytes:
    """The bytes of a view, to read."""
    return view


def room_at(view: Room) -> Room:
    """The bytes of a view, to write."""
    return view


def words_at(view: Words) -> Words:
    """The unsigned 32-bit words of a view, to read."""
    return view


def end_turn() -> object:
    """Let other threads run Python until ``take_turn`` gets the result; meanwhile only C may run."""
    return None


def take_turn(turn: object) -> None:
    """Wait until this thread may run Python again."""


def bring_near(source: Bytes, start: int, end: int) -> None:
    """Prefetch bytes into the processor's cache; they may be past the end of the buffer. In Python it does nothing."""


def copy_bytes(out: Room, at: int, source: Bytes, start: int, end: int) -> int:
    """Copy ``source[start:end]`` to ``out[at:]``; return the index after the last byte written."""
    stop = at + end - start
    out[at:stop] = source[start:end]
    return stop


def copy_piece(out: Room, at: int, source: Bytes, start: int, end: int) -> int:
    """Copy as ``copy_bytes`` does. C copies whole blocks, so both buffers must go on for PIECE_BYTES after the copy."""
    return copy_bytes(out, at, source, start, end)


def copy_escaped(
    out: Room, at: int, source: Bytes, start: int, end: int, limit: int, expansions: Bytes, doubles: bool
) -> tuple[int, int]:
    """Copy the first bytes of ``source[start:end]``, with a backslash before each quote and backslash, or doubled.

    Return the indexes after the last byte written and after the last byte read. Copying ends at the first byte that is
    not printable ASCII, or earlier: callers go on byte by byte. The Python function copies nothing, since callers are
    as fast. C may read up to ``limit``. ``expansions`` starts with text.EXPANSIONS.
    """
    return at, start


def copy_ascii(out: Room, at: int, source: Bytes, start: int, end: int, limit: int) -> bool:
    """Copy ``source[start:end]`` to ``out[at:]``, and return whether it is ASCII; C may read up to ``limit``."""
    copy_bytes(out, at, source, start, end)
    return bytes(source[start:end]).isascii()


def find_bytes(source: Bytes, start: int, end: int, wanted: Bytes, length: int) -> int:
    """The index in ``source`` of the first ``wanted[:length]`` in ``source[start:end]``, or -1."""
    at = bytes(source[start:end]).find(wanted[:length])
    return at if at < 0 else start + at


def same_bytes(first: Bytes, first_at: int, second: Bytes, second_at: int, length: int) -> bool:
    """Whether the ``length`` bytes at these two places are equal."""
    return bytes(first[first_at : first_at + length]) == bytes(second[second_at : second_at + length])
