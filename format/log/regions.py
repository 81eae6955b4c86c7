"""Regions: the field to which each byte of a batch belongs, with its value as text.

Each byte of a batch or message belongs to exactly one region, in order and without gaps. The fixed fields come from
``format.layout``. The varints of a v2 record are decoded here, since the decoder of records does not return their
positions. Source: clients record/internal DefaultRecordBatch, DefaultRecord, LegacyRecord.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from format import layout
from format.errors import CorruptDataError
from format.layout import Layout
from format.wording import counted_plainly

_TEXT_BYTES_SHOWN = 28
_MAX_VARINT_BYTES = 10
_ATTRIBUTE_BITS = (
    (layout.TIMESTAMP_TYPE_BIT, "LogAppendTime"),
    (layout.TRANSACTIONAL_BIT, "transactional"),
    (layout.CONTROL_BIT, "control"),
    (layout.DELETE_HORIZON_BIT, "delete horizon"),
)
#: The fields of a v2 record, in order, with Kafka's names; keys, values and headers are between them.
_RECORD_FIELDS = ("length", "attributes", "timestampDelta", "offsetDelta", "keyLength", "valueLength", "headerCount")
#: What the key and the value of a control record are, by the field with their length.
_OF_CONTROL = {"keyLength": layout.CONTROL_KEY, "valueLength": layout.END_TRANSACTION_MARKER}


class Region(msgspec.Struct, frozen=True):
    """The bytes of one field: ``length`` bytes from ``position`` on, and the value as text."""

    position: int
    length: int
    field: str
    value: str

    @property
    def end_position(self) -> int:
        return self.position + self.length


def regions_of_batch(content: bytes, position: int, most_records: int | None = None) -> Iterator[Region]:
    """The regions of the v2 batch, or v0 or v1 message, at ``position``, with at most ``most_records`` records.

    Further records, compressed records, and bytes that cannot be decoded are one region each. Raises CorruptDataError
    if no batch starts there, or if it ends past the end of ``content``.
    """
    if len(content) - position < layout.MESSAGE_V0.size_bytes:
        raise CorruptDataError(f"{counted_plainly(len(content) - position, 'byte')}: too short for a batch header")
    _, length = layout.LOG_ENTRY.struct.unpack_from(content, position)
    end = position + layout.LOG_ENTRY.size_bytes + length
    magic = content[position + layout.MESSAGE_V0.offset_of("magic")]
    structure = {0: layout.MESSAGE_V0, 1: layout.MESSAGE_V1, 2: layout.RECORD_BATCH}.get(magic)
    if structure is None or not position + structure.size_bytes <= end <= len(content):
        raise CorruptDataError(f"no batch starts at position {position}: magic {magic}, length {length}")
    if magic == 2:
        yield from _v2_regions(content, position, end, most_records)
    else:
        yield from _message_regions(content, position, end, structure)


def fixed_regions(structure: Layout, content: bytes, position: int) -> Iterator[Region]:
    """The regions of a structure of fixed size."""
    values = structure.struct.unpack_from(content, position)
    for each, value in zip(structure.fields, values, strict=True):
        shown = f"0x{value:08x}" if each.name == "crc" else str(value)
        if each.name == "attributes":
            codec = layout.CODEC_BITS_NAMES[value & layout.CODEC_MASK]
            shown = f"{value} ({', '.join([codec, *(name for bit, name in _ATTRIBUTE_BITS if value & bit)])})"
        yield Region(position + structure.offset_of(each.name), each.size_bytes, each.name, shown)


def record_regions(content: bytes, position: int, end: int, *, is_control: bool = False) -> Iterator[Region]:
    """The regions of the uncompressed v2 record at ``position``, from its length to its last header.

    Raises CorruptDataError at a field that ends past ``end``, after the regions before it.
    """
    at = position
    for field in _RECORD_FIELDS:
        if field == "attributes":
            span = Region(at, 1, field, str(_slice(content, at, 1, end)[0]))
        else:
            span = _varint(content, at, end, field)
        yield span
        at = span.end_position
        number = int(span.value)
        if field in _OF_CONTROL and number >= 0:
            own = _slice(content, at, number, end)
            if is_control and number == _OF_CONTROL[field].size_bytes:
                yield from fixed_regions(_OF_CONTROL[field], content, at)
            elif number:
                yield Region(at, number, field.removesuffix("Length"), _text(own))
            at += number
        elif field == "headerCount":
            for _ in range(number):
                for part in ("headerKey", "headerValue"):
                    span = _varint(content, at, end, f"{part}Length")
                    yield span
                    at, size_bytes = span.end_position, max(int(span.value), 0)
                    if size_bytes:
                        yield Region(at, size_bytes, part, _text(_slice(content, at, size_bytes, end)))
                    at += size_bytes


def zigzag_varint(content: bytes, position: int, end: int) -> tuple[int, int]:
    """Decode a zigzag varint: its value and its number of bytes; raises CorruptDataError if it has no end."""
    number = shift = 0
    for at in range(position, min(position + _MAX_VARINT_BYTES, end)):
        byte = content[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + 1 - position
    raise CorruptDataError(f"the varint at position {position} has no end")


def _v2_regions(content: bytes, position: int, end: int, most_records: int | None) -> Iterator[Region]:
    yield from fixed_regions(layout.RECORD_BATCH, content, position)
    header = dict(
        zip(layout.RECORD_BATCH.names, layout.RECORD_BATCH.struct.unpack_from(content, position), strict=True)
    )
    at = position + layout.RECORD_BATCH.size_bytes
    if header["attributes"] & layout.CODEC_MASK:
        if at < end:
            yield Region(at, end - at, "records", f"{counted_plainly(end - at, 'byte')}, compressed")
        return
    is_control = bool(header["attributes"] & layout.CONTROL_BIT)
    count = 0
    while at < end and count < header["record_count"] and (most_records is None or count < most_records):
        try:
            for region in record_regions(content, at, end, is_control=is_control):
                yield region
                at = region.end_position
        except CorruptDataError as error:
            if at < end:
                yield Region(at, end - at, "", f"{counted_plainly(end - at, 'byte')} that cannot be decoded: {error}")
            return
        count += 1
    if at < end:
        more = counted_plainly(header["record_count"] - count, "more record")
        yield Region(at, end - at, "", f"{more}, {counted_plainly(end - at, 'byte')}")


def _message_regions(content: bytes, position: int, end: int, structure: Layout) -> Iterator[Region]:
    yield from fixed_regions(structure, content, position)
    at = position + structure.size_bytes
    for field in ("key", "value"):
        if end - at < 4:
            break
        (length,) = struct.unpack_from(">i", content, at)
        yield Region(at, 4, f"{field} length", str(length))
        at += 4
        if length > end - at:
            break
        if length > 0:
            yield Region(at, length, field, _text(content[at : at + length]))
            at += length
    if at < end:
        yield Region(at, end - at, "", f"{counted_plainly(end - at, 'byte')} that belong to no field")


def _varint(content: bytes, position: int, end: int, field: str) -> Region:
    value, size_bytes = zigzag_varint(content, position, end)
    return Region(position, size_bytes, field, str(value))


def _slice(content: bytes, position: int, length: int, end: int) -> bytes:
    if position + length > end:
        size = counted_plainly(length, "byte")
        raise CorruptDataError(f"a field of {size} at position {position} ends past the end of the batch")
    return content[position : position + length]


def _text(content: bytes) -> str:
    shown = content[:_TEXT_BYTES_SHOWN]
    if not all(0x20 <= byte < 0x7F for byte in shown):
        return counted_plainly(len(content), "byte")
    return f'"{shown.decode("ascii")}"' + (" …" if len(content) > len(shown) else "")
