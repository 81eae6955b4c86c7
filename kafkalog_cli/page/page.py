"""One HTML page for a report: what its parts are, in which order, and how they are written."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath
from pkgutil import get_data
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from format.columns import RowSchema
from format.timestamps import iso_time
from format.verbs.report.terms import Report, ReportTable
from format.version import VERSION
from kafkalog_cli.page import charts
from kafkalog_cli.page.charts import FONT, WIDTH, Values, chart_library, script_json, shown, vega_chart
from kafkalog_cli.render.table import human_size
from kafkalog_cli.render.text import escape_text, json_string, json_value

#: States of partitions as the map colours them.
STATES = ("sound", "empty", "marked", "differs", "warning", "error", "fatal")

#: The columns of REPORT_PARTITION that a map is made of.
MAP_COLUMNS = ("path", "topic", "partition", "state", "notes", "record_count", "log_size_bytes")


def map_of(partitions: list[dict[str, Any]], log_dir: str) -> Markup | None:
    """A rectangle for each partition of a log directory: its area by the size of its logs, its colour by state.

    Indexes are left out: those of the active segment are as large as they can become, and mostly empty.
    """
    values: Values = [{"id": "all", "parent": None}]
    for number, row in enumerate(partitions):
        name = f"{shown(row['topic'])}-{row['partition']}" if row["topic"] else shown(row["path"].rpartition("/")[2])
        words = row["state"] if not row["notes"] else f"{row['state']}; {shown(row['notes'])}"
        if row["record_count"] is not None:
            words = f"{row['record_count']:,} records, {words}"
        values.append(
            {"id": str(number), "parent": "all", "size": max(row["log_size_bytes"] or 0, 1), "name": name,
             "fill": f"var(--{row['state']})", "ink": f"var(--on-{row['state']})",
             "tip": f"{name}: {human_size(row['log_size_bytes'] or 0)}, {words}"}
        )  # fmt: skip
    if len(values) == 1:
        return None
    height = 120 if len(values) < 12 else 240 if len(values) < 2_000 else 420
    width, depth = "datum.x1 - datum.x0", "datum.y1 - datum.y0"
    box = {"x": {"field": "x0"}, "y": {"field": "y0"}, "x2": {"field": "x1"}, "y2": {"field": "y1"}}
    spec: dict[str, Any] = {
        "width": WIDTH + 60,
        "height": height,
        "padding": 2,
        "data": [
            {
                "name": "tree",
                "values": values,
                "transform": [
                    {"type": "stratify", "key": "id", "parentKey": "parent"},
                    {"type": "treemap", "field": "size", "method": "squarify", "round": False,
                     "paddingInner": 1 if len(values) < 2_000 else 0.3, "size": [WIDTH + 60, height]},
                    {"type": "filter", "expr": "datum.parent !== null"},
                ],
            },
            {
                "name": "labels",
                "source": "tree",
                "transform": [{"type": "filter", "expr": f"{width} > 44 && {depth} > 12"}],
            },
        ],
        "marks": [
            {"type": "rect", "from": {"data": "tree"},
             "encode": {"enter": {**box, "fill": {"field": "fill"}, "description": {"field": "tip"}}}},
            {"type": "text", "from": {"data": "labels"}, "interactive": False, "aria": False,
             "encode": {"enter": {
                 "x": {"field": "x0", "offset": 4}, "y": {"field": "y0", "offset": 11},
                 "text": {"field": "name"}, "fontSize": {"value": 10}, "fill": {"field": "ink"},
                 "font": {"value": FONT}, "limit": {"signal": f"{width} - 6"},
             }}},
        ],
    }  # fmt: skip
    return vega_chart(spec, f"partitions of {shown(log_dir)} by size and state")


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
        yield from _table_rows(table)
        yield "]}"
    yield f'}},"not_checked":{json_value(report.not_checked)}}}\n'


def _table_rows(table: ReportTable) -> Iterator[str]:
    names = [f"{json_string(name)}:" for name in table.schema.names]
    for number, row in enumerate(table.rows):
        values = ",".join([name + json_value(value) for name, value in zip(names, row, strict=True)])
        yield f"{',' if number else ''}{{{values}}}"


#: How the page's script shows a value: as it is, with separators, as a size, as a time, as a duration, as yes or no.
_KINDS = {"int": "int", "timestamp": "time", "bool": "bool", "string": "text", "bytes": "text", "headers": "text"}

#: The columns of ranges of offsets.
_RANGES = ("lost_offsets", "damaged")


class Shown(msgspec.Struct, frozen=True):
    """A table on the page: its row type, its heading, the sentence in place of no rows, and its columns."""

    type: str
    heading: str
    none: str
    columns: tuple[str, ...]


TABLES = (
    Shown("log_dir", "Log directories", "", ("path", "node_id", "cluster_id", "partition_count", "size_bytes",
          "clean_shutdown", "lock_held", "notes")),
    Shown("run", "Runs whose tables these are", "",
          ("broker_id", "command", "started", "finished", "exit_code", "complete", "conditions", "version")),
    Shown("broker", "Brokers and controllers of the metadata", "No metadata log is here.",
          ("node_id", "role", "rack", "fenced", "in_controlled_shutdown", "leader", "endpoints")),
    Shown("boot_step", "What a start would do", "A start would change nothing.",
          ("action", "topic", "partition", "offset", "bytes", "lost_offsets", "reason", "path", "broker_message")),
    Shown("finding", "All findings", "No findings.",
          ("severity", "code", "topic", "partition", "position", "offset", "lost_offsets", "message", "path",
           "next_step")),
    Shown("file_bytes", "Bytes at the findings", "", ("path", "position", "code", "text", "hex")),
    Shown("topic_usage", "Topics", "No topics.",
          ("topic", "partition_count", "replica_count", "size_bytes", "record_count", "batch_count", "mean_batch_bytes",
           "codecs", "first_timestamp", "max_timestamp", "age_ms", "skew", "deletable_bytes", "next_deletable_at",
           "finding_count")),
    Shown("report_partition", "Partitions", "No partitions.",
          ("state", "topic", "partition", "node_id", "mark", "segment_count", "size_bytes", "record_count",
           "log_start_offset", "log_end_offset", "high_watermark", "max_timestamp", "leader_epoch", "codecs",
           "finding_count", "notes", "path")),
    Shown("timeline_event", "Events", "No events with a time.",
          ("timestamp", "kind", "severity", "topic", "partition", "offset", "detail", "path")),
    Shown("divergence", "Partitions whose replicas differ", "No replicas here differ.",
          ("topic", "partition", "kind", "offset", "node_ids", "elect_node_id", "lost_if_elected", "missing_node_ids",
           "log_end_offset", "high_watermark", "damaged")),
    Shown("replica", "Their replicas", "",
          ("topic", "partition", "node_id", "kind", "elect", "log_end_offset", "high_watermark", "leader_epoch",
           "unique_count", "lost_if_elected", "lost_committed_count", "truncate_to", "path")),
    Shown("transaction_total", "Transactions by partition", "No partition has transactions.",
          ("topic", "partition", "open_count", "hanging_count", "committed_count", "aborted_count",
           "last_stable_offset", "log_end_offset")),
    Shown("transaction", "Open and aborted transactions", "No transaction is open, and none is aborted.",
          ("state", "is_hanging", "topic", "partition", "transactional_id", "producer_id", "producer_epoch",
           "coordinator_state", "first_offset", "last_offset", "start_timestamp", "record_count",
           "waiting_record_count", "abort_command")),
    Shown("group", "Groups", "No groups.",
          ("group", "protocol", "state", "member_count", "committed_partitions", "total_lag", "pending_partitions",
           "last_commit_timestamp", "commits_per_hour")),
    Shown("group_offset", "Their offsets", "",
          ("group", "topic", "partition", "offset", "log_end_offset", "lag", "out_of_range", "commit_timestamp",
           "pending_offset")),
    Shown("retention_total", "Retention", "Retention has nothing to judge.",
          ("topic", "partition_count", "segment_count", "size_bytes", "deletable_count", "deletable_bytes",
           "next_deletable_at", "retained")),
    Shown("cleaner", "The cleaner", "No log here is compacted.",
          ("topic", "partition", "blocked_by", "dirty_ratio", "dirty_bytes", "clean_bytes", "cleaner_offset",
           "first_dirty_offset", "first_uncleanable_offset", "last_stable_offset", "config_source", "path")),
    Shown("topic", "Topics of the metadata", "",
          ("topic", "partition_count", "replication_factor", "internal", "marked_deleted", "configs", "topic_id")),
    Shown("assignment", "Replicas of the metadata", "",
          ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "adding_replicas", "removing_replicas")),
    Shown("metadata_change", "Changes of the metadata", "",
          ("timestamp", "record_type", "subject", "before", "after", "offset")),
)  # fmt: skip


class TableView(msgspec.Struct, frozen=True):
    """A table as the template shows it."""

    id: str
    heading: str
    none: str
    row_count: int
    total: int
    columns: tuple[str, ...] = ()
    table: ReportTable | None = None

    @property
    def data(self) -> Markup:
        """The table as JSON for the page's script. It is made when the template comes to it, as it may be large."""
        if self.table is None:
            return Markup("")
        schema = self.table.schema
        numbers = [schema.names.index(name) for name in self.columns]
        columns = [_column(schema, number) for number in numbers]
        values = [[row[number] for row in self.table.rows] for number in numbers]
        for name, column, each in zip(self.columns, columns, values, strict=True):
            if column["kind"] in ("text", "any"):  # all others are numbers
                _make_plain(name, each)
                _number_repeats(column, each)
        return script_json({"columns": columns, "rows": list(zip(*values, strict=True))})


def table_views(report: Report) -> dict[str, TableView]:
    """All tables, by the type of their rows."""
    found = {}
    for each in TABLES:
        table, none = report.tables.get(each.type), report.missing.get(each.type, each.none)
        if table is None:
            found[each.type] = TableView(each.type, each.heading, none, 0, 0)
        else:
            found[each.type] = TableView(
                each.type, each.heading, none, len(table.rows), table.total, each.columns, table
            )
    return found


def _column(schema: RowSchema, number: int) -> dict[str, Any]:
    column = schema.columns[number]
    kind = _KINDS.get(column.type, "any")
    if kind == "int" and column.name.endswith("_bytes"):
        kind = "bytes"
    elif kind == "int" and column.name.endswith("_ms"):
        kind = "span"
    return {"name": column.name, "kind": kind, "meaning": column.meaning}


def _make_plain(name: str, values: list[Any]) -> None:
    """Make the values of a column plain for the page: unsafe characters as escapes, lists and objects in words.

    Names, paths and reasons repeat, so each text is looked at once.
    """
    known: dict[str, str] = {}
    for row, value in enumerate(values):
        if value is None or isinstance(value, (bool, int, float)):
            continue
        text = value if isinstance(value, str) else _words_of(name, value)
        plain = known.get(text)
        if plain is None:
            plain = known[text] = escape_text(text)
        values[row] = plain


def _words_of(name: str, value: Any) -> str:
    """A list or object that holds only scalars, or ranges of offsets, in words; any other value as JSON."""
    if name in _RANGES and isinstance(value, (list, tuple)):
        return _ranges(value)
    if isinstance(value, (list, tuple)) and all(each is None or _is_plain(each) for each in value):
        return ", ".join("–" if each is None else str(each) for each in value) or "none"
    if isinstance(value, dict) and all(map(_is_plain, value.values())):
        return ", ".join(f"{key}={each}" for key, each in value.items()) or "none"
    return json_value(value)


def _ranges(value: Any, separator: str = "; ") -> str:
    """A range ``[first, last]``, or a list of ranges or of such lists, None for no range."""
    if value is None:
        return "–"
    if len(value) == 2 and all(map(_is_plain, value)):
        first, last = value
        return f"{first:,}" if first == last else f"{first:,}–{last:,}"
    return separator.join(_ranges(each, ", ") for each in value) or "none"


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _number_repeats(column: dict[str, Any], values: list[Any]) -> None:
    """Replace values that repeat by their numbers in the column's ``words``, which the page's script looks up.

    All values but None are replaced, also those that are numbers themselves.
    """
    words = dict.fromkeys((type(value), value) for value in values if value is not None)
    if 2 * len(words) > len(values) or len(values) < 20:
        return
    numbers = {word: index for index, word in enumerate(words)}
    column["words"] = [value for _, value in words]
    for row, value in enumerate(values):
        if value is not None:
            values[row] = numbers[type(value), value]


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
        findings=_objects(report, "finding_summary"),
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


def _objects(report: Report, name: str, *columns: str) -> list[dict[str, Any]]:
    return report.tables[name].objects(columns) if name in report.tables else []


def _charts(report: Report) -> dict[str, Any]:
    by_time, places = _objects(report, "bytes_by_time"), _objects(report, "damaged_place")
    times, times_words = charts.bytes_by_time(by_time, places)
    usage = _objects(report, "topic_usage")
    return {
        "times": times,
        "times_words": times_words,
        "offsets": charts.bytes_by_offset(_objects(report, "bytes_by_offset"), places),
        "sizes": charts.batch_sizes(_objects(report, "batch_sizes")),
        "topics": charts.topics(usage),
        "lag": charts.lag(_objects(report, "group_offset")),
        "skew": charts.skew(_objects(report, "report_partition", *charts.SKEW_COLUMNS), usage),
        "timeline": charts.timeline(_objects(report, "timeline_event"), by_time),
    }


def _maps(report: Report) -> Iterator[tuple[str, Markup]]:
    """A map of each log directory; partitions without one share a map of their parent directory."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _objects(report, "report_partition", *MAP_COLUMNS):
        found.setdefault(str(PurePath(row["path"]).parent), []).append(row)
    for path, rows in found.items():
        drawn = map_of(rows, path)
        if drawn is not None:
            yield path, drawn
