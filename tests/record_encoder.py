"""One v2 record encoded field by field, for records that no producer would write. Source: clients DefaultRecord."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NewRecord:
    """One v2 record to write; deltas are relative to the base offset and base timestamp (ms) of the batch."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    attributes: int = 0


def encode_varint(value: int) -> bytes:
    """Encode a number of 32 or 64 bits as a zigzag varint (clients ByteUtils.writeVarlong)."""
    return encode_unsigned_varint((value << 1) ^ (value >> 63))


def encode_unsigned_varint(value: int) -> bytes:
    """Encode a number as an unsigned varint (clients ByteUtils.writeUnsignedVarint)."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_record(record: NewRecord) -> bytes:
    """Encode one v2 record, with its length."""
    parts = [
        record.attributes.to_bytes(1, "big"),
        encode_varint(record.timestamp_delta),
        encode_varint(record.offset_delta),
        _sized(record.key),
        _sized(record.value),
        encode_varint(len(record.headers)),
    ]
    for key, value in record.headers:
        parts += (_sized(key), _sized(value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _sized(field: bytes | None) -> bytes:
    return encode_varint(-1) if field is None else encode_varint(len(field)) + field
