"""JSON lines are lossless, and the summary is the last of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import RECORD
from tests.kafkalog_cli.reading import assert_screen_safe, from_json
from tests.kafkalog_cli.render.rendering import WILD, as_json, lines, rendered, rows_of


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
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
