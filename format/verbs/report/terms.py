"""The options of report, and the tables that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from format.columns import RowSchema
from format.findings import Finding
from format.io.bundles.bundle import Bundle
from format.limits import DEFAULT_LIMITS, Limits
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.state.cluster_context import ContextTerms
from format.verbs.doctor.diagnosis import Diagnosis
from format.wording import listed

ItemT = TypeVar("ItemT")

#: The most rows that a table keeps; the others are counted. The page maps each partition, so their limit is higher.
MOST_ROWS = 2_000
MOST_PARTITIONS = 20_000


class ReportTerms(msgspec.Struct, frozen=True):
    """The options of a report.

    ``now_ms`` is the time to judge at. ``with_bytes``: the report has bytes of files at damaged places, which may be
    keys and values. ``bundles``: the targets are in these, and so are their findings. ``context`` is for a metadata log
    and a server.properties that are not beside the logs.
    """

    now_ms: int
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress
    with_bytes: bool = False
    bundles: tuple[Bundle, ...] = ()
    context: ContextTerms = msgspec.field(default_factory=ContextTerms)


class ReportTable(msgspec.Struct):
    """The first ``most`` rows of one schema, and the number of all rows."""

    schema: RowSchema
    most: int = MOST_ROWS
    rows: list[Row] = msgspec.field(default_factory=list)
    total: int = 0

    def add(self, row: Row) -> None:
        """Count a row, and keep it while there is room."""
        self.total += 1
        if len(self.rows) < self.most:
            self.rows.append(row)

    def extend(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def extend_by(self, row_of: Callable[[ItemT], Row], items: Sequence[ItemT]) -> None:
        """Add the rows of some items; those for which there is no room are not made."""
        room = max(self.most - len(self.rows), 0)
        self.rows += map(row_of, items[:room])
        self.total += len(items)

    def objects(self, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows as objects, for callers that read columns by name; with all columns unless some are named."""
        numbers = [(name, self.schema.names.index(name)) for name in columns or self.schema.names]
        return [{name: row[number] for name, number in numbers} for row in self.rows]


class Report(msgspec.Struct):
    """The content of a page: the diagnoses first, then tables by the type of their rows."""

    made_at_ms: int
    paths: list[str]
    counts: dict[str, int] = msgspec.field(default_factory=dict)  # of what was checked
    # of all findings, including those that no table keeps
    severities: dict[str, int] = msgspec.field(default_factory=dict)
    sentences: list[str] = msgspec.field(default_factory=list)  # about what was read; of tables also about damage
    diagnoses: list[Diagnosis] = msgspec.field(default_factory=list)  # the most urgent first
    tables: dict[str, ReportTable] = msgspec.field(default_factory=dict)
    not_checked: list[str] = msgspec.field(default_factory=list)
    looked_at: str = ""  # for the diagnoses
    finds_nothing_wrong: bool = True  # False too where the logs at hand leave open who can lead
    is_all_read: bool = True  # for the diagnoses
    not_known: list[str] = msgspec.field(default_factory=list)  # what the diagnoses lack, in few words
    missing: dict[str, str] = msgspec.field(default_factory=dict)  # by type of rows: why the table is missing
    is_incomplete: bool = False  # one of the scans could not read everything
    differing: set[str] = msgspec.field(default_factory=set)  # the directories of partitions whose replicas differ
    later_findings: list[Finding] = msgspec.field(default_factory=list)  # of answers; verify does not have them

    def table(self, schema: RowSchema, most: int = MOST_ROWS) -> ReportTable:
        """The table of a schema, empty until rows are added."""
        return self.tables.setdefault(schema.type, ReportTable(schema, most))

    @property
    def closing(self) -> str:
        """What the diagnoses looked at, and that nothing is wrong there, where that was found."""
        if not self.finds_nothing_wrong:
            return f"{self.looked_at}."
        if self.is_all_read:
            return f"nothing wrong found in {self.looked_at}."
        return f"not all was read; nothing wrong found in the rest of {self.looked_at}."

    def leave_out(self, paths: Sequence[str]) -> None:
        """Say of paths that nothing of them could be read."""
        if paths:
            self.is_incomplete, self.is_all_read = True, False
            self.note(f"{each}, which cannot be listed" for each in paths)
            self.not_known.insert(0, f"what is in {listed(paths)}, which cannot be listed")

    def note(self, words: Iterable[str]) -> None:
        """Add notes on what was not checked, each once."""
        for each in words:
            if each not in self.not_checked:
                self.not_checked.append(each)
