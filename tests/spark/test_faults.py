"""What goes wrong under way: files that vanish, change or cannot be read, bombs, and workers that die."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format import layout
from format.columns import RECORD
from format.errors import UnreadableFile
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.verbs.grep.grep import Criteria
from format.verbs.grep.pattern import text_pattern
from format.verbs.verify.verify import Verification, verify
from spark_jobs.data_source import KafkaLogReader, _schemas
from spark_jobs.scans.extract import ExtractOptions
from spark_jobs.scans.grep import GrepOptions
from spark_jobs.scans.inventory import InventoryOptions
from spark_jobs.scans.verify import VerifyOptions
from spark_jobs.submit import Rows, Scan, run
from spark_jobs.views.read_options import parse_options
from spark_jobs.work.planning import Part, plan
from tests.building import batch, batches, write_segment

_LIMITS = Limits(max_decompressed_bytes=4096)


def _told(scan: Scan) -> list[Any]:
    return [
        each
        for item in run(scan)
        for each in (item.rows if isinstance(item, Rows) else [item] if isinstance(item, Finding) else ())
    ]


def _options(job: str, limits: Limits = _LIMITS) -> Any:
    return {
        "verify": VerifyOptions(limits=limits),
        "grep": GrepOptions(Criteria(text_pattern("")), limits),
        "extract": ExtractOptions(limits=limits),
        "inventory": InventoryOptions(limits=limits),
    }[job]


def _output(job: str, tmp_path: Path) -> str | None:
    return str(tmp_path / "out") if job == "extract" else None


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Three partitions; one of them larger than what is read at once in these tests. 2430 records."""
    place = tmp_path / "node"
    write_segment(place / "large-0", 0, batches(400))
    write_segment(place / "large-0", 1200, batches(400, 1200))
    write_segment(place / "small-0", 0, batches(5))
    write_segment(place / "small-1", 0, batches(5))
    return place


@pytest.mark.parametrize("job", ["verify", "grep", "extract"])
def test_what_changed_since_the_plan_is_told_by_every_job(
    spark: Any, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    def plan_and_change(*args: Any, **kwargs: Any) -> Any:
        made = plan(*args, **kwargs)
        large = log_dir / "large-0" / f"{0:020d}.log"
        large.write_bytes(large.read_bytes()[:-700])
        shutil.rmtree(log_dir / "small-0", ignore_errors=True)
        (log_dir / "small-1" / f"{0:020d}.log").write_bytes(b"".join(batches(2)))
        return made

    monkeypatch.setattr("spark_jobs.submit.plan", plan_and_change)
    told = _told(Scan(job, [log_dir], _options(job), range_bytes=8000, output=_output(job, tmp_path)))
    changed = {Path(each.location.path).name for each in told if getattr(each, "code", "") == "file-changed"}
    assert {f"{0:020d}.log", "small-0", "small-1"} <= changed


@pytest.mark.parametrize("job", ["verify", "grep", "extract"])
def test_a_bomb_is_a_finding(spark: Any, log_dir: Path, tmp_path: Path, job: str) -> None:
    bomb = batch(3300, [b"x" * 200_000], codec=layout.CODEC_NAMES.index("gzip"))
    assert len(bomb) < 2000
    write_segment(log_dir / "large-0", 2400, [*batches(300, 2400), bomb, *batches(300, 3301)])
    told = _told(Scan(job, [log_dir], _options(job), range_bytes=8000, output=_output(job, tmp_path)))
    bombs = [each for each in told if getattr(each, "code", "") == "limit-exceeded"]
    assert len(bombs) == 1
    assert "4096" in bombs[0].message
    if job == "verify":
        assert told == list(verify(log_dir, Verification(limits=_LIMITS)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("job", ["verify", "grep", "extract", "inventory"])
def test_a_file_that_may_not_be_read_is_a_finding(spark: Any, log_dir: Path, tmp_path: Path, job: str) -> None:
    (log_dir / "small-0" / f"{0:020d}.log").chmod(0)
    told = _told(Scan(job, [log_dir], _options(job), output=_output(job, tmp_path)))
    assert "file-unreadable" in {getattr(each, "code", "") for each in told}


@pytest.mark.parametrize("job", ["grep", "extract"])
def test_a_worker_that_dies_changes_nothing(
    spark: Any, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    mark = tmp_path / "died"
    module, name = f"spark_jobs.scans.{job}", {"grep": "results_of_part", "extract": "_records"}[job]
    monkeypatch.setattr(f"{module}.{name}", _dying_once(mark, module, name))
    told = _told(Scan(job, [log_dir], _options(job), range_bytes=8000, output=_output(job, tmp_path)))
    assert mark.exists()
    if job == "extract":
        table = spark.read.parquet(str(tmp_path / "out" / "records"))
        rows = sorted((row.topic, row.partition, row.offset) for row in table.collect())
    else:
        places = [RECORD.names.index(column) for column in ("topic", "partition", "offset")]
        rows = [tuple(row[place] for place in places) for row in told]
    large = [("large", 0, offset) for offset in range(2400)]
    assert rows == large + [("small", number, offset) for number in (0, 1) for offset in range(15)]


def _dying_once(mark: Path, module: str, name: str) -> Callable[..., Any]:
    real = getattr(importlib.import_module(module), name)

    def work(*args: Any) -> Any:
        for each in real(*args):
            yield each
            if not mark.exists():
                mark.write_text("")
                os._exit(9)  # the whole worker, as when the system kills it

    return work


@pytest.mark.parametrize("job", ["verify", "grep", "extract"])
def test_one_large_segment_is_many_tasks(tmp_path: Path, job: str) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(1))
    os.truncate(log, 1 << 30)  # a hole
    made = plan([tmp_path / "t-0"], splits=_options(job).splits)
    assert len(made.tasks) == 16
    assert all(isinstance(item, Part) for task in made.tasks for item in task)


def test_an_index_that_points_into_a_batch_does_no_harm(spark: Any, tmp_path: Path) -> None:
    """Values that look like batches, and index entries that lead to them: a part must not begin there."""
    inner = batch(5, [b"inner"])
    contents = [batch(number, [inner + b"\0" * 3000]) for number in range(40)]
    log = write_segment(tmp_path / "t-0", 0, contents)
    index, position = b"", 0
    for number, content in enumerate(contents):
        index += number.to_bytes(4, "big") + (position + content.index(inner)).to_bytes(4, "big")
        position += len(content)
    log.with_suffix(".index").write_bytes(index)
    found = _told(Scan("grep", [tmp_path / "t-0"], _options("grep", DEFAULT_LIMITS), range_bytes=9000))
    offset = RECORD.names.index("offset")
    assert [row[offset] for row in found if not isinstance(row, Finding)] == list(range(40))
    list(run(Scan("extract", [tmp_path / "t-0"], ExtractOptions(), output=str(tmp_path / "out"), range_bytes=9000)))
    read = spark.read.parquet(str(tmp_path / "out" / "records"))
    assert sorted(row.offset for row in read.select("offset").collect()) == list(range(40))


# -- the data source -----------------------------------------------------------------------------------------


def _reader(**options: Any) -> KafkaLogReader:
    given = parse_options({name: str(value) for name, value in options.items()})
    return KafkaLogReader(given, _schemas(given)[1])


def _row_count(reader: KafkaLogReader, shares: list[Any]) -> int:
    return sum(made.num_rows for share in shares for made in reader.read(share))


def test_a_file_that_vanished_is_an_error_or_left_out(log_dir: Path) -> None:
    shares = _reader(path=log_dir).partitions()
    (log_dir / "small-0" / f"{0:020d}.log").unlink()
    for options in ({}, {"ignoreCorruptFiles": "true"}):
        with pytest.raises(UnreadableFile, match="ignoreMissingFiles"):
            _row_count(_reader(path=log_dir, **options), shares)
    assert _row_count(_reader(path=log_dir, ignoreMissingFiles="true"), shares) == 2415


def test_a_file_that_cannot_be_read_is_an_error_or_left_out(log_dir: Path) -> None:
    shares = _reader(path=log_dir).partitions()
    log = log_dir / "small-0" / f"{0:020d}.log"
    log.unlink()
    log.symlink_to(log_dir / "small-1" / log.name)  # links are not followed
    for options in ({}, {"ignoreMissingFiles": "true"}):
        with pytest.raises(UnreadableFile, match="ignoreCorruptFiles"):
            _row_count(_reader(path=log_dir, **options), shares)
    assert _row_count(_reader(path=log_dir, ignoreCorruptFiles="true"), shares) == 2415


def test_what_is_dropped_is_counted(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_dir / "small-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    reader = _reader(path=log_dir / "small-0", mode="DROPMALFORMED")
    assert _row_count(reader, reader.partitions()) == 12
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert str(log) in said[0]
    assert said[1] == "kafkalog: dropped in this task: 1 (batch-crc-mismatch 1)"
