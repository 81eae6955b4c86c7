"""grep: the records whose key, value or header matches, or that a producer wrote, over any number of logs.

grep is a scan. The matches in a chunk depend on that chunk alone, so processes share the chunks of a log, and send the
records found as lines, as rows or as a number. The records around a match may lie in other chunks: with context, the
rows of all logs go through one loop, which decides what is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.checks.records import reading_findings
from format.columns import DECODED_NAMES, IS_MATCH, RowSchema, record_schema
from format.decoding.decoder import Decoding
from format.errors import NotALogDir
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.target import Target, target_at
from format.rows.decoded_rows import DECODING_COST, decoded_tables
from format.rows.line_blocks import LineBlock, RowText, in_lines
from format.rows.line_style import LineStyle
from format.rows.record_rows import Row, RowBlock, record_block, record_rows
from format.scan.drivers import scan_logs, with_last_finding
from format.scan.follow import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange, ResultT, Scan, Unfolded
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import EVERYTHING, Selection
from format.verbs.grep.pattern import Pattern
from format.verbs.grep.record_search import EVERYWHERE, Places, search, search_header_names, with_decoded
from format.verbs.txns.partition_transactions import logs_below

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
    """Some records of a log, in order."""

    location: Location
    records: RecordTable


class LogSearched(msgspec.Struct, frozen=True):
    """The end of the search of one log file, with the number of records found in it."""

    path: Path
    location: Location
    record_count: int


class FoundRows(msgspec.Struct, frozen=True):
    """Rows of records that were found in one log, to be read once."""

    rows: Iterable[Row]
    row_count: int
    location: Location

    def __reduce__(self) -> tuple[type[FoundRows], tuple[object, ...]]:
        return FoundRows, (list(self.rows), self.row_count, self.location)


class Search(msgspec.Struct, frozen=True):
    """The criteria, limits and output style of a search; ``style`` None gives rows instead of lines."""

    criteria: Criteria
    style: LineStyle | None = None
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress  # called with the bytes of the logs that were read since the last call
    extra_columns: frozenset[str] = frozenset()  # of EXTRA_RECORD_COLUMNS
    decoding: Decoding | None = None

    @property
    def scan(self) -> GrepScan:
        """The scan for the records."""
        return GrepScan(self.criteria, self.limits, self.decoding)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that rows have besides those of RECORD."""
        return self.extra_columns | (frozenset() if self.decoding is None else DECODED_NAMES)


Found = LineBlock | FoundRows | Finding


# -- what is searched, and what matches ------------------------------------------------------------------------


def logs_to_search(path: Path | Target, criteria: Criteria) -> Iterator[LogUnit | Finding]:
    """The log files below a path, in order, with a finding in place of anything that cannot be read.

    Raises InputError for a path that is none of Kafka's or holds no records.
    """
    target = target_at(path)
    if target.kind not in LOG_KINDS:
        raise NotALogDir(f"a file of the kind {target.kind.value} holds no records", Location(str(target.path)))
    return logs_below(target, criteria.selection)


def matching(table: RecordTable, criteria: Criteria) -> NDArray[np.intp]:
    """The rows of a table that match the criteria, the selection aside."""
    keep = np.ones(len(table), bool)
    if criteria.producer_id is not None:
        keep &= table.batches.producer_id[table.batch] == criteria.producer_id
    if criteria.producer_epoch is not None:
        keep &= table.batches.producer_epoch[table.batch] == criteria.producer_epoch
    if criteria.tombstones:
        keep &= table.value_length < 0
    candidates = np.flatnonzero(keep)
    some = table if len(candidates) == len(table) else table.rows(candidates)
    if criteria.pattern is not None:
        rows = search(some, criteria.pattern, criteria.places)
        if some.decoded is not None:
            rows = with_decoded(rows, some.decoded, criteria.pattern, criteria.places)
    elif criteria.places.header_names:
        rows = search_header_names(some, criteria.places.header_names)
    else:
        return candidates
    return np.delete(candidates, rows) if criteria.is_inverted else candidates[rows]


class GrepScan(msgspec.Struct, Unfolded[FoundRecords | Finding], frozen=True):
    """grep as a scan in one process: the parts are tables of the records found.

    With ``decoding`` a pattern also matches what keys and values say.
    """

    criteria: Criteria
    limits: Limits = DEFAULT_LIMITS
    decoding: Decoding | None = None

    @property
    def needs(self) -> Needs:
        cost = GREP_COST if self.decoding is None else DECODING_COST
        return Needs(Depth.RECORDS, self.criteria.selection, self.limits, GREP_CHUNK_BYTES, cost)

    def parts(self, opened: OpenedRange) -> Iterator[FoundRecords | Finding]:
        """The records found in a range, and findings."""
        for item in self.selected(opened, self._batches):
            if isinstance(item, Finding):
                yield item
                continue
            rows = matching(item.records, self.criteria)
            if len(rows):
                records = item.records if len(rows) == len(item.records) else item.records.rows(rows)
                yield FoundRecords(item.location, records)

    def selected(
        self, opened: OpenedRange, batches: Callable[[LogChunk], NDArray[np.bool_]]
    ) -> Iterator[FoundRecords | Finding]:
        """The records of some batches of a range that are in the selected ranges, and findings."""
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            for table in record_tables(item.chunk, which=batches(item), limits=self.limits, location=item.location):
                yield from reading_findings(table, item.location)
                records = table
                if not self.criteria.selection.is_everything:
                    keep = self.criteria.selection.records(table) & (table.offset >= item.least_offset)
                    records = table.rows(np.flatnonzero(keep))
                for part in decoded_tables(records, item.location, self.decoding):
                    if isinstance(part, Finding):
                        yield part
                    elif len(part):
                        yield FoundRecords(item.location, part)

    def _batches(self, item: LogChunk) -> NDArray[np.bool_]:
        """The batches that may hold a match; no others are decompressed."""
        batches, which = item.chunk.table, item.readable
        if self.criteria.producer_id is not None:
            which &= batches.producer_id == self.criteria.producer_id
        if self.criteria.producer_epoch is not None:
            which &= batches.producer_epoch == self.criteria.producer_epoch
        return which


def grep(
    path: Path | Target,
    criteria: Criteria,
    *,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
    decoding: Decoding | None = None,
) -> Iterator[FoundRecords | Finding]:
    """The records found at ``path`` in the order of the logs, and findings on the way.

    Records of a batch with a wrong CRC are not searched; a finding reports them. Raises InputError as
    ``logs_to_search`` does.
    """
    return scan_logs(GrepScan(criteria, limits, decoding), logs_to_search(path, criteria), advance=advance)


# -- lines, rows and counts ------------------------------------------------------------------------------------


def found_lines(paths: Iterable[Path | Target], search: Search) -> Iterator[Found]:
    """What ``grep`` finds at each path, in the same order: records as lines or rows, and findings.

    Records come as rows if the search has no style, if the kernel is not compiled, or if they may be too long for a
    line. Raises InputError for a path that does not belong to Kafka or holds no records, and WorkerDied.
    """
    return _searched(paths, search, GrepLines.of(search))


def follow_grep(targets: Sequence[Target], search: Search, follow: FollowTerms) -> Iterator[Found | CaughtUp]:
    """The results of ``found_lines`` for what is appended from now on. Raises InputError as ``Target.kind`` does."""
    scan = GrepLines.of(search)
    needs = scan.needs
    follow = replace(follow, selection=needs.selection, limits=search.limits, step_bytes=needs.range_bytes)
    driver = FollowDriver(targets, follow)
    yield from driver.begin()
    yield from follow_logs(scan, driver)


def searched_logs(
    paths: Iterable[Path | Target], search: Search, *, first_only: bool = False
) -> Iterator[LogSearched | Finding]:
    """How many records ``grep`` finds in each log, and findings; ``first_only`` ends a log after its first records."""
    return _searched(paths, search, GrepCounts(search.scan, first_only))


def _searched(paths: Iterable[Path | Target], search: Search, scan: Scan[Any, ResultT]) -> Iterator[ResultT | Finding]:
    logs = (log for path in paths for log in logs_to_search(path, search.criteria))
    return scan_logs(scan, logs, jobs=search.jobs, advance=search.advance)


class GrepLines(msgspec.Struct, Unfolded[Found], frozen=True):
    """grep as a scan whose parts are lines, or rows without ``text``."""

    grep: GrepScan
    text: RowText | None
    extra_columns: frozenset[str] = frozenset()

    @classmethod
    def of(cls, search: Search) -> GrepLines:
        return cls(search.scan, RowText.of(search.style), search.columns)

    @property
    def needs(self) -> Needs:
        return self.grep.needs

    def parts(self, opened: OpenedRange) -> Iterator[Found]:
        """The records found in a range, and findings."""
        for item in self.grep.parts(opened):
            if isinstance(item, Finding):
                yield item
                continue
            schema = record_schema(self.extra_columns)
            block = record_block(item.records, item.location, schema, opened.log.log_start_offset)
            if self.text is None:
                yield FoundRows(block.rows, len(item.records), item.location)
                continue
            for each in in_lines([block], self.text, opened.room):
                if isinstance(each, RowBlock):
                    rows = list(each.rows)
                    yield FoundRows(rows, len(rows), item.location)
                else:
                    yield each


class GrepCounts(msgspec.Struct, frozen=True):
    """grep as a scan whose parts are numbers of records found; the fold adds them up."""

    grep: GrepScan
    first_only: bool = False

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
            if self.first_only:
                break
        yield LogSearched(log.path, log.location, total)


# -- context ---------------------------------------------------------------------------------------------------


class Context(msgspec.Struct, frozen=True):
    """How many records are shown before and after each match."""

    before: int = 0
    after: int = 0


def context_schema(extra_columns: frozenset[str]) -> RowSchema:
    """The columns of rows with context: ``is_match`` is the last."""
    schema = record_schema(extra_columns)
    return RowSchema(schema.type, (*schema.columns, IS_MATCH))


def found_with_context(
    targets: Iterable[Path | Target], search: Search, context: Context, most_matches: int | None = None
) -> Iterator[FoundRows | Finding]:
    """The records found at each path in log order, those around them, and findings; at most so many matches."""
    scan = ContextScan(search.scan, context, search.columns)
    waiting: deque[Row] = deque(maxlen=context.before)
    directory, count, still_after = None, 0, 0
    for item in _searched(targets, replace(search, jobs=1), scan):
        if isinstance(item, Finding):
            yield item
            continue
        if Path(item.location.path).parent != directory:
            directory, still_after = Path(item.location.path).parent, 0
            waiting.clear()
        shown: list[Row] = []
        is_over = False
        for row in item.rows:
            is_match = row[-1]
            is_over = count == most_matches and (is_match or not still_after)
            if is_over:
                break
            if is_match:
                shown += (*waiting, row)
                waiting.clear()
                count, still_after = count + 1, context.after
            elif still_after:
                shown.append(row)
                still_after -= 1
            else:
                waiting.append(row)
        if shown:
            yield FoundRows(shown, len(shown), item.location)
        if is_over or (count == most_matches and not still_after):
            break


class ContextScan(msgspec.Struct, Unfolded[FoundRows | Finding], frozen=True):
    """grep with context as a scan: the parts are the matches in each table of records, and the records around them.

    The first and the last records of a table are among these, as they may be around a match in the one before or after.
    """

    grep: GrepScan
    context: Context
    extra_columns: frozenset[str] = frozenset()

    @property
    def needs(self) -> Needs:
        return replace(self.grep.needs, cost=None)

    def parts(self, opened: OpenedRange) -> Iterator[FoundRows | Finding]:
        """Rows of a range that may be shown, and findings."""
        schema = record_schema(self.extra_columns)
        for item in self.grep.selected(opened, lambda chunk: chunk.readable):
            if isinstance(item, Finding):
                yield item
                continue
            is_match = np.zeros(len(item.records), np.bool_)
            is_match[matching(item.records, self.grep.criteria)] = True
            numbers = np.flatnonzero(self._may_be_shown(is_match))
            rows = record_rows(item.records.rows(numbers), item.location, schema, opened.log.log_start_offset)
            marked: Iterable[Row] = ((*row, found) for row, found in zip(rows, is_match[numbers].tolist(), strict=True))
            yield FoundRows(marked, len(numbers), item.location)

    def _may_be_shown(self, is_match: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which records of a table match, lie around a match, or may lie around one in another table."""
        count, found = len(is_match), np.flatnonzero(is_match)
        steps = np.zeros(count + 1, np.int64)
        np.add.at(steps, np.maximum(found - self.context.before, 0), 1)
        np.add.at(steps, np.minimum(found + self.context.after + 1, count), -1)
        shown: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        shown[: self.context.after] = True
        shown[max(count - self.context.before, 0) :] = True
        return shown
