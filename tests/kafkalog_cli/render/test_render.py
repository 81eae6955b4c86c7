"""Every format with every schema: lossless where it promises so, and never a raw control character."""

from __future__ import annotations

import io

import pytest

from format.columns import PROPERTY, SCHEMAS
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.formats import FORMATS, open_renderer
from tests.kafkalog_cli.hostile import HOSTILE_BYTES, HOSTILE_TEXTS
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.kafkalog_cli.render.rendering import lines, rendered


@pytest.mark.slow
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.type)
def test_hostile_strings_in_every_column_of_every_schema(format_name, schema):
    values = {"string": HOSTILE_TEXTS, "bytes": HOSTILE_BYTES, "any": HOSTILE_BYTES + HOSTILE_TEXTS}
    values["headers"] = [[(each, each), (each, None)] for each in HOSTILE_BYTES]
    rows = [
        tuple(
            values[column.type][at % len(values[column.type])] if column.type in values else None
            for column in schema.columns
        )
        for at in range(len(HOSTILE_BYTES) + len(HOSTILE_TEXTS))
    ]
    output, _aside = rendered(format_name, (schema, rows), main_schema=schema)
    assert_screen_safe(output)
    if format_name in ("jsonl", "logfmt"):
        assert len(lines(output)) == len(rows) + (format_name == "jsonl")


def test_raw_lines_keep_their_place():
    for format_name in FORMATS:
        buffer = io.BytesIO()
        output = OutputStream(buffer, "<test>")
        renderer = open_renderer(format_name, output, main_schema=PROPERTY, aside=pytest.fail)
        renderer.write(PROPERTY, [("first", "n", 1)])
        renderer.write_raw(PROPERTY, b"raw\n", 1)
        renderer.write(PROPERTY, [("last", "n", 1)])
        renderer.finish(Summary("test"), shown=False)
        output.flush()
        text = buffer.getvalue().decode()
        assert text.index("first") < text.index("raw\n") < text.index("last")


def test_no_such_format():
    with pytest.raises(ValueError):
        rendered("xml")
