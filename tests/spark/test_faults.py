"""What goes wrong under way: files that vanish, change or cannot be read, bombs, and workers that die."""

from __future__ import annotations

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
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.drivers import LogByLog
from format.scan.selected_logs import selected_logs
from format.scan.selection import EVERYTHING
from format.verbs.dump import DumpScan, DumpTerms, dumped_rows
from format.verbs.grep.grep import Criteria, Search, found_lines
from format.verbs.grep.pattern import text_pattern
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.verify.verify import VerifyTerms, verify
from spark_jobs import planning, spark_cluster
from spark_jobs.data_source import KafkaLogReader, _schemas
from spark_jobs.planning import LogPart, plan_units
from spark_jobs.tasks import results_of_part
from spark_jobs.view_options import parse_options
from tests.building import batch, batches, write_segment
from tests.spark.scanning import PathOf, scanned

_LIMITS = Limits(max_decompressed_bytes=4096)


VERBS = ("verify", "grep", "dump")


def _found(verb: str, path: Path, limits: Limits = _LIMITS, range_bytes: int | None = None) -> list[Any]:
    """The rows and findings of a verb on Spark."""
    items: dict[str, Callable[[PathOf], Any]] = {
        "verify": lambda at: verify(at(path), VerifyTerms(limits=limits)),
        "grep": lambda at: found_lines([at(path)], Search(Criteria(text_pattern("")), limits=limits)),
        "dump": lambda at: dumped_rows(at(path), DumpTerms(records=True, limits=limits)),
        "ls": lambda at: ls(at(path), ListTerms(segments=True, limits=limits)),
    }
    return [row for item in scanned(items[verb], range_bytes) for row in _rows(item)]


def _rows(item: Any) -> list[Finding | Row]:
    return list(item.rows) if hasattr(item, "rows") else [item]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Three partitions; one of them larger than what is read at once in these tests. 2430 records."""
    place = tmp_path / "node"
    write_segment(place / "large-0", 0, batches(400))
    write_segment(place / "large-0", 1200, batches(400, 1200))
    write_segment(place / "small-0", 0, batches(5))
    write_segment(place / "small-1", 0, batches(5))
    return place


@pytest.mark.parametrize("verb", VERBS)
def test_what_changed_since_the_plan_is_reported_by_every_verb(
    spark: Any, log_dir: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def plan_and_change(*args: Any, **kwargs: Any) -> Any:
        made = list(plan_units(*args, **kwargs))
        large = log_dir / "large-0" / f"{0:020d}.log"
        large.write_bytes(large.read_bytes()[:-700])
        shutil.rmtree(log_dir / "small-0", ignore_errors=True)
        (log_dir / "small-1" / f"{0:020d}.log").write_bytes(b"".join(batches(2)))
        return made

    monkeypatch.setattr(planning, "plan_units", plan_and_change)
    found = _found(verb, log_dir, range_bytes=8000)
    changed = {Path(each.location.path) for each in found if getattr(each, "code", "") == "file-changed"}
    assert log_dir / "large-0" / f"{0:020d}.log" in changed
    assert {"small-0", "small-1"} <= {name for each in changed for name in (each.name, each.parent.name)}


@pytest.mark.parametrize("verb", VERBS)
def test_a_bomb_is_a_finding(spark: Any, log_dir: Path, verb: str) -> None:
    bomb = batch(3300, [b"x" * 200_000], codec=layout.CODEC_NAMES.index("gzip"))
    assert len(bomb) < 2000
    write_segment(log_dir / "large-0", 2400, [*batches(300, 2400), bomb, *batches(300, 3301)])
    found = _found(verb, log_dir, range_bytes=8000)
    bombs = [each for each in found if getattr(each, "code", "") == "limit-exceeded"]
    assert len(bombs) == 1
    assert "4096" in bombs[0].message
    if verb == "verify":
        assert found == list(verify(log_dir, VerifyTerms(limits=_LIMITS)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("verb", [*VERBS, "ls"])
def test_a_file_that_may_not_be_read_is_a_finding(spark: Any, log_dir: Path, verb: str) -> None:
    (log_dir / "small-0" / f"{0:020d}.log").chmod(0)
    assert "file-unreadable" in {getattr(each, "code", "") for each in _found(verb, log_dir)}


def test_a_log_that_is_appended_to_itself_is_read_once(spark: Any, tmp_path: Path) -> None:
    """The second copy begins where a part of the log does."""
    contents = batches(400)
    write_segment(tmp_path / "t-0", 0, [*contents, *contents])
    half = sum(map(len, contents))
    here = [row for item in dumped_rows(tmp_path / "t-0", DumpTerms(records=True)) for row in _rows(item)]
    assert _found("dump", tmp_path / "t-0", DEFAULT_LIMITS, range_bytes=half) == here
    assert sum(not isinstance(row, Finding) for row in here) == 1200


@pytest.mark.parametrize("verb", ["grep", "dump"])
def test_a_worker_that_dies_changes_nothing(
    spark: Any, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    mark = tmp_path / "died"

    def dying_once(*args: Any) -> Any:
        for each in results_of_part(*args):
            yield each
            if not mark.exists():
                mark.write_text("")
                os._exit(9)  # the whole worker, as when the system kills it

    monkeypatch.setattr(spark_cluster, "results_of_part", dying_once)
    found = _found(verb, log_dir, range_bytes=8000)
    assert mark.exists()
    places = [RECORD.names.index(column) for column in ("topic", "partition", "offset")]
    large = [("large", 0, offset) for offset in range(2400)]
    rows = [tuple(row[place] for place in places) for row in found]
    assert rows == large + [("small", number, offset) for number in (0, 1) for offset in range(15)]


def test_one_large_segment_is_many_tasks(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(1))
    os.truncate(log, 1 << 30)  # a hole
    scan: LogByLog[Any, Any] = LogByLog(DumpScan(DumpTerms(records=True)))
    (made,) = plan_units(scan, list(selected_logs(Target(tmp_path / "t-0"), EVERYTHING)), parallelism=2)
    assert len(made.tasks) == 16
    assert all(isinstance(item, LogPart) for task in made.tasks for item in task)


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
    found = _found("grep", tmp_path / "t-0", DEFAULT_LIMITS, range_bytes=9000)
    offset = RECORD.names.index("offset")
    assert [row[offset] for row in found if not isinstance(row, Finding)] == list(range(40))


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
