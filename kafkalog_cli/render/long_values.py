"""Long values of a row as pieces of text, so that a line of any length takes little memory.

Joined, the pieces of a value are what its writer in ``values.py`` returns.
"""

from __future__ import annotations

from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafkalog_cli.render.escape import escape_text
from kafkalog_cli.render.values import is_bare, json_string, json_value

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


def text_bytes_pieces(value: bytes | Mapping[str, Any]) -> Iterator[str]:
    """Bytes as a word of the text format."""
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
TEXT_PIECES: dict[str, Pieces] = {"bytes": text_bytes_pieces, "headers": json_headers_pieces}
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
