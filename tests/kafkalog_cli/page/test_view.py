"""The cells of a table as they are in the HTML."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from format.columns import DIVERGENCE, FINDING, METADATA_CHANGE, TOPIC_USAGE
from format.verbs.report.terms import Report
from kafkalog_cli.page.charts import span_words
from kafkalog_cli.page.page import table_views

pytestmark = pytest.mark.slow


def _cells(schema: Any, column: str, values: list[Any]) -> list[str]:
    """The cells of one column as HTML."""
    report = Report(0, [])
    rows = (tuple(value if name == column else None for name in schema.names) for value in values)
    report.table(schema).extend(rows)
    view = table_views(report)[schema.type]
    number = view.columns.index(column)
    rows = view.rows.replace("</tr>", "").split("<tr>")[1:]
    return [f"<td{row.split('<td')[number + 1]}".rstrip() for row in rows]


def _shown(schema: Any, column: str, values: list[Any]) -> list[str]:
    """The text of the cells of one column."""
    return [unescape(re.sub("<[^>]*>", "", cell)) for cell in _cells(schema, column, values)]


def test_values_of_any_kind() -> None:
    values = ["1", 1, None, True, "gzip", 1000, 0]
    assert _shown(METADATA_CHANGE, "after", values) == ["1", "1", "–", "true", "gzip", "1,000", "0"]


def test_numbers_are_sorted_by_their_values() -> None:
    assert _cells(TOPIC_USAGE, "size_bytes", [2048, None]) == [
        '<td class="n" data-v="2048">2.0 KiB',
        '<td class="null n">–',
    ]
    assert _cells(TOPIC_USAGE, "record_count", [2**63 - 1]) == ['<td class="n">9,223,372,036,854,775,807']
    assert _cells(TOPIC_USAGE, "age_ms", [-5_400_000]) == ['<td class="n" data-v="-5400000">in 1.5 h']
    assert _shown(TOPIC_USAGE, "skew", [2.5, 1.0, 1234.5678]) == ["2.5", "1", "1,234.568"]


def test_a_duration_in_words() -> None:
    assert [span_words(each) for each in (0, 999, 1_500, 90_000, 172_800_000)] == [
        "0 ms",
        "999 ms",
        "1.5 s",
        "1.5 min",
        "2.0 d",
    ]


def test_lists_and_objects_in_words() -> None:
    shown = _shown(FINDING, "lost_offsets", [[3, 1075], [8, 8], None])
    assert shown == ["3–1,075", "8", "–"]
    assert _shown(DIVERGENCE, "damaged", [[[], [[1, 5], [7, 7]]]]) == ["none; 1–5, 7"]
    assert _shown(DIVERGENCE, "high_watermark", [[None, 1750]]) == ["–, 1750"]
    values = [{"retention.ms": "-1", "cleanup.policy": "compact"}, [1, 2], [], {}, {"a": {"b": 1}}, ["\u202e<"]]
    assert _shown(METADATA_CHANGE, "after", values) == [
        "retention.ms=-1, cleanup.policy=compact",
        "1, 2",
        "none",
        "none",
        '{"a":{"b":1}}',
        "\\u202e<",
    ]
