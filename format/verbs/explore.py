"""explore: the tree of places, the bytes of each with their meaning, and the jumps from one to another."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.columns import BATCH, DECODED_COLUMNS, RECORD, RowSchema
from format.decoding.decoder import Decoding
from format.errors import CorruptDataError, FileChanged, KafkaLogError
from format.files import offset_index
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.layout import Layout
from format.limits import DEFAULT_LIMITS, MIB
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.batch_header import checked_crcs, header_tables, headers_in
from format.log.batch_table import BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.regions import Region, fixed_regions, record_regions, regions_of_batch
from format.log.walker import batch_chunks, header_chunks
from format.node.log_dir import Kind, kind_of_file, read_log_dir
from format.node.partition import key_of_directory, location_of_file, read_partition, segment_file_name
from format.node.target import Target
from format.rows.decoded_rows import UndecodableField, decoded_table, topic_decoder
from format.rows.internal_record_rows import decode_internal
from format.rows.record_rows import Row, batch_rows, record_block
from format.rows.side_file_rows import side_file_blocks
from format.scan.progress import Advance
from format.scan.selection import Selection
from format.timestamps import iso_time
from format.verbs.find.find import find_offset, find_timestamp
from format.verbs.find.lookup import LookupResult
from format.verbs.grep.grep import Criteria, FoundRecords, grep
from format.verbs.grep.pattern import Pattern
from format.verbs.groups.replicas import log_end_of
from format.verbs.ls.ls import ListUnit, sizes_of
from format.verbs.ls.partition_listing import PartitionListing, PartitionTerms
from format.verbs.verify.verify import VerifyTerms, verify
from format.wording import counted, counted_plainly

#: The most bytes of a log whose headers are read before it is opened.
_MOST_LISTED_BYTES = 64 * MIB
#: The number of children of a place that are read at once.
PAGE = 200
_ZEROS_BYTES = 4096
_DAMAGE_WINDOW_BYTES = 4 * MIB
#: The most bytes after a page of index entries that are read to see whether they are all zeros.
_MOST_PADDING_BYTES = 64 * MIB
LOG_KINDS = (Kind.LOG, Kind.KRAFT_SNAPSHOT)
#: The structures of index entries.
ENTRY_LAYOUTS: dict[Kind, Layout] = {
    Kind.OFFSET_INDEX: layout.OFFSET_INDEX_ENTRY,
    Kind.TIME_INDEX: layout.TIME_INDEX_ENTRY,
    Kind.TRANSACTION_INDEX: layout.ABORTED_TXN,
}
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


class PlaceKind(StrEnum):
    """The kinds of nodes of the tree."""

    DIRECTORY = "directory"
    PARTITION = "partition"
    FILE = "file"
    BATCH = "batch"
    DAMAGE = "damage"
    RECORD = "record"
    ENTRY = "entry"
    MORE = "more"  # the following children of its parent, from ``position`` on


class NodePlace(msgspec.Struct, frozen=True):
    """A node: ``position`` and ``size_bytes`` are those in the file, ``number`` is that among its siblings.

    ``label`` may have any character of a file name or a record. ``offset`` is the first one of a batch. ``as_kind`` is
    the kind that was given for the file, whatever its name.
    """

    kind: PlaceKind
    path: Path
    label: str
    position: int = 0
    size_bytes: int = 0
    number: int = 0
    offset: int | None = None
    as_kind: Kind | None = None

    @property
    def file_kind(self) -> Kind | None:
        return self.as_kind or kind_of_file(self.path.name)

    @property
    def has_children(self) -> bool:
        """Whether it can be opened."""
        if self.kind is PlaceKind.FILE:
            return self.file_kind in LOG_KINDS or self.file_kind in ENTRY_LAYOUTS
        return self.kind in (PlaceKind.DIRECTORY, PlaceKind.PARTITION, PlaceKind.BATCH)


def root_place(path: Path, kind: Kind | None = None) -> NodePlace:
    """The place of a path. Raises InputError as ``Target.kind`` does."""
    found = Target(path, kind).kind
    name = path.name or str(path)
    if found is Kind.LOG_DIR:
        return NodePlace(PlaceKind.DIRECTORY, path, name)
    if found is Kind.PARTITION:
        return NodePlace(PlaceKind.PARTITION, path, name)
    return NodePlace(PlaceKind.FILE, path, name, size_bytes=os.lstat(path).st_size, as_kind=kind)


def children(place: NodePlace, start: int = 0, decoding: Decoding | None = None) -> list[NodePlace]:
    """A page of the children of a place, from ``start`` on, with MORE at the end if there are others.

    ``start`` is a number, or in a log a position. ``decoding``: see ``view_of``. Raises KafkaLogError.
    """
    if place.kind is PlaceKind.DIRECTORY:
        return _page(_in_directory(place.path), start)
    if place.kind is PlaceKind.PARTITION:
        return _page(_files(place.path), start)
    if place.kind is PlaceKind.BATCH:
        return _records(place, start, decoding)
    if place.kind is PlaceKind.FILE and place.file_kind in LOG_KINDS:
        found = _batches(place.path, start)
        return found if place.as_kind is None else [replace(each, as_kind=place.as_kind) for each in found]
    structure = None if place.file_kind is None else ENTRY_LAYOUTS.get(place.file_kind)
    if place.kind is PlaceKind.FILE and structure is not None:
        return _entries(place, structure, start)
    return []


def _more(path: Path, start: int, label: str) -> NodePlace:
    return NodePlace(PlaceKind.MORE, path, label, position=start)


def _page(places: Iterator[NodePlace], start: int) -> list[NodePlace]:
    found = list(islice(places, start, start + PAGE + 1))
    if len(found) > PAGE:
        found[PAGE:] = [_more(found[PAGE].path.parent, start + PAGE, "more …")]
    return found


def _in_directory(path: Path) -> Iterator[NodePlace]:
    log_dirs = Target(path, Kind.LOG_DIR).log_dirs
    if len(log_dirs) != 1 or log_dirs[0].path != path:
        for each in log_dirs:
            yield NodePlace(PlaceKind.DIRECTORY, each.path, os.path.relpath(each.path, path))
        return
    log_dir = read_log_dir(path)
    for partition in log_dir.partitions:
        yield NodePlace(PlaceKind.PARTITION, partition, partition.name)
    for file in log_dir.files:
        yield _file(file)


class ShownPartition(msgspec.Struct, frozen=True):
    """A partition as ls lists it; in ``words`` what is odd about it, or how much was read."""

    path: Path
    listing: PartitionListing
    words: str
    is_damaged: bool


def after_check(state: ShownPartition, found: Iterable[Finding]) -> ShownPartition:
    """The state of a partition after verify: the codes of its findings from warnings up."""
    codes = list(dict.fromkeys(each.code for each in found if each.severity >= Severity.WARNING))
    words = "; ".join(codes) or state.listing.notes or "verified"
    return ShownPartition(state.path, state.listing, words, bool(codes))


def partition_states(place: NodePlace, advance: Advance) -> Iterator[ShownPartition]:
    """The states of the partitions of a log directory, or that of one partition. Raises KafkaLogError.

    Of a large log only the end is read. ``advance`` gets the bytes that were read, and may raise to end it.
    """
    log_dir = read_log_dir(place.path.parent if place.kind is PlaceKind.PARTITION else place.path)
    checkpoints = log_dir.checkpoints(DEFAULT_LIMITS)
    for path in [place.path] if place.kind is PlaceKind.PARTITION else log_dir.partitions:
        partition = partial(read_partition, path)
        is_read = sizes_of(log_dir, path).log_size_bytes <= _MOST_LISTED_BYTES
        terms = PartitionTerms(scan=is_read, segments=False, advance=advance)
        listed = ListUnit(path, checkpoints.of_partition(key_of_directory(path))).listed(terms, partition)
        found = listed.listing if is_read else replace(listed.listing, log_end_offset=log_end_of(partition()))
        words = found.notes or ("headers read" if is_read else "large, not read")
        if not found.log_size_bytes:
            words = found.notes or "empty"
        yield ShownPartition(path, found, words, any(each.severity >= Severity.WARNING for each in listed.findings))
        advance(0)


def _files(path: Path) -> Iterator[NodePlace]:
    for name in sorted(os.listdir(path)):
        yield _file(path / name)


def _file(path: Path) -> NodePlace:
    try:
        size_bytes = os.lstat(path).st_size
    except OSError:
        size_bytes = 0  # the file was removed: opening it reports that
    name = path.name
    if layout.SEGMENT_FILE.match(name):
        digits = name.partition(".")[0].lstrip("0") or "0"
        name = f"…{digits}{name[len(name.partition('.')[0]) :]}"
    return NodePlace(PlaceKind.FILE, path, name, size_bytes=size_bytes)


def _batches(path: Path, start: int) -> list[NodePlace]:
    """A page of batches. Bytes that are no batch are searched a few MiB at a time, however large the file is."""
    found: list[NodePlace] = []
    with FileSource(path) as source:
        position = start
        for table in header_tables(source, start, source.size_bytes):
            found += [_batch(path, table.unopened(), row) for row in range(min(len(table), PAGE - len(found)))]
            position = found[-1].position + found[-1].size_bytes
            if len(found) == PAGE:
                break
        left = source.size_bytes - position
        if left and len(found) == PAGE:
            found.append(_more(path, position, "more batches …"))
        elif left and not any(source.read_at(position, _ZEROS_BYTES)):
            found.append(
                NodePlace(PlaceKind.DAMAGE, path, f"{counted(left, 'byte')} that begin with zeros", position, left)
            )
        elif left:
            found += _after_damage(path, source, position)
    return found


def _after_damage(path: Path, source: FileSource, start: int) -> Iterator[NodePlace]:
    """Damage, and the batches after it."""
    position, end = start, min(start + _DAMAGE_WINDOW_BYTES, source.size_bytes)
    for chunk in header_chunks(source, BatchRange(start, end)):
        for row in range(len(chunk.headers)):
            yield _batch(path, chunk.headers.unopened(), row)
            position = int(chunk.headers.end_position[row])
        damage = chunk.damage
        if damage is not None:
            label = f"damage at {damage.position}: {damage.reason}"
            yield NodePlace(PlaceKind.DAMAGE, path, label, damage.position, damage.length)
            position = damage.position + damage.length
            if damage.position > start:  # the next page begins with it, or after it
                break
    if position < source.size_bytes:
        yield _more(path, position, "more …")


def _batch(path: Path, table: BatchTable, row: int) -> NodePlace:
    first, last, count = int(table.base_offset[row]), table.last_offset_of(row), int(table.record_count[row])
    codec = layout.CODEC_BITS_NAMES[int(table.codec[row])]
    words = "control" if table.is_control[row] else counted_plainly(count, "record") if count >= 0 else "message"
    span = f"{first}" if first == last else f"{first}–{last}"
    position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
    label = f"{span}  {words}{'' if codec == 'none' else '  ' + codec}"
    return NodePlace(PlaceKind.BATCH, path, label, position, size_bytes, offset=first)


def _records(place: NodePlace, start: int, decoding: Decoding | None) -> list[NodePlace]:
    table = records_of(place)
    page, _ = _decoded(table.rows(slice(start, start + PAGE)), location_of_file(place.path), decoding)
    found = []
    for number in range(len(page)):
        offset = int(page.offset[number])
        key, value = (_short(page, number, field) for field in ("key", "value"))
        label = f"{offset}  {key}  {value}"
        found.append(replace(place, kind=PlaceKind.RECORD, label=label, number=start + number, offset=offset))
    if start + PAGE < len(table):
        found.append(_more(place.path, start + PAGE, f"{counted_plainly(len(table) - start - PAGE, 'more record')} …"))
    return found


def _decoded(
    table: RecordTable, location: Location, decoding: Decoding | None
) -> tuple[RecordTable, list[UndecodableField]]:
    return (table, []) if decoding is None else decoded_table(table, topic_decoder(location, decoding))


def _text_of(table: RecordTable, row: int, field: str) -> str | None:
    """The JSON of a key or value; None for one that is shown as it is."""
    if table.decoded is None:
        return None
    said = dict(zip((each.name for each in DECODED_COLUMNS), table.decoded[row], strict=True))
    text: str | None = said[f"{field}_decoded"]
    return None if said[f"{field}_format"] in ("string", "json") else text


def _short(table: RecordTable, row: int, field: str) -> str:
    """The start of a key or value, or of its JSON."""
    text = _text_of(table, row, field)
    if text is not None:
        return text[:40]
    content = table.key(row) if field == "key" else table.value(row)
    return "null" if content is None else content[:40].decode("utf-8", "surrogateescape")


def records_of(place: NodePlace) -> RecordTable:
    """The records of the batch at a place, or of the batch of a record. Raises KafkaLogError."""
    state = os.stat(place.path)
    return _records_at(place.path, place.position, place.size_bytes, state.st_ino)


@lru_cache(maxsize=4)
def _records_at(path: Path, position: int, size_bytes: int, inode: int) -> RecordTable:
    with FileSource(path) as source:
        for chunk in batch_chunks(source, BatchRange(position, position + size_bytes)):
            which = np.ones(len(chunk.table), bool)  # also where the CRC is wrong
            for table in record_tables(chunk, which=which, location=location_of_file(path)):
                if len(table) or not table.problems:
                    return table
                raise table.problems[0].error
    raise CorruptDataError("no batch can be read here", location_of_file(path).at(position, size_bytes))


def _entries(place: NodePlace, structure: Layout, start: int) -> list[NodePlace]:
    size = structure.size_bytes
    found = []
    with FileSource(place.path) as source:
        count = source.size_bytes // size
        stop = min(count, start + PAGE)
        content = source.read_at(start * size, (stop - start) * size)
        first_unused = _first_unused(source, place, start, content, size)
    stop = min(stop, first_unused)
    base = location_of_file(place.path).base_offset or 0
    for number, values in enumerate(structure.struct.iter_unpack(content[: (stop - start) * size]), start):
        found.append(
            replace(
                place,
                kind=PlaceKind.ENTRY,
                label=entry_label(structure, values, base),
                position=number * size,
                size_bytes=size,
                number=number,
            )
        )
    if stop < count:
        words = "unused entry" if stop == first_unused else "more entry"
        found.append(_more(place.path, stop, f"{counted(count - stop, words)} …"))
    return found


def _first_unused(source: FileSource, place: NodePlace, start: int, content: bytes, size: int) -> int:
    """The first of the zero entries up to the end of an index, if a page has it after another entry.

    A broker gives the indexes of its active segment their full size. A page that begins with zeros shows them, and so
    does one with more after it than is read here. The count of entries is returned where none are unused.
    """
    count = source.size_bytes // size
    used = start + -(-len(content.rstrip(b"\0")) // size)
    first, stop = max(used, start + 1), start + len(content) // size
    is_padded = place.file_kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX)
    if not is_padded or first >= stop or (start and used == start):
        return count
    left = range(stop * size, count * size, MIB)
    if len(left) * MIB > _MOST_PADDING_BYTES:
        return count
    is_unused = all(not source.read_at(at, min(MIB, left.stop - at)).strip(b"\0") for at in left)
    return first if is_unused else count


def entry_label(structure: Layout, values: tuple[int, ...], base_offset: int) -> str:
    """The label of an index entry; its offset is absolute."""
    named = dict(zip(structure.names, values, strict=True))
    if structure is layout.OFFSET_INDEX_ENTRY:
        return f"offset {base_offset + named['relative_offset']} → position {named['position']}"
    if structure is layout.TIME_INDEX_ENTRY:
        return f"{iso_time(named['timestamp'])} → offset {base_offset + named['relative_offset']}"
    return f"producer {named['producer_id']}: {named['first_offset']}–{named['last_offset']}"


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


def view_of(place: NodePlace, decoding: Decoding | None = None) -> ByteView:
    """The bytes of a place and their meaning. Raises KafkaLogError where they cannot be read.

    With ``decoding`` a record's key and value are decoded.
    """
    views: dict[PlaceKind, Callable[[NodePlace], ByteView]] = {
        PlaceKind.BATCH: _batch_view,
        PlaceKind.RECORD: partial(_record_view, decoding=decoding),
        PlaceKind.ENTRY: _entry_view,
        PlaceKind.DAMAGE: _damage_view,
        PlaceKind.FILE: _file_view,
    }
    view = views.get(place.kind)
    return ByteView(decoded=(("path", str(place.path)),)) if view is None else view(place)


def _damage_view(place: NodePlace) -> ByteView:
    content = _content(place)
    return ByteView(content, place.position, (Region(0, len(content), "damage", place.label),), note=_cut(place))


def _content(place: NodePlace) -> bytes:
    with FileSource(place.path) as source:
        return source.read_at(place.position, min(place.size_bytes, MOST_BYTES))


def _changed(place: NodePlace) -> FileChanged:
    """What is raised where the file was truncated or overwritten since its directory was listed."""
    return FileChanged("the file has changed: this is no longer there", location_of_file(place.path))


def _cut(place: NodePlace) -> str:
    return f"the first {MOST_BYTES:,} of {place.size_bytes:,} bytes" if place.size_bytes > MOST_BYTES else ""


def _batch_view(place: NodePlace) -> ByteView:
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


def _record_view(place: NodePlace, decoding: Decoding | None) -> ByteView:
    records = records_of(place)
    if place.number >= len(records):
        raise _changed(place)
    table = records.rows(slice(place.number, place.number + 1))
    location = location_of_file(place.path)
    start, size_bytes = int(table.start[0]), int(table.size_bytes[0])
    content = bytes(table.buffer[start : start + size_bytes])
    batch, batches = int(table.batch[0]), table.batches
    magic = int(batches.magic[batch])
    position: int | None = place.position
    if int(batches.codec[batch]):
        position = None
    elif magic == 2:
        position = place.position + layout.RECORD_BATCH.size_bytes + start - int(records.start[0])
    decoded: tuple[tuple[str, Any], ...] = ()
    for item in decode_internal([record_block(table, location)]):
        if not isinstance(item, Finding):
            decoded = _shown(RECORD, next(iter(item.rows)))
    read, undecodable = _decoded(table, location, decoding)
    if read.decoded is not None:
        said = zip(DECODED_COLUMNS, read.decoded[0], strict=True)
        first = [(column.name, value) for column, value in said if value is not None]
        decoded = (*first, *decoded)
    regions = _regions_of_record(content, magic=magic, is_control=bool(batches.is_control[batch]))
    reasons = {each.field: f"not decoded: {each.reason}" for each in undecodable}
    for number, region in enumerate(regions):
        text = _text_of(read, 0, region.field) if region.field in ("key", "value") else None
        text = text or reasons.get(region.field)
        regions[number] = region if text is None else replace(region, value=text)
    layouts: tuple[Layout, ...] = (layout.CONTROL_KEY, layout.END_TRANSACTION_MARKER)
    if magic < 2:
        layouts = ((layout.MESSAGE_V0, layout.MESSAGE_V1)[magic],)
    note = "" if position is not None else "the decompressed bytes"
    return ByteView(content, position, tuple(regions), decoded, layouts, note)


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


def _entry_view(place: NodePlace) -> ByteView:
    content = _content(place)
    if len(content) < place.size_bytes:
        raise _changed(place)
    structure = ENTRY_LAYOUTS[place.file_kind or Kind.OFFSET_INDEX]
    regions = tuple(fixed_regions(structure, content, 0))
    decoded = tuple((region.field, region.value) for region in regions)
    return ByteView(content, place.position, regions, (("entry", place.number), *decoded), (structure,))


def _file_view(place: NodePlace) -> ByteView:
    content = _content(place)
    kind = place.file_kind
    if kind in LOG_KINDS:
        table = headers_in(memoryview(content[: layout.RECORD_BATCH.size_bytes]), 0)
        if len(table):
            first = NodePlace(PlaceKind.BATCH, place.path, "", 0, min(int(table.size_bytes[0]), place.size_bytes))
            try:
                view = _batch_view(first)
            except KafkaLogError:
                view = None
            if view is not None:
                note = "the first batch of the file"
                return ByteView(view.content, 0, view.regions, (("size_bytes", place.size_bytes),), view.layouts, note)
    regions = tuple(_file_regions(content, kind))
    layouts: tuple[Layout, ...] = (ENTRY_LAYOUTS[kind],) if kind in ENTRY_LAYOUTS else ()
    if kind is Kind.PRODUCER_SNAPSHOT:
        layouts = (layout.PRODUCER_SNAPSHOT_HEADER, layout.PRODUCER_SNAPSHOT_ENTRY)
    return ByteView(content, 0, regions, tuple(_rows_of(place)), layouts, _cut(place))


def _rows_of(place: NodePlace) -> Iterator[tuple[str, Any]]:
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
    if kind in LOG_KINDS:  # that begins with no batch
        if content:
            yield Region(0, len(content), "", counted_plainly(len(content), "byte"))
        return
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


class Spot(msgspec.Struct, frozen=True):
    """The target of a jump: a file, the position of a batch or entry in it, and an offset; ``words`` explain it.

    With ``is_record`` the record with that offset is meant, else at the first offset of a batch the batch.
    """

    path: Path
    position: int | None = None
    offset: int | None = None
    words: str = ""
    is_record: bool = False


def number_of(text: str, what: str) -> int:
    """An offset or position that was typed: a whole number from 0 to 2^63 - 1, decimal or as ``0x…``.

    ``what`` names it in the ValueError that anything else raises.
    """
    digits = text.lower()
    if re.fullmatch(r"[0-9]{1,19}|0x[0-9a-f]{1,16}", digits):
        number = int(digits, 16 if digits.startswith("0x") else 10)
        if number < 1 << 63:
            return number
    raise ValueError(f"{text!r} is not {what}")


def scope_of(place: NodePlace) -> Target | None:
    """What is searched from a place: its partition directory, or a log that belongs to none; None above partitions."""
    if place.kind is PlaceKind.PARTITION:
        return Target(place.path, Kind.PARTITION)
    if place.kind is PlaceKind.DIRECTORY:
        return None
    location = location_of_file(place.path)
    if place.as_kind is None and (location.topic is not None or location.base_offset is not None):
        return Target(place.path.parent, Kind.PARTITION)
    return Target(place.path, place.file_kind) if place.file_kind in LOG_KINDS else None


def spot_of_offset(scope: Target, offset: int) -> Spot | None:
    """The record with an offset in a partition or a log, or the next one. Raises KafkaLogError."""
    if scope.kind is not Kind.PARTITION:
        return _first_selected(scope.path, Selection(from_offset=offset))
    return _answer(find_offset(scope.partition, offset))


def spot_of_time(scope: Target, timestamp: int) -> Spot | None:
    """The first record at or after a time. Raises KafkaLogError."""
    if scope.kind is not Kind.PARTITION:
        return _first_selected(scope.path, Selection(from_timestamp=timestamp))
    return _answer(find_timestamp(scope.partition, timestamp))


def _first_selected(log: Path, selection: Selection) -> Spot | None:
    """The first selected record of a log that is no segment of a partition."""
    with FileSource(log) as source:
        for chunk in batch_chunks(source):
            which = selection.batches(chunk.table)
            for records in record_tables(chunk, which=which, location=location_of_file(log)):
                for row in np.flatnonzero(selection.records(records))[:1].tolist():
                    position = int(records.batches.position[int(records.batch[row])])
                    return Spot(log, position, int(records.offset[row]), is_record=True)
    return None


def _answer(found: LookupResult) -> Spot | None:
    if found.error is not None:
        raise found.error
    match = found.match or found.nearest
    if match is None:
        return None
    where = match.location
    return Spot(Path(where.path), where.position, where.offset, found.reason, is_record=True)


def spot_of_position(log: Path, position: int) -> Spot | None:
    """The batch that a byte of a log belongs to; None past the end. Its offset index shortens the way."""
    start = _indexed_before(log, position)
    with FileSource(log) as source:
        for table in header_tables(source, start, source.size_bytes):
            for row in range(len(table)):
                if int(table.end_position[row]) > position:
                    return Spot(log, int(table.position[row]))
    return None


def _indexed_before(log: Path, position: int) -> int:
    """The position of the last index entry at or before a position, 0 for none."""
    base_offset = location_of_file(log).base_offset
    if base_offset is None:
        return 0
    try:
        index = offset_index.read(
            log.with_name(segment_file_name(base_offset, layout.OFFSET_INDEX_SUFFIX)), base_offset
        )
    except KafkaLogError:
        return 0
    before = index.positions[index.positions <= position]
    return int(before.max()) if len(before) and not index.problems else 0


def spot_of_entry(place: NodePlace) -> Spot | None:
    """What an index entry points to: a batch of the segment's log."""
    location = location_of_file(place.path)
    structure = {Kind.OFFSET_INDEX: layout.OFFSET_INDEX_ENTRY, Kind.TIME_INDEX: layout.TIME_INDEX_ENTRY}.get(
        place.file_kind or Kind.LOG
    )
    if place.kind is not PlaceKind.ENTRY or location.base_offset is None or structure is None:
        return None
    with FileSource(place.path) as source:
        values = dict(
            zip(structure.names, structure.struct.unpack(source.read_at(place.position, place.size_bytes)), strict=True)
        )
    log = place.path.with_name(segment_file_name(location.base_offset, layout.LOG_SUFFIX))
    if structure is layout.OFFSET_INDEX_ENTRY:
        return Spot(log, values["position"])
    partition = Target(place.path.parent, Kind.PARTITION)
    return spot_of_offset(partition, location.base_offset + values["relative_offset"])


def entry_of_batch(place: NodePlace) -> Spot | None:
    """The last offset index entry that points to a batch or before it. Raises KafkaLogError."""
    base_offset = location_of_file(place.path).base_offset
    if base_offset is None:
        return None
    path = place.path.with_name(segment_file_name(base_offset, layout.OFFSET_INDEX_SUFFIX))
    before = np.flatnonzero(offset_index.read(path, base_offset).positions <= place.position)
    return Spot(path, int(before[-1]) * layout.OFFSET_INDEX_ENTRY.size_bytes) if len(before) else None


def matches(
    scope: Target, pattern: Pattern, from_offset: int, advance: Advance, decoding: Decoding | None = None
) -> Iterator[Spot | Finding]:
    """The records that match, from an offset on, and findings about what cannot be searched. Raises KafkaLogError.

    ``advance`` gets the bytes that were read, and may raise to end the search. What ``decoding`` makes of keys and
    values is searched, too.
    """
    criteria = Criteria(pattern, selection=Selection(from_offset=from_offset))
    for item in grep(scope, criteria, advance=advance, decoding=decoding):
        if isinstance(item, Finding):
            if item.code != "value-undecodable":  # its bytes are searched
                yield item
        elif isinstance(item, FoundRecords):
            for row in range(len(item.records)):
                batch = int(item.records.batch[row])
                position = int(item.records.batches.position[batch])
                yield Spot(Path(item.location.path), position, int(item.records.offset[row]), is_record=True)


def damage_in(scope: Target, advance: Advance) -> list[tuple[Spot, Finding]]:
    """The findings of a partition or log in the order of the tree, each with its place. Raises KafkaLogError.

    ``advance`` gets the bytes that were read, and may raise to end the check.
    """
    found = []
    for each in verify(scope, VerifyTerms(advance=advance)):
        where = each.location
        found.append((Spot(Path(where.path), where.position, where.offset), each))
    return sorted(found, key=lambda each: order_of(each[0].path, each[0].position, scope))


def order_of(path: Path, position: int | None, scope: Target) -> tuple[bool, str, int]:
    """The order of findings in a scope: the files by name, in each the positions; then those of the directory."""
    return path == scope.path and scope.kind is Kind.PARTITION, path.name, -1 if position is None else position


def partitions_after(root: NodePlace, place: Path) -> list[Path]:
    """The partitions at and below a root, in the order of the tree: those below a place, or after it."""
    target = Target(root.path)
    paths = [path for log_dir in target.log_dirs for path in log_dir.partitions]
    if place in paths:
        return paths[paths.index(place) + 1 :]
    below = [path for path in paths if path.is_relative_to(place)]
    return below or paths
