"""What the kernel's two twins say differently of memory: C takes addresses and copies blocks, Python takes views.

``kernel.py`` has these names from here where it runs as it is, and from ``kernel_memory.pxd`` where it is compiled;
this file is never compiled. A view of C types is 200 bytes that every call would copy, so the compiled kernel hands
addresses to its inner functions; indexing reads the same in both.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = (
    "PIECE_BYTES",
    "bytes_at",
    "copy_bytes",
    "copy_escaped",
    "copy_piece",
    "find_bytes",
    "is_ascii",
    "room_at",
    "same_bytes",
    "words_at",
)

ViewT = TypeVar("ViewT", bytes, bytearray, memoryview)

#: What copy_piece and copy_escaped may read and write past the end of what they copy.
PIECE_BYTES = 16


def bytes_at(view: ViewT) -> ViewT:
    """The bytes of a view, to be read."""
    return view


def room_at(view: ViewT) -> ViewT:
    """The bytes of a view, to be written."""
    return view


def words_at(view: memoryview) -> memoryview:
    """The unsigned 32-bit words of a view, to be read."""
    return view


def copy_bytes(out: memoryview, at: int, source: memoryview, start: int, end: int) -> int:
    """Copy ``source[start:end]`` to ``out[at:]``; the index after the last byte written."""
    stop = at + end - start
    out[at:stop] = source[start:end]
    return stop


def copy_piece(out: memoryview, at: int, source: memoryview, start: int, end: int) -> int:
    """``copy_bytes`` where both have PIECE_BYTES more than is copied, so that C copies blocks of that size."""
    return copy_bytes(out, at, source, start, end)


def copy_escaped(out: memoryview, at: int, source: memoryview, start: int, end: int) -> tuple[int, int]:
    """Copy the first bytes of ``source[start:end]``, a backslash before each quote and backslash among them.

    The indexes after the last byte written and after the last one read. It stops at what is not printable ASCII, and
    may stop before; here it stops at once, as the caller's loop does no worse.
    """
    return at, start


def find_bytes(source: memoryview, start: int, end: int, wanted: memoryview, length: int) -> int:
    """Where ``wanted``, of that length, first lies in ``source[start:end]``, counted from ``source``; else -1."""
    at = bytes(source[start:end]).find(wanted[:length])
    return at if at < 0 else start + at


def is_ascii(source: memoryview, start: int, end: int) -> bool:
    """Whether ``source[start:end]`` is ASCII."""
    return bytes(source[start:end]).isascii()


def same_bytes(first: memoryview, first_at: int, second: memoryview, second_at: int, length: int) -> bool:
    """Whether the ``length`` bytes from these places on are the same."""
    return bytes(first[first_at : first_at + length]) == bytes(second[second_at : second_at + length])
