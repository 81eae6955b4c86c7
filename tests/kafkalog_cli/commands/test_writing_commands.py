"""recompress, salvage and rebuild-index as a user runs them: options, exit codes, summaries, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.running import Run

RunMany = Callable[..., list[Run]]
COMMANDS = {"recompress": ("--codec", "zstd"), "salvage": (), "rebuild-index": ()}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_segment(tmp_path / "src" / "t-0", 0, batches(4, values=9))
    return tmp_path / "src" / "t-0"


@pytest.fixture
def damaged(partition: Path) -> Path:
    log = partition / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2 - 1] ^= 1
    log.write_bytes(content)
    return partition


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


def test_written_bytes_are_those_of_the_files(partition: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    words = ["rebuild-index", partition, "--format", "jsonl", "--output"]
    runs = run_kafkalog_many([[*words, tmp_path / "indexes"], [*words, tmp_path / "all", "--with-log"]])
    for run, out in zip(runs, (tmp_path / "indexes", tmp_path / "all"), strict=True):
        sizes = {each.name: each.stat().st_size for each in (out / "t-0").iterdir()}
        assert run.check(0).summary["counts"]["written_bytes"] == sum(sizes.values())
        assert sizes[f"{0:020d}.timeindex"] > 0
    assert f"{0:020d}.log" in sizes


@pytest.mark.parametrize("command", [*COMMANDS, "extract", "redact"])
def test_resume_says_where_there_is_nothing_to_take_up(
    partition: Path, tmp_path: Path, run_kafkalog_many: RunMany, command: str
) -> None:
    more = {"extract": ("--to", "jsonl"), "redact": ("--mode", "fill")}.get(command) or COMMANDS.get(command, ())
    words = [command, partition, *more, "--format", "jsonl", "--resume", "--output"]
    told, quiet = run_kafkalog_many([[*words, tmp_path / "1"], [*words, tmp_path / "2", "--quiet"]])
    assert "no unfinished run" in told.check(0).stderr
    assert not quiet.check(0).stderr
    assert told.summary["counts"]["resumed_files"] == quiet.summary["counts"]["resumed_files"] == 0


def test_resume_counts_what_it_takes_over(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    write_segment(tmp_path / "src" / "a-0", 0, batches(2))
    words = ["recompress", tmp_path / "src" / "a-0", damaged, "--codec", "gzip", "--output", tmp_path / "out"]
    words += ["--keep-partial", "--format", "jsonl"]
    [first] = run_kafkalog_many([words])
    assert "resumed_files" not in first.check(5).summary["counts"]
    [second] = run_kafkalog_many([[*words, "--resume"]])
    assert second.check(5).summary["counts"]["resumed_files"] == 3  # a log and its two indexes
    assert "no unfinished run" not in second.stderr


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


def test_where_the_result_is_comes_after_all_rows(damaged: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kafkalog_cli", "salvage", damaged, "--format", "table"]
    told = subprocess.run([*words, "--output", tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert told.stdout.decode().splitlines()[-1] == f"published: {tmp_path / 'out'}"
    quiet = subprocess.run([*words, "--quiet", "--output", tmp_path / "other"], stderr=subprocess.PIPE)
    assert quiet.stderr == b""


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
    refused.check(5)
    assert "salvage" in refused.stderr
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--output", "x"],
        ["--codec", "lzma", "--output", "x"],
        ["--codec", "zstd"],
        ["--codec", "zstd", "--level", "99", "--output", "x"],
        ["--codec", "snappy", "--level", "1", "--output", "x"],
        ["--codec", "zstd", "--estimate", "--output", "x"],
        ["--explain"],
    ],
)
def test_usage_errors(partition: Path, run_kafkalog_many: RunMany, words: list[str]) -> None:
    [run] = run_kafkalog_many([["recompress", partition, *words]])
    run.check(2)


def test_estimate_and_explain_write_nothing(
    partition: Path, tmp_path: Path, run_kafkalog_many: RunMany, source_snapshot: Callable[[Path], None]
) -> None:
    source_snapshot(tmp_path / "src")
    log_bytes = (partition / f"{0:020d}.log").stat().st_size
    estimate, sampled, whole, explain = run_kafkalog_many(
        [
            ["recompress", partition, "--estimate", "--format", "jsonl"],
            ["recompress", partition, "--estimate", "--sample", str(log_bytes - 1), "--format", "jsonl"],
            ["recompress", partition, "--estimate", "--whole", "--codec", "gzip", "--level", "9", "--format", "jsonl"],
            ["recompress", partition, "--explain", "--codec", "gzip", "--format", "jsonl"],
        ]
    )
    rows = estimate.check(0).rows("estimate")
    assert [row["codec"] for row in rows] == ["none:4", "none", "gzip", "snappy", "lz4", "zstd"]
    assert {row["log_bytes"] for row in rows} == {log_bytes}
    assert rows[1]["estimated_bytes"] == log_bytes
    assert not estimate.summary["not_checked"]  # the sample was the whole
    assert sampled.check(0).rows("estimate")[0]["sampled_bytes"] < log_bytes
    assert sampled.summary["not_checked"]
    [_, gzip] = whole.check(0).rows("estimate")
    assert (gzip["level"], gzip["sampled_bytes"]) == (9, log_bytes)
    assert not whole.summary["not_checked"]
    decisions = explain.check(0).rows("batch_decision")
    assert [(row["decision"], row["reason"]) for row in decisions] == [("recompressed", "codec-differs")] * 4
    assert os.listdir(tmp_path) == ["src"]


def test_an_estimate_of_the_whole_is_what_comes_out(tmp_path: Path, run_kafkalog_many: RunMany, data_dir: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    [estimate, real] = run_kafkalog_many(
        [
            ["recompress", source, "--estimate", "--whole", "--codec", "zstd", "--format", "jsonl"],
            ["recompress", source, "--codec", "zstd", "--output", tmp_path / "out", "--format", "jsonl"],
        ]
    )
    assert estimate.check(0).rows("estimate")[-1]["estimated_bytes"] == real.check(0).summary["counts"]["written_bytes"]


def test_several_partitions(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    paths = [write_segment(tmp_path / name, 0, batches(1)).parent for name in ("a-0", "b-3")]
    [run] = run_kafkalog_many([["recompress", *paths, "--codec", "gzip", "--output", tmp_path / "out"]])
    run.check(0)
    assert sorted(os.listdir(tmp_path / "out")) == ["a-0", "b-3", "manifest.json"]
