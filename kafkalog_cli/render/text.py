"""Values as text: escaped where a terminal would act on them, cut where they are long."""

from __future__ import annotations

import re
from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

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


def cell_width(text: str) -> int:
    """The number of terminal columns of a text, which has no control characters."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def widest(texts: Sequence[str]) -> int:
    """The largest ``cell_width`` of some texts."""
    return max(map(len if "".join(texts).isascii() else cell_width, texts))


_BARE = re.compile(r"[A-Za-z0-9_./:@%+,-]+")


# -- JSON ----------------------------------------------------------------------------------------------------


def json_string(text: str) -> str:
    """A JSON string literal, quotes included."""
    return escape_json(encode_basestring(text))


def json_bytes(value: bytes | Mapping[str, Any]) -> str:
    """Bytes as a JSON string when they are valid UTF-8, else as an object with the key ``base64``.

    Bytes that are decoded already, such as a key of an internal topic, come as an object and stay one.
    """
    try:
        return json_string(str(value, "utf-8"))  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return f'{{"base64":"{b64encode(value).decode("ascii")}"}}'  # type: ignore[arg-type]
    except TypeError:
        return json_value(value)


def json_headers(headers: Sequence[tuple[bytes, bytes | None]]) -> str:
    """Record headers as an array of [key, value] arrays, in order."""
    return f"[{','.join(f'[{json_bytes(key)},{json_value(value)}]' for key, value in headers)}]"


def json_value(value: Any) -> str:
    """Any value as JSON. An enum becomes its value; a value of a type that JSON does not have becomes its str()."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str) and not isinstance(value, Enum):
        return json_string(value)
    if isinstance(value, int) and not isinstance(value, Enum):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value)) if isfinite(value) else json_string(str(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return json_bytes(bytes(value))
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{json_string(str(key))}:{json_value(each)}' for key, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(json_value, value))}]"
    if isinstance(value, Enum):
        return json_value(value.value)
    if hasattr(value, "item"):  # a numpy scalar
        return json_value(value.item())
    return json_string(str(value))


#: The functions by column type; none of them is called for null.
JSON_WRITERS: dict[str, Callable[[Any], str]] = {
    "int": str,
    "timestamp": str,
    "bool": lambda value: "true" if value else "false",
    "string": json_string,
    "bytes": json_bytes,
    "headers": json_headers,
    "any": json_value,
    "json": escape_json,
}


# -- logfmt --------------------------------------------------------------------------------------------------


def is_bare(text: str) -> bool:
    """Whether text is a word that needs no quotes."""
    return _BARE.fullmatch(text) is not None


def _quoted(escaped: str) -> str:
    if is_bare(escaped) and escaped != "-":
        return escaped
    return '"' + escaped.replace('"', '\\"') + '"'


def logfmt_string(text: str) -> str:
    """A word of logfmt."""
    return _quoted(escape_text(text))


def logfmt_bytes(value: bytes | Mapping[str, Any]) -> str:
    """Bytes as a word of logfmt; a decoded object as JSON."""
    return json_value(value) if isinstance(value, Mapping) else _quoted(escape_bytes(bytes(value)))


def cell_bytes(value: bytes | Mapping[str, Any]) -> str:
    """Bytes as a cell; a decoded object as JSON."""
    if isinstance(value, bytes):
        return escape_bytes(value)
    return json_value(value) if isinstance(value, Mapping) else escape_bytes(bytes(value))


LOGFMT_WRITERS: dict[str, Callable[[Any], str]] = {**JSON_WRITERS, "string": logfmt_string, "bytes": logfmt_bytes}


# -- a cell of a table or of a CSV document --------------------------------------------------------------------

CELL_WRITERS: dict[str, Callable[[Any], str]] = {
    **JSON_WRITERS,
    "string": escape_text,
    "bytes": cell_bytes,
    "any": lambda value: escape_text(value) if isinstance(value, str) else json_value(value),
}


#: A row with more bytes than this in its keys, values and headers is written in pieces.
LONG_BYTES = 1 << 20
_PIECE_BYTES = 3 << 14  # whole groups of base64
_TEXT_DECODER = getincrementaldecoder("utf-8")

Pieces = Callable[[Any], Iterator[str]]


def size_of(value: Any) -> int:
    """The bytes of a key or a value, or of all headers; 0 for what is never long."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(size_of(each) for each in value)
    return 0


def json_bytes_pieces(value: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Bytes as a JSON string, or an object with the key ``base64`` if they are not UTF-8."""
    if isinstance(value, Mapping):
        yield json_value(value)
    elif _is_utf8(value):
        yield '"'
        for text in _texts(value):
            yield json_string(text)[1:-1]
        yield '"'
    else:
        yield '{"base64":"'
        for piece in _slices(value):
            yield b64encode(piece).decode("ascii")
        yield '"}'


def json_headers_pieces(headers: Sequence[tuple[bytes, bytes | None]]) -> Iterator[str]:
    """Record headers as an array of [key, value] arrays."""
    before = "["
    for key, value in headers:
        yield before
        yield "["
        yield from json_bytes_pieces(key)
        yield ","
        yield from ("null",) if value is None else json_bytes_pieces(value)
        yield "]"
        before = ","
    yield "]" if headers else "[]"


def logfmt_bytes_pieces(value: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Bytes as a word of logfmt."""
    if isinstance(value, Mapping):
        yield json_value(value)
    elif value not in (b"", b"-") and all(map(is_bare, cell_bytes_pieces(value))):
        yield from cell_bytes_pieces(value)
    else:
        yield '"'
        for piece in cell_bytes_pieces(value):
            yield piece.replace('"', '\\"')
        yield '"'


def cell_bytes_pieces(value: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Bytes as escaped text without quotes."""
    if isinstance(value, Mapping):
        yield json_value(value)
    else:
        yield from map(escape_text, _texts(value))


#: The functions by column type; a column of another type is never long.
JSON_PIECES: dict[str, Pieces] = {"bytes": json_bytes_pieces, "headers": json_headers_pieces}
LOGFMT_PIECES: dict[str, Pieces] = {"bytes": logfmt_bytes_pieces, "headers": json_headers_pieces}
CELL_PIECES: dict[str, Pieces] = {"bytes": cell_bytes_pieces, "headers": json_headers_pieces}


def _is_utf8(value: bytes) -> bool:
    decoder = _TEXT_DECODER()
    try:
        for piece in _slices(value):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _texts(value: bytes) -> Iterator[str]:
    """Bytes as text in pieces; each byte that is not UTF-8 is carried through as a surrogate."""
    decoder = _TEXT_DECODER("surrogateescape")
    for piece in _slices(value):
        yield decoder.decode(piece)
    rest = decoder.decode(b"", final=True)
    if rest:
        yield rest


def _slices(value: bytes) -> Iterator[memoryview]:
    view = memoryview(value)
    for start in range(0, len(view), _PIECE_BYTES):
        yield view[start : start + _PIECE_BYTES]
