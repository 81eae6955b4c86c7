"""Rows become lines in blocks: none is lost before an error, and none waits for a slow one."""

from __future__ import annotations

import io

import pytest

from format.columns import BATCH, PROPERTY
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.formats import FORMATS, READABLE, open_renderer
from tests.kafkalog_cli.render.rendering import rendered


def test_a_row_of_a_wrong_length_is_a_bug_that_shows():
    for format_name in ("jsonl", "logfmt", "csv"):
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


@pytest.mark.parametrize("format_name", [each for each in FORMATS if each not in READABLE])  # no clock cuts its blocks
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
