"""Replaces the fields of JSON values but those to keep, byte by byte in place, so that all stays JSON of equal length.

Values of the JSON Schema serializer, JSON after a schema id, are JSON here, too. A value that is not a JSON object or
array is replaced as a whole: of Avro and Protobuf no part is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from format.verbs.redact.batches import ReplaceRecord
from format.verbs.redact.replacements import Redactor

#: The path of a field, by the names of the objects around it.
Path = tuple[bytes, ...]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(rb"(-?)([0-9]+)((?:\.[0-9]+)?)((?:[eE][+-]?[0-9]+)?)")
_FRAME_BYTES = 5  # a 0 and the schema id
#: An integer of so many digits may be one that 64 bits do not hold.
_LONG_DIGITS = 19


def field_paths(names: Iterable[str]) -> frozenset[Path]:
    """The paths of fields such as ``customer.country``."""
    return frozenset(tuple(json_name.encode() for json_name in name.split(".")) for name in names)


def field_redaction(keep: frozenset[Path], redactor: Redactor) -> ReplaceRecord:
    """The function that replaces keys and values, except the fields to keep of those that are JSON."""

    def replaced(content: bytes | None) -> bytes | None:
        if content is None:
            return None
        start = _FRAME_BYTES if content[:1] == b"\0" else 0
        if content[start : start + 1] in (b"{", b"[") and _is_json(content[start:]):
            return content[:start] + _replaced_fields(content[start:], keep, redactor)
        return redactor.replaced(content)

    return lambda key, value: (replaced(key), replaced(value))


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _replaced_fields(content: bytes, keep: frozenset[Path], redactor: Redactor) -> bytes:
    """Valid JSON with the names and values of all fields replaced that are not kept."""
    above = {path[:length] for path in keep for length in range(1, len(path))}
    new = bytearray(content)
    path: Path = ()
    is_kept, kept_depth = False, 0
    opened: list[tuple[bytes, Path]] = []  # the brackets around, and the path of each
    before = b""
    for match in _TOKEN.finditer(content):
        token, start = match[0], match.start()
        is_name = token[:1] == b'"' and opened[-1][0] == b"{" and before in (b"{", b",")
        if is_name and not is_kept:
            path = (*opened[-1][1], _name(token))
            is_kept, kept_depth = path in keep, len(opened)
            if not is_kept and path not in above:
                new[start : match.end()] = _replaced_scalar(token, redactor)
        elif token in (b"{", b"["):
            opened.append((token, path))
        elif token in (b"}", b"]"):
            path = opened.pop()[1]
        elif token not in (b":", b",") and not is_kept:
            new[start : match.end()] = _replaced_scalar(token, redactor)
        if is_kept and len(opened) == kept_depth and not is_name and token != b":":
            is_kept = False  # that was the end of its value
        before = token
    return bytes(new)


def _name(token: bytes) -> bytes:
    """A field's name, without the quotes and escapes."""
    name: str = json.loads(token)
    return name.encode("utf-8", "surrogatepass")


def _replaced_scalar(token: bytes, redactor: Redactor) -> bytes:
    """Another JSON value of the same length: text for text, and for true and false; a number for a number."""
    if token.startswith(b'"'):
        return b'"' + redactor.replaced_text(token[1:-1]) + b'"'
    if token in (b"true", b"false"):
        return b'"' + redactor.replaced_text(token[1:-1]) + b'"'
    number = _NUMBER.fullmatch(token)
    if number is None:
        return token  # null
    sign, digits, fraction, exponent = number.groups()
    found = [byte % 10 for byte in redactor.replaced(digits + fraction)]
    whole = found[: len(digits)]
    if len(whole) > 1:
        whole[0] = 1 if len(whole) >= _LONG_DIGITS else max(whole[0], 1)
    tail = fraction[:1] + _digits(found[len(digits) + 1 :])
    return sign + _digits(whole) + tail + re.sub(rb"[0-9]", b"0", exponent)


def _digits(numbers: Iterable[int]) -> bytes:
    return bytes(0x30 + each for each in numbers)
