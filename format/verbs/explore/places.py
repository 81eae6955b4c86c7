"""The tree of explore: log directories, partitions, files, batches, records and index entries, read a page at a time.

Nothing is read before it is needed: names are listed one directory at a time, and only the headers of one page of
batches are read of a log, or the records of one batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.errors import CorruptDataError
from format.io.source import FileSource
from format.layout import Layout
from format.limits import MIB
from format.log.batch_chunk import BatchRange
from format.log.batch_header import header_tables
from format.log.batch_table import BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks, header_chunks
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, kind_of_file, read_log_dir
from format.node.target import Target
from format.timestamps import iso_time
from format.wording import counted, counted_plainly

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


class Place(msgspec.Struct, frozen=True):
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
        """The kind of the file."""
        return self.as_kind or kind_of_file(self.path.name)

    @property
    def has_children(self) -> bool:
        """Whether it can be opened."""
        if self.kind is PlaceKind.FILE:
            return self.file_kind in LOG_KINDS or self.file_kind in ENTRY_LAYOUTS
        return self.kind in (PlaceKind.DIRECTORY, PlaceKind.PARTITION, PlaceKind.BATCH)


def root_place(path: Path, kind: Kind | None = None) -> Place:
    """The place of a path. Raises InputError as ``Target.kind`` does."""
    found = Target(path, kind).kind
    name = path.name or str(path)
    if found is Kind.LOG_DIR:
        return Place(PlaceKind.DIRECTORY, path, name)
    if found is Kind.PARTITION:
        return Place(PlaceKind.PARTITION, path, name)
    return Place(PlaceKind.FILE, path, name, size_bytes=os.lstat(path).st_size, as_kind=kind)


def children(place: Place, start: int = 0) -> list[Place]:
    """A page of the children of a place, from ``start`` on, with MORE at the end if there are others.

    ``start`` is a number, or in a log a position. Raises KafkaLogError.
    """
    if place.kind is PlaceKind.DIRECTORY:
        return _page(_in_directory(place.path), start)
    if place.kind is PlaceKind.PARTITION:
        return _page(_files(place.path), start)
    if place.kind is PlaceKind.BATCH:
        return _records(place, start)
    if place.kind is PlaceKind.FILE and place.file_kind in LOG_KINDS:
        found = _batches(place.path, start)
        return found if place.as_kind is None else [replace(each, as_kind=place.as_kind) for each in found]
    structure = None if place.file_kind is None else ENTRY_LAYOUTS.get(place.file_kind)
    if place.kind is PlaceKind.FILE and structure is not None:
        return _entries(place, structure, start)
    return []


def _more(path: Path, start: int, label: str) -> Place:
    return Place(PlaceKind.MORE, path, label, position=start)


def _page(places: Iterator[Place], start: int) -> list[Place]:
    found = list(islice(places, start, start + PAGE + 1))
    if len(found) > PAGE:
        found[PAGE:] = [_more(found[PAGE].path.parent, start + PAGE, "more …")]
    return found


def _in_directory(path: Path) -> Iterator[Place]:
    log_dirs = Target(path, Kind.LOG_DIR).log_dirs
    if len(log_dirs) != 1 or log_dirs[0].path != path:
        for each in log_dirs:
            yield Place(PlaceKind.DIRECTORY, each.path, os.path.relpath(each.path, path))
        return
    log_dir = read_log_dir(path)
    for partition in log_dir.partitions:
        yield Place(PlaceKind.PARTITION, partition, partition.name)
    for file in log_dir.files:
        yield _file(file)


def _files(path: Path) -> Iterator[Place]:
    for name in sorted(os.listdir(path)):
        yield _file(path / name)


def _file(path: Path) -> Place:
    try:
        size_bytes = os.lstat(path).st_size
    except OSError:
        size_bytes = 0  # the file was removed: opening it reports that
    name = path.name
    if layout.SEGMENT_FILE.match(name):
        digits = name.partition(".")[0].lstrip("0") or "0"
        name = f"…{digits}{name[len(name.partition('.')[0]) :]}"
    return Place(PlaceKind.FILE, path, name, size_bytes=size_bytes)


def _batches(path: Path, start: int) -> list[Place]:
    """A page of batches. Bytes that are no batch are searched a few MiB at a time, however large the file is."""
    found: list[Place] = []
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
            found.append(Place(PlaceKind.DAMAGE, path, f"{left:,} bytes that begin with zeros", position, left))
        elif left:
            found += _after_damage(path, source, position)
    return found


def _after_damage(path: Path, source: FileSource, start: int) -> Iterator[Place]:
    """Damage, and the batches after it."""
    position, end = start, min(start + _DAMAGE_WINDOW_BYTES, source.size_bytes)
    for chunk in header_chunks(source, BatchRange(start, end)):
        for row in range(len(chunk.headers)):
            yield _batch(path, chunk.headers.unopened(), row)
            position = int(chunk.headers.end_position[row])
        damage = chunk.damage
        if damage is not None:
            label = f"damage at {damage.position}: {damage.reason}"
            yield Place(PlaceKind.DAMAGE, path, label, damage.position, damage.length)
            position = damage.position + damage.length
            if damage.position > start:  # the next page begins with it, or after it
                break
    if position < source.size_bytes:
        yield _more(path, position, "more …")


def _batch(path: Path, table: BatchTable, row: int) -> Place:
    first, last, count = int(table.base_offset[row]), table.last_offset_of(row), int(table.record_count[row])
    codec = layout.CODEC_BITS_NAMES[int(table.codec[row])]
    words = "control" if table.is_control[row] else counted_plainly(count, "record") if count >= 0 else "message"
    span = f"{first}" if first == last else f"{first}–{last}"
    position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
    label = f"{span}  {words}{'' if codec == 'none' else '  ' + codec}"
    return Place(PlaceKind.BATCH, path, label, position, size_bytes, offset=first)


def _records(place: Place, start: int) -> list[Place]:
    table = records_of(place)
    found = []
    for row in range(start, min(len(table), start + PAGE)):
        key, value = table.key(row), table.value(row)
        label = f"{int(table.offset[row])}  {_short(key)}  {_short(value)}"
        found.append(replace(place, kind=PlaceKind.RECORD, label=label, number=row, offset=int(table.offset[row])))
    if start + PAGE < len(table):
        found.append(_more(place.path, start + PAGE, f"{counted_plainly(len(table) - start - PAGE, 'more record')} …"))
    return found


def _short(content: bytes | None) -> str:
    return "null" if content is None else content[:40].decode("utf-8", "surrogateescape")


def records_of(place: Place) -> RecordTable:
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


def _entries(place: Place, structure: Layout, start: int) -> list[Place]:
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


def _first_unused(source: FileSource, place: Place, start: int, content: bytes, size: int) -> int:
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
