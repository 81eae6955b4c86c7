"""The page as a file: what it holds, that every text in it is escaped, and that it refers to nothing outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from format.columns import SCHEMAS
from kafkalog_cli.page.charts import chart_library
from kafkalog_cli.page.page import TABLES, document_parts, page_of
from tests.kafkalog_cli.page.reports import ATTACKS, damaged_node, hostile_report, report_of

pytestmark = pytest.mark.slow


class _Reader(HTMLParser):
    """The elements of a page, their attributes, and the text between them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data: list[str] = []
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_data = tag == "script" and dict(attrs).get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        (self.data if self._in_data else self.texts).append(data)


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def _values(chart: Any) -> Iterator[dict[str, Any]]:
    """The values of charts, at any depth of their specifications."""
    if isinstance(chart, dict):
        if isinstance(chart.get("values"), list):
            yield from chart["values"]
        chart = list(chart.values())
    if isinstance(chart, list):
        for each in chart:
            yield from _values(each)


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return page_of(hostile_report())


def test_no_text_becomes_markup(hostile_page: str) -> None:
    reader = _read(hostile_page)
    scripts = [attributes for tag, attributes in reader.elements if tag == "script"]
    assert [each.get("type") for each in scripts].count(None) == 2
    assert {tag for tag, _ in reader.elements}.isdisjoint({"img", "iframe", "object", "link", "base", "form", "image"})
    assert [tag for tag, _ in reader.elements].count("style") == 1
    for _, attributes in reader.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcdoc", "xlink:href")]
        assert (attributes.get("href") or "#").startswith("#")
    shown = "".join(reader.texts)
    for attack in ATTACKS:
        if attack.isprintable() and attack.isascii():
            assert attack in shown, "nothing is left out either"
    assert "\u202e" not in hostile_page
    assert "\x00" not in hostile_page


def test_the_tables_are_in_the_html(hostile_page: str) -> None:
    tables = re.findall(r'id="t-(\w+)">.*?<thead>(.*?)</thead><tbody>\n(.*?)\n</tbody>', hostile_page, re.DOTALL)
    assert {name for name, _, _ in tables} == {table.type for table in TABLES}
    for name, head, body in tables:
        columns = next(table.columns for table in TABLES if table.type == name)
        assert len(re.findall(r"<th [^>]*title=", head)) == len(columns)
        rows = body.split("<tr>")[1:]
        assert len(rows) == len(ATTACKS), name
        assert {row.count("<td") for row in rows} == {len(columns)}, name


def test_each_chart_has_a_sentence_with_figures(hostile_page: str) -> None:
    reader = _read(hostile_page)
    labels = [each["aria-label"] or "" for tag, each in reader.elements if each.get("class") == "chart"]
    assert len(labels) == len([tag for tag, _ in reader.elements if tag == "figure"]) > 8
    for label in labels:
        assert label.endswith("."), label
        assert re.search(r"\d", label), label
        assert label in "".join(reader.texts), "and somebody who sees the page reads it too"


def test_only_its_own_script_may_run(hostile_page: str) -> None:
    policy = next(
        attributes["content"]
        for tag, attributes in _read(hostile_page).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/]+=*' 'sha256-[\w+/]+=*';", policy)


def test_every_column_of_a_table_is_one_of_its_rows() -> None:
    schemas = {schema.type: schema for schema in SCHEMAS}
    for table in TABLES:
        assert set(table.columns) <= set(schemas[table.type].names), table.type


def test_page_and_document_of_a_damaged_node(data_dir: Path, tmp_path: Path) -> None:
    report = report_of(damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path))
    page = page_of(report)
    library = chart_library()
    own = page.replace(library, "")
    assert len(own) == len(page) - len(library) < 300_000
    assert not re.search(r"https?://", own), "not even in text"
    reader = _read(page)
    words = " ".join(" ".join(reader.texts).split())
    assert "batch-crc-mismatch" in words
    assert "run salvage to keep the batches after it" in words
    charts = [json.loads(data) for data in reader.data]
    labels = [value["tip"] for value in _values(charts) if isinstance(value, dict) and "tip" in value]
    assert any(label.startswith("orders-0: ") and label.endswith("fatal") for label in labels), "the map"
    assert any(label.startswith("batch-crc-mismatch in orders-0") for label in labels), "the damage in time"
    document = json.loads("".join(document_parts(report)))
    assert document["findings"]["fatal"] == sum(
        row["count"] for row in document["tables"]["finding_summary"]["rows"] if row["severity"] == "fatal"
    )
    made_where_asked = {"file_bytes", "divergence", "replica", "run"}
    assert set(document["tables"]) >= {table.type for table in TABLES} - made_where_asked
