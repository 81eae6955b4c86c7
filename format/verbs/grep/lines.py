"""grep in one or several processes: the records found as lines, as rows, or as a number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from format.columns import record_schema
from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import DEFAULT_LIMITS, Limits
from format.node.target import Target
from format.rows.line_blocks import LineBlock, in_lines
from format.rows.record_rows import Row, RowBlock, record_block
from format.rows.row_text import LineStyle, RowText
from format.scan.drivers import scan_logs, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogParts, LogUnit, Needs, OpenedRange
from format.verbs.grep.grep import Criteria, FoundRecords, GrepScan, LogSearched, logs_to_search
from format.verbs.grep.record_search import Hits


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
