"""Values without a schema, as JSON text: numbers, UUIDs, strings and JSON, as Kafka's own serializers write them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from functools import partial
from uuid import UUID

import msgspec

#: The kinds with schemas.
SCHEMA_KINDS = ("avro", "protobuf", "json-schema")
#: What keys and values can be decoded as.
KINDS = ("auto", "raw", "string", "json", *SCHEMA_KINDS, "int", "long", "double", "uuid")

_UUID_BYTES = 16
#: Control characters that are usual in texts.
_USUAL_CONTROLS = str.maketrans("", "", "\t\n\r")
#: An escape in a JSON string; of a character past U+FFFF both halves.
_ESCAPE = re.compile(r"\\(?:u(?:d[89ab]..\\ud[c-f]..|....)|.)", re.IGNORECASE)
_encode = msgspec.json.Encoder().encode


class Undecodable(Exception):
    """The bytes are not what they were taken for; the message is the reason."""


class InvalidSchema(Exception):
    """A schema that is not valid, or over a limit; the message is the reason."""


def string_text(data: bytes) -> str:
    """A UTF-8 string as JSON text. Raises Undecodable."""
    return _encode(utf8(data)).decode()


def json_text(data: bytes) -> str:
    """JSON on one line, with its numbers and names as they are, but no letter escaped. Raises Undecodable."""
    utf8(data)
    try:
        text = msgspec.json.format(data, indent=-1).decode()
        return _ESCAPE.sub(_unescaped, text) if "\\u" in text else text
    except msgspec.DecodeError as error:
        raise Undecodable(f"not JSON: {error}") from None
    except RecursionError:
        raise Undecodable("the JSON is nested too deeply") from None


def _unescaped(escape: re.Match[str]) -> str:
    """A printable character for its escape in a JSON string; any other escape as it is."""
    if escape[0][1] != "u":
        return escape[0]
    halves = escape[0].encode().decode("unicode_escape")
    character = halves.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return character if character.isprintable() and character not in '"\\' else escape[0]


def float_text(number: float) -> str:
    """A double as JSON text: what JSON has no number for is "NaN", "Infinity" or "-Infinity"."""
    if math.isfinite(number):
        return repr(number)
    return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'


def uuid_text(data: bytes) -> str:
    """A UUID: its 36 characters, as Kafka's UUIDSerializer writes it, or its 16 bytes. Raises Undecodable."""
    if len(data) == _UUID_BYTES:
        return f'"{UUID(bytes=data)}"'
    try:
        text = data.decode("ascii")
        if str(UUID(text)) == text.lower():
            return f'"{text}"'
    except ValueError:
        pass
    raise Undecodable("not a UUID: neither its 36 characters nor its 16 bytes")


def utf8(data: bytes) -> str:
    """The characters. Raises Undecodable."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8 at byte {error.start}") from None


def is_printable(text: str) -> bool:
    """Whether all characters are printable, or tabs and ends of lines."""
    return text.isprintable() or text.translate(_USUAL_CONTROLS).isprintable()


def _number_text(form: struct.Struct, name: str, text_of: Callable[[float], str], data: bytes) -> str:
    """A big-endian number, which ``name`` names in messages. Raises Undecodable."""
    if len(data) != form.size:
        raise Undecodable(f"{name} has {form.size} bytes, not {len(data)}")
    return text_of(*form.unpack(data))


#: The decoders of the plain kinds, by name.
PLAIN: dict[str, Callable[[bytes], str]] = {
    "string": string_text,
    "json": json_text,
    "int": partial(_number_text, struct.Struct(">i"), "an int", str),
    "long": partial(_number_text, struct.Struct(">q"), "a long", str),
    "double": partial(_number_text, struct.Struct(">d"), "a double", float_text),
    "uuid": uuid_text,
}
