"""Tables in Markdown, made from the tables in the code: layouts, row schemas, finding codes, exit codes, limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec.structs import fields

from format.columns import DECODED_COLUMNS, EXTRA_RECORD_COLUMNS, IS_MATCH, RECORD, SCHEMAS, Column, RowSchema
from format.findings import FINDING_CODES, FindingCode
from format.layout import LAYOUTS, Layout
from format.limits import DEFAULT_LIMITS, MIB
from format.verbs.doctor.templates import TEMPLATES
from kafkalog_cli.exit_codes import MEANINGS, PRECEDENCE, Condition
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
            each.size_bytes,
            each.type,
            f"`{each.name}`",
            f"`{each.kafka_name}`",
            each.meaning,
        )
        for each in layout.fields
    ]
    if layout.tail:
        rows.append((layout.size_bytes, "", "", "", "", f"*then:* {layout.tail}"))
    head = ("byte", "bytes", "type", "field", "Kafka's name", "meaning")
    return f"{table(head, rows)}\n\n{layout.size_bytes} bytes, big-endian. Source: {layout.source}."


# -- rows ------------------------------------------------------------------------------------------------------


#: A column that at least this many row types have, with the same meaning, is described once.
_COMMON = 3


def schema_lists() -> str:
    """The columns that many row types share, then a section for each row type, with its columns in order."""
    common: dict[str, tuple[str, str, str]] = {}  # by name: of two meanings, the one of more row types
    for column, count in Counter(map(_described, _columns())).most_common():
        if count >= _COMMON:
            common.setdefault(column[0], column)
    parts = ["### Columns of many row types", "\n".join(map(_item, common.values()))]
    for schema in SCHEMAS:
        parts += [f"### {schema.type}", "\n".join(_items(schema, common))]
        if schema is RECORD:
            parts += ["On request:", _on_request()]
    return "\n\n".join(parts)


def _items(schema: RowSchema, common: dict[str, tuple[str, str, str]]) -> Iterator[str]:
    """The columns of a row type as a list; columns that are described elsewhere are only named, on one line."""
    columns = list(map(_described, schema.columns))
    whole = next(
        (each for each in SCHEMAS if each is not schema and schema.columns[: len(each.columns)] == each.columns), None
    )
    if whole is not None:
        yield f"- the columns of `{whole.type}`"
        columns = columns[len(whole.columns) :]
    for is_common, some in groupby(columns, lambda each: common.get(each[0]) == each):
        if is_common:
            yield "- " + ", ".join(f"`{name}`" for name, _, _ in some)
        else:
            yield from map(_item, some)


def _columns() -> list[Column]:
    return [column for schema in SCHEMAS for column in schema.columns]


def _described(column: Column) -> tuple[str, str, str]:
    return column.name, column.type, column.meaning


def _item(column: tuple[str, str, str]) -> str:
    name, kind, meaning = column
    return f"- `{name}` {kind}: {meaning}"


def _on_request() -> str:
    options = [
        *((each, f"--with {each.name}") for each in EXTRA_RECORD_COLUMNS),
        *((each, "--key-as" if each.name.startswith("key") else "--value-as") for each in DECODED_COLUMNS),
        (IS_MATCH, "grep -A, -B and -C"),
    ]
    return "\n".join(f"- `{each.name}` {each.type}, `{option}`: {each.meaning}" for each, option in options)


def spark_records_table() -> str:
    """The columns of the data source's view of records, then those that an option adds."""
    rows = [
        (f"`{name}`", f"`{sql}`", meaning) for name, sql, _, meaning in (*schemas.KAFKA_COLUMNS, schemas.KAFKA_HEADERS)
    ]
    details = _named(schemas.DETAILS.columns)
    return f"{table(('column', 'type', 'meaning'), rows)}\n\nWith `includeDetails=true` also {details}."


def spark_tables() -> str:
    """A row for each other view or report table: its columns, or the row type that has them."""
    named = {name: schema for name, schema in schemas.VIEWS.items() if schema is not None}
    named |= {name: schema for name, schema in schemas.REPORT_TABLES.items() if name not in named}
    rows = []
    for name, schema in named.items():
        columns = schema.columns
        row = next((each for each in SCHEMAS if columns[: len(each.columns)] == each.columns), None)
        rest = _named(columns if row is None else columns[len(row.columns) :])
        of_row = "" if row is None else f"those of the row `{row.type}`"
        rows.append((f"`{name}`", ", ".join(filter(None, (of_row, rest)))))
    return table(("table", "columns"), rows)


def _named(columns: Iterable[Column]) -> str:
    types = ((each.name, schemas.SQL_TYPES[each.type]) for each in columns)
    return ", ".join(f"`{name}`" if sql == "BIGINT" else f"`{name} {sql}`" for name, sql in types)


# -- findings --------------------------------------------------------------------------------------------------

_LEVELS = ("headers", "crc", "records", "full", "any")


def finding_code_tables() -> str:
    """A section for each code."""
    return "\n\n".join(map(_finding_section, FINDING_CODES.values()))


def _finding_section(entry: FindingCode) -> str:
    if entry.level not in _LEVELS:
        raise ValueError(f"{entry.code}: level {entry.level!r} is none of {', '.join(_LEVELS)}")
    seen_at = "any level" if entry.level == "any" else f"from level `{entry.level}`"
    kind = "; **not checked**" if entry.incomplete else ""
    return (
        f"## {entry.code}\n\n"
        f"{sentence(entry.meaning)}\n"
        f"**{entry.severity.label}**, {seen_at}{kind}.\n"
        f"Broker: {entry.broker}\n"
        f"Next: {entry.next_step}"
    )


# -- how a run ends --------------------------------------------------------------------------------------------


def exit_status_table() -> str:
    """Every exit code, its meaning and its rank when several conditions hold."""
    rank = {code: number for number, code in enumerate(PRECEDENCE, 1)}
    rows = [(f"**{int(code)}**", MEANINGS[code], rank[code]) for code in sorted(MEANINGS)]
    return table(("exit status", "meaning", "rank"), rows)


def condition_table() -> str:
    """The conditions that a summary may name, and the exit code of each."""
    rows = [(f"`{each.label}`", int(each.exit_code), "yes" if each.is_complete else "no") for each in Condition]
    return table(("condition", "exit status", "the work was done to its end"), rows)


def diagnosis_table() -> str:
    """The templates of the doctor, the most urgent first, and when each is true."""
    rows = [
        (f"`{each.code}`", each.severity.label, f"`{each.question}`", each.condition) for each in TEMPLATES.values()
    ]
    return table(("code", "severity", "question", "it is said when"), rows)


def limit_table() -> str:
    """The guards and their defaults."""
    rows = []
    for each in fields(DEFAULT_LIMITS):
        value = getattr(DEFAULT_LIMITS, each.name)
        shown = f"{value // MIB} MiB" if value % MIB == 0 else f"{value:,}"
        rows.append((f"`{each.name}`", shown))
    return table(("limit", "default"), rows)
