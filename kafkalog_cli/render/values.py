"""One value of a row as JSON or as a word of the text format, by the type of its column.

JSON: no spaces, UTF-8, nothing unsafe raw. Bytes are lossless: a string when they are valid UTF-8, else
``{"base64": …}``. Text: a bare word where that is unambiguous, else in double quotes with the escapes of ``escape.py``;
null is ``-``.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from kafkalog_cli.render.escape import escape_bytes, escape_json, escape_text

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


def _json_bool(value: Any) -> str:
    return "true" if value else "false"


#: The functions by column type; none of them is called for null.
JSON_WRITERS: dict[str, Callable[[Any], str]] = {
    "int": str,
    "timestamp": str,
    "bool": _json_bool,
    "string": json_string,
    "bytes": json_bytes,
    "headers": json_headers,
    "any": json_value,
}


# -- text ----------------------------------------------------------------------------------------------------


def is_bare(text: str) -> bool:
    """Whether text is a word that needs no quotes."""
    return _BARE.fullmatch(text) is not None


def _quoted(escaped: str) -> str:
    if is_bare(escaped) and escaped != "-":
        return escaped
    return '"' + escaped.replace('"', '\\"') + '"'


def text_string(text: str) -> str:
    """A word of the text format."""
    return _quoted(escape_text(text))


def text_bytes(value: bytes | Mapping[str, Any]) -> str:
    """Bytes as a word of the text format; a decoded object as JSON."""
    return json_value(value) if isinstance(value, Mapping) else _quoted(escape_bytes(bytes(value)))


def cell_bytes(value: bytes | Mapping[str, Any]) -> str:
    """Bytes as a cell; a decoded object as JSON."""
    return json_value(value) if isinstance(value, Mapping) else escape_bytes(bytes(value))


TEXT_WRITERS: dict[str, Callable[[Any], str]] = {
    **JSON_WRITERS,
    "string": text_string,
    "bytes": text_bytes,
}


# -- a cell of a table or of a CSV document --------------------------------------------------------------------

CELL_WRITERS: dict[str, Callable[[Any], str]] = {
    **JSON_WRITERS,
    "string": escape_text,
    "bytes": cell_bytes,
    "any": lambda value: escape_text(value) if isinstance(value, str) else json_value(value),
}
