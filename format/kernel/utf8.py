"""Text in bytes: what is UTF-8, and one character of it.

Compiled modules have these functions from ``utf8.pxd``; this file is never compiled.
"""

from __future__ import annotations

from format.kernel.memory import Bytes

__all__ = ("is_utf8", "read_character")


def is_utf8(source: Bytes, start: int, end: int) -> bool:
    """Whether ``source[start:end]`` is well-formed UTF-8: no overlong forms, surrogates or numbers past U+10FFFF."""
    try:
        bytes(source[start:end]).decode()
    except UnicodeDecodeError:
        return False
    return True


def read_character(source: Bytes, at: int, end: int) -> tuple[int, int]:
    """The code point of the non-ASCII character at ``at``, and the index after it; -1 if it is not UTF-8."""
    byte = source[at]
    after = at + (2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
    if byte < 0xC2 or after > end or not is_utf8(source, at, after):
        return -1, at
    return ord(bytes(source[at:after]).decode()), after
