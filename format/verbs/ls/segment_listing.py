"""The listing of one segment: the offsets, times and codecs of its log, and the entry counts of its side files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from format import layout
from format.columns import SEGMENT
from format.errors import KafkaLogError
from format.files import offset_index, producer_snapshot, time_index
from format.files.offset_index import OffsetPosition
from format.files.side_file import problem_findings
from format.files.time_index import TimestampOffset
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource, Source
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.partition import Segment, file_size_bytes, missing_indexes
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogUnit
from format.state.totals import LogTotals
from format.verbs.ls.log_totals import read_log_totals
from format.wording import counted_plainly

_ROW_OF = attrgetter(*SEGMENT.names)


class SegmentListing(msgspec.Struct, frozen=True):
    """One row of columns.SEGMENT, which documents the fields."""

    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int | None
    leftover: str | None
    size_bytes: int | None
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    batch_count: int | None = None
    magics: str | None = None
    codecs: str | None = None
    index_entries: int | None = None
    time_index_entries: int | None = None
    aborted_txns: int | None = None
    snapshot_producers: int | None = None
    notes: str | None = None

    def row(self) -> Row:
        """The fields in the order of columns.SEGMENT."""
        row: Row = _ROW_OF(self)
        return row


class ListedSegment(msgspec.Struct, frozen=True):
    """A segment's listing and its log's totals; these are None where the log was not read."""

    listing: SegmentListing
    totals: LogTotals | None


def joined_notes(notes: Iterable[str]) -> str | None:
    """The notes as one cell, None for none."""
    return "; ".join(notes) or None


class SeenCodes:
    """Passes findings on and counts their codes, so that a row's notes can name them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def passing(self, findings: Generator[Finding, None, Any]) -> Generator[Finding, None, Any]:
        """The same findings and the same result."""
        while True:
            try:
                found = next(findings)
            except StopIteration as end:
                return end.value
            self._counts[found.code] = self._counts.get(found.code, 0) + 1
            yield found

    def notes(self) -> list[str]:
        """The codes, each with its count."""
        return [code if count == 1 else f"{count} x {code}" for code, count in self._counts.items()]


def list_segment(
    segment: Segment,
    location: Location,
    *,
    next_base_offset: int | None = None,
    scan: bool = True,
    side_files: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Generator[Finding, None, ListedSegment]:
    """List one segment: yields findings, returns the listing. ``next_base_offset`` is None for the last segment.

    ``scan`` False reads no file, ``side_files`` False reads only the log. ``location`` is that of the log, or of
    another file of the segment where the log is missing.
    """
    seen = SeenCodes()
    notes: list[str] = ["remote"] if segment.is_remote else []
    size_bytes = None
    totals = None
    if segment.log is None:
        notes.append("no .log")
    else:
        size_bytes = yield from seen.passing(file_size_bytes(segment.log, location))
        if segment.leftover is None:
            missing = yield from seen.passing(_missing_indexes(segment, location))
            notes += missing
        if scan and size_bytes is not None:
            log = LogUnit(segment.log, location, segment, next_base_offset)
            totals = yield from seen.passing(
                read_log_totals(log, next_base_offset=next_base_offset, limits=limits, advance=advance)
            )
    counts: dict[str, int | None] = {}
    if scan and side_files:
        counts = yield from seen.passing(_side_file_counts(segment, location, limits))
    notes += [each for each in seen.notes() if "index-missing" not in each]
    base_offset, leftover = segment.base_offset, segment.leftover
    return ListedSegment(_listing(location, base_offset, leftover, size_bytes, totals, counts, notes), totals)


def list_sound_segment(
    segment: Segment, location: Location, totals: LogTotals, size_bytes: int, limits: Limits
) -> Generator[Finding, None, ListedSegment]:
    """List a live segment with both indexes whose log gave no findings: yields findings, returns the listing."""
    seen = SeenCodes()
    counts = yield from seen.passing(_side_file_counts(segment, location, limits))
    return ListedSegment(
        _listing(location, segment.base_offset, None, size_bytes, totals, counts, seen.notes()), totals
    )


def list_log(
    path: Path,
    location: Location,
    *,
    scan: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Generator[Finding, None, SegmentListing]:
    """List a file of batches that belongs to no segment: a KRaft snapshot, or a log under another name."""
    seen = SeenCodes()
    size_bytes = yield from seen.passing(file_size_bytes(path, location))
    totals = None
    if scan and size_bytes is not None:
        totals = yield from seen.passing(read_log_totals(LogUnit(path, location), limits=limits, advance=advance))
    return _listing(location, location.base_offset, None, size_bytes, totals, {}, seen.notes())


def _listing(
    location: Location,
    base_offset: int | None,
    leftover: str | None,
    size_bytes: int | None,
    totals: LogTotals | None,
    counts: dict[str, int | None],
    notes: list[str],
) -> SegmentListing:
    known = totals or LogTotals()
    is_known = totals is not None and (totals.is_whole or totals.batch_count > 0)
    return SegmentListing(
        path=location.path,
        topic=location.topic,
        partition=location.partition,
        segment_base_offset=base_offset,
        leftover=leftover,
        size_bytes=size_bytes,
        first_offset=known.first_offset,
        last_offset=known.last_offset,
        first_timestamp=known.first_timestamp,
        max_timestamp=known.max_timestamp,
        batch_count=known.batch_count if is_known else None,
        magics=known.magics_text if is_known else None,
        codecs=known.codecs_text if is_known else None,
        notes=joined_notes(notes),
        **counts,
    )


def _missing_indexes(segment: Segment, location: Location) -> Generator[Finding, None, list[str]]:
    """Yields a finding where a live segment lacks an index that a broker would rebuild; returns a note about it."""
    missing = missing_indexes(segment)
    if not missing:
        return []
    words = " and ".join(missing)
    yield finding("index-missing", location, f"the segment has no {words}")
    return [f"no {words}"]


def _side_file_counts(
    segment: Segment, location: Location, limits: Limits
) -> Generator[Finding, None, dict[str, int | None]]:
    """How many entries each side file holds; None for one that is missing or cannot be read."""
    base_offset = segment.base_offset
    counts: dict[str, int | None] = {
        "index_entries": None,
        "time_index_entries": None,
        "aborted_txns": None,
        "snapshot_producers": None,
    }
    readers: tuple[tuple[str, Path | None, _Counter], ...] = (
        (
            "index_entries",
            segment.offset_index,
            partial(_index_entries, offset_index.last_entry, layout.OFFSET_INDEX_ENTRY.size_bytes),
        ),
        (
            "time_index_entries",
            segment.time_index,
            partial(_index_entries, time_index.last_entry, layout.TIME_INDEX_ENTRY.size_bytes),
        ),
        ("aborted_txns", segment.transaction_index, _aborted_txns),
        ("snapshot_producers", segment.producer_snapshot, _snapshot_producers),
    )
    for name, path, count_entries in readers:
        if path is None:
            continue
        where = replace(location, path=str(path))
        try:
            with FileSource(path) as source:
                counts[name] = yield from count_entries(source, base_offset, where, limits)
        except KafkaLogError as error:
            yield finding_of(error, where)
    return counts


_Counter = Callable[[Source, int, Location, Limits], Generator[Finding, None, int]]


def _index_entries(
    last_entry: Callable[[Source, int], OffsetPosition | TimestampOffset | None],
    entry_bytes: int,
    source: Source,
    base_offset: int,
    location: Location,
    limits: Limits,
) -> Generator[Finding, None, int]:
    """The number of entries, by bisection: the preallocated zeros of an active segment's index are not read."""
    yield from _whole_entries(source, entry_bytes, location)
    last = last_entry(source, base_offset)
    return 0 if last is None else last.entry_number + 1


def _aborted_txns(
    source: Source, base_offset: int, location: Location, limits: Limits
) -> Generator[Finding, None, int]:
    entry_bytes = layout.ABORTED_TXN.size_bytes
    yield from _whole_entries(source, entry_bytes, location)
    return source.size_bytes // entry_bytes


def _whole_entries(source: Source, entry_bytes: int, location: Location) -> Iterator[Finding]:
    """A finding where the file ends in the middle of an entry."""
    left = source.size_bytes % entry_bytes
    if left:
        message = f"the file has {counted_plainly(source.size_bytes, 'byte')}, not a multiple of {entry_bytes}"
        yield finding("index-invalid", location.at(position=source.size_bytes - left, length=left), message)


def _snapshot_producers(
    source: Source, base_offset: int, location: Location, limits: Limits
) -> Generator[Finding, None, int]:
    snapshot = producer_snapshot.read(source, limits)
    yield from problem_findings(snapshot.problems, location)
    return snapshot.entry_count
