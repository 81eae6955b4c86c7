"""grep: the records whose key, value or header matches, or that a producer wrote, over any number of logs.

grep is a scan. The matches in a chunk depend on that chunk alone. The fold counts the matches in a log, and stops
after the first one where one is enough. ``lines`` has the scans whose parts are sent between processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.checks.record_contents import reading_findings
from format.columns import IS_MATCH, RowSchema, record_schema
from format.errors import NotALogDir
from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.log_dir import Kind
from format.node.target import Target, target_at
from format.rows.line_blocks import LineBlock, in_lines
from format.rows.record_rows import Row, RowBlock, record_block, record_rows
from format.rows.row_text import LineStyle, RowText
from format.scan.drivers import scan_logs
from format.scan.folding import with_last_finding
from format.scan.following.driver import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.scan.progress import Advance, no_progress
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


class FoundRows(msgspec.Struct, frozen=True):
    """Rows of records found, to be read once; ``hits`` has the match of each, None for a search without a pattern."""

    rows: Iterable[Row]
    row_count: int
    hits: Hits | None

    def __reduce__(self) -> tuple[type[FoundRows], tuple[object, ...]]:
        return FoundRows, (list(self.rows), self.row_count, self.hits)


class Search(msgspec.Struct, frozen=True):
    """The criteria, limits and output style of a search; ``style`` None gives rows instead of lines."""

    criteria: Criteria
    style: LineStyle | None = None
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress  # called with the bytes of the logs that were read since the last call
    extra_columns: frozenset[str] = frozenset()  # of EXTRA_RECORD_COLUMNS


Found = LineBlock | FoundRows | Finding


def found_lines(paths: Iterable[Path | Target], search: Search) -> Iterator[Found]:
    """What ``grep`` finds at each path, in the same order: records as lines or rows, and findings.

    Records come as rows if the search has no style, if the kernel is not compiled, or if they may be too long for a
    line. Raises InputError for a path that does not belong to Kafka or holds no records, and WorkerDied.
    """
    text = None if search.style is None or not KERNEL_IS_COMPILED else RowText(search.style)
    scan = GrepLines(GrepScan(search.criteria, search.limits), text, search.extra_columns)
    logs = (log for path in paths for log in logs_to_search(path, search.criteria))
    yield from scan_logs(scan, logs, jobs=search.jobs, advance=search.advance)


def searched_logs(
    paths: Iterable[Path | Target], search: Search, *, first_only: bool = False
) -> Iterator[LogSearched | Finding]:
    """How many records ``grep`` finds in each log, in the same order, and findings; ``first_only`` as there."""
    scan = GrepCounts(GrepScan(search.criteria, search.limits, first_only))
    logs = (log for path in paths for log in logs_to_search(path, search.criteria))
    yield from scan_logs(scan, logs, jobs=search.jobs, advance=search.advance)


class GrepLines(msgspec.Struct, frozen=True):
    """grep as a scan whose parts are lines, or rows without ``text``; the fold yields them."""

    grep: GrepScan
    text: RowText | None
    extra_columns: frozenset[str] = frozenset()

    @property
    def needs(self) -> Needs:
        return self.grep.needs

    def parts(self, opened: OpenedRange) -> Iterator[Found]:
        """The records found in a range, and findings."""
        found = self.grep.parts(opened)
        if self.text is None:
            for item in found:
                yield item if isinstance(item, Finding) else self._rows(item, opened.log)
            return
        blocks = (item if isinstance(item, Finding) else self._block(item, opened.log) for item in found)
        for block in in_lines(blocks, self.text, opened.room):
            yield _as_rows(block) if isinstance(block, RowBlock) else block

    def fold(self, log: LogUnit, parts: LogParts[Found]) -> Iterator[Found]:
        """The same."""
        return parts

    def _rows(self, found: FoundRecords, log: LogUnit) -> FoundRows:
        return FoundRows(self._block(found, log).rows, len(found.records), found.hits)

    def _block(self, found: FoundRecords, log: LogUnit) -> RowBlock:
        return record_block(found.records, found.location, record_schema(self.extra_columns), log.log_start_offset)


def _as_rows(block: RowBlock) -> FoundRows:
    rows = list(block.rows)
    return FoundRows(rows, len(rows), None)


class GrepCounts(msgspec.Struct, frozen=True):
    """grep as a scan whose parts are numbers of records found; the fold adds them up."""

    grep: GrepScan

    @property
    def needs(self) -> Needs:
        return self.grep.needs

    def parts(self, opened: OpenedRange) -> Iterator[int | Finding]:
        """How many records were found in each table of a range, and findings."""
        for item in self.grep.parts(opened):
            yield item if isinstance(item, Finding) else len(item.records)

    def fold(self, log: LogUnit, parts: LogParts[int | Finding]) -> Iterator[LogSearched | Finding]:
        """The findings and the sum; with ``first_only`` the log ends after the first records found."""
        total = 0
        for item in with_last_finding(log, parts):
            if isinstance(item, Finding):
                yield item
                continue
            total += item
            if self.grep.first_only:
                break
        yield LogSearched(log.path, log.location, total)


def follow_grep(targets: Sequence[Target], search: Search, follow: FollowTerms) -> Iterator[Found | CaughtUp]:
    """The results of ``found_lines`` for what is appended from now on. Raises InputError as ``Target.kind`` does."""
    text = None if search.style is None or not KERNEL_IS_COMPILED else RowText(search.style)
    scan = GrepLines(GrepScan(search.criteria, search.limits), text, search.extra_columns)
    needs = scan.needs
    follow = replace(follow, selection=needs.selection, limits=search.limits, step_bytes=needs.range_bytes)
    with FollowDriver(targets, follow) as driver:
        yield from driver.begin()
        yield from follow_logs(scan, driver)


Bools = NDArray[np.bool_]


class Context(msgspec.Struct, frozen=True):
    """How many records are shown before and after each match."""

    before: int = 0
    after: int = 0


class _Searched(msgspec.Struct, frozen=True):
    """Some consecutive records, and which of them match."""

    records: RecordTable
    is_match: Bools


def context_schema(extra_columns: frozenset[str]) -> RowSchema:
    """The columns of rows with context: ``is_match`` is the last."""
    schema = record_schema(extra_columns)
    return RowSchema(schema.type, (*schema.columns, IS_MATCH))


def found_with_context(
    targets: Iterable[Path | Target], search: Search, context: Context
) -> Iterator[FoundRows | Finding]:
    """The records found at each path in log order, those around them, and findings."""
    scan = ContextScan(GrepScan(search.criteria, search.limits), context, search.extra_columns)
    for target in targets:
        yield from scan_logs(scan, logs_to_search(target, search.criteria), advance=search.advance)


class ContextScan(msgspec.Struct, frozen=True):
    """grep with context as a scan."""

    grep: GrepScan
    context: Context
    extra_columns: frozenset[str] = frozenset()

    @property
    def needs(self) -> Needs:
        return replace(self.grep.needs, cost=None)

    def parts(self, opened: OpenedRange) -> Iterator[_Searched | Finding]:
        """The selected records of a range, and findings."""
        criteria, limits = self.grep.criteria, self.grep.limits
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            for table in record_tables(item.chunk, which=item.readable, limits=limits, location=item.location):
                yield from reading_findings(table, item.location)
                keep = criteria.selection.records(table) & (table.offset >= item.least_offset)
                records = table.rows(np.flatnonzero(keep))
                if len(records):
                    yield _Searched(records, are_found(records, criteria))

    def fold(self, log: LogUnit, parts: LogParts[_Searched | Finding]) -> Iterator[FoundRows | Finding]:
        """The records of a log that are shown, and findings."""
        held = _Held(self.context.before)
        still_after = 0
        for item in with_last_finding(log, parts):
            if isinstance(item, Finding):
                yield item
                continue
            shown, needed_before, still_after = self._shown(item.is_match, still_after)
            for records in held.last(needed_before):
                yield self._rows(records, np.zeros(len(records), np.bool_), log)
            numbers = np.flatnonzero(shown)
            if len(numbers):
                held.clear()
                yield self._rows(item.records.rows(numbers), item.is_match[numbers], log)
            held.add(item.records, int(numbers[-1]) + 1 if len(numbers) else 0)

    def _shown(self, is_match: Bools, still_after: int) -> tuple[Bools, int, int]:
        """Which records are shown, how many more before the first, and how many more after the last."""
        count = len(is_match)
        found = np.flatnonzero(is_match)
        steps = np.zeros(count + 1, np.int64)
        np.add.at(steps, np.maximum(found - self.context.before, 0), 1)
        np.add.at(steps, np.minimum(found + self.context.after + 1, count), -1)
        shown: Bools = np.cumsum(steps[:-1]) > 0
        shown[:still_after] = True
        left = max(still_after - count, 0)
        if not len(found):
            return shown, 0, left
        needed = max(self.context.before - int(found[0]), 0) if not still_after else 0
        return shown, needed, max(left, int(found[-1]) + self.context.after + 1 - count)

    def _rows(self, records: RecordTable, is_match: Bools, log: LogUnit) -> FoundRows:
        rows = record_rows(records, log.location, record_schema(self.extra_columns), log.log_start_offset)
        marked: Iterable[Row] = ((*row, found) for row, found in zip(rows, is_match.tolist(), strict=True))
        return FoundRows(marked, len(records), None)


class _Held:
    """The last records that were not shown, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tables: deque[RecordTable] = deque()
        self._count = 0

    def add(self, records: RecordTable, first: int) -> None:
        """Hold the last records of a table, from row ``first`` on."""
        kept = records.rows(slice(max(first, len(records) - self._most), len(records)))
        if not len(kept):
            return
        self._tables.append(kept)
        self._count += len(kept)
        while self._count - len(self._tables[0]) >= self._most:
            self._count -= len(self._tables.popleft())

    def last(self, count: int) -> Iterator[RecordTable]:
        """The last of the records held, in order."""
        too_many = max(self._count - count, 0)
        for table in self._tables:
            skipped = min(too_many, len(table))
            too_many -= skipped
            if skipped < len(table):
                yield table.rows(slice(skipped, len(table)))

    def clear(self) -> None:
        """Hold no records."""
        self._tables.clear()
        self._count = 0
