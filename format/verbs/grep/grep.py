"""grep: the records whose key, value or header matches, or that a producer wrote, over any number of logs.

grep is a scan. The matches in a chunk depend on that chunk alone. The fold counts the matches in a log, and stops
after the first one where one is enough. ``lines`` has the scans whose parts are sent between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.checks.record_contents import reading_findings
from format.errors import NotALogDir
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.log_dir import Kind
from format.node.target import Target, target_at
from format.scan.drivers import scan_logs, with_last_finding
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import EVERYTHING, Selection
from format.verbs.grep.pattern import Pattern
from format.verbs.grep.record_search import EVERYWHERE, Hits, Places, search, search_header_names
from format.verbs.txns.committed_logs import logs_below

#: The size of a chunk; the lines of two chunks may wait until those before them are printed.
GREP_CHUNK_BYTES = 2 * MIB
GREP_COST = Cost(batch_s=0.6e-6, byte_s=1.5e-9, compressed_byte_s=7e-9)


class Criteria(msgspec.Struct, frozen=True):
    """The conditions for a record to match: all that are given must hold.

    Without a pattern every record matches, or with header names in ``places`` every record that has such a header.
    ``tombstones`` requires a null value. ``is_inverted`` negates the pattern only, not the ranges, the producer or
    the tombstones.
    """

    pattern: Pattern | None = None
    places: Places = EVERYWHERE
    selection: Selection = EVERYTHING
    producer_id: int | None = None
    producer_epoch: int | None = None
    tombstones: bool = False
    is_inverted: bool = False


class FoundRecords(msgspec.Struct, frozen=True):
    """Some records found, in log order; ``hits`` has the match of each, None where no pattern found them."""

    location: Location
    records: RecordTable
    hits: Hits | None


class LogSearched(msgspec.Struct, frozen=True):
    """The end of the search of one log file, with the number of records found in it."""

    path: Path
    location: Location
    record_count: int


#: What grep yields.
GrepItem = FoundRecords | LogSearched | Finding


def is_searchable(kind: Kind) -> bool:
    """Whether there may be records in a path of this kind."""
    return kind in LOG_KINDS


def grep(
    path: Path | Target,
    criteria: Criteria,
    *,
    first_only: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[GrepItem]:
    """The records found at ``path`` in the order of the logs, the end of each log, and findings on the way.

    With ``first_only`` the search of a log ends after the first records found in it. Records of a batch with a wrong
    CRC are not searched; a finding reports them. Raises InputError for a path that does not belong to Kafka or holds
    no records.
    """
    return scan_logs(GrepScan(criteria, limits, first_only), logs_to_search(path, criteria))


class GrepScan(msgspec.Struct, frozen=True):
    """grep as a scan in one process: the parts are tables of the records found, the fold counts them."""

    criteria: Criteria
    limits: Limits = DEFAULT_LIMITS
    first_only: bool = False

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, self.criteria.selection, self.limits, GREP_CHUNK_BYTES, GREP_COST)

    def parts(self, opened: OpenedRange) -> Iterator[FoundRecords | Finding]:
        """The records found in a range, and findings."""
        return found_in(selected_chunks(opened, self.needs), self.criteria, self.limits)

    def fold(self, log: LogUnit, parts: LogParts[FoundRecords | Finding]) -> Iterator[GrepItem]:
        """The same items, then the end of the log with the number of records found."""
        count = 0
        for item in with_last_finding(log, parts):
            yield item
            if isinstance(item, FoundRecords):
                count += len(item.records)
                if self.first_only:
                    break
        yield LogSearched(log.path, log.location, count)


def logs_to_search(path: Path | Target, criteria: Criteria) -> Iterator[LogUnit | Finding]:
    """The log files below a path, in order, with a finding in place of anything that cannot be read.

    Raises InputError for a path that is none of Kafka's or holds no records.
    """
    target = target_at(path)
    if not is_searchable(target.kind):
        raise NotALogDir(f"a file of the kind {target.kind.value} holds no records", Location(str(target.path)))
    return logs_below(target, criteria.selection)


def found_in(
    items: Iterable[LogChunk | Finding], criteria: Criteria, limits: Limits
) -> Iterator[FoundRecords | Finding]:
    """The records found in a log's chunks, and findings."""
    for item in items:
        if isinstance(item, Finding):
            yield item
        else:
            yield from _chunk(item, criteria, limits)


def _chunk(item: LogChunk, criteria: Criteria, limits: Limits) -> Iterator[FoundRecords | Finding]:
    for table in record_tables(item.chunk, which=_batches(item, criteria), limits=limits, location=item.location):
        yield from reading_findings(table, item.location)
        candidates = _candidates(table, criteria, item.least_offset)
        hits = _hits(candidates, criteria)
        if hits is not None:
            found = candidates.rows(_others(candidates, hits) if criteria.is_inverted else hits.row)
        else:
            found = candidates
        if len(found):
            yield FoundRecords(item.location, found, None if criteria.is_inverted else hits)


def are_found(table: RecordTable, criteria: Criteria) -> NDArray[np.bool_]:
    """Which records of a table match the criteria, the selection aside."""
    keep = np.ones(len(table), bool)
    if criteria.producer_id is not None:
        keep &= table.batches.producer_id[table.batch] == criteria.producer_id
    if criteria.producer_epoch is not None:
        keep &= table.batches.producer_epoch[table.batch] == criteria.producer_epoch
    if criteria.tombstones:
        keep &= table.value_length < 0
    candidates = np.flatnonzero(keep)
    some = table.rows(candidates)
    hits = _hits(some, criteria)
    found = np.zeros(len(table), bool)
    if hits is None:
        found[candidates] = True
    else:
        found[candidates[_others(some, hits) if criteria.is_inverted else hits.row]] = True
    return found


def _batches(item: LogChunk, criteria: Criteria) -> NDArray[np.bool_]:
    """The batches that may hold a match; no others are decompressed."""
    batches = item.chunk.table
    which = item.readable
    if criteria.producer_id is not None:
        which &= batches.producer_id == criteria.producer_id
    if criteria.producer_epoch is not None:
        which &= batches.producer_epoch == criteria.producer_epoch
    return which


def _candidates(table: RecordTable, criteria: Criteria, least_offset: int) -> RecordTable:
    if criteria.selection.is_everything and not criteria.tombstones:
        return table
    keep = criteria.selection.records(table) & (table.offset >= least_offset)
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
