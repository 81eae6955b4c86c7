"""Jumps from one place to another: by offset, time and position, between index and log, by text, and to damage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.files import offset_index
from format.findings import Finding
from format.io.source import FileSource
from format.log.batch_header import header_tables
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.file_location import location_of_file
from format.node.log_dir import Kind
from format.node.segment import segment_file_name
from format.node.target import Target
from format.scan.drivers import scan_logs
from format.scan.progress import Advance
from format.scan.selection import Selection
from format.verbs.explore.places import LOG_KINDS, Place, PlaceKind
from format.verbs.find.find import find_offset, find_timestamp
from format.verbs.find.trace import Match, NotFound
from format.verbs.grep.grep import Criteria, FoundRecords, GrepScan, logs_to_search
from format.verbs.grep.pattern import Pattern
from format.verbs.verify.verify import VerifyTerms, verify


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


def scope_of(place: Place) -> Target | None:
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


def _answer(steps: Iterator[object]) -> Spot | None:
    for item in steps:
        if isinstance(item, Match):
            return _of_match(item, "")
        if isinstance(item, NotFound) and item.nearest is not None:
            return _of_match(item.nearest, item.reason)
    return None


def _of_match(match: Match, words: str) -> Spot:
    where = match.location
    return Spot(Path(where.path), where.position, where.offset, words, is_record=True)


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


def spot_of_entry(place: Place) -> Spot | None:
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


def entry_of_batch(place: Place) -> Spot | None:
    """The last offset index entry that points to a batch or before it. Raises KafkaLogError."""
    base_offset = location_of_file(place.path).base_offset
    if base_offset is None:
        return None
    path = place.path.with_name(segment_file_name(base_offset, layout.OFFSET_INDEX_SUFFIX))
    before = np.flatnonzero(offset_index.read(path, base_offset).positions <= place.position)
    return Spot(path, int(before[-1]) * layout.OFFSET_INDEX_ENTRY.size_bytes) if len(before) else None


def matches(scope: Target, pattern: Pattern, from_offset: int, advance: Advance) -> Iterator[Spot | Finding]:
    """The records that match, from an offset on, and findings about what cannot be searched. Raises KafkaLogError.

    ``advance`` gets the bytes that were read, and may raise to end the search.
    """
    criteria = Criteria(pattern, selection=Selection(from_offset=from_offset))
    for item in scan_logs(GrepScan(criteria), logs_to_search(scope, criteria), advance=advance):
        if isinstance(item, Finding):
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


def partitions_after(root: Place, place: Path) -> list[Path]:
    """The partitions at and below a root, in the order of the tree: those below a place, or after it."""
    target = Target(root.path)
    paths = [path for log_dir in target.log_dirs for path in log_dir.partitions]
    if place in paths:
        return paths[paths.index(place) + 1 :]
    below = [path for path in paths if path.is_relative_to(place)]
    return below or paths
