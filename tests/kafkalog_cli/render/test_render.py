"""Every format with every schema: lossless where it promises so, and never a raw control character."""

from __future__ import annotations

import io

import pytest

from format.columns import BATCH, PROPERTY, SCHEMAS
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render import FORMATS, open_renderer
from kafkalog_cli.summary import Summary
from tests.kafkalog_cli.hostile import HOSTILE_BYTES, HOSTILE_TEXTS
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.kafkalog_cli.render.rendering import lines, rendered


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
    if format_name in ("jsonl", "text"):
        assert len(lines(output)) == len(rows) + (format_name == "jsonl")


def test_raw_lines_keep_their_place():
    for format_name in FORMATS:
        buffer = io.BytesIO()
        output = OutputStream(buffer, "<test>")
        renderer = open_renderer(format_name, output, main_schema=PROPERTY, aside=pytest.fail)
        renderer.write(PROPERTY, [("first", "n", 1)])
        renderer.write_raw(b"raw\n")
        renderer.write(PROPERTY, [("last", "n", 1)])
        renderer.finish(Summary("test"), shown=False)
        output.flush()
        text = buffer.getvalue().decode()
        assert text.index("first") < text.index("raw\n") < text.index("last")


def test_a_row_of_a_wrong_length_is_a_bug_that_shows():
    for format_name in ("jsonl", "text", "csv"):
        with pytest.raises(ValueError):
            rendered(format_name, (BATCH, [("t", 2)]))


@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_before_an_error_are_written(format_name):
    def rows():
        yield from [("p", f"name-{number}", 1) for number in range(1000)]
        raise KeyError

    buffer = io.BytesIO()
    output = OutputStream(buffer, "<test>")
    renderer = open_renderer(format_name, output, main_schema=PROPERTY, aside=pytest.fail)
    with pytest.raises(KeyError):
        renderer.write(PROPERTY, rows())
    renderer.finish(Summary("test"), shown=False)
    output.flush()
    assert buffer.getvalue().count(b"name-") == 1000


@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_do_not_wait_for_slow_ones(format_name, monkeypatch):
    monkeypatch.setattr("kafkalog_cli.render.lines._LATEST_BLOCK_S", 0)
    monkeypatch.setattr("kafkalog_cli.render.table._LATEST_BLOCK_S", 0)
    monkeypatch.setattr("kafkalog_cli.output._LATEST_FLUSH_S", 0)
    buffer = io.BytesIO()

    def rows():
        yield ("p", "first", 1)
        assert b"first" in buffer.getvalue()
        yield ("p", "second", 1)

    open_renderer(format_name, OutputStream(buffer, "<test>"), aside=pytest.fail).write(PROPERTY, rows())


def test_no_such_format():
    with pytest.raises(ValueError):
        rendered("xml")
