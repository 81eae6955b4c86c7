"""Renderers: rows of any schema of ``format.columns`` as a table, text, JSON lines, CSV or logfmt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from format.columns import RECORD, RowSchema
from format.findings import Severity
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.lines import CsvRenderer, JsonLinesRenderer, LogfmtRenderer
from kafkalog_cli.render.table import TableColumns, TableRenderer

FORMATS = ("table", "text", "jsonl", "csv", "logfmt")
#: The formats for people, whose columns are chosen.
READABLE = ("table", "text")


class Renderer(Protocol):
    """The writer of one document."""

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Render rows, tuples in the order of the schema's columns, from an iterable that is read once.

        If it raises, the rows before that are rendered.
        """
        ...

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines that are in the renderer's format already, in UTF-8, each with its LF."""
        ...

    def flush(self) -> None:
        """Write the rows that are held back."""
        ...

    def finish(self, summary: Summary, shown: bool) -> None:
        """End the document. ``shown``: tables, text and logfmt include the summary."""
        ...


def open_renderer(
    format_name: str,
    output: OutputStream,
    *,
    main_schema: RowSchema | None = None,
    table_columns: TableColumns | None = None,
    chosen_columns: Sequence[str] | None = None,
    fail_on: Severity = Severity.ERROR,
    aside: Callable[[str], None],
) -> Renderer:
    """The renderer of a format; ``aside`` is called with lines that the format cannot hold.

    ``main_schema`` is the row type of CSV. ``table_columns`` are, by row type, the columns of tables;
    ``chosen_columns``, if given, replace them. ``fail_on``: see FindingList.
    """
    if format_name == "jsonl":
        return JsonLinesRenderer(output)
    if format_name == "csv":
        return CsvRenderer(output, main_schema, aside)
    if format_name in READABLE:
        return TableRenderer(
            output,
            table_columns or {},
            chosen_columns,
            is_text=format_name == "text",
            fail_on=fail_on,
            among_records=main_schema is not None and main_schema.type == RECORD.type,
        )
    if format_name == "logfmt":
        return LogfmtRenderer(output)
    raise ValueError(f"no such format: {format_name}")
