"""The tables of the page: their rows, headings and columns."""

from __future__ import annotations

from typing import Any

import msgspec
from markupsafe import Markup

from format.columns import RowSchema
from format.verbs.report.terms import Report, ReportTable
from kafkalog_cli.page.script_json import script_json
from kafkalog_cli.render.escape import escape_text
from kafkalog_cli.render.values import json_value

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
