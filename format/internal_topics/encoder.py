"""Encodes records of the metadata log by the schemas: the inverse of ``decoder``, for data as it gives them."""

from __future__ import annotations

import base64
import struct
from typing import Any

from format.internal_topics.decoder import FRAME_VERSION
from format.internal_topics.reader import TAGGED_FIELDS
from format.internal_topics.schema import FIXED_WIDTH_TYPES, STRUCT_CODES, Message, MessageField, schema_of
from format.layout import CLUSTER_METADATA_TOPIC


def encode_metadata_record(record_type: str, version: int, data: dict[str, Any]) -> bytes:
    """The value of a metadata record, with its frame."""
    kind = next(each for each in schema_of(CLUSTER_METADATA_TOPIC).types.values() if each.name == record_type)
    frame = b"".join(map(unsigned_varint, (FRAME_VERSION, kind.id, version)))
    return frame + encode_message(kind.value, version, data)


def encode_control_record(record_type: str, data: dict[str, Any]) -> tuple[bytes, bytes]:
    """The key and the value of a control record of the raft layer, in version 0."""
    kind = next(each for each in schema_of("control_records").types.values() if each.name == record_type)
    return struct.pack(">hh", 0, kind.id), encode_message(kind.value, 0, {"version": 0, **data})


def encode_message(message: Message, version: int, data: dict[str, Any]) -> bytes:
    """The bytes of a message in a version; a tagged field that the data lack has its default."""
    return _struct(message.fields, version, version in message.flexible, data)


def _struct(fields: tuple[MessageField, ...], version: int, flexible: bool, data: dict[str, Any]) -> bytes:
    present = [each for each in fields if version in each.versions]
    out = b"".join(_value(each, each.type, version, flexible, data[each.name]) for each in present if each.tag is None)
    if not flexible:
        return out
    tagged = {int(tag): base64.b64decode(raw) for tag, raw in data.get(TAGGED_FIELDS, {}).items()}
    for each in present:
        if each.tag is not None and data.get(each.name, each.default) != each.default:
            tagged[each.tag] = _value(each, each.type, version, flexible, data[each.name])
    parts = [unsigned_varint(tag) + unsigned_varint(len(tagged[tag])) + tagged[tag] for tag in sorted(tagged)]
    return out + unsigned_varint(len(parts)) + b"".join(parts)


def _value(field: MessageField, type: str, version: int, flexible: bool, value: Any) -> bytes:
    if type == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    if type in FIXED_WIDTH_TYPES:
        return struct.pack(f">{STRUCT_CODES[type]}", float(value) if type == "float64" else value)
    if type == "struct":
        if version in field.nullable:
            raise ValueError(f"{field.name}: no record that is written here has a struct that may be null")
        return _struct(field.fields, version, flexible, value)
    width = ">h" if type == "string" else ">i"
    if value is None:
        return unsigned_varint(0) if flexible else struct.pack(width, -1)
    if type.startswith("[]"):
        body, count = b"".join(_value(field, type[2:], version, flexible, each) for each in value), len(value)
    else:
        body = value.encode() if type == "string" else base64.b64decode(value)
        count = len(body)
    return (unsigned_varint(count + 1) if flexible else struct.pack(width, count)) + body


def unsigned_varint(value: int) -> bytes:
    """A number as an unsigned varint (clients ByteUtils.writeUnsignedVarint)."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
