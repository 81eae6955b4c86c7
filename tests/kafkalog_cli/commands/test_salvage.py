"""kafkalog salvage: what is lost is listed, and where the result is comes last."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.running import Run

RunMany = Callable[..., list[Run]]


def test_where_the_result_is_comes_after_all_rows(damaged: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kafkalog_cli", "salvage", damaged, "--format", "table"]
    reported = subprocess.run([*words, "--output", tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert reported.stdout.decode().splitlines()[-1] == f"published: {tmp_path / 'out'}"
    quiet = subprocess.run([*words, "--quiet", "--output", tmp_path / "other"], stderr=subprocess.PIPE)
    assert quiet.stderr == b""


def test_losses_are_counted(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    [run] = run_kafkalog_many([["salvage", damaged, "--output", tmp_path / "out", "--format", "jsonl"]])
    assert run.check(1).summary["counts"]["losses"] == len(run.rows("finding")) == 1
    [row] = run.rows("written_segment")
    assert (row["batch_count"], row["lost_bytes"]) == (3, run.rows("finding")[0]["length"])
