"""What the commands that write report: what --resume takes over, and the counts of the summary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.running import Run

RunMany = Callable[..., list[Run]]

COMMANDS = {"recompress": ("--codec", "zstd"), "salvage": (), "rebuild-index": ()}


@pytest.mark.parametrize("command", [*COMMANDS, "extract", "redact"])
def test_resume_says_where_there_is_nothing_to_take_up(
    partition: Path, tmp_path: Path, run_kafkalog_many: RunMany, command: str
) -> None:
    more = {"extract": ("--to", "jsonl"), "redact": ("--mode", "fill")}.get(command) or COMMANDS.get(command, ())
    words = [command, partition, *more, "--format", "jsonl", "--resume", "--output"]
    reported, quiet = run_kafkalog_many([[*words, tmp_path / "1"], [*words, tmp_path / "2", "--quiet"]])
    assert "no unfinished run" in reported.check(0).stderr
    assert not quiet.check(0).stderr
    assert reported.summary["counts"]["resumed_files"] == quiet.summary["counts"]["resumed_files"] == 0


def test_resume_counts_what_it_takes_over(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    write_segment(tmp_path / "src" / "a-0", 0, batches(2))
    words = ["recompress", tmp_path / "src" / "a-0", damaged, "--codec", "gzip", "--output", tmp_path / "out"]
    words += ["--keep-partial", "--format", "jsonl"]
    [first] = run_kafkalog_many([words])
    assert "resumed_files" not in first.check(5).summary["counts"]
    [second] = run_kafkalog_many([[*words, "--resume"]])
    assert second.check(5).summary["counts"]["resumed_files"] == 3  # a log and its two indexes
    assert "no unfinished run" not in second.stderr
