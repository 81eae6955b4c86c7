"""grep -C: the records found, with some of the records before and after them in the same log.

The fold decides what is shown, as the records around a match may lie in other chunks. So the parts are all records of
a log. They are not sent between processes: one process reads each log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.checks.record_contents import reading_findings
from format.columns import IS_MATCH, RowSchema, record_schema
from format.findings import Finding
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.target import Target
from format.rows.record_rows import Row, record_rows
from format.scan.drivers import scan_logs, with_last_finding
from format.scan.protocol import LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.verbs.grep.grep import GrepScan, are_found, logs_to_search
from format.verbs.grep.lines import FoundRows, Search

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
