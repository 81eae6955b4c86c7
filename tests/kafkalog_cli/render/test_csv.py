"""CSV is lossless, holds one type of rows, and no cell is a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import FINDING, PROPERTY
from format.findings import finding
from format.location import Location
from format.rows.finding_rows import finding_row
from tests.kafkalog_cli.reading import assert_screen_safe, unescape
from tests.kafkalog_cli.render.rendering import MATCH, WILD, rendered, rows_of


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
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
                assert unescape(cell.removeprefix("'")) == plain
            if column.type not in ("int", "timestamp", "any"):
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))


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


def test_csv_without_a_main_schema_does_not_take_a_finding():
    """The first batch of a log may be damaged: its finding comes before the rows that were asked for."""
    found = finding_row(finding("offset-gap", Location("/a"), "two"))
    output, aside = rendered("csv", (FINDING, [found]), (PROPERTY, [("p", "n", 1)]))
    assert output == b"path,name,value\np,n,1\n"
    assert [each.split(" severity")[0] for each in aside] == ["finding code=offset-gap"]
