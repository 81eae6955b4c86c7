"""What the tests of renderers share: rows of every column type, rendered into memory."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import strategies as st

from format.columns import MATCH as WHOLE_MATCH
from format.columns import Column, RowSchema
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.formats import open_renderer
from kafkalog_cli.render.text import json_value
from tests.kafkalog_cli.hostile import by_column_type

#: A short row type.
MATCH = RowSchema("match", WHOLE_MATCH.columns[:7])


def rendered(
    format_name: str, *writes: tuple[RowSchema, list[tuple[Any, ...]]], **options: Any
) -> tuple[bytes, list[str]]:
    """What a renderer writes, and what it puts aside."""
    buffer = io.BytesIO()
    aside: list[str] = []
    encoding = options.pop("encoding", "utf-8")
    shown = options.pop("shown", False)
    output = OutputStream(buffer, "<test>", encoding=encoding)
    renderer = open_renderer(format_name, output, aside=aside.append, **options)
    for schema, rows in writes:
        renderer.write(schema, iter(rows))
    renderer.finish(Summary("test"), shown)
    output.flush()
    return buffer.getvalue(), aside


def lines(output: bytes) -> list[str]:
    parts = output.decode().split("\n")
    assert parts.pop() == "", "the last line has no end"
    return parts


def rows_of(schema: RowSchema) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.none() | by_column_type[column.type] for column in schema.columns))


WILD = RowSchema("wild", tuple(Column(f"a_{kind}", kind, "") for kind in by_column_type))


def as_json(value: Any) -> Any:
    """What a value of an ``any`` column is after a round trip."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return json.loads(json_value(value))
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    return value
