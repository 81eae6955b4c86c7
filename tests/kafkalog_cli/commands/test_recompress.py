"""kafkalog recompress: usage errors, estimates, explanations, several partitions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.running import Run

RunMany = Callable[..., list[Run]]


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
        ["--codec", "zstd", "--estimate", "--explain"],
        ["--codec", "zstd", "--output", "x", "--sample", "1MiB"],
        ["--codec", "zstd", "--explain", "--whole"],
        ["--estimate", "--magic", "2"],
        ["--estimate", "--batch-bytes", "64KiB"],
        ["--estimate", "--skip-damaged"],
        ["--codec", "zstd", "--explain", "--segment-bytes", "1MiB"],
        ["--codec", "zstd", "--explain", "--resume"],
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


def test_where_nothing_is_measured_nothing_is_saved(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A sample has the whole first batch, however small it is; of a log without an intact batch nothing is known."""
    for topic, flip in (("sound-0", 0), ("damaged-0", 1)):
        content = bytearray(b"".join(batches(3, values=40)))
        for at in range(100, len(content), len(content) // 3):
            content[at] ^= flip
        write_segment(tmp_path / topic, 0, [content])
    words = ("recompress", tmp_path, "--estimate", "--codec", "gzip", "--sample", "1", "--format", "jsonl")
    [run] = run_kafkalog_many([words])
    damaged, sound = ([row for row in run.rows("estimate") if row["topic"] == name] for name in ("damaged", "sound"))
    assert [each["saved_bytes"] for each in damaged] == [each["sampled_bytes"] for each in damaged] == [0, 0]
    assert sound[1]["sampled_bytes"] == sound[1]["log_bytes"] // 3
    assert 0 < sound[1]["estimated_bytes"] < sound[1]["log_bytes"]


def test_what_would_be_saved_stands_above_the_rows(run_kafkalog_many: RunMany, data_dir: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    [run] = run_kafkalog_many([["recompress", source, "--estimate"]])
    assert run.check(0).stdout.startswith("zstd would save ")
    assert "would save" not in run.stderr


def test_the_reasons_stand_above_the_batches(
    run_kafkalog_many: RunMany, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(3))
    words = ["recompress", log.parent, "--explain", "--codec", "zstd"]
    [run] = run_kafkalog_many([words])
    assert run.check(0).stdout.startswith("With zstd, of 3 batches: 3 recompressed")
    assert "codec-differs: a broker" not in run.stderr
    monkeypatch.setattr("kafkalog_cli.commands.recompress._MOST_HELD", 2)  # too many to be held back
    [run] = run_kafkalog_many([words])
    assert "\nWith zstd, of 3 batches: 3 recompressed" in run.check(0).stdout


def test_several_partitions(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    paths = [write_segment(tmp_path / name, 0, batches(1)).parent for name in ("a-0", "b-3")]
    [run] = run_kafkalog_many([["recompress", *paths, "--codec", "gzip", "--output", tmp_path / "out"]])
    run.check(0)
    assert sorted(os.listdir(tmp_path / "out")) == ["a-0", "b-3", "manifest.json"]


def test_what_is_not_read_is_not_estimated_in_silence(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    node = tmp_path / "node"
    write_segment(node / "a-0", 0, batches(1))
    log = write_segment(tmp_path / "elsewhere" / "b-0", 0, batches(1))
    (node / "b-0").symlink_to(log.parent)
    (node / "c-0").mkdir()
    (node / "c-0" / log.name).symlink_to(log)
    (node / "d-0").mkdir()
    os.mkfifo(node / "d-0" / log.name)
    lines = [
        ["recompress", node, "--format", "jsonl", *words]
        for words in (["--estimate"], ["--explain", "--codec", "zstd"])
    ]
    for run in run_kafkalog_many(lines):
        unread = [row for row in run.check(3).rows("finding") if row["code"] == "file-unreadable"]
        assert sorted(Path(row["path"]).relative_to(node).parts[0] for row in unread) == ["b-0", "c-0", "d-0"]
        assert not run.summary["complete"]


def test_an_estimate_over_several_nodes(data_dir: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    one, two = data_dir / "kafka-4.3-single" / "node-1", data_dir / "kafka-4.3" / "node-1"
    words = ("recompress", "--estimate", "--codec", "zstd", "--format", "jsonl")
    (tmp_path / "both").mkdir()
    for number, node in enumerate((one, two)):
        shutil.copytree(node, tmp_path / "both" / str(number))
    runs = run_kafkalog_many([(*words, one), (*words, two), (*words, one, two), (*words, tmp_path / "both")])
    rows = [{(row["topic"], row["codec"]): row["log_bytes"] for row in run.check(0).rows("estimate")} for run in runs]
    of_zstd = [{key: size for key, size in each.items() if key[1] == "zstd"} for each in rows]
    expected = {key: of_zstd[0].get(key, 0) + of_zstd[1].get(key, 0) for key in of_zstd[0] | of_zstd[1]}
    assert ("payments", "zstd") in of_zstd[0].keys() & of_zstd[1].keys()
    assert of_zstd[2] == of_zstd[3] == expected
    [refused] = run_kafkalog_many([("recompress", "--codec", "zstd", "--output", tmp_path / "out", one, two)])
    refused.check(2)
