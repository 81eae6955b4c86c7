"""inventory, grep and extract as Spark jobs give the rows of ls, grep and dump."""

from __future__ import annotations

import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow.parquet as pq

from format.columns import BATCH, ESTIMATE, FINDING, RECORD, SEGMENT
from format.errors import OutputInsideSource
from format.findings import Finding
from format.rewriting.sources import read_write_sources
from format.rows.record_rows import RowBlock, record_rows
from format.scan.selection import Selection
from format.verbs.dump.dump import dump
from format.verbs.grep.grep import Criteria, FoundRecords, grep
from format.verbs.grep.pattern import text_pattern
from format.verbs.ls.ls import ls
from format.verbs.recompress.estimate import estimate, targets_of
from format.verbs.verify.verify import verify
from spark_jobs.scans.extract import ExtractOptions
from spark_jobs.scans.grep import GrepOptions
from spark_jobs.scans.inventory import InventoryOptions
from spark_jobs.scans.recompress_estimate import EstimateOptions, planned
from spark_jobs.scans.verify import VerifyOptions
from spark_jobs.submit import Rows, Scan, run
from tests.building import batches, write_segment
from tests.corpora import REPOSITORY, Corpus


def _told(scan: Scan) -> list[Any]:
    told: list[Any] = []
    for item in run(scan):
        told += [item] if not isinstance(item, Rows) else [(item.schema.type, row) for row in item.rows]
    return told


def _listed(path: Path) -> list[Any]:
    return [item if isinstance(item, Finding) else (_type(item), item.row()) for item in ls(path, segments=True)]


def _type(listing: Any) -> str:
    return {"LogDirListing": "log_dir", "PartitionListing": "partition", "SegmentListing": "segment"}[
        type(listing).__name__
    ]


def test_inventory_is_ls(spark: Any, corpus: Corpus, damaged_copy: Path) -> None:
    paths = (*corpus.log_dirs, damaged_copy, next(corpus.partitions()))
    assert _told(Scan("inventory", paths, InventoryOptions())) == [row for path in paths for row in _listed(path)]


@pytest.mark.parametrize("selection", [Selection(), Selection(5, 200)])
def test_grep_is_grep(spark: Any, corpus: Corpus, damaged_copy: Path, selection: Selection) -> None:
    criteria = Criteria(text_pattern("e"), selection=selection)
    paths = (corpus.log_dirs[0], damaged_copy)
    expected: list[Any] = []
    for path in paths:
        for item in grep(path, criteria):
            if isinstance(item, Finding):
                expected.append(item)
            elif isinstance(item, FoundRecords):
                expected += [("record", row) for row in record_rows(item.records, item.location)]
    got = _told(Scan("grep", paths, GrepOptions(criteria), range_bytes=1000))
    assert got == expected
    assert len(got) > 100


@pytest.mark.parametrize("selection", [Selection(), Selection(5, 200)])
def test_extract_is_dump(spark: Any, corpus: Corpus, damaged_copy: Path, tmp_path: Path, selection: Selection) -> None:
    output = tmp_path / "out"
    paths = (corpus.log_dirs[0], damaged_copy)
    scan = Scan("extract", paths, ExtractOptions(selection), output=str(output), range_bytes=1000)
    findings = _told(scan)
    expected = [item for path in paths for item in dump(path, records=True, selection=selection)]
    wanted = [item for item in expected if isinstance(item, Finding) and item.code.startswith(("batch", "log", "tail"))]
    assert sorted(map(repr, wanted)) == sorted(
        repr(each) for each in findings if each.code.startswith(("batch", "log", "tail"))
    )
    rows = [row for item in expected if isinstance(item, RowBlock) and item.schema is RECORD for row in item.rows]
    got = spark.read.parquet(f"{output}/records")
    assert got.columns == list(RECORD.names)

    def plain(name: str, value: Any) -> Any:
        if name == "headers" and value is not None:
            return [(bytes(each.key), None if each.value is None else bytes(each.value)) for each in value]
        return bytes(value) if isinstance(value, bytearray) else value

    read = [tuple(plain(name, value) for name, value in zip(RECORD.names, row, strict=True)) for row in got.collect()]
    assert sorted(map(repr, read)) == sorted(map(repr, rows))


@pytest.mark.parametrize("sample_bytes", [None, 200_000])
def test_recompress_estimate_is_recompress_with_estimate(
    spark: Any, damaged_copy: Path, sample_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.scans.recompress_estimate._SMALLEST_TASK_BYTES", 10_000)
    big = damaged_copy.parent / "estimate" / "big-0"
    for number in range(4):
        write_segment(big, number * 9000, batches(3000, number * 9000, values=3))
    for paths in ([damaged_copy], [big]):
        expected = list(estimate(read_write_sources(paths), targets_of(None, None), sample_bytes))
        got = _told(Scan("recompress-estimate", paths, EstimateOptions(sample_bytes=sample_bytes)))
        names = [name for name in ESTIMATE.names if not name.endswith(("_per_s", "_ms"))]  # times are never the same
        assert [_named(row, ESTIMATE.names, names) for kind, row in got if kind == "estimate"] == [
            _named(each.row(), ESTIMATE.names, names) for each in expected if not isinstance(each, Finding)
        ]
        if sample_bytes is None:
            assert len(planned(paths, EstimateOptions(sample_bytes=None), 2).tasks) > 3
    assert all(row[ESTIMATE.names.index("compress_mb_per_s")] for _, row in got[2:])


def test_recompress_estimate_of_one_codec_and_of_what_vanished(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path / "t-0", 0, batches(300))
    gone = write_segment(tmp_path / "t-1", 0, batches(300))

    def plan_and_remove(*args: Any) -> Any:
        made = planned(*args)
        gone.unlink(missing_ok=True)
        return made

    monkeypatch.setattr("spark_jobs.scans.recompress_estimate.planned", plan_and_remove)
    options = EstimateOptions("zstd", 9)
    got = _told(Scan("recompress-estimate", [tmp_path], options))
    assert [each.code for each in got if isinstance(each, Finding)] == ["file-changed"]
    rows = [row for each in got if not isinstance(each, Finding) for row in [each[1]]]
    assert [row[:3] for row in rows] == [("t", "none:300", None), ("t", "zstd", 9)]


def _named(row: tuple[Any, ...], names: Sequence[str], wanted: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, row, strict=True) if name in wanted}


def test_a_report_merges_across_brokers(spark: Any, damaged_copy: Path, data_dir: Path, tmp_path: Path) -> None:
    output = tmp_path / "report"
    clean = data_dir / "kafka-4.3-single" / "node-1"
    for _ in range(2):  # the second run replaces what the first one wrote
        for broker_id, path in ((7, damaged_copy), (8, clean)):
            list(run(Scan("verify", [path], VerifyOptions(), output=str(output), broker_id=broker_id)))
            list(run(Scan("inventory", [path], InventoryOptions(), output=str(output), broker_id=broker_id)))
    segments = spark.read.parquet(f"{output}/segments")
    assert segments.columns == [*SEGMENT.names, "broker_id"]
    for broker_id, path in ((7, damaged_copy), (8, clean)):
        assert segments.where(f"broker_id = {broker_id}").count() == sum(
            kind == "segment" for kind, _ in (each for each in _listed(path) if not isinstance(each, Finding))
        )
    findings = spark.read.parquet(f"{output}/findings").where("broker_id = 7")
    assert set(FINDING.names) < set(findings.columns)
    table = pq.read_table(f"{output}/segments")  # and other programs can read it
    assert table.num_rows == segments.count()
    assert findings.count() >= 1 or not list(verify(damaged_copy))


def test_a_report_with_a_table_of_batches(spark: Any, damaged_copy: Path, tmp_path: Path) -> None:
    output = tmp_path / "report"
    scan = Scan("inventory", [damaged_copy], InventoryOptions(batches=True), output=str(output), range_bytes=2000)
    assert _told(scan) == _listed(damaged_copy)
    in_batches = spark.read.parquet(f"{output}/batches")
    assert in_batches.columns == [*BATCH.names, "broker_id"]
    expected = sum(
        len(list(block.rows)) for block in dump(damaged_copy) if isinstance(block, RowBlock) and block.schema is BATCH
    )
    assert in_batches.count() == in_batches.where("broker_id = 1").count() == expected


def test_a_report_is_not_written_into_what_is_read(spark: Any, data_dir: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    for output in (source / "report", source.parent, source):
        with pytest.raises(OutputInsideSource):
            list(run(Scan("verify", [source], VerifyOptions(), output=str(output))))


ENTRIES = {"verify": [], "inventory": [], "grep": ["no such text anywhere"], "recompress_estimate": ["--whole"]}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_for_spark_submit_is_the_command(
    entry: str, spark: Any, damaged_copy: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script that spark-submit is given takes the arguments of ``kafkalog scan`` and prints JSON lines."""
    script = REPOSITORY / "spark_jobs" / "jobs" / f"{entry}.py"
    monkeypatch.setattr("sys.argv", [str(script), *ENTRIES[entry], str(damaged_copy)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert lines[-1]["type"] == "summary"
    assert lines[-1]["exit_code"] == ended.value.code
    if entry == "verify":
        assert ended.value.code == 1
        assert sum(line["type"] == "finding" for line in lines) == len(list(verify(damaged_copy)))
