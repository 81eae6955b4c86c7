"""The tables of ``--output``: by broker, replaced by the next run of the same command, and a row for each run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow.parquet as pq

from format.columns import BATCH, FINDING, SEGMENT
from format.errors import OutputError
from format.rows.record_rows import RowBlock
from spark_jobs import spark_cluster
from spark_jobs.report import UNFINISHED, open_report
from tests.building import batches, write_segment
from tests.dumping import dump
from tests.spark.scanning import Printed, broker_at, store_of_four


def _table(output: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(output / name).to_pylist()


@pytest.fixture
def four_brokers(tmp_path: Path) -> Path:
    """Two damaged and two sound brokers below one root; their directories could be names of partitions."""
    return store_of_four(tmp_path / "store")


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
    damaged = broker_at(tmp_path / "node", 7, is_damaged=True)
    other = broker_at(tmp_path / "other", 8, is_damaged=True)
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


def test_tables_that_are_replaced_in_part_belong_to_no_complete_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, output = broker_at(tmp_path / "node", 7, is_damaged=True), tmp_path / "report"

    def write() -> None:
        report = open_report(output, "verify", [node])
        report.finish({"exit_code": 0, "complete": True, "conditions": [], "not_checked": [], "counts": {}})

    write()
    assert [(row["exit_code"], row["complete"]) for row in _table(output, "runs")] == [(0, True)]
    replace = os.replace

    def fails_at_findings(source: Path, target: str) -> None:
        if "/findings/" in target:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fails_at_findings)
    with pytest.raises(OutputError, match="No space left"):
        write()
    (run,) = _table(output, "runs")
    assert (run["exit_code"], run["complete"], run["conditions"]) == (None, False, UNFINISHED)
    monkeypatch.undo()
    write()
    assert [(row["exit_code"], row["complete"]) for row in _table(output, "runs")] == [(0, True)]


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


def test_a_listing_without_batches_leaves_no_older_ones(tmp_path: Path, printed: Callable[..., Printed]) -> None:
    output = tmp_path / "report"
    places = [broker_at(tmp_path / f"node-{broker_id}", broker_id, is_damaged=False) for broker_id in (1, 2)]
    for place in places:
        assert printed("scan", "ls", place, "--output", output, "--batches")[0] == 0
    assert printed("scan", "verify", places[0], "--output", output)[0] == 0
    assert {row["broker_id"] for row in _table(output, "batches")} == {1, 2}
    assert printed("scan", "ls", places[0], "--output", output)[0] == 0
    assert {row["broker_id"] for row in _table(output, "batches")} == {2}


def test_a_job_whose_workers_are_lost_leaves_no_half_output(
    tmp_path: Path, printed: Callable[..., Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = broker_at(tmp_path / "node", 1, is_damaged=True)
    output, records = tmp_path / "report", tmp_path / "records"
    assert printed("scan", "verify", place, "--output", output)[0] == 1
    before = {path: path.read_bytes() for path in output.rglob("*.parquet")}

    def dying(*args: Any) -> Any:
        os._exit(9)  # each time that the task is tried

    monkeypatch.setattr(spark_cluster, "_results_of_unit", dying)
    code, _, err = printed("scan", "verify", place, "--output", output)
    assert code == 3
    assert "the Spark job failed: " in err
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before
    assert printed("scan", "extract", place, "--output", records)[0] == 3
    assert not records.exists()
    monkeypatch.undo()
    assert printed("scan", "extract", place, "--output", records)[0] == 1  # a later run has its place


def test_tables_do_not_mix_with_what_is_no_report_set(tmp_path: Path, printed: Callable[..., Printed]) -> None:
    output = tmp_path / "records"
    place = broker_at(tmp_path / "node", 1, is_damaged=False)
    assert printed("scan", "extract", place, "--output", output)[0] == 0
    before = sorted(output.rglob("*"))
    code, _, err = printed("scan", "verify", place, "--output", output)
    assert code == 5
    assert "no tables of earlier runs" in err
    code, _, err = printed("scan", "extract", place, "--output", output)  # a second run is refused, too
    assert code == 5
    assert sorted(output.rglob("*")) == before


def test_tables_are_read_by_other_programs(four_brokers: Path, tmp_path: Path, printed: Callable[..., Printed]) -> None:
    """DuckDB, Polars and pandas find the column of the directory names, in tables of one broker and of several."""
    duckdb, pandas, polars = (pytest.importorskip(name) for name in ("duckdb", "pandas", "polars"))
    output, records = tmp_path / "report", tmp_path / "records"
    assert printed("scan", "verify", four_brokers, "--output", output)[0] == 1
    assert printed("scan", "ls", four_brokers, "--output", output, "--batches")[0] == 0
    assert printed("scan", "extract", four_brokers, "--output", records)[0] == 1
    expected = {
        "runs/*/*": [1, 1, 2, 2, 3, 3, 4, 4],
        "segments/*/*": [1, 2, 3, 4],
        "batches/*/*": [broker_id for broker_id in (1, 2, 3, 4) for _ in range(20)],
    }
    for name, brokers in expected.items():
        files, table = f"{output}/{name}.parquet", output / name.partition("/")[0]
        rows = duckdb.sql(f"SELECT broker_id FROM read_parquet('{files}') ORDER BY 1").fetchall()
        assert [int(row[0]) for row in rows] == brokers, name
        frame = polars.read_parquet(files, hive_partitioning=True)
        assert sorted(frame["broker_id"].to_list()) == brokers, name
        in_pandas = pandas.read_parquet(table)
        assert sorted(map(int, in_pandas["broker_id"])) == brokers, name
        assert set(frame.columns) == set(in_pandas.columns)
    files = f"{output}/findings/*/verify.parquet"
    wrong = "code = 'batch-crc-mismatch'"
    rows = duckdb.sql(f"SELECT broker_id FROM read_parquet('{files}') WHERE {wrong} ORDER BY 1").fetchall()
    assert [int(row[0]) for row in rows] == [2, 4]
    frame = polars.read_parquet(files, hive_partitioning=True).filter(polars.col("code") == "batch-crc-mismatch")
    assert sorted(frame["broker_id"].to_list()) == [2, 4]
    files = f"{records}/*/*/*/*.parquet"
    counts = duckdb.sql(
        f"SELECT broker_id, topic, count(*) FROM read_parquet('{files}', hive_partitioning=true) "
        "GROUP BY ALL ORDER BY 1"
    ).fetchall()
    assert [(int(broker_id), topic, count) for broker_id, topic, count in counts] == [
        (1, "t", 60),
        (2, "t", 57),
        (3, "t", 60),
        (4, "t", 57),
    ]
    frame = polars.read_parquet(files, hive_partitioning=True)
    assert frame.group_by("broker_id").len().sort("broker_id").rows() == [(1, 60), (2, 57), (3, 60), (4, 57)]
    in_pandas = pandas.read_parquet(sorted(map(str, records.rglob("*.parquet"))))
    assert in_pandas.groupby("broker_id", observed=True).size().tolist() == [60, 57, 60, 57]


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
