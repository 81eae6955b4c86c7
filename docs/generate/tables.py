"""Tables in Markdown, made from the tables in the code: layouts, row schemas, finding codes, exit codes, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import fields

from format.columns import FINDING, LOG_DIR, PARTITION, SCHEMAS, SEGMENT, Column
from format.findings import FINDING_CODES, FindingCode
from format.layout import LAYOUTS, Layout
from format.limits import DEFAULT_LIMITS, MIB
from format.rows.arrow_columns import arrow_schema
from format.rows.table_set import WRITTEN_RUN
from format.verbs.doctor.diagnosis import TEMPLATES
from kafkalog_cli.exit_codes import Condition, ExitCode
from spark_jobs import schemas


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A table in Markdown; a bar inside a cell is escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


# -- bytes -----------------------------------------------------------------------------------------------------


def layout_named(name: str) -> Layout:
    """The layout of that name; ValueError for none."""
    found = next((each for each in LAYOUTS if each.name == name), None)
    if found is None:
        raise ValueError(f"no layout is called {name!r}; there are {', '.join(each.name for each in LAYOUTS)}")
    return found


def layout_table(name: str) -> str:
    """The fields of a layout with their byte offsets, what follows them, and the source."""
    layout = layout_named(name)
    rows = [
        (
            layout.offset_of(each.name),
            each.type,
            f"`{each.name}`",
            f"`{each.kafka_name}`",
            each.meaning,
        )
        for each in layout.fields
    ]
    if layout.tail:
        rows.append((layout.size_bytes, "", "", "", f"*then:* {layout.tail}"))
    head = ("byte", "type", "field", "Kafka's name", "meaning")
    return f"{table(head, rows)}\n\n{layout.size_bytes} bytes. Source: {layout.source}."


# -- rows ------------------------------------------------------------------------------------------------------


def spark_records_table() -> str:
    """The columns of the data source's view of records, then those that an option adds."""
    columns = (*schemas.KAFKA_COLUMNS, schemas.KAFKA_HEADERS)
    rows = [(f"`{name}`", f"`{schemas.sql_type(kind)}`", meaning) for name, kind, meaning in columns]
    details = _named(schemas.DETAILS.columns, schemas.columns_of_view("records"))
    return f"{table(('column', 'type', 'meaning'), rows)}\n\nWith `includeDetails=true` also {details}."


#: The tables of a report set that the page describes, by name. Every other row type has its table, too.
_REPORT_TABLES = {
    "log_dirs": LOG_DIR,
    "partitions": PARTITION,
    "segments": SEGMENT,
    "batches": schemas.BATCHES,
    "findings": FINDING,
    "runs": WRITTEN_RUN,
}


def spark_tables() -> str:
    """A row for each other view or report table: its columns, or the row type that has them."""
    named = {name: schema for name, schema in schemas.VIEWS.items() if schema is not None}
    named |= {name: schema for name, schema in _REPORT_TABLES.items() if name not in named}
    rows = []
    for name, schema in named.items():
        columns = schema.columns
        row = next((each for each in SCHEMAS if columns[: len(each.columns)] == each.columns), None)
        of_table = {each.name: each for each in arrow_schema(schema)}
        types = schemas.columns_of_view(name) if name in schemas.VIEWS else of_table
        rest = _named(columns if row is None else columns[len(row.columns) :], types)
        of_row = "" if row is None else f"those of the row `{row.type}`"
        rows.append((f"`{name}`", ", ".join(filter(None, (of_row, rest)))))
    return table(("table", "columns"), rows)


def _named(columns: Iterable[Column], types: Mapping[str, Any]) -> str:
    """The columns with their types in Spark's words; ``types`` are the Arrow fields by name."""
    found = ((each.name, schemas.sql_type(types[each.name].type)) for each in columns)
    return ", ".join(f"`{name}`" if sql == "BIGINT" else f"`{name} {sql}`" for name, sql in found)


# -- findings --------------------------------------------------------------------------------------------------

_LEVELS = ("headers", "crc", "records", "full", "any")


def finding_code_tables() -> str:
    """A section for each code."""
    return "\n\n".join(map(_finding_section, FINDING_CODES.values()))


def _finding_section(entry: FindingCode) -> str:
    if entry.level not in _LEVELS:
        raise ValueError(f"{entry.code}: level {entry.level!r} is none of {', '.join(_LEVELS)}")
    level = "" if entry.level == "any" else f", `{entry.level}`"
    kind = "; **not checked**" if entry.incomplete else ""
    return (
        f"## {entry.code}\n\n"
        f"{sentence(entry.meaning)}\n"
        f"**{entry.severity.label}**{level}{kind}.\n"
        f"Broker: {entry.broker}\n"
        f"Next: {entry.next_step}"
    )


# -- how a run ends --------------------------------------------------------------------------------------------


def exit_status_table() -> str:
    """Every exit code, its meaning, its conditions and its rank when several of them hold."""
    rank = {code: number for number, code in enumerate(ExitCode, 1)}
    names = {code: ", ".join(f"`{each.label}`" for each in Condition if each.exit_code is code) for code in ExitCode}
    rows = [(f"**{int(code)}**", code.meaning, names[code], rank[code]) for code in sorted(ExitCode)]
    return table(("exit status", "meaning", "conditions", "rank"), rows)


def diagnosis_list() -> str:
    """The templates of the doctor, the most urgent first, and when each is true."""
    return "\n".join(f"- `{each.code}` ({each.severity.label}): {each.condition}" for each in TEMPLATES.values())


def limit_table() -> str:
    """The guards and their defaults."""
    rows = []
    for each in fields(DEFAULT_LIMITS):
        value = getattr(DEFAULT_LIMITS, each.name)
        shown = f"{value // MIB} MiB" if value % MIB == 0 else f"{value:,}"
        rows.append((f"`{each.name}`", shown))
    return table(("limit", "default"), rows)
