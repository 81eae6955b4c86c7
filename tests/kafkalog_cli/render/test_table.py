"""Tables: chosen columns, ISO-8601 times, widths, blocks, what is cut, and narrow terminals."""

from __future__ import annotations

import io
import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from format.columns import (
    CLEANER,
    CONFIG,
    DISK_USAGE,
    ESTIMATE,
    GROUP_OFFSET,
    MERGED_RANGE,
    PROPERTY,
    RECORD,
    RETENTION_TOTAL,
    SEGMENT_RETENTION,
    TRANSACTION,
    WRITTEN_SEGMENT,
    Column,
    RowSchema,
)
from kafkalog_cli.commands import compaction, groups, metadata, retention, txns
from kafkalog_cli.commands.ls import _usage_columns
from kafkalog_cli.commands.recompress import _ESTIMATE_COLUMNS
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.options.writing import _RANGE_COLUMNS, _SEGMENT_COLUMNS
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.table import (
    ShownColumns,
    TableRenderer,
    _cell_maker,
    cut_in_middle,
    human_size,
    is_telling,
)
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.kafkalog_cli.render.rendering import MATCH, WILD, lines, rendered, rows_of


@pytest.mark.slow
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
        assert ("more columns: --columns all" in buffer.getvalue().decode()) == (len(head) < len(MATCH.names) - 2)


def drawn(width, schema, columns, rows, monkeypatch, chosen=None):
    """The lines of a table on a terminal of this width."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 24)))
    buffer = io.BytesIO()
    renderer = TableRenderer(OutputStream(buffer, "<test>", is_terminal=True), {schema.type: columns}, chosen)
    renderer.write(schema, rows)
    renderer.finish(Summary("test"), shown=False)
    return buffer.getvalue().decode().splitlines()


def test_names_are_cut_in_the_middle_before_columns_go(monkeypatch):
    columns = ShownColumns(("topic", "offset", "timestamp", "position", "leader_epoch"), ("timestamp",))
    rows = [("a-topic-with-a-long-name-0", 0, 1, 1714564800000, 3, 4, 5)]
    head, row = drawn(74, MATCH, columns, rows, monkeypatch)[:2]
    assert head.split() == ["topic", "offset", "timestamp", "position", "leader_epoch"]
    assert row.startswith("a-topic…g-name-0  ")
    head, row = drawn(66, MATCH, columns, rows, monkeypatch)[:2]
    assert head.split() == ["topic", "offset", "position", "leader_epoch"]
    assert row.startswith("a-topic-with-a-long-name-0  ")


_LONG = {name: name[0] * 217 for name in ("topic", "group", "name", "resource_name", "transactional_id", "path")}
_OF_TYPE = {"int": 123456, "timestamp": 1714564800000, "bool": True, "any": {"active": 1234}, "json": [1, 2]}


@pytest.mark.parametrize(
    ("schema", "columns", "answers"),
    [
        (DISK_USAGE, _usage_columns(False), ("name", "allocated_bytes")),
        (SEGMENT_RETENTION, retention._COLUMNS, ("topic", "retained_by")),
        (RETENTION_TOTAL, retention._COLUMNS, ("topic", "retained")),
        (ESTIMATE, {"estimate": _ESTIMATE_COLUMNS}, ("topic", "codec", "saved_percent")),
        (WRITTEN_SEGMENT, {"written_segment": _SEGMENT_COLUMNS}, ("path", "size_bytes", "lost_bytes")),
        (MERGED_RANGE, {"merged_range": _RANGE_COLUMNS}, ("topic", "first_offset", "last_offset", "node_id")),
        (CLEANER, compaction._COLUMNS, ("topic", "blocked_by")),
        (GROUP_OFFSET, groups._COLUMNS, ("group", "topic", "lag")),
        (TRANSACTION, txns._COLUMNS, ("topic", "transactional_id", "is_hanging")),
        (CONFIG, metadata._COLUMNS, ("resource_name", "name", "value")),
    ],
    ids=lambda value: value.type if isinstance(value, RowSchema) else "",
)
def test_long_names_leave_80_columns_room_for_the_answer(schema, columns, answers, monkeypatch):
    row = tuple(_LONG.get(column.name, _OF_TYPE.get(column.type, "word")) for column in schema.columns)
    shown = columns if isinstance(columns, ShownColumns) else columns[schema.type]
    head, first = drawn(80, schema, shown, [row], monkeypatch)[:2]
    assert set(answers) <= set(head.split())
    assert "…" in first
    assert max(map(len, (head, first))) <= 80


NOTED = RowSchema("noted", (*MATCH.columns[:5], Column("notes", "string", ""), Column("gap_count", "int", "")))
NOTES = ShownColumns(
    ("topic", "partition", "offset", "timestamp", "notes"), ("timestamp",), deciding=("notes", "gap_count")
)


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_a_deciding_column_is_never_dropped_while_it_says_something(monkeypatch, width):
    quiet, odd = ("orders", 0, 1, 1714564800000, 3, None, 0), ("users", 0, 1, 1714564800000, 3, "stray", 0)
    shown = drawn(width, NOTED, NOTES, [quiet, odd], monkeypatch)
    assert any("stray" in line for line in shown)
    assert any(line.split()[:1] == ["notes"] or line.split()[-1:] == ["notes"] or "notes" in line for line in shown)
    assert not any("notes" in line for line in drawn(width, NOTED, NOTES, [quiet], monkeypatch))


def test_a_deciding_column_comes_with_the_first_row_that_has_a_value(monkeypatch):
    rows = [("orders", number % 7, number, 1714564800000, 3, None, 0) for number in range(250)]
    rows.append(("orders", 0, 250, 1714564800000, 3, "stray", 0))
    shown = drawn(80, NOTED, NOTES, rows, monkeypatch)
    assert "notes" not in shown[0]
    assert [line.split() for line in shown[201:203]] == [
        [],
        ["topic", "partition", "offset", "timestamp", "notes", "segment_base_offset"],
    ]


def test_rows_with_a_value_in_a_deciding_column_come_first():
    rows = [("a", 0, 0, 0, 0, None, 0), ("b", 0, 0, 0, 0, "x", 0), ("c", 0, 0, 0, 0, "", 0), ("d", 0, 0, 0, 0, "", 3)]
    assert [row[0] for row in NOTES.odd_first(NOTED, rows)] == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("offset", 0, True), ("lost_bytes", 0, False), ("lag", 0, False), ("lag", 3, True), ("is_hanging", False, False),
     ("is_hanging", True, True), ("notes", "", False), ("notes", None, False), ("lost_offsets", [], False)],
)  # fmt: skip
def test_what_says_that_something_is_odd(name, value, expected):
    assert is_telling(name, value) is expected


def test_chosen_columns_that_do_not_fit_are_lines_of_their_own(monkeypatch):
    rows = [("orders", 0, 1, 1714564800000, 3, 4, None), ("t" * 90, 1, 2, None, 3, 4, 5)]
    shown = drawn(60, MATCH, (), rows, monkeypatch, chosen=("all",))
    assert shown[:9] == [
        "topic                orders",
        "partition            0",
        "offset               1",
        "timestamp            2024-05-01T12:00:00.000Z",
        "segment_base_offset  3",
        "position             4",
        "leader_epoch         -",
        "",
        "topic                " + "t" * 39,
    ]
    assert max(map(len, shown)) <= 60
    assert drawn(200, MATCH, (), rows, monkeypatch, chosen=("all",))[0].split() == list(MATCH.names)


def test_rows_without_a_chosen_column_are_drawn_as_if_none_were_chosen(monkeypatch):
    rows = [("orders", 0, 1, 1714564800000, 3, 4, 5)]
    columns = ShownColumns(("topic", "offset", "timestamp"), first_to_go=("timestamp",))
    head, *others = drawn(30, MATCH, columns, rows, monkeypatch, chosen=("notes",))
    assert head.split() == ["topic", "offset"]
    assert len(others) == 1  # and no hint at more columns


def test_blocks_of_rows_in_lines_of_their_own_stand_apart(monkeypatch):
    rows = [("orders", 0, number, 1714564800000, 3, 4, 5) for number in range(401)]
    shown = drawn(60, MATCH, (), rows, monkeypatch, chosen=("all",))
    assert shown.count("") == 400
    assert shown[:8] == [*shown[1600:1602], "offset               0", *shown[3:8]]


def test_chosen_columns_without_a_deciding_one_keep_one_header(monkeypatch):
    rows = [("orders", 0, number % 10, 1714564800000, 3, "stray", 0) for number in range(401)]
    shown = drawn(80, NOTED, NOTES, rows, monkeypatch, chosen=("offset",))
    assert [line for line in shown if "offset" in line] == ["offset"]


def test_words_and_numbers_never_break(monkeypatch):
    columns = ShownColumns(("offset", "notes"))
    notes = "1,250 records of /data/orders-0/00000000000000000000.log in 3 segments; clean,swap"
    rows = [("t", 0, 12345678, 0, 0, notes, 0)]
    for width in range(30, 90):
        lines = [line[10:].strip() for line in drawn(width, NOTED, columns, rows, monkeypatch)[1:]]
        assert set(" ".join(lines[: lines.index("")] if "" in lines else lines).split()) <= {
            *notes.split(), "/data/", "orders-0/", "/data/orders-0/", "00000000000000000000.log",
            "orders-0/00000000000000000000.log", "clean,", "swap",
        }  # fmt: skip


def test_a_long_word_breaks_before_a_column_goes(monkeypatch):
    shown = drawn(60, PROPERTY, PROPERTY.names, [("server.properties", "log.dirs", "v" * 90)], monkeypatch)
    assert shown[0].split() == ["path", "name", "value"]
    assert sum(line.count("v") for line in shown[1:]) == 91


def test_names_are_cut_to_a_width():
    assert cut_in_middle("a-topic-with-a-long-name", 11) == "a-top…-name"
    for width in range(3, 9):
        assert cell_len(cut_in_middle("日本語のトピック", width)) <= width


def test_text_is_what_a_table_draws_without_cuts(monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    rows = [("t" * 60, 0, 1, 1714564800000, 3, "word " * 60, 0), ("u", 0, 1, 1714564800000, 3, "stray", 0)]
    for width, names in ((None, 5), (64, 4)):
        buffer = io.BytesIO()
        output = OutputStream(buffer, "<test>", width=width)
        renderer = TableRenderer(output, {NOTED.type: NOTES}, is_text=True)
        renderer.write(NOTED, rows)
        renderer.flush()
        output.flush()
        head, *lines = buffer.getvalue().decode().splitlines()
        assert len(head.split()) == names
        assert len(lines) == 2
        assert "t" * 60 in lines[0]
        assert ("word " * 60).strip() in lines[0]


def test_sentences_stand_before_the_rows():
    buffer = io.BytesIO()
    output = OutputStream(buffer, "<test>")
    renderer = TableRenderer(output, {"match": ("offset",)}, is_text=True)
    renderer.say("One.")
    renderer.say("Two \x1b[2J.")
    renderer.write(MATCH, [("t", 0, 1, 2, 3, 4, 5)])
    renderer.say("Three.")
    output.flush()
    assert buffer.getvalue().decode().splitlines() == [
        "One.", "Two \\x1b[2J.", "", "offset", "     1", "", "Three."
    ]  # fmt: skip


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


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ({"active": 0, "compact": 1960}, "active=0, compact=1960"),
        (["BROKER://a:9092", "CONTROLLER://b:9093"], "BROKER://a:9092, CONTROLLER://b:9093"),
        ({"bad\n": "\x1b[31m"}, "bad\\n=\\x1b[31m"),
        ([1, 2], "[1,2]"),
        ({}, "{}"),
        ([], "[]"),
        ({"nested": {"a": 1}}, '{"nested":{"a":1}}'),
    ],
)
def test_names_with_values_and_lists_of_texts_are_read_without_json(value: object, cell: str) -> None:
    assert _cell_maker(Column("retained", "any", "bytes"), is_whole=False)(value) == cell
