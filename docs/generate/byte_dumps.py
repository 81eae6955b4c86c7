"""Annotated dumps of files that real brokers wrote: each run of bytes with the field that owns it and its value.

Fixed fields come from ``format.layout``. The varints of a v2 record are taken apart here, apart from the decoder,
since a decoder need not know where each one lies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.generate.tables import layout_named
from format import layout
from format.layout import Layout
from tests.corpora import DATA_DIR

_BYTES_SHOWN = 14
_ATTRIBUTE_BITS = (
    (layout.TIMESTAMP_TYPE_BIT, "LogAppendTime"),
    (layout.TRANSACTIONAL_BIT, "transactional"),
    (layout.CONTROL_BIT, "control"),
    (layout.DELETE_HORIZON_BIT, "delete horizon"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """A run of bytes of a file and what it is."""

    position: int
    content: bytes
    field: str
    value: str


# -- the parts that pages ask for --------------------------------------------------------------------------------


def batch_dump(name: str, position: str = "0", records: str = "1") -> str:
    """A v2 batch of a file below ``tests/_data``: its header and its first records."""
    content = (DATA_DIR / name).read_bytes()
    return _shown(name, list(batch_spans(content, int(position), int(records))))


def message_dump(name: str, position: str = "0") -> str:
    """A v0 or v1 message of a file below ``tests/_data``."""
    content = (DATA_DIR / name).read_bytes()
    return _shown(name, list(message_spans(content, int(position))))


def entries_dump(name: str, count: str, *layouts: str) -> str:
    """Structures of fixed size one after the other: the first of each layout but the last, then ``count`` of that."""
    content = (DATA_DIR / name).read_bytes()
    *heads, entry = (layout_named(each) for each in layouts)
    spans: list[Span] = []
    position = 0
    for each in [*heads, *[entry] * int(count)]:
        spans += fixed_spans(each, content, position)
        position += each.size_bytes
    return _shown(name, spans, rest=len(content) - position)


def text_file(name: str) -> str:
    """A text file below ``tests/_data``, as it is."""
    content = (DATA_DIR / name).read_text(encoding="utf-8")
    return f"`{name}`:\n\n```text\n{content.rstrip()}\n```"


# -- spans -------------------------------------------------------------------------------------------------------


def fixed_spans(structure: Layout, content: bytes, position: int) -> Iterator[Span]:
    """The fields of a layout."""
    values = structure.struct.unpack_from(content, position)
    for each, value in zip(structure.fields, values, strict=True):
        at = position + structure.offset_of(each.name)
        shown = f"0x{value:08x}" if each.name == "crc" else str(value)
        if each.name == "attributes":
            shown = _attributes(value)
        yield Span(at, content[at : at + each.size_bytes], each.name, shown)


def batch_spans(content: bytes, position: int, records: int) -> Iterator[Span]:
    """A v2 batch: its header, then its first records, or its compressed bytes as one span."""
    header = dict(
        zip(layout.RECORD_BATCH.names, layout.RECORD_BATCH.struct.unpack_from(content, position), strict=True)
    )
    if header["magic"] != 2:
        raise ValueError(f"no batch of magic 2 at {position}")
    yield from fixed_spans(layout.RECORD_BATCH, content, position)
    at = position + layout.RECORD_BATCH.size_bytes
    end = position + layout.LOG_ENTRY.size_bytes + header["length"]
    if header["attributes"] & layout.CODEC_MASK:
        yield Span(at, content[at:end], "records", f"{end - at} bytes, compressed")
        return
    for _ in range(min(records, header["record_count"])):
        spans = list(record_spans(content, at, is_control=bool(header["attributes"] & layout.CONTROL_BIT)))
        yield from spans
        at = spans[-1].position + len(spans[-1].content)
    if at < end:
        yield Span(at, content[at:end], "", f"{header['record_count'] - records} more records, {end - at} bytes")


def record_spans(content: bytes, position: int, is_control: bool = False) -> Iterator[Span]:
    """A v2 record that is not compressed, from its length to its last header."""
    at = position

    def varint(field: str) -> Span:
        value, size_bytes = zigzag_varint(content, at)
        return Span(at, content[at : at + size_bytes], field, str(value))

    def run(field: str, size_bytes: int) -> Iterator[Span]:
        if size_bytes > 0:
            yield Span(at, content[at : at + size_bytes], field, _text(content[at : at + size_bytes]))

    for field in ("length", "attributes", "timestampDelta", "offsetDelta", "keyLength", "valueLength", "headerCount"):
        span = varint(field) if field != "attributes" else Span(at, content[at : at + 1], field, str(content[at]))
        yield span
        at += len(span.content)
        number = int(span.value)
        if field == "keyLength" and number >= 0:
            if is_control:
                yield from fixed_spans(layout.CONTROL_KEY, content, at)
            else:
                yield from run("key", number)
            at += number
        elif field == "valueLength" and number >= 0:
            is_end_marker = is_control and number == layout.END_TRANSACTION_MARKER.size_bytes
            if is_end_marker:
                yield from fixed_spans(layout.END_TRANSACTION_MARKER, content, at)
            else:
                yield from run("value", number)
            at += number
        elif field == "headerCount":
            for _ in range(number):
                for part in ("headerKey", "headerValue"):
                    span = varint(f"{part}Length")
                    yield span
                    at += len(span.content)
                    yield from run(part, int(span.value))
                    at += max(int(span.value), 0)


def message_spans(content: bytes, position: int) -> Iterator[Span]:
    """A message of magic 0 or 1."""
    magic = content[position + layout.MESSAGE_V0.offset_of("magic")]
    if magic not in (0, 1):
        raise ValueError(f"no message of magic 0 or 1 at {position}")
    structure = (layout.MESSAGE_V0, layout.MESSAGE_V1)[magic]
    yield from fixed_spans(structure, content, position)
    at = position + structure.size_bytes
    for field in ("key", "value"):
        (length,) = struct.unpack_from(">i", content, at)
        yield Span(at, content[at : at + 4], f"{field} length", str(length))
        at += 4
        if length > 0:
            yield Span(at, content[at : at + length], field, _text(content[at : at + length]))
            at += length


def zigzag_varint(content: bytes, position: int) -> tuple[int, int]:
    """A varint of Kafka's: its value, and the bytes that it takes."""
    number = shift = 0
    at = position
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at - position


# -- on the page -------------------------------------------------------------------------------------------------


def _attributes(value: int) -> str:
    words = [layout.CODEC_NAMES[value & layout.CODEC_MASK], *(name for bit, name in _ATTRIBUTE_BITS if value & bit)]
    return f"{value} ({', '.join(words)})"


def _text(content: bytes) -> str:
    shown = content[: _BYTES_SHOWN * 2]
    if not all(0x20 <= byte < 0x7F for byte in shown):
        return f"{len(content)} bytes"
    return f'"{shown.decode("ascii")}"' + (" …" if len(content) > len(shown) else "")


def _shown(name: str, spans: list[Span], rest: int = 0) -> str:
    hexes = [
        each.content[:_BYTES_SHOWN].hex(" ") + (" …" if len(each.content) > _BYTES_SHOWN else "") for each in spans
    ]
    widths = (
        max(len("position"), *(len(str(each.position)) for each in spans)),
        max(map(len, hexes)),
        max(len(each.field) for each in spans),
    )
    lines = [f"{'position':>{widths[0]}}  {'bytes':<{widths[1]}}  {'field':<{widths[2]}}  value"]
    for each, octets in zip(spans, hexes, strict=True):
        lines.append(f"{each.position:>{widths[0]}}  {octets:<{widths[1]}}  {each.field:<{widths[2]}}  {each.value}")
    if rest > 0:
        lines.append(f"… and {rest} more bytes")
    folder = Path(name).parent.name
    return f"`{folder}/{Path(name).name}`, written by {written_by(name)}:\n\n```text\n" + "\n".join(lines) + "\n```"


def written_by(name: str) -> str:
    """The broker that wrote a file below ``tests/_data``, from the folder's name."""
    return {
        "kafka-4.3": "a Kafka 4.3.1 broker",
        "kafka-4.3-single": "a Kafka 4.3.1 broker",
        "kafka-0.8-to-2.8": "brokers from 0.8.2.2 to 2.8.2",
    }[Path(name).parts[0]]
