"""Functions of SQL: ``json_value`` takes a value out of JSON by a path, ``$.user.id``; ``text`` decodes bytes,
``size`` counts them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from format.errors import BadQuery

#: ``.name``, ``."any name"``, ``['any name']`` and ``[0]``.
_STEP = re.compile(r"""\.(?P<name>[\w-]+)|\."(?P<quoted>[^"]*)"|\['(?P<bracketed>[^']*)'\]|\[(?P<index>\d+)\]""")


@lru_cache(64)
def steps_of(path: str) -> tuple[str | int, ...]:
    """The steps of a path of SQL/JSON, names of fields and indexes of elements. Raises BadQuery."""
    found: list[str | int] = []
    at = 1
    while path[:1] == "$" and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            break
        at = match.end()
        found.append(int(match["index"]) if match["index"] else match["name"] or match["quoted"] or match["bracketed"])
    if path[:1] != "$" or at != len(path):
        raise BadQuery(f"'{path}' is not a path in JSON: give one such as $.user.id, $.items[0] or $['user id']")
    return tuple(found)


def json_values(texts: pa.Array, paths: pa.Array) -> pa.Array:
    """The value at the path in each text of JSON: text as it is, other values as JSON; null where there is none.

    What is no JSON has no values.
    """
    found = [
        None if text is None or path is None else _value(text, steps_of(path))
        for text, path in zip(texts.to_pylist(), paths.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.string())


def texts(values: pa.Array) -> pa.Array:
    """Bytes as text, in which U+FFFD stands for what is not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [None if each is None else each.decode("utf-8", "replace") for each in values.to_pylist()]
        return pa.array(decoded, pa.string())


def sizes(values: pa.Array) -> pa.Array:
    """The number of bytes; the engine's own functions count the characters of text."""
    return pc.binary_length(values).cast(pa.int64())


def _value(text: str, steps: tuple[str | int, ...]) -> str | None:
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
