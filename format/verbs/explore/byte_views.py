"""The bytes of a place: the field that each belongs to, the decoded values, and the meaning of each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from format import layout
from format.columns import BATCH, RECORD, RowSchema
from format.errors import CorruptDataError, FileChanged, KafkaLogError
from format.findings import Finding
from format.io.source import FileSource
from format.layout import Layout
from format.log.batch_header import checked_crcs, headers_in
from format.log.regions import Region, fixed_regions, record_regions, regions_of_batch
from format.node.file_location import location_of_file
from format.node.log_dir import Kind
from format.rows.internal_record_rows import decode_internal
from format.rows.record_rows import Row, batch_rows, record_block
from format.rows.side_file_rows import side_file_blocks
from format.timestamps import iso_time
from format.verbs.explore.places import ENTRY_LAYOUTS, LOG_KINDS, Place, PlaceKind, records_of
from format.wording import counted_plainly

#: The most bytes of a batch or file that are shown.
MOST_BYTES = 256 * 1024
_MOST_RECORDS = 100
_MOST_ROWS = 200
_BINARY_KINDS = (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT)
#: The meanings of fields without a fixed place, in v2 records and in messages; the others are in format.layout.
_VARIABLE_FIELDS = {
    "length": "varint: the bytes of the record after this field",
    "attributes": "of a record; no version uses it",
    "timestampDelta": "varint, ms: the record's timestamp minus the batch's base timestamp",
    "offsetDelta": "varint: the record's offset minus the batch's base offset",
    "keyLength": "varint: bytes of the key, -1 for null",
    "key": "the record's key, any bytes",
    "valueLength": "varint: bytes of the value, -1 for null, which in a compacted topic deletes the key",
    "value": "the record's value, any bytes",
    "headerCount": "varint: headers that follow",
    "headerKeyLength": "varint: bytes of a header's name",
    "headerKey": "a header's name, UTF-8",
    "headerValueLength": "varint: bytes of a header's value, -1 for null",
    "headerValue": "a header's value, any bytes",
    "key length": "bytes of the key, -1 for null",
    "value length": "bytes of the value, -1 for null",
    "records": "the records, compressed as one block",
    "line": "a line of text",
    "damage": "bytes that belong to no batch",
    "": "bytes that are not decoded here",
}


class ByteView(msgspec.Struct, frozen=True):
    """The bytes of a place from ``position`` of the file on, in regions without gaps, and decoded rows.

    ``position`` is None for bytes that are compressed in the file. ``decoded`` are names and values. ``layouts`` are
    the structures of the regions' fields. ``note`` is about bytes that are left out.
    """

    content: bytes = b""
    position: int | None = None
    regions: tuple[Region, ...] = ()
    decoded: tuple[tuple[str, Any], ...] = ()
    layouts: tuple[Layout, ...] = ()
    note: str = ""

    def words_about(self, region: Region) -> str:
        """The field, its bytes in the file (in a decompressed record: from its start on), and its meaning."""
        first = region.position + (self.position or 0)
        last = first + region.length - 1
        span = f"byte {first}" if first == last else f"bytes {first} to {last}"
        return f"{region.field or 'bytes'}: {span} (0x{first:x}). {self.meaning(region.field)}"

    def meaning(self, field: str) -> str:
        """The meaning of a field, with its name in Kafka's source; empty if it is unknown."""
        for each in self.layouts:
            for known in each.fields:
                if known.name == field:
                    return f"{known.kafka_name}, {known.type}: {known.meaning}. {each.source}"
        return _VARIABLE_FIELDS.get(field, "")


def view_of(place: Place) -> ByteView:
    """The bytes of a place and their meaning. Raises KafkaLogError where they cannot be read."""
    if place.kind is PlaceKind.BATCH:
        return _batch_view(place)
    if place.kind is PlaceKind.RECORD:
        return _record_view(place)
    if place.kind is PlaceKind.ENTRY:
        return _entry_view(place)
    if place.kind is PlaceKind.DAMAGE:
        content = _content(place)
        return ByteView(content, place.position, (Region(0, len(content), "damage", place.label),), note=_cut(place))
    if place.kind is PlaceKind.FILE:
        return _file_view(place)
    return ByteView(decoded=(("path", str(place.path)),))


def _content(place: Place) -> bytes:
    with FileSource(place.path) as source:
        return source.read_at(place.position, min(place.size_bytes, MOST_BYTES))


def _changed(place: Place) -> FileChanged:
    """What is raised where the file was truncated or overwritten since its directory was listed."""
    return FileChanged("the file has changed: this is no longer there", location_of_file(place.path))


def _cut(place: Place) -> str:
    return f"the first {MOST_BYTES:,} of {place.size_bytes:,} bytes" if place.size_bytes > MOST_BYTES else ""


def _batch_view(place: Place) -> ByteView:
    content = _content(place)
    table = headers_in(memoryview(content), place.position).rows(slice(0, 1))
    if not len(table) or len(content) < min(place.size_bytes, MOST_BYTES):
        raise _changed(place)
    magic = content[layout.RECORD_BATCH.offset_of("magic")]
    structure = (layout.MESSAGE_V0, layout.MESSAGE_V1, layout.RECORD_BATCH)[min(magic, 2)]
    layouts = (structure, layout.CONTROL_KEY, layout.END_TRANSACTION_MARKER)
    if place.size_bytes > len(content):
        head = tuple(fixed_regions(structure, content, 0))
        rest = Region(structure.size_bytes, len(content) - structure.size_bytes, "", "the records, cut off")
        regions: tuple[Region, ...] = (*head, rest)
    else:
        regions = tuple(regions_of_batch(content, 0, _MOST_RECORDS))
    is_whole = int(table.size_bytes[0]) <= len(content)
    if is_whole:
        table = table.with_crcs(checked_crcs(table, memoryview(content), place.position))
    row = next(batch_rows(table.unopened(), location_of_file(place.path)))
    decoded = _shown(BATCH, row, left_out="" if is_whole else "crc_valid")
    return ByteView(content, place.position, regions, decoded, layouts, _cut(place))


def _shown(schema: RowSchema, row: Row, left_out: str = "") -> tuple[tuple[str, Any], ...]:
    """The columns of a row with their values; timestamps also as dates."""
    return tuple(
        (column.name, f"{value} ({iso_time(value)})" if column.type == "timestamp" and value is not None else value)
        for column, value in zip(schema.columns, row, strict=True)
        if column.name != left_out
    )


def _record_view(place: Place) -> ByteView:
    records = records_of(place)
    if place.number >= len(records):
        raise _changed(place)
    table = records.rows(slice(place.number, place.number + 1))
    location = location_of_file(place.path)
    start, size_bytes = int(table.start[0]), int(table.size_bytes[0])
    content = bytes(table.buffer[start : start + size_bytes])
    batch = int(table.batch[0])
    batches = table.batches
    position: int | None = place.position
    is_plain = int(batches.magic[batch]) == 2 and int(batches.codec[batch]) == 0
    if int(batches.codec[batch]):
        position = None
    elif is_plain:
        position = place.position + _start_in_batch(place)
    decoded: tuple[tuple[str, Any], ...] = ()
    for item in decode_internal([record_block(table, location)]):
        if not isinstance(item, Finding):
            decoded = _shown(RECORD, next(iter(item.rows)))
    regions = _regions_of_record(content, magic=int(batches.magic[batch]), is_control=bool(batches.is_control[batch]))
    layouts = (layout.CONTROL_KEY, layout.END_TRANSACTION_MARKER)
    if int(batches.magic[batch]) < 2:
        layouts = ((layout.MESSAGE_V0, layout.MESSAGE_V1)[int(batches.magic[batch])],)  # type: ignore[assignment]
    note = "" if position is not None else "the decompressed bytes"
    return ByteView(content, position, tuple(regions), decoded, layouts, note)


def _start_in_batch(place: Place) -> int:
    """The position of a record in its uncompressed batch."""
    records = records_of(place)
    return layout.RECORD_BATCH.size_bytes + int(records.start[place.number]) - int(records.start[0])


def _regions_of_record(content: bytes, *, magic: int, is_control: bool) -> list[Region]:
    found: list[Region] = []
    try:
        made = record_regions(content, 0, len(content), is_control=is_control) if magic == 2 else None
        found.extend(regions_of_batch(content, 0) if made is None else made)
    except CorruptDataError as error:
        found = _with_rest(found, len(content), str(error))
    return _with_rest(found, len(content), "more bytes")


def _with_rest(regions: list[Region], length: int, words: str) -> list[Region]:
    end = regions[-1].end_position if regions else 0
    return regions if end >= length else [*regions, Region(end, length - end, "", words)]


def _entry_view(place: Place) -> ByteView:
    content = _content(place)
    if len(content) < place.size_bytes:
        raise _changed(place)
    structure = ENTRY_LAYOUTS[place.file_kind or Kind.OFFSET_INDEX]
    regions = tuple(fixed_regions(structure, content, 0))
    decoded = tuple((region.field, region.value) for region in regions)
    return ByteView(content, place.position, regions, (("entry", place.number), *decoded), (structure,))


def _file_view(place: Place) -> ByteView:
    content = _content(place)
    kind = place.file_kind
    if kind in LOG_KINDS:
        table = headers_in(memoryview(content[: layout.RECORD_BATCH.size_bytes]), 0)
        if len(table):
            first = Place(PlaceKind.BATCH, place.path, "", 0, min(int(table.size_bytes[0]), place.size_bytes))
            try:
                view = _batch_view(first)
            except KafkaLogError:
                view = None
            if view is not None:
                note = "the first batch of the file"
                return ByteView(view.content, 0, view.regions, (("size_bytes", place.size_bytes),), view.layouts, note)
    regions = tuple(_file_regions(content, kind))
    layouts = tuple(ENTRY_LAYOUTS.values()) if kind in ENTRY_LAYOUTS else ()
    if kind is Kind.PRODUCER_SNAPSHOT:
        layouts = (layout.PRODUCER_SNAPSHOT_HEADER, layout.PRODUCER_SNAPSHOT_ENTRY)
    elif kind in ENTRY_LAYOUTS:
        layouts = (ENTRY_LAYOUTS[kind],)
    return ByteView(content, 0, regions, tuple(_rows_of(place)), layouts, _cut(place))


def _rows_of(place: Place) -> Iterator[tuple[str, Any]]:
    """The decoded rows of a side file, and findings about it."""
    yield "size_bytes", place.size_bytes
    kind = place.file_kind
    if kind is None or kind in LOG_KINDS:
        return
    count = 0
    try:
        for block in side_file_blocks(place.path, kind):
            if isinstance(block, Finding):
                yield block.code, block.message
                continue
            for row in block.rows:
                count += 1
                if count > _MOST_ROWS:
                    return
                named = zip(block.schema.names, row, strict=True)
                words = "  ".join(f"{name} {value}" for name, value in named if name not in ("path", "type"))
                yield str(count), words
    except KafkaLogError as error:
        yield error.code, error.message


def _file_regions(content: bytes, kind: Kind | None) -> Iterable[Region]:
    if kind in _BINARY_KINDS and kind is not None:
        at = 0
        if kind is Kind.PRODUCER_SNAPSHOT:
            head = layout.PRODUCER_SNAPSHOT_HEADER
            if len(content) >= head.size_bytes:
                yield from fixed_regions(head, content, 0)
                at = head.size_bytes
        structure = ENTRY_LAYOUTS.get(kind, layout.PRODUCER_SNAPSHOT_ENTRY)
        while at + structure.size_bytes <= len(content) and at < _MOST_ROWS * structure.size_bytes:
            yield from fixed_regions(structure, content, at)
            at += structure.size_bytes
        if at < len(content):
            yield Region(at, len(content) - at, "", counted_plainly(len(content) - at, "byte"))
        return
    at = 0
    while at < len(content):
        end = content.find(b"\n", at) + 1 or len(content)
        end = min(end, at + 1024)
        yield Region(at, end - at, "line", content[at:end].decode("utf-8", "surrogateescape"))
        at = end
