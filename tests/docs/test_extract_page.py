"""The ways of reading the Parquet files of ``extract`` that its page names: each runs, and counts all records."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY
from tests.running import Run

pytestmark = pytest.mark.slow  # it imports four large libraries

_LINE = re.compile(r"^\| (\w+) \| `(.+)` \|$", re.MULTILINE)
_MODULES = ("duckdb", "polars", "pandas", "pyarrow.dataset")


def test_each_reader_takes_the_directory(
    tmp_path: Path, data_dir: Path, run_kafkalog: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in _MODULES:
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'kafkalog[test]'")
    names = {name.partition(".")[0]: importlib.import_module(name.partition(".")[0]) for name in _MODULES}
    source = data_dir / "kafka-4.3-single" / "node-1"
    run = run_kafkalog("extract", source, "--output", tmp_path / "records", "--format", "jsonl").check(0)
    count = run.summary["counts"]["records"]
    monkeypatch.chdir(tmp_path)
    ways = dict(_LINE.findall((REPOSITORY / "docs/extract.md").read_text(encoding="utf-8")))
    for reader in ("Polars", "pandas", "Arrow"):
        table = eval(ways[reader], names)
        assert len(table) == count, reader
        assert "topic" in (table.column_names if reader == "Arrow" else table.columns), reader
    assert sum(number for _, number in names["duckdb"].sql(ways["DuckDB"]).fetchall()) == count
