"""Logfmt is lossless, with one stable line per row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import PROPERTY
from tests.kafkalog_cli.reading import assert_screen_safe, from_json, read_text_line
from tests.kafkalog_cli.render.rendering import MATCH, WILD, as_json, lines, rendered, rows_of


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(rows_of(WILD), max_size=4))
def test_text_is_lossless(rows):
    output, _aside = rendered("logfmt", (WILD, rows))
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


def test_text_to_the_byte():
    row = ("o", 0, 7, 1714564800000, None, 61, -1)
    output, _aside = rendered(
        "logfmt", (MATCH, [row]), (PROPERTY, [("/a b", "-", "x y"), ("", 'q"', -4), ("p", "n", None)])
    )
    assert lines(output) == [
        "match topic=o partition=0 offset=7 timestamp=1714564800000 segment_base_offset=- position=61 leader_epoch=-1",
        'property path="/a b" name="-" value="x y"',
        'property path="" name="q\\"" value=-4',
        "property path=p name=n value=-",
    ]


def test_text_shows_the_summary_only_where_it_is_a_result():
    assert rendered("logfmt")[0] == b""
    (line,) = lines(rendered("logfmt", shown=True)[0])
    assert line == "summary command=test counts={} findings={} complete=true exit_code=0 conditions=[] not_checked=[]"


def test_text_in_another_encoding_has_no_byte_of_another_meaning():
    output, _aside = rendered("logfmt", (PROPERTY, [("ě", "é", "日")]), encoding="iso-8859-1")
    assert output == b'property path="\\u011b" name="\xe9" value="\\u65e5"\n'
