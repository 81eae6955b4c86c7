"""A report as one JSON document: the same rows as the page, by their types."""

from __future__ import annotations

from collections.abc import Iterator

from format.verbs.report.terms import Report, ReportTable
from format.version import VERSION
from kafkalog_cli.render.values import json_string, json_value


def document_parts(report: Report) -> Iterator[str]:
    """The document, row by row. ``rows`` are the first rows of a table, and ``total`` is the number of all its rows."""
    before = {
        "type": "report",
        "version": VERSION,
        "made_at": report.made_at_ms,
        "paths": report.paths,
        "counts": report.counts,
        "findings": report.severities,
        "sentences": report.sentences,
    }
    yield f'{json_value(before)[:-1]},"tables":{{'
    for number, (name, table) in enumerate(sorted(report.tables.items())):
        yield f'{"," if number else ""}{json_string(name)}:{{"total":{table.total},"rows":['
        yield from _rows(table)
        yield "]}"
    yield f'}},"not_checked":{json_value(report.not_checked)}}}\n'


def _rows(table: ReportTable) -> Iterator[str]:
    names = [f"{json_string(name)}:" for name in table.schema.names]
    for number, row in enumerate(table.rows):
        values = ",".join([name + json_value(value) for name, value in zip(names, row, strict=True)])
        yield f"{',' if number else ''}{{{values}}}"
