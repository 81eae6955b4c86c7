r"""Java properties as text: comments, ``=``, ``:`` or white space after the name, \uXXXX escapes, continued lines.

The rules are those of java.util.Properties.load on a byte stream: ISO-8859-1, lines ended by \n, \r or \r\n.
"""

from __future__ import annotations

import re

import msgspec

from format.errors import LimitExceeded
from format.files.side_file import Line, invalid_line, lines
from format.io.source import Source
from format.limits import Limits
from format.location import Location

_WHITE_SPACE = " \t\f"
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_UNICODE_ESCAPE = re.compile(r"u[0-9a-fA-F]{4}")
_LETTER_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NEEDS_BACKSLASH = {letter: f"\\{name}" for name, letter in _LETTER_ESCAPES.items()}
_NEEDS_BACKSLASH |= {character: f"\\{character}" for character in "\\=:#!"}


class Property(msgspec.Struct, frozen=True):
    """A name and a value, and the line where they start."""

    name: str
    value: str
    line: Line


class JavaProperties(msgspec.Struct, frozen=True):
    """All properties in the order of the file, including repeated names, and the comments with their marks."""

    comments: tuple[str, ...]
    properties: tuple[Property, ...]

    def last(self, name: str) -> Property | None:
        """The property with a name; the last one if there are several, as for Java."""
        return next((each for each in reversed(self.properties) if each.name == name), None)


def decode_properties(source: Source, limits: Limits) -> JavaProperties:
    r"""Decode the properties of a file. Raises LimitExceeded, and InvalidCheckpoint for a malformed \u escape."""
    comments: list[str] = []
    properties: list[Property] = []
    started: Line | None = None  # the first line of the current logical line
    logical = ""
    for line in lines(source, limits):
        text = line.content.decode("latin-1").lstrip(_WHITE_SPACE)
        if not logical:
            if not text:
                # Java joins an empty line to an empty continued line; the result is empty either way.
                continue
            if text[0] in "#!":
                comments.append(text)
                continue
            started = line
        is_continued = (len(text) - len(text.rstrip("\\"))) % 2 == 1
        logical += text[:-1] if is_continued else text
        if len(logical) > limits.max_line_bytes:
            raise LimitExceeded(
                f"line {line.number}, with the lines that it continues, has more than {limits.max_line_bytes} bytes",
                Location(source.path, position=line.position),
            )
        if not is_continued and started is not None:
            properties.append(_property(source, started, logical))
            logical = ""
    if started is not None and logical:  # the last line ends with a backslash, which Java ignores
        properties.append(_property(source, started, logical))
    return JavaProperties(tuple(comments), tuple(properties))


def _property(source: Source, line: Line, logical: str) -> Property:
    end = _name_end(logical)
    rest = logical[end:].lstrip(_WHITE_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_WHITE_SPACE)
    return Property(_unescaped(source, line, logical[:end]), _unescaped(source, line, rest), line)


def _name_end(logical: str) -> int:
    is_escaped = False
    for at, character in enumerate(logical):
        if not is_escaped and character in "=: \t\f":
            return at
        is_escaped = character == "\\" and not is_escaped
    return len(logical)


def _unescaped(source: Source, line: Line, text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        escape = match[1]
        if not escape.startswith("u"):
            return _LETTER_ESCAPES.get(escape, escape)
        if _UNICODE_ESCAPE.fullmatch(escape) is None:
            raise invalid_line(source, line, "four hexadecimal digits after \\u", ascii(match[0]))
        return chr(int(escape[1:], 16))

    unescaped = _ESCAPE.sub(replacement, text)
    # Two escapes may be a surrogate pair.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encode_property(name: str, value: str) -> str:
    r"""``name=value`` as Properties.store writes it to a byte stream: ASCII, with \uXXXX for other characters."""
    return f"{_escaped(name, every_space=True)}={_escaped(value, every_space=False)}"


def _escaped(text: str, *, every_space: bool) -> str:
    parts = []
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        unit = int.from_bytes(encoded[at : at + 2], "big")
        character = chr(unit)
        if character == " ":
            parts.append("\\ " if every_space or at == 0 else " ")
        elif character in _NEEDS_BACKSLASH:
            parts.append(_NEEDS_BACKSLASH[character])
        elif 0x20 <= unit <= 0x7E:
            parts.append(character)
        else:
            parts.append(f"\\u{unit:04X}")
    return "".join(parts)
