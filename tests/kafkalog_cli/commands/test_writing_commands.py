"""recompress, salvage and rebuild-index as a user runs them: options, exit codes, summaries, refusals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import Run

RunMany = Callable[..., list[Run]]
COMMANDS = {"recompress": ("--codec", "zstd"), "salvage": (), "rebuild-index": ()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sound_partition(partition: Path, tmp_path: Path, run_kafkalog_many: RunMany, command: str) -> None:
    words = [command, partition, "--output", tmp_path / "out", *COMMANDS[command]]
    first, second = run_kafkalog_many([[*words, "--format", "jsonl"], [*words, "--format", "jsonl"]])
    first.check(0)
    [row] = first.rows("written_segment")
    assert (row["path"], row["batch_count"], row["lost_bytes"]) == (f"t-0/{0:020d}.log", 4, 0)
    assert first.summary["counts"]["batches"] == 4
    assert "published" in first.stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["job"]["command"] == command
    second.check(5)  # the target is there
    assert second.summary["conditions"] == ["refused"]
    assert sorted(os.listdir(tmp_path)) == ["out", "src"]


@pytest.mark.parametrize("command", COMMANDS)
def test_fail_on_moves_the_threshold(partition: Path, tmp_path: Path, run_kafkalog_many: RunMany, command: str) -> None:
    (partition / f"{99:020d}.index").write_bytes(b"")  # an index without its log: a warning
    words = [command, partition, *COMMANDS[command], "--format", "jsonl"]
    default, strict = run_kafkalog_many(
        [[*words, "--output", tmp_path / "1"], [*words, "--output", tmp_path / "2", "--fail-on", "info"]]
    )
    assert default.check(0).summary["conditions"] == []
    assert {each["severity"] for each in strict.rows("finding")} & {"info", "warning"}
    assert strict.check(1).summary["conditions"] == ["damage"]
    assert (tmp_path / "2" / "manifest.json").exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["t-0", "t-0/new", "."])
def test_no_output_into_the_source(
    partition: Path, run_kafkalog_many: RunMany, command: str, place: str, source_snapshot: Callable[[Path], None]
) -> None:
    source_snapshot(partition.parent)
    [run] = run_kafkalog_many(
        [[command, partition, "--output", partition.parent / place, *COMMANDS[command], "--format", "jsonl"]]
    )
    run.check(5)


def test_losses_end_with_1(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    lines = [
        ["salvage", damaged, "--output", tmp_path / "a", "--format", "jsonl"],
        ["rebuild-index", damaged, "--output", tmp_path / "b", "--format", "jsonl"],
        ["recompress", damaged, "--output", tmp_path / "c", "--codec", "lz4", "--format", "jsonl"],
        ["recompress", damaged, "--output", tmp_path / "d", "--codec", "lz4", "--skip-damaged", "--format", "jsonl"],
    ]
    salvaged, rebuilt, refused, skipped = run_kafkalog_many(lines)
    for run in (salvaged, rebuilt, skipped):
        run.check(1)
        assert [row["code"] for row in run.rows("finding")] == ["batch-crc-mismatch"]
        assert run.summary["conditions"] == ["damage"]
    assert salvaged.rows("finding")[0]["lost_offsets"] == [9, 17]
    losses = json.loads((tmp_path / "d" / "manifest.json").read_text())["skipped"]
    assert [each["code"] for each in losses] == ["batch-crc-mismatch"]
    refused.check(5)
    assert "salvage" in refused.stderr
    assert not (tmp_path / "c").exists()
