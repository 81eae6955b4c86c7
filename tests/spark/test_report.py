"""The tables of ``--output``: by broker, replaced by the next run of the same command, and a row for each run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow.parquet as pq

from format.columns import BATCH, FINDING, SEGMENT
from format.rows.record_rows import RowBlock
from format.verbs.dump.dump import dump
from tests.building import batches, write_segment
from tests.spark.scanning import Printed


def _broker(place: Path, broker_id: int, *, is_damaged: bool) -> Path:
    """A log directory with the id of a broker, and one partition."""
    contents = batches(20)
    if is_damaged:
        contents[7] = contents[7][:-3] + b"xyz"
    write_segment(place / "t-0", 0, contents)
    (place / "meta.properties").write_text(f"version=1\nnode.id={broker_id}\ncluster.id=abcdefghijklmnopqrstuw\n")
    return place


def _table(output: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(output / name).to_pylist()


@pytest.fixture
def four_brokers(tmp_path: Path) -> Path:
    """Two damaged and two sound brokers below one root; their directories could be names of partitions."""
    for broker_id in (1, 2, 3, 4):
        _broker(tmp_path / "store" / f"kafka-{broker_id}", broker_id, is_damaged=broker_id in (2, 4))
    return tmp_path / "store"


def test_each_finding_has_its_broker_and_each_broker_a_run(
    four_brokers: Path,
    tmp_path: Path,
    printed: Callable[..., Printed],
) -> None:
    output = tmp_path / "report"
    code, out, _ = printed("scan", "verify", four_brokers, "--output", output, "--format", "jsonl")
    assert code == 1
    damaged = [row for row in _table(output, "findings") if row["code"] == "batch-crc-mismatch"]
    assert [(row["broker_id"], Path(row["path"]).parts[-3]) for row in damaged] == [(2, "kafka-2"), (4, "kafka-4")]
    counts = json.loads(out.splitlines()[-1])["counts"]
    runs = _table(output, "runs")
    assert [row["broker_id"] for row in runs] == [1, 2, 3, 4]
    assert {(row["command"], row["exit_code"], row["complete"]) for row in runs} == {("verify", 1, True)}
    assert json.loads(runs[0]["counts"]) == counts
    assert not list(output.glob(".*"))


def test_a_later_run_replaces_findings_by_none(
    tmp_path: Path,
    printed: Callable[..., Printed],
) -> None:
    output = tmp_path / "report"
    damaged = _broker(tmp_path / "node", 7, is_damaged=True)
    other = _broker(tmp_path / "other", 8, is_damaged=True)
    for place in (damaged, other):
        assert printed("scan", "verify", place, "--output", output)[0] == 1
        assert printed("scan", "ls", place, "--output", output)[0] == 0
    assert {row["broker_id"] for row in _table(output, "findings") if row["code"] == "batch-crc-mismatch"} == {7, 8}
    write_segment(damaged / "t-0", 0, batches(20))
    assert printed("scan", "verify", damaged, "--output", output)[0] == 0
    assert {row["broker_id"] for row in _table(output, "findings") if row["code"] == "batch-crc-mismatch"} == {8}
    runs = {(row["broker_id"], row["command"]): row["exit_code"] for row in _table(output, "runs")}
    assert runs == {(7, "verify"): 0, (7, "ls"): 0, (8, "verify"): 1, (8, "ls"): 0}
    segments = pq.read_table(output / "segments")
    assert segments.schema.names == [*SEGMENT.names, "broker_id"]
    assert set(FINDING.names) < set(pq.read_table(output / "findings").schema.names)
    (damaged / "t-0" / f"{0:020d}.log").unlink()
    printed("scan", "ls", damaged, "--output", output)
    assert {row["broker_id"] for row in _table(output, "segments")} == {8}


def test_a_table_of_batches(
    spark: Any,
    damaged_copy: Path,
    tmp_path: Path,
    printed: Callable[..., Printed],
) -> None:
    output = tmp_path / "report"
    printed("scan", "ls", damaged_copy, "--output", output, "--batches", "--range-size", "2000")
    in_batches = spark.read.parquet(f"{output}/batches")
    assert in_batches.columns == [*BATCH.names, "path", "broker_id"]
    expected = sum(
        len(list(block.rows)) for block in dump(damaged_copy) if isinstance(block, RowBlock) and block.schema is BATCH
    )
    assert in_batches.count() == in_batches.where("broker_id = 1").count() == expected


def test_a_report_is_not_written_into_what_is_read(
    data_dir: Path,
    printed: Callable[..., Printed],
) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    for output in (source / "report", source.parent, source):
        assert printed("scan", "verify", source, "--output", output)[0] == 5
    assert not (source / "report").exists()


def test_a_page_of_the_tables_says_what_a_page_of_the_directory_says(
    damaged_copy: Path, tmp_path: Path, printed: Callable[..., Printed]
) -> None:
    output = tmp_path / "report"
    printed("scan", "verify", damaged_copy, "--output", output)
    printed("scan", "ls", damaged_copy, "--output", output, "--batches", "--range-size", "2000")
    code, out, _ = printed("report", output, "--format", "json")
    there = json.loads(out)
    expected_code, out, _ = printed("report", damaged_copy, "--format", "json")
    here = json.loads(out)
    assert code == expected_code == 1
    assert there["findings"] == here["findings"]
    assert there["counts"] == here["counts"]
    assert there["sentences"][0] == here["sentences"][0]
    for name in ("finding_summary", "finding", "bytes_by_time", "batch_sizes", "log_dir"):
        assert there["tables"][name] == here["tables"][name], name
    for name, left_out in (
        ("report_partition", {"notes", "configs"}),
        ("topic_usage", {"age_ms", "next_deletable_at", "deletable_bytes"}),
    ):
        mine, theirs = (
            [{key: row[key] for key in row if key not in left_out} for row in each["tables"][name]["rows"]]
            for each in (there, here)
        )
        assert mine == theirs, name
    assert [(row["broker_id"], row["command"]) for row in there["tables"]["run"]["rows"]] == [(1, "ls"), (1, "verify")]
    assert "groups: no run of kafkalog scan groups is here" in there["not_checked"]
