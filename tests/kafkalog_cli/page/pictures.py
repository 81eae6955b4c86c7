"""The pictures of docs/report.md: ``python -m tests.kafkalog_cli.page.pictures`` rebuilds them."""

from __future__ import annotations

import tempfile
from contextlib import chdir
from pathlib import Path

from kafkalog_cli.page.page import page_of
from tests.corpora import DATA_DIR, REPOSITORY
from tests.kafkalog_cli.page.browser import open_browser
from tests.kafkalog_cli.page.reports import damaged_node, report_of


def main() -> None:
    images = REPOSITORY / "docs" / "images"
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = Path(folder) / "report.html"
        damaged_node(DATA_DIR / "kafka-4.3-single" / "node-1", Path(folder))
        with chdir(folder):  # so that the page names node-1, and no temporary folder
            page.write_text(page_of(report_of(Path("node-1"))))
        for scheme, section in (("light", "short"), ("dark", "nodes")):
            browser.emulate(prefers_color_scheme=scheme)
            browser.open(page)
            if scheme == "dark":
                browser.run("document.getElementById(arguments[0]).scrollIntoView()", section)
            browser.picture(images / f"report-{scheme}.png")


if __name__ == "__main__":
    main()
