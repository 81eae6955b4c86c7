"""What is asked of a report, and the tables that it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from format.columns import RowSchema
from format.io.bundles.bundle import Bundle
from format.limits import DEFAULT_LIMITS, Limits
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.value_class import state_class, value_class

#: A table keeps so many rows; the others are counted. Partitions have a bound of their own, as the page maps each.
MOST_ROWS = 2_000
MOST_PARTITIONS = 20_000


@value_class
class ReportTerms:
    """The time to judge at, and how the work is done.

    ``with_bytes``: the bytes of the files at damaged places are part of the report, which may be keys and values.
    ``bundles``: the targets lie in these, and their findings are those of the time when the bundles were made.
    """

    now_ms: int
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress
    with_bytes: bool = False
    compacted_topics: frozenset[str] = frozenset()  # by their configs in the metadata log
    bundles: tuple[Bundle, ...] = ()


@state_class
class ReportTable:
    """Rows of one schema, the first ``most`` of them, and how many there were."""

    schema: RowSchema
    most: int = MOST_ROWS
    rows: list[Row] = field(default_factory=list)
    total: int = 0

    def add(self, row: Row) -> None:
        """Count a row, and keep it while there is room."""
        self.total += 1
        if len(self.rows) < self.most:
            self.rows.append(row)

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows one by one."""
        for row in rows:
            self.add(row)

    def objects(self) -> list[dict[str, Any]]:
        """The rows as objects, for callers that read columns by name."""
        return [dict(zip(self.schema.names, row, strict=True)) for row in self.rows]


@state_class
class Report:
    """Everything that a page shows: the sentences first, then tables by the type of their rows."""

    made_at_ms: int
    paths: list[str]
    counts: dict[str, int] = field(default_factory=dict)  # what was looked at
    severities: dict[str, int] = field(default_factory=dict)  # all findings, those that no table keeps among them
    sentences: list[str] = field(default_factory=list)
    tables: dict[str, ReportTable] = field(default_factory=dict)
    not_checked: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # by type of rows: why there can be none
    is_incomplete: bool = False  # a scan whose tables these are could not read everything

    def table(self, schema: RowSchema, most: int = MOST_ROWS) -> ReportTable:
        """The table of a schema, empty until rows are added."""
        return self.tables.setdefault(schema.type, ReportTable(schema, most))

    def note(self, words: Iterable[str]) -> None:
        """Add to what was not checked, each line once."""
        for each in words:
            if each not in self.not_checked:
                self.not_checked.append(each)
