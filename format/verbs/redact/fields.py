"""Replaces the fields of keys and values but those to keep, byte by byte in place, so that lengths and structure stay.

JSON is replaced by its own text, also after a schema id. Of Avro and Protobuf the schema must be at hand. What is
neither, or cannot be decoded, is replaced as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import msgspec

from format.decoding.decoder import Decoding, Headers, ValueReading
from format.decoding.leaves import MAX_U64, Leaf, Path, varint_at
from format.decoding.plain import Undecodable
from format.files.side_file import INT64_RANGE
from format.internal_topics.encoder import unsigned_varint
from format.verbs.redact.replacements import Redactor

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(rb"(-?)([0-9]+)((?:\.[0-9]+)?)((?:[eE][+-]?[0-9]+)?)")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = re.compile(rb"[0-9A-Fa-f]")
_SIGN, _FRACTION = 0x80, 0x3F
_FRAME_BYTES = 5  # a 0 and the schema id
#: An integer of so many digits may be one that 64 bits do not hold.
_LONG_DIGITS = 19
#: What JSON may be decoded as.
_JSON_KINDS = ("auto", "json", "json-schema")


class KeptFields:
    """The fields to keep, by their paths. ``found`` are those that a key or value had; callers may empty it."""

    def __init__(self, paths: frozenset[Path]) -> None:
        self.paths = paths
        self.found: set[Path] = set()
        #: What is above a field to keep: its name stays.
        self.above = frozenset(path[:length] for path in paths for length in range(1, len(path)))

    def has(self, leaf: Leaf) -> bool:
        """Whether a part stays as it is."""
        path = leaf.path
        for length in range(1, len(path) + 1):
            if path[:length] in self.paths:
                self.found.add(path[:length])
                return True
        return leaf.is_name and path in self.above


class Replaced(msgspec.Struct, frozen=True):
    """A replaced key or value: as a whole, or but for the fields to keep.

    ``headers`` are the names of the headers that a reader needs for it. ``schema_id`` and ``reason`` say why one that a
    schema should have decoded was replaced as a whole.
    """

    content: bytes
    is_whole: bool = False
    headers: tuple[str, ...] = ()
    schema_id: int | str | None = None
    reason: str | None = None


def field_paths(names: Iterable[str]) -> frozenset[Path]:
    """The paths of fields such as ``customer.country``."""
    return frozenset(tuple(json_name.encode() for json_name in name.split(".")) for name in names)


class FieldRedaction:
    """Replaces the keys and values of a topic, except the fields to keep."""

    def __init__(self, keep: frozenset[Path], redactor: Redactor, decoding: Decoding, topic: str) -> None:
        self._kept = KeptFields(keep)
        self._redactor = redactor
        self._decoder = decoding.topic(topic)
        self._has_json = {"key": decoding.key_as in _JSON_KINDS, "value": decoding.value_as in _JSON_KINDS}

    def taken_found(self) -> list[str]:
        """The names of the fields to keep that keys and values had since the last call."""
        found = sorted(b".".join(path).decode() for path in self._kept.found)
        self._kept.found.clear()
        return found

    def replaced(self, field: str, content: bytes, headers: Headers) -> Replaced:
        """The replacement of a key or a value (``field``), of the same length."""
        found = self._decoder[field].decoded(content, headers)
        reading, reason = found.reading, found.reason
        needed = () if reading is None else reading.headers
        if reading is not None and found.format != "json-schema":
            try:
                return Replaced(self._by_schema(reading, content), headers=needed)
            except Undecodable as error:
                reason = str(error)
        elif self._has_json[field]:
            start = _FRAME_BYTES if content[:1] == b"\0" else 0
            start = start if reading is None else reading.start
            if content[start : start + 1] in (b"{", b"[") and _is_json(content[start:]):
                new = _replaced_fields(content[start:], self._kept, self._redactor)
                return Replaced(content[:start] + new, headers=needed)
        return Replaced(self._redactor.replaced(content), True, (), found.schema_id, reason)

    def _by_schema(self, reading: ValueReading, content: bytes) -> bytes:
        """The key or value by its schema. Raises Undecodable."""
        if reading.data[reading.header_bytes :] != content:
            raise Undecodable("it is compressed")
        leaves = reading.schema.leaves_of(reading.data, reading.start, is_framed=reading.is_framed) or []
        if any(leaf.start < reading.header_bytes for leaf in leaves):
            raise Undecodable("a part of it is in a header")
        return replaced_leaves(reading.data, leaves, self._kept, self._redactor)[reading.header_bytes :]


# -- JSON ----------------------------------------------------------------------------------------------------


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _replaced_fields(content: bytes, kept: KeptFields, redactor: Redactor) -> bytes:
    """Valid JSON with the names and values of all fields replaced that are not kept."""
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
            is_kept, kept_depth = path in kept.paths, len(opened)
            if is_kept:
                kept.found.add(path)
            elif path not in kept.above:
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


# -- Avro and Protobuf ---------------------------------------------------------------------------------------


def replaced_leaves(data: bytes, leaves: Sequence[Leaf], kept: KeptFields, redactor: Redactor) -> bytes:
    """The value with all its parts replaced that are not kept. Raises Undecodable for a number in too many bytes."""
    new = bytearray(data)
    for leaf in leaves:
        if leaf.start < leaf.end and not kept.has(leaf):
            new[leaf.start : leaf.end] = _replaced(data[leaf.start : leaf.end], leaf, redactor)
    return bytes(new)


def _replaced(part: bytes, leaf: Leaf, redactor: Redactor) -> bytes:
    if leaf.form == "text":
        return _other_uuid(part, redactor) if _UUID.fullmatch(part) else redactor.replaced_text(part)
    hashed = redactor.replaced(part)
    if leaf.form == "words":
        return bytes(0x61 + byte % 26 for byte in hashed)
    if leaf.form == "float":  # finite, with its sign
        return hashed[:-1] + bytes((hashed[-1] & _FRACTION | part[-1] & _SIGN,))
    if leaf.form == "decimal":
        return _other_decimal(part, int.from_bytes(hashed, "big"))
    if leaf.form in ("varint", "zigzag"):
        return _other_varint(part, leaf, int.from_bytes(hashed, "big"))
    return hashed


def _other_uuid(text: bytes, redactor: Redactor) -> bytes:
    """Another UUID in the same writing."""
    hashed = redactor.replaced(text)
    return _HEX.sub(lambda match: b"%x" % (hashed[match.start()] & 15), text)


def _other_decimal(part: bytes, hashed: int) -> bytes:
    """Another number with as many digits and the same sign, so that it fits the precision, too."""
    value = int.from_bytes(part, "big", signed=True)
    digits = len(str(abs(value)))
    least: int = 10 ** (digits - 1) if digits > 1 else 0
    most: int = min(10**digits, 1 << 8 * len(part) - 1) - 1
    new = least + hashed % (most - least + 1)
    return (-new if value < 0 else new).to_bytes(len(part), "big", signed=True)


def _other_varint(part: bytes, leaf: Leaf, hashed: int) -> bytes:
    """Another number in as many bytes and with the same sign, in the bounds of the part if it is in them itself."""
    size, is_zigzag = len(part), leaf.form == "zigzag"
    raw, _ = varint_at(part, 0, size)
    low, high = (1 << 7 * (size - 1) if size > 1 else 0), min(1 << 7 * size, MAX_U64 + 1) - 1
    if is_zigzag:
        value = raw >> 1 ^ -(raw & 1)
        least, most = ((low + 1) // 2, high // 2) if value >= 0 else (-((high + 1) // 2), -(low // 2) - 1)
    elif raw >> 63 and leaf.least < 0:
        value, least, most = raw - MAX_U64 - 1, INT64_RANGE[0], -1
    else:
        value, least, most = raw, low, high
    if leaf.least <= value <= leaf.most:
        least, most = max(least, leaf.least), min(most, leaf.most)
    choices = [each for each in leaf.choices if least <= each <= most]
    if not choices and least > most:
        raise Undecodable("a number is written in more bytes than it needs")
    new = choices[hashed % len(choices)] if choices else least + hashed % (most - least + 1)
    return unsigned_varint((new << 1) ^ (new >> 63) if is_zigzag else new & MAX_U64)
