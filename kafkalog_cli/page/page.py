"""A report as one HTML page, which loads nothing, runs only its own scripts, and escapes every name and value."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath
from pkgutil import get_data
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from format.timestamps import iso_time
from format.verbs.report.terms import Report
from format.version import VERSION
from kafkalog_cli.page import charts
from kafkalog_cli.page.chart_library import chart_library
from kafkalog_cli.page.partition_map import MAP_COLUMNS, STATES, map_of
from kafkalog_cli.page.view import table_views
from kafkalog_cli.render.escape import escape_text
from kafkalog_cli.render.table import human_size

_PACKAGE = "kafkalog_cli.page"


def page_of(report: Report) -> str:
    """The page."""
    return "".join(page_parts(report))


def page_parts(report: Report) -> Iterator[str]:
    """The page, part by part."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=select_autoescape(enabled_extensions=("j2",), default=True),
        finalize=_safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(bytes=human_size, time=iso_time, number=lambda each: f"{each:,}")
    library, script = chart_library(), _resource("page.js")
    parts = environment.get_template("page.html.j2").generate(
        scripts=[(Markup(each), _digest(each)) for each in (library, script)],
        style=Markup(_resource("page.css")),
        version=VERSION,
        title=_title(report),
        report=report,
        tables=table_views(report),
        findings=_rows(report, "finding_summary"),
        maps=_maps(report),
        states=STATES,
        **_charts(report),
    )
    for part in parts:
        yield part if part.isascii() else part.encode("utf-8", "backslashreplace").decode()


def _safe(value: Any) -> Any:
    """A value for the template, with unsafe characters of text as escapes. Jinja2 escapes it for HTML afterwards."""
    return escape_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _resource(name: str) -> str:
    content = get_data(_PACKAGE, f"templates/{name}")  # importlib.resources takes longer to import than to read it
    if content is None:
        raise FileNotFoundError(name)
    return content.decode()


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


def _title(report: Report) -> str:
    names = [PurePath(path).name or path for path in report.paths]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _rows(report: Report, name: str, *columns: str) -> list[dict[str, Any]]:
    return report.tables[name].objects(columns) if name in report.tables else []


def _charts(report: Report) -> dict[str, Any]:
    by_time, places = _rows(report, "bytes_by_time"), _rows(report, "damaged_place")
    times, times_words = charts.bytes_by_time(by_time, places)
    usage = _rows(report, "topic_usage")
    return {
        "times": times,
        "times_words": times_words,
        "offsets": charts.bytes_by_offset(_rows(report, "bytes_by_offset"), places),
        "sizes": charts.batch_sizes(_rows(report, "batch_sizes")),
        "topics": charts.topics(usage),
        "lag": charts.lag(_rows(report, "group_offset")),
        "skew": charts.skew(_rows(report, "report_partition", *charts.SKEW_COLUMNS), usage),
        "timeline": charts.timeline(_rows(report, "timeline_event"), by_time),
    }


def _maps(report: Report) -> Iterator[tuple[str, Markup]]:
    """A map of each log directory; partitions without one share a map of their parent directory."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(report, "report_partition", *MAP_COLUMNS):
        found.setdefault(str(PurePath(row["path"]).parent), []).append(row)
    for path, rows in found.items():
        drawn = map_of(rows, path)
        if drawn is not None:
            yield path, drawn
