"""grep: the records whose key, value or header matches, or that a producer wrote, over any number of logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format.errors import NotALogDir
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log_dir import Kind, kind_of, read_log_dir
from format.operations.grep_pattern import Pattern
from format.operations.grep_search import EVERYWHERE, Hits, Places, search, search_header_names
from format.operations.read_log import LogChunk, location_of_file, log_chunks
from format.operations.selection import EVERYTHING, Selection
from format.partition import Partition, read_partition
from format.records import RecordTable, record_tables
from format.segment import Segment

_LOG_KINDS = (Kind.LOG, Kind.KRAFT_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a record must be to be found: all that is given must hold.

    Without a pattern every record matches, or with header names in ``places`` every record that has such a header.
    ``tombstones`` wants a null value. ``is_inverted`` turns the pattern around, not the ranges, the producer or the
    tombstones.
    """

    pattern: Pattern | None = None
    places: Places = EVERYWHERE
    selection: Selection = EVERYTHING
    producer_id: int | None = None
    producer_epoch: int | None = None
    tombstones: bool = False
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """Some records found, in log order; ``hits`` has the match of each, None where no pattern found them."""

    path: Path
    location: Location
    records: RecordTable
    hits: Hits | None


@dataclass(frozen=True, slots=True)
class LogSearched:
    """The end of one log file, and how many of its records were found before the search of it ended."""

    path: Path
    location: Location
    record_count: int


Told = FoundRecords | LogSearched | Finding


def is_searchable(kind: Kind) -> bool:
    """Whether there may be records in a path of this kind."""
    return kind in (Kind.LOG_DIR, Kind.PARTITION, *_LOG_KINDS)


def grep(
    path: Path,
    criteria: Criteria,
    *,
    kind: Kind | None = None,
    first_only: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Told]:
    """The records found at ``path`` in the order of the logs, the end of each log, and findings on the way.

    ``first_only`` goes on to the next log after the first records found in one. Records of a batch with a wrong CRC
    are not searched; a finding tells of them. Raises InputError for a path that is nothing of Kafka's or holds no
    records.
    """
    kind = kind or kind_of(path)
    if not is_searchable(kind):
        raise NotALogDir(f"no records lie in a file of the kind {kind.value}", Location(str(path)))
    if kind is Kind.LOG_DIR:
        for directory in read_log_dir(path).partitions:
            yield from _partition(read_partition(directory), criteria, first_only, limits)
    elif kind is Kind.PARTITION:
        yield from _partition(read_partition(path), criteria, first_only, limits)
    else:
        segment, is_last = _segment_of(path) if kind is Kind.LOG else (None, True)
        yield from _log(path, segment, location_of_file(path), is_last, criteria, first_only, limits)


def _partition(partition: Partition, criteria: Criteria, first_only: bool, limits: Limits) -> Iterator[Told]:
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or criteria.selection.excludes_segment(segment.base_offset, next_base_offset):
            continue
        location = partition.location(segment.log, segment.base_offset)
        yield from _log(segment.log, segment, location, next_base_offset is None, criteria, first_only, limits)


def _segment_of(path: Path) -> tuple[Segment | None, bool]:
    """The segment that a log file belongs to by its siblings, and whether none follows it."""
    if location_of_file(path).base_offset is None:
        return None, True
    partition = read_partition(path.parent)
    for segment in partition.segments:
        if segment.log is not None and segment.log.name == path.name:
            return segment, partition.next_base_offset(segment) is None
    return None, True


def _log(
    path: Path,
    segment: Segment | None,
    location: Location,
    is_last: bool,
    criteria: Criteria,
    first_only: bool,
    limits: Limits,
) -> Iterator[Told]:
    count = 0
    for item in log_chunks(
        path, segment, location, selection=criteria.selection, is_last_segment=is_last, limits=limits
    ):
        if isinstance(item, Finding):
            yield item
            continue
        for each in _chunk(path, item, criteria, limits):
            yield each
            if isinstance(each, FoundRecords):
                count += len(each.records)
                if first_only:
                    yield LogSearched(path, location, count)
                    return
    yield LogSearched(path, location, count)


def _chunk(path: Path, item: LogChunk, criteria: Criteria, limits: Limits) -> Iterator[FoundRecords | Finding]:
    for table in record_tables(item.chunk, which=_batches(item, criteria), limits=limits, location=item.location):
        for problem in table.problems:
            yield finding_of(problem.error, item.location)
        candidates = _candidates(table, criteria)
        hits = _hits(candidates, criteria)
        if hits is not None:
            found = candidates.rows(_others(candidates, hits) if criteria.is_inverted else hits.row)
        else:
            found = candidates
        if len(found):
            yield FoundRecords(path, item.location, found, None if criteria.is_inverted else hits)


def _batches(item: LogChunk, criteria: Criteria) -> NDArray[np.bool_]:
    """The batches that may hold a record to be found: no other one is decompressed."""
    batches = item.chunk.table
    which: NDArray[np.bool_] = item.selected & (batches.crc_valid != 0)
    if criteria.producer_id is not None:
        which &= batches.producer_id == criteria.producer_id
    if criteria.producer_epoch is not None:
        which &= batches.producer_epoch == criteria.producer_epoch
    return which


def _candidates(table: RecordTable, criteria: Criteria) -> RecordTable:
    if criteria.selection.is_everything and not criteria.tombstones:
        return table
    keep = criteria.selection.records(table)
    if criteria.tombstones:
        keep &= table.value_length < 0
    return table.rows(np.flatnonzero(keep))


def _hits(table: RecordTable, criteria: Criteria) -> Hits | None:
    if criteria.pattern is not None:
        return search(table, criteria.pattern, criteria.places)
    if criteria.places.header_names:
        return search_header_names(table, criteria.places.header_names)
    return None


def _others(table: RecordTable, hits: Hits) -> NDArray[np.intp]:
    keep = np.ones(len(table), bool)
    keep[hits.row] = False
    return np.flatnonzero(keep)
