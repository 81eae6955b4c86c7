"""Writes messages by the schemas, and makes random ones: the decoder's opposite, for tests only.

It is written against Kafka's description of the format, not against the reader: lengths, tags and nulls are spelled
out again here, so that a mistake in one of the two shows.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

from hypothesis import strategies as st

from format.internal_topics.schema import Message, MessageField
from format.kafka_uuid import ZERO_UUID
from tests.record_encoder import encode_unsigned_varint

_PACKED = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q"}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(message: Message, version: int, data: dict[str, Any]) -> bytes:
    """The bytes of a message; a tagged field is written when it is in the data, whatever its value."""
    return _struct(message.fields, version, version in message.flexible, data)


def _struct(fields: tuple[MessageField, ...], version: int, flexible: bool, data: dict[str, Any]) -> bytes:
    present = [each for each in fields if version in each.versions]
    out = b"".join(_value(each, each.type, version, flexible, data[each.name]) for each in present if each.tag is None)
    if not flexible:
        return out
    tagged = {int(tag): base64.b64decode(raw) for tag, raw in data.get("_taggedFields", {}).items()}
    for each in present:
        if each.tag is not None and each.name in data:
            tagged[each.tag] = _value(each, each.type, version, flexible, data[each.name])
    return (
        out
        + encode_unsigned_varint(len(tagged))
        + b"".join(
            encode_unsigned_varint(t) + encode_unsigned_varint(len(tagged[t])) + tagged[t] for t in sorted(tagged)
        )
    )


def _value(field: MessageField, type: str, version: int, flexible: bool, value: Any) -> bytes:
    if type == "bool":
        return bytes([value])
    if type == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    if type == "float64":
        return struct.pack(">d", _SPECIAL.get(value, value))
    if type in _PACKED:
        return struct.pack(_PACKED[type], value)
    if type == "struct":
        null, there = (b"", b"")
        if version in field.nullable and not field.type.startswith("[]"):
            null, there = (b"\x00", b"\x01") if field.tag is not None else (b"\xff", b"\x01")
        return null if value is None else there + _struct(field.fields, version, flexible, value)
    width = ">h" if type == "string" else ">i"
    if value is None:
        return b"\x00" if flexible else struct.pack(width, -1)
    if type.startswith("[]"):
        body = b"".join(_value(field, type[2:], version, flexible, each) for each in value)
        count = len(value)
    else:
        body = value.encode() if type == "string" else base64.b64decode(value)
        count = len(body)
    return (encode_unsigned_varint(count + 1) if flexible else struct.pack(width, count)) + body


# -- random messages -----------------------------------------------------------------------------------------

_NUMBERS = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
}
_FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(sorted(_SPECIAL))
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_BYTES = st.binary(max_size=8).map(lambda raw: base64.b64encode(raw).decode())
_UUIDS = st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw)[:22].decode())


def messages(message: Message, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Any content of a message of that version, as the reader gives it back: defaults of tagged fields left out."""
    return _structs(message.fields, version)


def _structs(fields: tuple[MessageField, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    present = [each for each in fields if version in each.versions]
    return st.fixed_dictionaries(
        {each.name: _values(each, version) for each in present if each.tag is None},
        optional={each.name: _values(each, version) for each in present if each.tag is not None},
    ).map(lambda found: _in_order(found, present))


def _in_order(found: dict[str, Any], present: list[MessageField]) -> dict[str, Any]:
    default = {each.name: each.default for each in present if each.tag is not None}
    names = [each.name for each in present if each.name in found]
    return {name: found[name] for name in names if name not in default or found[name] != default[name]}


def _values(field: MessageField, version: int) -> st.SearchStrategy[Any]:
    type = field.element_type or field.type
    if type == "struct":
        one: st.SearchStrategy[Any] = _structs(field.fields, version)
    else:
        plain = {"bool": st.booleans(), "float64": _FLOATS, "string": _TEXTS, "bytes": _BYTES, "uuid": _UUIDS}
        one = _NUMBERS[type] if type in _NUMBERS else plain[type]
    if field.element_type is not None:
        one = st.lists(one, max_size=3)
    return st.none() | one if version in field.nullable else one


#: Tagged fields that no release has, by tag.
UNKNOWN_TAGS = {"90": base64.b64encode(b"later").decode(), "91": ""}
_ZEROS = {"string": "", "bytes": "", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}


def zero_message(message: Message, version: int, *, tags: dict[str, str] | None = None) -> dict[str, Any]:
    """The content of a message in a version; ``tags`` are unknown tagged fields of the message itself."""
    found = _zero_struct(message.fields, version)
    return found if tags is None else {**found, "_taggedFields": tags}


def _zero_struct(fields: tuple[MessageField, ...], version: int) -> dict[str, Any]:
    return {each.name: _zero(each, version) for each in fields if each.tag is None and version in each.versions}


def _zero(field: MessageField, version: int) -> Any:
    if version in field.nullable:
        return None
    if field.element_type is not None:
        return []
    return _zero_struct(field.fields, version) if field.type == "struct" else _ZEROS.get(field.type, 0)
