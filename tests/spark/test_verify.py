"""The findings of ``scan verify`` are those of ``verify``: all of them, and no other."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[spark]'")

from format.findings import Finding
from format.node.log_dir import Checkpoints
from format.verbs.verify.verify import Coverage, PartitionDirectory, Verified, VerifyScan, VerifyTerms
from format.verbs.verify.verify import verify as verify_path
from format.verbs.verify.walk import Level
from spark_jobs import planning, spark_cluster
from spark_jobs.planning import LogPart, plan_units, unpacked
from spark_jobs.spark_cluster import _fetched
from tests.building import batches, write_segment
from tests.corpora import Corpus
from tests.spark.scanning import PathOf, scanned


def _by_spark(
    *paths: Path, level: Level = Level.FULL, range_bytes: int | None = None
) -> tuple[list[Finding], Coverage]:
    runs: list[Verified] = []

    def found(at: PathOf) -> Iterator[Finding]:
        runs.extend(verify_path(at(path), VerifyTerms(level)) for path in paths)
        return (found for run in runs for found in run)

    findings = scanned(found, range_bytes)
    return findings, _together(runs)


def _by_hand(*paths: Path, level: Level = Level.FULL) -> tuple[list[Finding], Coverage]:
    runs = [verify_path(path, VerifyTerms(level)) for path in paths]
    return [found for run in runs for found in run], _together(runs)


def _together(runs: Sequence[Verified]) -> Coverage:
    coverage = Coverage()
    for run in runs:
        coverage.add(run.coverage)
    return coverage


def _check(*paths: Path, level: Level = Level.FULL, range_bytes: int | None = None) -> list[Finding]:
    got, covered = _by_spark(*paths, level=level, range_bytes=range_bytes)
    expected, expected_coverage = _by_hand(*paths, level=level)
    assert Counter(map(repr, got)) == Counter(map(repr, expected))
    assert got == expected  # and in the same order
    assert covered == expected_coverage
    return got


@pytest.mark.parametrize("range_bytes", [None, 3000])
def test_every_corpus(spark: Any, corpus: Corpus, range_bytes: int | None) -> None:
    _check(*corpus.log_dirs, range_bytes=range_bytes)


@pytest.mark.parametrize(
    "sizes",
    [
        {"_SMALL_SCAN_BYTES": -1},  # kept on disk, and fetched with the job
        {"_SMALL_SCAN_BYTES": -1, "_share_of_a_task": lambda made: 0},  # counted, and fetched at once
        {"_SMALL_SCAN_BYTES": -1, "_MOST_BYTES_AT_ONCE": 2000},  # kept on disk, and fetched partition by partition
        {"_MOST_BYTES_OF_A_TASK": 3000},  # more than a task may give back at once
    ],
)
@pytest.mark.parametrize("range_bytes", [None, 5000])
def test_however_results_are_fetched_they_are_the_same(
    spark: Any, damaged_copy: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, Any], range_bytes: int | None
) -> None:
    for name, value in sizes.items():
        monkeypatch.setattr(spark_cluster, name, value)
    kept: list[str] = []
    monkeypatch.setattr(spark_cluster, "_fetched", lambda *args: kept.append("") or _fetched(*args))
    _check(damaged_copy, range_bytes=range_bytes)
    assert kept


@pytest.mark.parametrize("range_bytes", [None, 700, 5000])
def test_a_damaged_copy(spark: Any, damaged_copy: Path, range_bytes: int | None) -> None:
    found = _check(damaged_copy, range_bytes=range_bytes)
    assert len({each.code for each in found}) > 8


@pytest.mark.parametrize("level", list(Level))
def test_every_level(spark: Any, damaged_copy: Path, level: Level) -> None:
    _check(damaged_copy, level=level, range_bytes=2000)


def test_single_files_and_partitions(spark: Any, damaged_copy: Path) -> None:
    partition = next(each for each in damaged_copy.iterdir() if each.name.startswith("payments"))
    _check(partition, *sorted(partition.iterdir())[:6], range_bytes=1000)


def test_a_segment_with_and_without_its_index_is_many_tasks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.planning.SMALLEST_TASK_BYTES", 1)
    partition = tmp_path / "t-0"
    write_segment(partition, 0, batches(3000))
    write_segment(partition, 9000, batches(50, 9000))
    size_bytes = (partition / f"{0:020d}.log").stat().st_size
    units = [PartitionDirectory(partition, Checkpoints())]
    (made,) = plan_units(VerifyScan(), units, parallelism=2, range_bytes=size_bytes // 8)
    logs = unpacked(made.split[0]).logs
    assert [each.part_count for each in logs] == [8, 1]
    assert len(made.tasks) >= 8
    assert all(isinstance(item, LogPart) for task in made.tasks for item in task)
    _check(partition, range_bytes=size_bytes // 8)


def test_a_thousand_findings_alike_are_counted_as_on_the_command_line(spark: Any, tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    contents = [each for number in range(400) for each in batches(1, number * 10)]  # with gaps between them
    write_segment(partition, 0, contents)
    found = _check(partition, range_bytes=4000)
    assert sum(each.code == "offset-gap" for each in found) == 101


def test_an_empty_directory_is_reported_as_on_the_command_line(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty-0").mkdir()
    _check(tmp_path / "empty-0")
    _check(tmp_path)


def test_a_file_that_changed_since_it_was_planned(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = tmp_path / "t-0"
    path = write_segment(partition, 0, batches(2000))
    other = tmp_path / "u-0"
    gone = write_segment(other, 0, batches(20))
    vanished = tmp_path / "v-0"
    write_segment(vanished, 0, batches(20))

    def plan_and_change(*args: Any, **kwargs: Any) -> Any:
        made = list(plan_units(*args, **kwargs))
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2 + 5])
        gone.write_bytes(b"".join(batches(10)))
        shutil.rmtree(vanished, ignore_errors=True)
        return made

    monkeypatch.setattr(planning, "plan_units", plan_and_change)
    got, _ = _by_spark(tmp_path, range_bytes=10_000)
    codes = Counter((each.code, Path(each.location.path).name) for each in got)
    assert codes[("file-changed", path.name)] == 1
    assert codes[("file-changed", "u-0")] == 1
    assert codes[("tail-torn", path.name)] == 1
    assert codes[("file-changed", "v-0")] == 1


def test_an_executor_that_dies_changes_nothing(spark: Any, damaged_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = damaged_copy.parent / "died"
    monkeypatch.setattr(spark_cluster, "results_of_part", _dying_once(once))
    _check(damaged_copy, range_bytes=2000)
    assert once.exists()


def _dying_once(mark: Path) -> Any:
    from spark_jobs.tasks import results_of_part

    def walk(*args: Any) -> Any:
        results = results_of_part(*args)
        yield next(results)
        if not mark.exists():
            mark.write_text("")
            os._exit(9)  # the whole worker, as when the system kills it
        yield from results

    return walk
