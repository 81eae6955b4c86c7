"""A report as one JSON document: the same rows as the page, by their types."""

from __future__ import annotations

from format.verbs.report.terms import Report
from format.version import VERSION
from kafkalog_cli.render.values import json_value


def document_of(report: Report) -> str:
    """The document. ``rows`` are the first rows of a table, and ``total`` is the number of all its rows."""
    document = {
        "type": "report",
        "version": VERSION,
        "made_at": report.made_at_ms,
        "paths": report.paths,
        "counts": report.counts,
        "findings": report.severities,
        "sentences": report.sentences,
        "tables": {
            name: {"total": table.total, "rows": table.objects()} for name, table in sorted(report.tables.items())
        },
        "not_checked": report.not_checked,
    }
    return json_value(document) + "\n"
