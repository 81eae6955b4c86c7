"""UTF-8: whether bytes are valid, and the decoding of one character.

Compiled modules use the C functions in ``utf8.pxd``; this file is never compiled.
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
    """Decode the non-ASCII character at ``at``: its code point, -1 if it is not UTF-8, and the index after it."""
    byte = source[at]
    after = at + (2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
    if byte < 0xC2 or after > end or not is_utf8(source, at, after):
        return -1, at
    return ord(bytes(source[at:after]).decode()), after
