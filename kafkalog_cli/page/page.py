"""One HTML page for a report: what its parts are, in which order, and how they are written."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import PurePath
from pkgutil import get_data
from typing import Any

import msgspec.structs
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from format.columns import DIAGNOSIS, Column
from format.timestamps import iso_time
from format.verbs.report.terms import Report, ReportTable
from format.version import VERSION
from format.wording import counted
from kafkalog_cli.page import charts
from kafkalog_cli.page.charts import FONT, WIDTH, Chart, Rows, chart_library, shares, shown, span_words
from kafkalog_cli.render.table import human_size
from kafkalog_cli.render.text import escape_text, json_string, json_value

#: States of partitions as the map colours them.
STATES = ("sound", "empty", "marked", "differs", "warning", "error", "fatal")

#: The columns of REPORT_PARTITION that a map is made of.
MAP_COLUMNS = ("path", "topic", "partition", "state", "notes", "record_count", "log_size_bytes")


def map_of(partitions: list[dict[str, Any]], log_dir: str) -> Chart | None:
    """A rectangle for each partition of a log directory: its area by the size of its logs, its colour by state.

    Indexes are left out: those of the active segment are as large as they can become, and mostly empty.
    """
    values: Rows = [{"id": "all", "parent": None}]
    sizes: dict[str, int] = {}
    states: dict[str, list[str]] = {}
    for number, row in enumerate(partitions):
        name = f"{shown(row['topic'])}-{row['partition']}" if row["topic"] else shown(row["path"].rpartition("/")[2])
        words = row["state"] if not row["notes"] else f"{row['state']}; {shown(row['notes'])}"
        if row["record_count"] is not None:
            words = f"{counted(row['record_count'], 'record')}, {words}"
        sizes[PurePath(row["path"]).name] = row["log_size_bytes"] or 0
        states.setdefault(row["state"], []).append(name)
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
    counts = ", ".join(_state_words(state, states[state]) for state in STATES if state in states)
    words = (
        f"{counted(len(sizes), 'partition')} by the bytes of their logs, {human_size(sum(sizes.values()))}: {counts}"
    )
    largest = "" if len(sizes) == 1 else f" The largest: {shares(sizes)}."
    return Chart(f"{shown(log_dir)}: {words}.{largest}", "vega", {"config": {"background": None}, **spec})


def _state_words(state: str, names: list[str]) -> str:
    """How many partitions are in a state, with the first names where the state is none that all is well in."""
    if state in ("sound", "empty"):
        return f"{len(names):,} {state}"
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{len(names):,} {state} ({', '.join(names[:3])}{more})"


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
        "diagnoses": [dict(zip(DIAGNOSIS.names, each.row(), strict=True)) for each in report.diagnoses],
        "looked_at": report.looked_at,
        "not_known": report.not_known,
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


#: How a value is shown: as it is, with separators, as a size, as a time, as a duration, as yes or no.
_KINDS = {"int": "int", "timestamp": "time", "bool": "bool", "string": "text", "bytes": "text", "headers": "text"}
_NUMBERS = ("int", "bytes", "span")

#: The columns of ranges of offsets.
_RANGES = ("lost_offsets", "damaged")


class Heading(msgspec.Struct, frozen=True):
    """The heading of a column: its name in words, what it means, and the class of its cells' alignment."""

    words: str
    meaning: str
    css: str


class Shown(msgspec.Struct, frozen=True):
    """A table on the page: its row type, its heading, the sentence in place of no rows, its columns, and its rows."""

    type: str
    heading: str
    none: str
    columns: tuple[str, ...]
    table: ReportTable | None = None

    @property
    def row_count(self) -> int:
        return 0 if self.table is None else len(self.table.rows)

    @property
    def total(self) -> int:
        return 0 if self.table is None else self.table.total

    @property
    def headings(self) -> Iterator[Heading]:
        for column in self._columns():
            yield Heading(column.name.replace("_", " "), column.meaning, "n" if _kind(column) in _NUMBERS else "")

    @property
    def rows(self) -> Markup:
        """The rows as HTML, made when the template comes to it. In HTML, cells need no end tags."""
        if self.table is None:
            return Markup("")
        names = self.table.schema.names
        cells = [
            _cells(column, [row[names.index(column.name)] for row in self.table.rows]) for column in self._columns()
        ]
        return Markup("\n".join([f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True)]))

    def _columns(self) -> list[Column]:
        named = {} if self.table is None else {each.name: each for each in self.table.schema.columns}
        return [named[name] for name in self.columns if named]


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
    Shown("cleaner", "The cleaner", "No log here is known to be compacted.",
          ("topic", "partition", "blocked_by", "dirty_ratio", "dirty_bytes", "clean_bytes", "cleaner_offset",
           "first_dirty_offset", "first_uncleanable_offset", "last_stable_offset", "config_source", "path")),
    Shown("topic", "Topics of the metadata", "",
          ("topic", "partition_count", "replication_factor", "internal", "marked_deleted", "configs", "topic_id")),
    Shown("assignment", "Replicas of the metadata", "",
          ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "adding_replicas", "removing_replicas")),
    Shown("metadata_change", "Changes of the metadata", "",
          ("timestamp", "record_type", "subject", "before", "after", "offset")),
)  # fmt: skip


def table_views(report: Report) -> dict[str, Shown]:
    """All tables, by the type of their rows."""
    return {
        each.type: msgspec.structs.replace(
            each, none=report.missing.get(each.type, each.none), table=report.tables.get(each.type)
        )
        for each in TABLES
    }


def _kind(column: Column) -> str:
    kind = _KINDS.get(column.type, "any")
    if kind == "int" and column.name.endswith("_bytes"):
        return "bytes"
    return "span" if kind == "int" and column.name.endswith("_ms") else kind


def _cells(column: Column, values: Iterable[Any]) -> Iterator[str]:
    """The cells of a column as HTML. Names, paths and reasons repeat, so the cell of each text is made once."""
    kind, known = _kind(column), dict[str, str]()
    for value in values:
        if value is None:
            yield '<td class="null n">–' if kind in _NUMBERS else '<td class="null">–'
        elif isinstance(value, bool):
            yield f"<td>{('yes' if value else 'no') if kind == 'bool' else json_value(value)}"
        elif isinstance(value, (int, float)):
            yield _number_cell(kind, value)
        else:
            text = value if isinstance(value, str) else _words_of(column.name, value)
            if text not in known:
                known[text] = _text_cell(column.name, escape_text(text))
            yield known[text]


def _number_cell(kind: str, value: int | float) -> str:
    """A number, size, time or duration; the page's script sorts by ``data-v`` where the text is no number."""
    if kind == "time":
        return f'<td class="t">{iso_time(int(value))}'
    if kind in ("bytes", "span"):
        return f'<td class="n" data-v="{value}">{human_size(int(value)) if kind == "bytes" else span_words(int(value))}'
    words = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f'<td class="n">{words}' if kind == "int" else f"<td>{words}"


def _text_cell(name: str, text: str) -> str:
    if name in ("severity", "state"):
        word = text if text.isascii() and text.isalpha() else ""
        return f'<td><span class="tag {word}">{escape(text)}</span>'
    css = " class=w" if len(text) > 40 else ""
    if len(text) > 150:
        css = ' class="w l"'
    if name == "path":  # it breaks between its parts
        css = css or " class=t"
        return f"<td{css}>" + "".join(f"<i>{escape(part)}</i>" for part in re.split("(?<=/)", text) if part)
    return f"<td{css}>{escape(text)}"


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


_PACKAGE = "kafkalog_cli.page"


def page_of(report: Report) -> str:
    return "".join(page_parts(report))


def page_parts(report: Report) -> Iterator[str]:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=select_autoescape(enabled_extensions=("j2",), default=True),
        finalize=_safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(bytes=human_size, time=iso_time, number=lambda each: f"{each:,}")
    scripts = (chart_library(), _resource("page.js"))
    parts = environment.get_template("page.html.j2").generate(
        scripts=[(Markup(each), b64encode(sha256(each.encode()).digest()).decode()) for each in scripts],
        style=Markup(_resource("page.css")),
        version=VERSION,
        title=_title(report),
        report=report,
        tables=table_views(report),
        findings=_objects(report, "finding_summary"),
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


def _title(report: Report) -> str:
    names = [PurePath(path).name or path for path in report.paths]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _objects(report: Report, name: str, *columns: str) -> list[dict[str, Any]]:
    return report.tables[name].objects(columns) if name in report.tables else []


def _charts(report: Report) -> dict[str, Any]:
    by_time, places = _objects(report, "bytes_by_time"), _objects(report, "damaged_place")
    usage = _objects(report, "topic_usage")
    partitions = _objects(report, "report_partition", *charts.SKEW_COLUMNS)
    drawn = {
        "times": (charts.bytes_by_time(by_time, places), "damaged_place"),
        "sizes": (charts.batch_sizes(_objects(report, "batch_sizes")), "batch_sizes"),
        "topics": (charts.topics(usage), "topic_usage"),
        "lag": (charts.lag(_objects(report, "group_offset")), "group_offset"),
        "skew": (charts.skew(partitions, usage), "report_partition"),
        "timeline": (charts.timeline(_objects(report, "timeline_event"), by_time), "timeline_event"),
    }
    return {
        **{name: each and _of_first_rows(report, each, table) for name, (each, table) in drawn.items()},
        "offsets": charts.bytes_by_offset(_objects(report, "bytes_by_offset"), places),
        "maps": [_of_first_rows(report, each, "report_partition") for each in _maps(report)],
    }


def _of_first_rows(report: Report, drawn: Chart, name: str) -> Chart:
    """A chart of a table; where the table has only its first rows, the sentence says so."""
    table = report.tables.get(name)
    if table is None or table.total == len(table.rows):
        return drawn
    rows = f"{len(table.rows):,} of {counted(table.total, name.replace('_', ' '))}"
    return msgspec.structs.replace(drawn, sentence=f"{drawn.sentence} Drawn from the first {rows}.")


def _maps(report: Report) -> list[Chart]:
    """A map of each log directory; partitions without one share a map of their parent directory."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _objects(report, "report_partition", *MAP_COLUMNS):
        found.setdefault(str(PurePath(row["path"]).parent), []).append(row)
    return [drawn for path, rows in found.items() if (drawn := map_of(rows, path)) is not None]
