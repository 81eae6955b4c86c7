"""Results on their way between tasks, and what a worker does before a task."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow as pa

from format.limits import DEFAULT_LIMITS, MIB
from format.node.target import Target
from format.verbs.verify.verify import VerifyScan, units_of, verify
from spark_jobs.planning import LogPart, plan_units
from spark_jobs.session import spark_log_path
from spark_jobs.tasks import (
    FINISHED,
    LATE,
    LEFT_OUT,
    PARTS,
    RESULT_DDL,
    Bound,
    Result,
    _bounded,
    as_batches,
    results_in,
    values_in,
)
from spark_jobs.view_options import parse_options
from spark_jobs.view_reader import KafkaLogReader, plan_logs
from tests.building import batches, write_segment
from tests.spark.scanning import scanned


def test_results_are_the_same_after_they_travelled() -> None:
    results = [Result(1, PARTS, 3, 4, step, {"value": [step, b"x" * step]}) for step in range(1000)]
    results += [Result(2**31 - 1, 0, 0, 0, 0, None), Result(0, 0, 0, 0, -1, "")]
    batches = list(as_batches(results))
    assert len(batches) == 1
    assert list(results_in(batches)) == results
    assert batches[0].schema.names == [each.split()[0] for each in RESULT_DDL.split(", ")]
    assert list(as_batches([])) == []


def test_large_results_travel_in_batches_of_their_own() -> None:
    results = [Result(0, 0, 0, 0, step, bytes(3 * MIB)) for step in range(5)]
    batches = list(as_batches(results))
    assert [each.num_rows for each in batches] == [2, 2, 1]
    assert list(results_in(batches)) == results


def test_finished_results_of_units_that_follow_each_other_share_a_row() -> None:
    results = [Result(unit, FINISHED, 0, 0, step, (unit, step)) for unit in (3, 4, 5, 7) for step in range(2)]
    results[4:4] = [Result(9, PARTS, 0, 0, 0, None)]
    [rows] = as_batches(results)
    assert rows.column(0).to_pylist() == [3, 9, 5, 7]
    assert [list(values_in(rows.column(5)[row].as_py())) for row in (0, 2, 3)] == [
        [(3, 0), (3, 1), (4, 0), (4, 1)],
        [(5, 0), (5, 1)],
        [(7, 0), (7, 1)],
    ]
    [again] = as_batches(results_in([rows]))  # a task that passes them on
    assert again == rows
    large = [Result(0, FINISHED, 0, 0, step, bytes(20_000)) for step in range(6)]
    [rows] = as_batches(large)
    assert rows.column(4).to_pylist() == [0, 2, 4]


@pytest.mark.parametrize("is_rest_kept", [True, False])
def test_a_task_returns_few_batches_and_at_once_no_more_than_its_bound(is_rest_kept: bool) -> None:
    results = [Result(unit, FINISHED, 0, 0, 0, bytes([unit % 256]) * 1000) for unit in range(1000)]
    assert len(list(_bounded(results, None))) == 1
    most_bytes = 200_000
    rows = [row for batch in _bounded(results, Bound(most_bytes, is_rest_kept)) for row in batch.to_pylist()]
    at_once = [each for each in rows if each["unit"] != LEFT_OUT and each["phase"] != LATE]
    assert most_bytes // 2 < sum(len(each["payload"]) for each in at_once) <= most_bytes
    assert [each["unit"] for each in rows].count(LEFT_OUT) == 1
    kept = sorted((each for each in rows if each["unit"] != LEFT_OUT), key=lambda each: (each["unit"], each["phase"]))
    values = [value for each in kept for value in values_in(each["payload"])]
    assert values == [each.value for each in results[: len(values)]]
    assert len(values) == 1000 if is_rest_kept else len(values) < 250


_PROGRAM = """
import sys
import spark_jobs.tasks
from spark_jobs.tasks import Result, as_batches, results_in
from spark_jobs.planning import PlanningState, begin_task
begin_task(PlanningState())
assert list(results_in(as_batches([Result(0, 0, 0, 0, 0, 7)])))[0].value == 7
print("pandas" in sys.modules)
"""


def test_a_worker_does_without_pandas() -> None:
    root = Path(__file__).resolve().parents[2]
    done: Any = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.split() == ["False"]


def test_no_task_reads_twice_as_much_as_the_middle_one(tmp_path: Path) -> None:
    """One large partition among many small ones: it is cut at batch boundaries into tasks of the same bytes."""
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    for number in range(200):
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{0:020d}.log").write_bytes(b"x" * 20_000)
    for number in range(1, 9):
        with (tmp_path / "t-7" / f"{number * 1000:020d}.log").open("wb") as log:
            log.truncate(1 << 30)
    units = list(units_of(Target(tmp_path), DEFAULT_LIMITS))
    for made in (plan_logs([tmp_path], parallelism=8), *plan_units(VerifyScan(), units, parallelism=8)):
        sizes = sorted(sum(item.size_bytes for item in task) for task in made.tasks)
        assert len(sizes) > 8 * 8
        assert sizes[-1] <= 2 * sizes[len(sizes) // 2]


def test_items_that_are_left_out_do_not_count_for_tasks(tmp_path: Path) -> None:
    """A query of one topic among many has as few tasks as its partitions need."""
    for number in range(300):
        write_segment(tmp_path / f"t-{number}", 0, batches(1))
    assert len(plan_logs([tmp_path]).tasks) > 1
    options = {"path": str(tmp_path), "partitions": ",".join(map(str, range(7, 300, 10)))}
    shares: list[Any] = KafkaLogReader(parse_options(options), pa.schema([("offset", pa.int64())])).partitions()
    assert [len(each.items) for each in shares] == [30]


def test_the_plan_of_a_job_is_made_when_it_is_requested(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large scan is several jobs, so that the driver holds a part of its plan; the results are the same."""
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    for number in range(5):
        write_segment(tmp_path / f"t-{number}", 0, [*batches(40)[:-1], batches(1, 500)[0][:-3]])
    write_segment(tmp_path / "small-0", 0, batches(1))
    monkeypatch.setattr("spark_jobs.planning._ITEMS_OF_A_JOB", 10)
    monkeypatch.setattr("spark_jobs.planning.SMALLEST_TASK_BYTES", 1)
    size_bytes = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
    units = list(units_of(Target(tmp_path), DEFAULT_LIMITS))
    plans = plan_units(VerifyScan(), units, parallelism=1, range_bytes=size_bytes // 6)
    numbers = [sorted({each for task in made.tasks for each in _units_in(task)}) for made in plans]
    assert len(numbers) == 3
    assert list(chain.from_iterable(numbers)) == list(range(len(units)))
    assert scanned(lambda at: verify(at(tmp_path)), size_bytes // 6) == list(verify(tmp_path))


def _units_in(task: list[Any]) -> list[int]:
    return [item.of.unit if isinstance(item, LogPart) else item.number for item in task]


def test_jobs_and_tasks_say_what_they_do(spark: Any, tmp_path: Path) -> None:
    """In Spark's UI a job is called after its command and its size; a task names what it reads in its worker's log."""
    write_segment(tmp_path / "t-0", 0, batches(300))
    log = spark_log_path()
    before = log.stat().st_size
    size_bytes = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
    assert scanned(lambda at: verify(at(tmp_path / "t-0")), size_bytes // 4)
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    descriptions = {jobs.apply(number).description().toString() for number in range(jobs.size())}
    assert f"Some(kafkalog test: {size_bytes} bytes in 1 tasks)" in descriptions
    with log.open("rb") as lines:
        lines.seek(before)
        said = lines.read().decode()
    first = f"{tmp_path / 't-0' / f'{0:020d}.log'} (part 1 of 4)"
    assert f"kafkalog: this task reads {first} to {first.replace('part 1', 'part 4')}: 4 pieces" in said
