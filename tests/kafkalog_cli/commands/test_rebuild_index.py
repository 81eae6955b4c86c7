"""kafkalog rebuild-index: what the summary counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.running import Run

RunMany = Callable[..., list[Run]]


def test_written_bytes_are_those_of_the_files(partition: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    words = ["rebuild-index", partition, "--format", "jsonl", "--output"]
    runs = run_kafkalog_many([[*words, tmp_path / "indexes"], [*words, tmp_path / "all", "--with-log"]])
    for run, out in zip(runs, (tmp_path / "indexes", tmp_path / "all"), strict=True):
        sizes = {each.name: each.stat().st_size for each in (out / "t-0").iterdir()}
        assert run.check(0).summary["counts"]["written_bytes"] == sum(sizes.values())
        assert sizes[f"{0:020d}.timeindex"] > 0
    assert f"{0:020d}.log" in sizes
