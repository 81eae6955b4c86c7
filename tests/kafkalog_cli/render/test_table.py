"""Tables: chosen columns, ISO-8601 times, widths, blocks, what is cut, and narrow terminals."""

from __future__ import annotations

import io
import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import DISK_USAGE, PROPERTY, RECORD
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.table import RECORD_COLUMNS, ShownColumns, TableRenderer, human_size
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.kafkalog_cli.render.rendering import MATCH, WILD, lines, rendered, rows_of


@settings(max_examples=100, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_tables_are_screen_safe(rows):
    output, _aside = rendered("table", (WILD, rows))
    assert_screen_safe(output)


def test_table_shows_the_chosen_columns_and_iso_times():
    rows = [("orders", 0, 7, 1714564800000, 0, 61, None), ("t", 1, 12345, -1, 0, 99, 4)]
    output, _aside = rendered(
        "table", (MATCH, rows), table_columns={"match": ("topic", "offset", "timestamp", "leader_epoch")}
    )
    assert lines(output) == [
        "topic   offset                 timestamp  leader_epoch",
        "orders       7  2024-05-01T12:00:00.000Z             -",
        "t        12345                        -1             4",
        "",
        "Not shown: segment_base_offset, position. For them: --columns all, or --format text.",
    ]


def test_several_rows_of_one_partition_stand_below_its_name():
    rows = [("orders", 0, number, None, 0, 61, None) for number in range(250)]
    output, _aside = rendered("table", (MATCH, [*rows, *(("orders", 1, *row[2:]) for row in rows[:2])]))
    shown = lines(output)
    assert (shown[0], shown[1].split()) == ("orders-0", ["offset", *MATCH.names[3:]])
    assert shown[252:255] == ["", "orders-1", shown[1]]
    mixed, _aside = rendered("table", (MATCH, [rows[0], ("orders", 1, *rows[1][2:])]))
    assert lines(mixed)[0].split() == list(MATCH.names)


def test_no_clock_decides_the_layout_of_a_table_in_a_file(monkeypatch):
    rows = [("t", 0, number, 10**number, 0, 61, None) for number in range(12)]
    quick, _aside = rendered("table", (MATCH, rows))
    monkeypatch.setattr("kafkalog_cli.render.table.time.monotonic", itertools.count(step=60).__next__)
    slow, _aside = rendered("table", (MATCH, rows))
    assert slow == quick


def test_chosen_columns_and_human_sizes():
    rows = [("codec", None, 5 * 1024 * 1024, 40, 734, 0, 2048, 1, 1)]
    output, _aside = rendered(
        "table", (DISK_USAGE, rows), chosen_columns=("log_bytes", "allocated_bytes", "size_bytes")
    )
    assert lines(output)[:2] == ["log_bytes  allocated_bytes  size_bytes", "      0 B          5.0 MiB       734 B"]
    output, _aside = rendered("table", (MATCH, [("t", 0, 1, 2, 3, 4, 5)]), chosen_columns=("all",))
    assert lines(output)[0].split() == list(MATCH.names)


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (-115349, "-112.6 KiB"), (2**50 * 3, "3,072.0 TiB")],
)
def test_sizes(size_bytes, words):
    assert human_size(size_bytes) == words


def test_a_wide_terminal_shows_more_than_the_essential_columns(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    for width, shown in ((30, 1), (60, 3), (200, len(MATCH.names) - 2)):
        monkeypatch.setattr("shutil.get_terminal_size", lambda width=width: os.terminal_size((width, 24)))
        buffer = io.BytesIO()
        renderer = TableRenderer(OutputStream(buffer, "<test>", is_terminal=True), {"match": ("offset",)})
        renderer.write(MATCH, [("t", 0, 1, 2, 3, 4, 5)])
        renderer.finish(Summary("test"), shown=False)
        head = buffer.getvalue().decode().splitlines()[0].split()
        assert head[0] == "offset"
        assert len(head) >= shown
        assert ("Not shown" in buffer.getvalue().decode()) == (len(head) < len(MATCH.names) - 2)


def drawn(width, schema, columns, rows, monkeypatch):
    """The lines of a table on a terminal of this width."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 24)))
    buffer = io.BytesIO()
    renderer = TableRenderer(OutputStream(buffer, "<test>", is_terminal=True), {schema.type: columns})
    renderer.write(schema, rows)
    renderer.finish(Summary("test"), shown=False)
    return buffer.getvalue().decode().splitlines()


def test_names_stay_whole_while_columns_can_be_dropped(monkeypatch):
    columns = ShownColumns(("topic", "offset", "timestamp", "position", "leader_epoch"), ("timestamp",))
    rows = [("a-topic-with-a-long-name", 0, 1, 1714564800000, 3, 4, 5)]
    assert drawn(60, MATCH, columns, rows, monkeypatch)[0].split() == ["topic", "offset", "position", "leader_epoch"]
    assert drawn(60, MATCH, columns, rows, monkeypatch)[1].startswith("a-topic-with-a-long-name  ")
    long = [("t" * 70, *rows[0][1:])]
    assert drawn(60, MATCH, columns, long, monkeypatch)[1].startswith("t" * 48)


def test_a_narrow_column_comes_back_where_a_wide_one_is_gone(monkeypatch):
    columns = ShownColumns(("topic", "offset", "timestamp"), ("offset", "timestamp"))
    rows = [("orders", 0, 1, 1714564800000, 3, 4, 5)]
    assert drawn(30, MATCH, columns, rows, monkeypatch)[0].split() == ["topic", "offset"]


def test_a_wide_terminal_does_not_show_what_is_shown_on_request(monkeypatch):
    rows = [("orders", 0, 1, 1714564800000, 3, 4, 5)]
    for on_request in ((), ("position",)):
        head = drawn(200, MATCH, ShownColumns(("topic", "offset"), on_request=on_request), rows, monkeypatch)[0]
        assert ("position" in head.split()) == (not on_request)
        assert "leader_epoch" in head.split()


def test_table_knows_no_markup():
    output, _aside = rendered("table", (PROPERTY, [("[red]x[/red]", ":smile:", "[link=http://x]y")]))
    assert lines(output)[1].split() == ["[red]x[/red]", ":smile:", "[link=http://x]y"]


def test_table_begins_anew_where_the_rows_are_of_another_type():
    output, _aside = rendered(
        "table", (PROPERTY, [("p", "n", 1)]), (MATCH, [("t", 0, 1, 2, 3, 4, 5)]), (PROPERTY, [("q", "n", 2)])
    )
    heads = [line.split()[0] for line in lines(output) if line]
    assert heads == ["path", "p", "topic", "t", "path", "q"]


def test_table_is_drawn_in_blocks_with_one_header_while_widths_stay():
    rows = [("topic", 0, number % 10, 2, 3, 4, 5) for number in range(1000)]
    output, _aside = rendered("table", (MATCH, rows))
    assert len(lines(output)) == 1002
    assert sum("segment_base_offset" in line for line in lines(output)) == 1


def test_table_never_folds_a_number():
    rows = [("t", 0, number, 2, 3, 4, 5) for number in (*range(250), 2**63 - 1)]
    output, _aside = rendered("table", (MATCH, rows))
    assert any(str(2**63 - 1) in line for line in lines(output))


@pytest.mark.parametrize(
    "value", [b"a" * 10_000_000, b"\xff" * 1_000_000, "é".encode() * 500_000, b"aaa" + "日".encode() * 400_000]
)
def test_table_cuts_what_is_very_long(value):
    row = tuple(value if column.name == "value" else None for column in RECORD.columns)
    output, _aside = rendered("table", (RECORD, [row]), table_columns={"record": ("offset", "value")})
    assert len(output) < 5000
    assert f"…({len(value):,} bytes)" in output.decode()


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (100, "topic partition offset timestamp codec key value headers"),
        (90, "topic partition offset timestamp key value headers"),
        (80, "topic partition offset timestamp key value"),
        (65, "offset timestamp key value"),
        (50, "offset timestamp key"),
    ],
)
def test_a_narrow_terminal_keeps_what_one_looks_for(monkeypatch, width, shown):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 24)))
    buffer = io.BytesIO()
    output = OutputStream(buffer, "<test>", is_terminal=True)
    renderer = TableRenderer(output, {"record": RECORD_COLUMNS})
    values = {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 0, "codec": "none", "headers": []}
    values |= {"key": b"customer-4711", "value": b"v" * 300}
    renderer.write(RECORD, [tuple(values.get(name) for name in RECORD.names)])
    renderer.finish(Summary("test"), shown=False)
    lines = buffer.getvalue().decode().splitlines()
    assert lines[0].split() == shown.split()
    assert max(map(len, lines[: lines.index("")] if "" in lines else lines)) <= width
    reported = " ".join(lines).partition("Not shown: ")[2].partition(". For them")[0].split(", ")
    assert set(reported) == set(RECORD.names) - set(shown.split()) - {"topic", "partition"}


def test_the_closing_lines_are_wrapped_on_a_terminal(monkeypatch):
    for is_terminal in (True, False):
        monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((60, 24)))
        buffer = io.BytesIO()
        output = OutputStream(buffer, "<test>", is_terminal=is_terminal)
        renderer = TableRenderer(output, {})
        summary = Summary("verify")
        for name in ("partitions", "segments", "side_files", "batches", "records"):
            summary.counts[name] = 1_000_000
        renderer.finish(summary, shown=True)
        output.flush()
        longest = max(map(len, buffer.getvalue().decode().splitlines()))
        assert longest <= 60 if is_terminal else longest > 60
