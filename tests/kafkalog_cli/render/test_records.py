"""Records as people read them: headings, values as JSON, matches, and what is cut."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from format.columns import IS_MATCH, RECORD, RowSchema
from format.verbs.grep.pattern import any_of, bytes_pattern, text_pattern
from kafkalog_cli.render.records import MARKS, Highlight, RecordBlocks, RecordRows, pretty_bytes

MATCH = "\x1b[1;31m"
ORDER = b'{"id": "6f16","qty":4,"price": 2.50e3, "lines": [{"sku": "A"}, {}], "note": null}'


def row(**values: Any) -> tuple[Any, ...]:
    usual: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "offset": 1102,
        "timestamp": 1793521407088,
        "key": b"customer-2108",
        "value": b"plain text",
        "headers": [],
        "is_control": False,
    }
    return tuple({**usual, **values}.get(name) for name in RECORD.names)


def block(width: int | None = 80, *, highlight: Highlight | None = None, **values: Any) -> str:
    drawn = RecordBlocks(width, is_coloured=highlight is not None, highlight=highlight)
    return "".join(drawn.drawn(RECORD, [row(**values)]))


HEADING = "orders-0 @ 1102  2026-11-01T08:23:27.088Z  customer-2108"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, f"{HEADING}\n    plain text\n"),
        ({"value": None}, f"{HEADING}  [tombstone]\n"),
        ({"value": None, "key": None}, "orders-0 @ 1102  2026-11-01T08:23:27.088Z  -  [null value]\n"),
        ({"value": b""}, f'{HEADING}\n    ""\n'),
        ({"value": b"\x00\xff\x1b[31m"}, f"{HEADING}\n    \\x00\\xff\\x1b[31m\n"),
        ({"topic": None, "timestamp": None, "headers": None}, "offset 1102  -  customer-2108\n    plain text\n"),
        (
            {"headers": [(b"trace-id", b"5f2c"), (b"source", None)]},
            f"{HEADING}\n    headers  trace-id=5f2c  source=-\n    plain text\n",
        ),
        (
            {"is_control": True, "key": {"type": "COMMIT", "version": 0}, "value": {"type": "COMMIT", "data": {}}},
            "orders-0 @ 1102  2026-11-01T08:23:27.088Z  COMMIT  [control]\n    {\"type\": \"COMMIT\", \"data\": {}}\n",
        ),
    ],
)  # fmt: skip
def test_a_block(values: dict[str, Any], expected: str) -> None:
    assert block(**values) == expected


def test_a_line_is_whole() -> None:
    long = b"x" * 5000
    schema = RowSchema("record", (*RECORD.columns, IS_MATCH, MARKS))
    rows = [
        (*row(value=long, headers=[(b"a", b"1"), (b"b", None)]), True, ["aborted", "on node 1"]),
        (*row(value=None), False, []),
    ]
    first, second = "".join(RecordRows(schema).lines(rows)).splitlines(keepends=True)
    assert first == f"{HEADING}  [aborted; on node 1]  {'x' * 5000}  headers a=1 b=-\n"
    assert second == f"{HEADING}  [tombstone; context]\n"


def test_json_is_pretty_and_its_tokens_stay() -> None:
    shown = pretty_bytes(ORDER, (), 40)
    assert shown is not None
    assert shown.text.split("\n") == [
        "{",
        '  "id": "6f16",',
        '  "qty": 4,',
        '  "price": 2.50e3,',
        '  "lines": [{"sku": "A"}, {}],',
        '  "note": null',
        "}",
    ]
    in_one_line = pretty_bytes(ORDER, (), 120)
    assert in_one_line is not None
    assert "\n" not in in_one_line.text
    assert json.loads(in_one_line.text) == json.loads(ORDER)


@pytest.mark.parametrize(
    "value",
    [b"", b"12", b'"text"', b'{"a": ', b"{a}", b"[" * 101 + b"]" * 101, b"[" * 5000 + b"]" * 5000, b'{"\xff": 1}'],
)
def test_what_is_no_json_object_or_array_is_not_pretty(value: bytes) -> None:
    assert pretty_bytes(value, (), 80) is None


def test_unsafe_characters_of_json_are_escaped() -> None:
    shown = pretty_bytes('{"a\u202e": "\x7f"}'.encode(), (), 80)
    assert shown is not None
    assert shown.text == '{"a\\u202e": "\\u007f"}'


def test_matches_are_marked() -> None:
    pattern = any_of([text_pattern("4,"), text_pattern('"SKU', ignore_case=True), bytes_pattern(b"\xc3\xa9")])
    value = 'é {"qty": 4, "sku": "A"} "sku'.encode()
    shown = block(None, value=value, key=b"4,4,", highlight=lambda _name, field: pattern.spans(field))
    assert f"{MATCH}4,\x1b[0m{MATCH}4,\x1b[0m\n" in shown.splitlines(keepends=True)[0]
    assert shown.splitlines()[1] == (
        f'    {MATCH}é\x1b[0m {{"qty": {MATCH}4,\x1b[0m {MATCH}"sku\x1b[0m": "A"}} {MATCH}"sku\x1b[0m'
    )


def test_matches_in_pretty_json_are_marked_across_tokens() -> None:
    pattern = text_pattern('é","qty":4')
    value = '{"id":"é","qty":4,"x":"é"}'.encode()
    shown = block(20, value=value, highlight=lambda _name, field: pattern.spans(field))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain.splitlines()[-5:] == ["    {", '      "id": "é",', '      "qty": 4,', '      "x": "é"', "    }"]
    marked = "".join(re.findall(re.escape(MATCH) + r"(.*?)\x1b\[0m", shown))
    assert marked == 'é","qty":4'


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    values: dict[str, Any] = {
        "key": b"k" * 150,
        "value": b"some words " * 60 + "全角".encode() * 90,
        "headers": [(b"name", b"v" * 90)] * 3,
    }
    for line in block(width, **values).splitlines() + block(width, value=ORDER * 1 + b" ").splitlines():
        assert len(line.encode("utf-8")) <= 3 * width
        assert sum(2 if ord(each) > 0x2E80 else 1 for each in line) <= width
    words = block(width, **values).replace("\n", " ")
    assert len(re.findall(r"\bwords\b", words)) == 60  # none is broken


def test_a_long_value_is_cut_around_the_match() -> None:
    value = "é".encode() * 3000 + b"needle" + b"x" * 3000
    pattern = text_pattern("needle")
    shown = block(80, value=value, highlight=lambda _name, field: pattern.spans(field))
    assert f"…{'é' * 30}" in shown
    assert f"{MATCH}needle" in shown
    assert shown.endswith("…(9,006 bytes)\n")
    assert "needle" not in block(80, value=value)


def test_long_json_is_cut_to_lines_around_the_match() -> None:
    value = json.dumps([{"number": number, "text": "t" * 60} for number in range(200)]).encode()
    start = block(80, value=value).splitlines()
    assert start[1:3] == ["    [", "      {"]
    assert start[-1] == "    …(772 more lines; --format text shows all)"
    assert len(start) == 32
    pattern = text_pattern('"number": 150')
    shown = block(80, value=value, highlight=lambda _name, field: pattern.spans(field))
    assert f"{MATCH}150" in shown
    assert "    …\n" in shown
