"""The values of a table as the page's script gets them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from format.columns import DIVERGENCE, FINDING, METADATA_CHANGE
from format.verbs.report.terms import Report
from kafkalog_cli.page.page import table_views

pytestmark = pytest.mark.slow


def _shown(schema: Any, column: str, values: list[Any]) -> list[Any]:
    """What the script shows of a column: it looks up the numbers of words that repeat."""
    report = Report(0, [])
    rows = (tuple(value if name == column else None for name in schema.names) for value in values)
    report.table(schema).extend(rows)
    data = json.loads(table_views(report)[schema.type].data)
    number = next(number for number, each in enumerate(data["columns"]) if each["name"] == column)
    words = data["columns"][number].get("words")
    shown = [row[number] for row in data["rows"]]
    return shown if words is None else [None if each is None else words[each] for each in shown]


def test_numbers_among_words_that_repeat_stay_numbers() -> None:
    values: list[Any] = ["1", 1, 30, None, True, "gzip", 1000, 0] * 10
    assert _shown(METADATA_CHANGE, "after", list(values)) == values


def test_lists_and_objects_in_words() -> None:
    shown = _shown(FINDING, "lost_offsets", [[3, 1075], [8, 8], None])
    assert shown == ["3–1,075", "8", None]
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
