"""Screen-safe text: characters that move the cursor, reorder text or are invisible become backslash escapes.

These are C0, DEL and C1 controls, line and paragraph separators, surrogates, and every code point that Unicode
calls default-ignorable: bidirectional controls, zero-width characters, variation selectors, tags, fillers, the BOM.

The text form is lossless. ``\\n \\r \\t \\\\`` mean the same as in Python; ``\\xNN`` is one raw byte (below 80 also
the ASCII character); ``\\uNNNN`` and ``\\UNNNNNNNN`` are characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

UNSAFE_RANGES: tuple[tuple[int, int], ...] = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)

#: A text longer than _SHORT_TEXT is escaped character by character, each in one replacement, unless it has more than
#: _MOST_REPLACED different unsafe ones.
_SHORT_TEXT = 4096
_MOST_REPLACED = 64

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


@cache
def _unsafe(and_also: str = "") -> re.Pattern[str]:
    """The pattern of one unsafe character, compiled when the first text needs it: many runs have none."""
    ranges = "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in UNSAFE_RANGES)
    return re.compile(f"[{and_also}{ranges}]")


@cache
def _unsafe_in_lines() -> re.Pattern[str]:
    return re.compile(f"(?![\\n\\t]){_unsafe().pattern}")


def escape_text(text: str) -> str:
    """The lossless text form; a byte that ``surrogateescape`` carried through decoding becomes ``\\xNN`` again."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return _escaped(text, _unsafe("\\\\"), _text_escape)


def escape_bytes(value: bytes) -> str:
    """The lossless text form of bytes: UTF-8 as text, any other byte as ``\\xNN``."""
    return escape_text(value.decode("utf-8", "surrogateescape"))


def printable(text: str) -> str:
    """The screen-safe form for messages: backslashes stay single, so it cannot be read back."""
    if text.isascii() and text.isprintable():
        return text
    return _unsafe().sub(_text_escape, text)


def shown_on_terminal(lines: bytes | memoryview) -> bytes:
    """Whole lines in the screen-safe form, except line ends and tabs, which stay. Backslashes stay single."""
    text = str(lines, "utf-8", "surrogateescape")
    return _unsafe_in_lines().sub(_text_escape, text).encode()


def escape_json(literal: str) -> str:
    """A JSON string literal with every unsafe character as ``\\uNNNN``: the same value after parsing."""
    if literal.isascii() and literal.isprintable():
        return literal
    return _escaped(literal, _unsafe(), _json_escape)


def _escaped(text: str, unsafe: re.Pattern[str], escape: Callable[[re.Match[str]], str]) -> str:
    """The text with each unsafe character escaped; also fast for long text that consists mostly of them."""
    if len(text) > _SHORT_TEXT:
        found = sorted(unsafe.finditer("".join(set(text))), key=lambda match: match[0] != "\\")
        if len(found) <= _MOST_REPLACED:
            for match in found:  # the backslash first, as the escapes hold some
                text = text.replace(match[0], escape(match))
            return text
    return unsafe.sub(escape, text)


def _text_escape(match: re.Match[str]) -> str:
    character = match[0]
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
