"""Renderers: rows of any schema of ``format.columns`` as a table, text, JSON lines, CSV or logfmt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from format.columns import RECORD, RowSchema
from format.findings import Severity
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.lines import CsvRenderer, JsonLinesRenderer, LogfmtRenderer
from kafkalog_cli.render.table import TableColumns, TableRenderer

FORMATS = ("table", "text", "jsonl", "csv", "logfmt")
#: The formats for people, whose columns are chosen.
READABLE = ("table", "text")


#: The writer of one document. ``write`` renders rows, tuples in the order of the schema's columns, from an iterable
#: that is read once; if it raises, the rows before that are rendered.
Renderer = JsonLinesRenderer | CsvRenderer | LogfmtRenderer | TableRenderer


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
