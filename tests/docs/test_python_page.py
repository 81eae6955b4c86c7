"""docs/python.md: every Python block runs, in one session, and prints what the text block below it says."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.corpora import DATA_DIR, REPOSITORY

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_every_block_prints_what_stands_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "duckdb", "polars", "pandas"):
        try:
            __import__(name)
        except ImportError:
            unavailable(f"{name} is not installed: pip install 'kafkalog[test]'")
    monkeypatch.chdir(DATA_DIR)
    page = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(page))
    assert len(blocks) >= 8
    assert len(blocks) == page.count("```python\n")
    session: dict[str, object] = {}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "docs/python.md", "exec"), session)
        assert printed.getvalue() == (block["output"] or ""), block["code"]
    assert Path(os.getcwd()) == DATA_DIR
