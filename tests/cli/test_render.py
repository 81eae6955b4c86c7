"""Every format with every schema: lossless where it promises so, and never a raw control character."""

from __future__ import annotations

import csv
import io
import json
import os
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import BATCH, FINDING, MATCH, PROPERTY, RECORD, SCHEMAS, Column, RowSchema
from format.findings import finding
from format.location import Location
from format.rows.finding_rows import finding_row
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render import FORMATS, open_renderer
from kafkalog_cli.render.shown_columns import RECORD_COLUMNS
from kafkalog_cli.render.table import TableRenderer
from kafkalog_cli.render.values import json_value
from kafkalog_cli.summary import Summary, counted
from tests.cli.hostile import HOSTILE_BYTES, HOSTILE_TEXTS, by_column_type
from tests.cli.reading import assert_screen_safe, from_json, read_text_line, unescape


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


@settings(max_examples=300, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_json_lines_are_lossless(rows):
    output, _aside = rendered("jsonl", (WILD, rows))
    assert_screen_safe(output)
    parsed = [json.loads(line) for line in lines(output)]
    assert [each["type"] for each in parsed] == ["wild"] * len(rows) + ["summary"]
    for row, got in zip(rows, parsed, strict=False):
        assert list(got) == ["type", *WILD.names]
        integer, timestamp, boolean, string, value, headers, anything = row
        assert [got["a_int"], got["a_timestamp"], got["a_bool"], got["a_string"]] == [
            integer,
            timestamp,
            boolean,
            string,
        ]
        assert from_json(got["a_bytes"]) == value
        assert as_json(anything) == got["a_any"]
        if headers is None:
            assert got["a_headers"] is None
        else:
            assert [tuple(map(from_json, pair)) for pair in got["a_headers"]] == headers


@settings(max_examples=300, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_text_is_lossless(rows):
    output, _aside = rendered("text", (WILD, rows))
    assert_screen_safe(output)
    for row, line in zip(rows, lines(output), strict=True):
        kind, words = read_text_line(line, {"a_int", "a_timestamp", "a_bool", "a_headers", "a_any"})
        assert (kind, list(words)) == ("wild", list(WILD.names))
        integer, timestamp, boolean, string, value, headers, anything = row
        assert [words["a_int"], words["a_timestamp"], words["a_bool"]] == [integer, timestamp, boolean]
        assert words["a_string"] == (None if string is None else string.encode("utf-8", "surrogateescape"))
        assert words["a_bytes"] == value
        assert words["a_any"] == as_json(anything)
        assert headers is None or [tuple(map(from_json, pair)) for pair in words["a_headers"]] == headers


@settings(max_examples=300, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_csv_is_lossless_and_no_cell_is_a_formula(rows):
    output, aside = rendered("csv", (WILD, rows), main_schema=WILD)
    assert_screen_safe(output)
    assert not aside
    header, *cells = csv.reader(io.StringIO(output.decode(), newline=""), strict=True)
    assert header == list(WILD.names)
    assert len(cells) == len(rows)
    for row, got in zip(rows, cells, strict=True):
        for column, value, cell in zip(WILD.columns, row, got, strict=True):
            if column.type in ("int", "timestamp"):
                assert cell == ("" if value is None else str(value))
            elif column.type in ("string", "bytes") and value is not None:
                plain = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
                assert unescape(cell.removeprefix("'")) == plain or unescape(cell) == plain
            if column.type not in ("int", "timestamp", "any"):
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))


@settings(max_examples=100, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_tables_are_screen_safe(rows):
    output, _aside = rendered("table", (WILD, rows))
    assert_screen_safe(output)


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


# -- JSON lines ----------------------------------------------------------------------------------------------


def test_json_lines_to_the_byte():
    headers = [(b"h", None), (b"\xfe", b"\x1b")]
    row = ("orders", 0, 7, 1714564800000, "CreateTime", 2, "none", b"k\xc3\xa9y", b"\xff\x00", headers, 3, -1, -1, -1,
           False, None, 7, 0, 61, 12)  # fmt: skip
    output, _aside = rendered("jsonl", (RECORD, [row]))
    assert lines(output)[0] == (
        '{"type":"record","topic":"orders","partition":0,"offset":7,"timestamp":1714564800000,'
        '"timestamp_type":"CreateTime","magic":2,"codec":"none","key":"kéy","value":{"base64":"/wA="},'
        '"headers":[["h",null],[{"base64":"/g=="},"\\u001b"]],"leader_epoch":3,"producer_id":-1,"producer_epoch":-1,'
        '"sequence":-1,"is_transactional":false,"is_control":null,"batch_base_offset":7,"segment_base_offset":0,"position":61,"size_bytes":12}'
    )


def test_the_summary_is_the_last_json_line():
    output, _aside = rendered("jsonl")
    assert json.loads(output) == {
        "type": "summary", "command": "test", "counts": {}, "findings": {}, "complete": True, "exit_code": 0,
        "conditions": [], "not_checked": [],
    }  # fmt: skip


class Kind(Enum):
    LOG = "log"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(5), 5),
        (np.bool_(True), True),
        (np.float64(0.5), 0.5),
        (float("nan"), "nan"),
        (Kind.LOG, "log"),
        ((1, b"\xff"), [1, {"base64": "/w=="}]),
        ({"a": None, 1: memoryview(b"x")}, {"a": None, "1": "x"}),
        (2**70, 2**70),
        (True, True),
        (1j, "1j"),
    ],
)
def test_any_value_has_a_json_form(value, expected):
    assert json.loads(json_value(value)) == expected


def test_numpy_scalars_in_number_columns():
    row = ("t", np.int32(1), np.int64(-5), np.int64(0), np.int64(0), 61, None)
    for format_name, shown in (("jsonl", '"offset":-5,'), ("text", " offset=-5 "), ("csv", "t,1,-5,"), ("table", "-5")):
        assert shown in rendered(format_name, (MATCH, [row]))[0].decode()


# -- text ----------------------------------------------------------------------------------------------------


def test_text_to_the_byte():
    row = ("o", 0, 7, 1714564800000, None, 61, -1)
    output, _aside = rendered(
        "text", (MATCH, [row]), (PROPERTY, [("/a b", "-", "x y"), ("", 'q"', -4), ("p", "n", None)])
    )
    assert lines(output) == [
        "match topic=o partition=0 offset=7 timestamp=1714564800000 segment_base_offset=- position=61 leader_epoch=-1",
        'property path="/a b" name="-" value="x y"',
        'property path="" name="q\\"" value=-4',
        "property path=p name=n value=-",
    ]


def test_text_shows_the_summary_only_where_it_is_a_result():
    assert rendered("text")[0] == b""
    (line,) = lines(rendered("text", shown=True)[0])
    assert line == "summary command=test counts={} findings={} complete=true exit_code=0 conditions=[] not_checked=[]"


def test_text_in_another_encoding_has_no_byte_of_another_meaning():
    output, _aside = rendered("text", (PROPERTY, [("ě", "é", "日")]), encoding="iso-8859-1")
    assert output == b'property path="\\u011b" name="\xe9" value="\\u65e5"\n'


# -- CSV -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        (-1, "-1"),
        ("@x", "'@x"),
        ("'=1", "''=1"),
        ("\t=1", "\\t=1"),
        ("\r=1", "\\r=1"),
        ("＝1", "'＝1"),
        ('=a,"b"', '"\'=a,""b"""'),
        ("a,b", '"a,b"'),
        ("a\nb", "a\\nb"),
        ("", '""'),
        (None, ""),
        (["x", 1], '"[""x"",1]"'),
    ],
)
def test_csv_cells(value, cell):
    output, _aside = rendered("csv", (PROPERTY, [("p", "n", value)]), main_schema=PROPERTY)
    assert output.decode() == f"path,name,value\np,n,{cell}\n"


def test_csv_holds_one_type_of_rows_and_says_what_it_leaves_out():
    found = finding_row(finding("offset-gap", Location("/a\x1bb"), "two\nlines"))
    match = ("t", 0, 1, 2, 3, 4, 5)
    output, aside = rendered(
        "csv", (FINDING, [found]), (MATCH, [match]), (PROPERTY, [("p", "n", 1)] * 2), main_schema=MATCH
    )
    assert output == b"topic,partition,offset,timestamp,segment_base_offset,position,leader_epoch\nt,0,1,2,3,4,5\n"
    assert aside[0].startswith('finding code=offset-gap severity=info certainty=proven path="/a\\x1bb" topic=- ')
    assert 'message="two\\nlines"' in aside[0]
    assert aside[1:] == ["CSV holds one type of rows, here match; left out: 2 properties. Use jsonl for all."]


def test_csv_without_rows_still_has_its_header():
    assert rendered("csv", main_schema=PROPERTY)[0] == b"path,name,value\n"


def test_csv_without_a_main_schema_takes_the_first():
    assert rendered("csv", (PROPERTY, [("p", "n", 1)]))[0] == b"path,name,value\np,n,1\n"


# -- table ---------------------------------------------------------------------------------------------------


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
    assert len(lines(output)) == 1001
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
    left_out = set(RECORD_COLUMNS) - set(shown.split())
    told = lines[-1].removeprefix("No room for ").partition(":")[0].split(", ") if left_out else []
    assert set(told) == left_out


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


# -- the summary ---------------------------------------------------------------------------------------------


def test_summary_paragraph():
    summary = Summary(
        "verify",
        counts={"batch": 1234, "finding": 3, "offset_index_entry": 1},
        findings={"info": 1, "warning": 0, "error": 0, "fatal": 2},
    )
    summary.conditions |= {Condition.INCOMPLETE, Condition.DAMAGE}
    summary.not_checked.append("records")
    summary.unchecked_codes["live-tail"] = 2
    assert summary.complete is False
    assert summary.exit_code == 1
    assert summary.paragraph() == (
        "verify: 1,234 batches, 1 offset index entry.\nFindings: 2 fatal, 1 info.\n"
        "Not checked: records; live-tail: 2 findings.\n"
        "Damage proven; incomplete, not proven clean. Exit status 1."
    )
    assert summary.as_row()["conditions"] == ["damage", "incomplete"]


@pytest.mark.parametrize(
    ("count", "name", "words"),
    [
        (1, "partitions", "1 partition"),
        (1, "side_files", "1 side file"),
        (1, "batches", "1 batch"),
        (1, "bytes", "1 byte"),
        (1, "losses", "1 loss"),
        (1, "bytes_read", "1 byte read"),
        (2, "bytes_read", "2 bytes read"),
        (0, "partition", "0 partitions"),
        (2, "batch", "2 batches"),
        (2, "file_match", "2 file matches"),
        (2, "loss", "2 losses"),
        (2, "losses", "2 losses"),
        (1234, "offset_index_entry", "1,234 offset index entries"),
        (2, "leader_epoch", "2 leader epochs"),
        (2, "property", "2 properties"),
        (2, "info finding", "2 info findings"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count, name, words):
    assert counted(count, name) == words


@pytest.mark.parametrize("condition", Condition)
def test_every_condition_has_words(condition):
    summary = Summary("verify", conditions={condition})
    assert summary.paragraph().endswith(f". Exit status {int(condition.exit_code)}.")


def test_summary_of_a_clean_run():
    summary = Summary(
        "verify", counts={"segments": 2}, findings=dict.fromkeys(("info", "warning", "error", "fatal"), 0)
    )
    assert summary.paragraph() == "verify: 2 segments.\nComplete and clean."
    assert not summary.is_remarkable
