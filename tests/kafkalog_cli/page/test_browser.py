"""The page in a real browser: nothing is requested, nothing fails, and tables, charts and colours work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from format.verbs.report.terms import Report
from kafkalog_cli.page.page import TABLES, page_of
from kafkalog_cli.render.text import escape_text
from tests.conftest import unavailable
from tests.kafkalog_cli.page.browser import MISSING, Browser, open_browser
from tests.kafkalog_cli.page.reports import damaged_node, hostile_report, report_of

pytestmark = pytest.mark.slow

_HOVER = """
const mark = document.querySelector(arguments[0]);
mark.scrollIntoView({block: "center"});
const box = mark.getBoundingClientRect();
const at = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
mark.dispatchEvent(new MouseEvent("mousemove", at));
return [document.getElementById("tip").hidden, document.getElementById("tip").textContent];
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if MISSING is not None:
        unavailable(MISSING)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def facts(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("report")
    return report_of(damaged_node(data_dir / "kafka-4.3-single" / "node-1", folder))


@pytest.fixture(scope="module")
def page(facts: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(facts))
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.requests()
    browser.complaints()
    browser.open(page)
    return browser


def test_nothing_is_requested_and_nothing_fails(opened: Browser, page: Path) -> None:
    assert opened.requests() == [page.as_uri()]
    assert opened.complaints() == []
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_without_scripts_the_tables_are_read(opened: Browser, page: Path, facts: Report) -> None:
    opened.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.driver.get(page.as_uri())
        root = opened.driver.execute_cdp_cmd("DOM.getDocument", {"depth": -1})["root"]
        rows = opened.driver.execute_cdp_cmd(
            "DOM.querySelectorAll", {"nodeId": root["nodeId"], "selector": "#t-timeline_event tbody tr"}
        )["nodeIds"]
        assert len(rows) == len(facts.tables["timeline_event"].rows) > 40
        tools = opened.driver.execute_cdp_cmd(
            "DOM.querySelectorAll", {"nodeId": root["nodeId"], "selector": ".tools:not([hidden])"}
        )["nodeIds"]
        assert not tools, "what does nothing without a script is not shown"
    finally:
        opened.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_filter_and_more(opened: Browser) -> None:
    whole = opened.rows("timeline_event")
    assert 0 < len(whole) <= 40
    assert opened.filtered_rows("report_partition", "orders fatal") == 1
    assert opened.rows("report_partition")[0][:3] == ["fatal", "orders", "0"]
    opened.run("document.querySelector('#t-report_partition input').value = ''")


def test_a_finding_lists_its_places(opened: Browser) -> None:
    opened.run("document.querySelector('.pick[data-filter=\"fatal batch-crc-mismatch\"]').click()")
    rows = opened.rows("finding")
    assert len(rows) == 1
    assert rows[0][1] == "batch-crc-mismatch"
    for severity in ("error", "warning"):  # one code may have two
        opened.run(f"document.querySelector('.pick[data-filter=\"{severity} checkpoint-mismatch\"]').click()")
        assert [row[:2] for row in opened.rows("finding")] == [[severity, "checkpoint-mismatch"]]


def test_a_rectangle_of_the_map_lists_its_partition(opened: Browser) -> None:
    rectangle = "document.querySelector('.map path[aria-label^=\"orders-1:\"]')"
    opened.run(f"{rectangle}.dispatchEvent(new Event('click', {{bubbles: true}}))")
    assert [row[1:3] for row in opened.rows("report_partition")] == [["orders", "1"]]


def test_sort(opened: Browser) -> None:
    headings = opened.run("return [...document.querySelectorAll('#t-topic_usage th')].map(each => each.textContent)")
    column = headings.index("record count")
    script = "document.querySelectorAll('#t-topic_usage th button')[arguments[0]].click()"
    opened.run(script, column)
    falling = [int(row[column].replace(",", "")) for row in opened.rows("topic_usage")]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 5
    opened.run(script, column)
    assert [int(row[column].replace(",", "")) for row in opened.rows("topic_usage")] == sorted(falling)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ('.map path[aria-label^="orders-0"]', "orders-0: "),
        ('#time svg path[aria-label*="batch-crc-mismatch"]', "batch-crc-mismatch in orders-0 at offset "),
        ('#topics svg path[aria-label^="orders: "]', "orders: "),
        ("#t-topic_usage th button[data-tip]", "topic, from the directory's name"),
    ],
)
def test_hover(opened: Browser, mark: str, words: str) -> None:
    is_hidden, shown = opened.run(_HOVER, mark)
    assert not is_hidden
    assert shown.startswith(words)


def test_charts_are_drawn_in_place(opened: Browser) -> None:
    script = """
    const charts = [...document.querySelectorAll(".chart")];
    const chart = document.querySelector("#time .chart"), width = chart.querySelector("svg").getBoundingClientRect();
    const damage = chart.querySelector('path[aria-label^="batch-crc-mismatch"]').getBoundingClientRect();
    return [charts.length, charts.filter(each => each.querySelector("svg path[aria-label]")).length,
            [...chart.querySelectorAll("text")].map(each => each.textContent),
            (damage.x - width.x) / width.width];
    """
    count, drawn, words, place = opened.run(script)
    assert count == drawn > 8
    assert {"Mon 02", "time (UTC)", "100 KiB"} <= set(words)
    assert 0.1 < place < 0.3, "the damage is of 4 November, and the axis goes from 1 to 21 November"


def test_light_dark_and_print(opened: Browser) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    fill = "return getComputedStyle(document.querySelector('.map path[aria-label^=\"orders-0\"]')).fill"
    opened.emulate(prefers_color_scheme="light")
    light = opened.run(ground), opened.run(fill)
    opened.emulate(prefers_color_scheme="dark")
    dark = opened.run(ground), opened.run(fill)
    opened.emulate()
    assert light == ("rgb(255, 255, 255)", "rgb(163, 18, 58)")
    assert dark == ("rgb(20, 24, 30)", "rgb(211, 58, 99)")
    pdf = opened.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(pdf) > 50_000


def test_cells_are_the_facts(opened: Browser, facts: Report) -> None:
    for name in ("finding", "metadata_change", "topic", "assignment", "group_offset", "transaction_total"):
        table = facts.tables[name]
        columns = next(each.columns for each in TABLES if each.type == name)
        opened.run("for (let n = 0; n < 5; n++) document.querySelector(arguments[0]).click()", f"#t-{name} .more")
        rows = opened.rows(name)
        assert len(rows) == len(table.rows) > 0
        for row, cells in zip(table.rows, rows, strict=True):
            for column, cell in zip(columns, cells, strict=True):
                value = row[table.schema.names.index(column)]
                if value is None:
                    assert cell == "–", (name, column)
                elif isinstance(value, bool):
                    assert cell == ("yes" if value else "no"), (name, column)
                elif (
                    isinstance(value, int)
                    and table.schema.columns[table.schema.names.index(column)].type != "timestamp"
                ):
                    assert cell == f"{value:,}", (name, column)
                elif isinstance(value, str):
                    assert cell == escape_text(value), (name, column)


def test_a_narrow_screen_scrolls_its_charts(browser: Browser, page: Path) -> None:
    metrics = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.open(page)
        assert browser.run("return document.documentElement.scrollWidth") == 400
        assert browser.run("return document.querySelector('#time svg').getBoundingClientRect().width") >= 700
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_path_breaks_between_its_parts(opened: Browser) -> None:
    opened.run("document.querySelector('#t-finding td:nth-child(9)').style.maxWidth = '180px'")
    script = """
    const parts = [...document.querySelectorAll("#t-finding tr:first-child td:nth-child(9) i")];
    return parts.map(each => [each.textContent, each.getClientRects().length]);
    """
    parts = dict(opened.run(script))
    assert parts["orders-0/"] == 1
    assert "".join(parts) == opened.rows("finding")[0][8]


def test_a_short_path_is_on_one_line(
    browser: Browser, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "short.html"
    path.write_text(page_of(report_of(Path("node-1"))))
    browser.open(path)
    script = """
    document.getElementById("t-report_partition").scrollIntoView();
    const lines = cell => new Set([...cell.querySelectorAll("i")].map(part => part.getBoundingClientRect().top));
    return [...document.querySelectorAll("#t-report_partition td:last-child")].map(cell => lines(cell).size);
    """
    assert set(browser.run(script)) == {1}


def test_a_long_name_widens_nothing(browser: Browser, data_dir: Path, tmp_path: Path) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    renamed = (node / "orders-0").rename(node / f"{'n' * 245}-0")
    for index in renamed.glob("*.index"):
        index.unlink()
    path = tmp_path / "long.html"
    path.write_text(page_of(report_of(node)))
    browser.open(path)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_print_repeats_headings_and_keeps_light_colours(opened: Browser) -> None:
    fill = "return getComputedStyle(document.querySelector('.tag.info')).backgroundColor"
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]})  # fmt: skip
    try:
        assert opened.run(fill) == "rgb(84, 112, 143)"
        assert opened.run("return getComputedStyle(document.querySelector('thead button')).display") == "none"
        heading = "return getComputedStyle(document.querySelector('#t-finding th'), '::after').content"
        assert opened.run(heading) == '"severity"'
    finally:
        opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_the_keyboard_gets_the_explanation_of_a_column(opened: Browser) -> None:
    opened.run("document.querySelector('#t-topic_usage th button').focus()")
    tip = "return [document.getElementById('tip').hidden, document.getElementById('tip').textContent]"
    is_hidden, words = opened.run(tip)
    assert not is_hidden
    assert words.startswith("topic, from the directory's name")
    opened.run("document.activeElement.blur()")
    assert opened.run(tip)[0]


def test_hostile_names_execute_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page_of(hostile_report()))
    browser.requests()
    browser.complaints()
    browser.open(path)
    title = browser.run("return document.title")
    for mark in ("td", "figure svg path[aria-label]", "th button"):
        browser.run("for (const each of document.querySelectorAll(arguments[0])) "
                    "for (const kind of ['mouseover', 'mousemove', 'click']) "
                    "each.dispatchEvent(new MouseEvent(kind, {bubbles: true}))", mark)  # fmt: skip
    assert browser.run("return document.title") == title
    assert title.startswith("Report on ")
    assert browser.run("return document.querySelectorAll('main img, main script:not([type])').length") == 0
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
