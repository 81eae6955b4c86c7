"""How many jobs and tasks of Spark a scan runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from spark_jobs import spark_cluster
from spark_jobs.session import check_executors, parallelism_of
from tests.spark.scanning import Printed


@pytest.fixture
def ran(spark: Any) -> Iterator[Callable[[], tuple[int, int]]]:
    """The jobs and tasks that ran since the test began, in a session with as many partitions as on a cluster."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()

    def totals() -> tuple[int, int]:
        context._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = store.jobsList(None)
        return jobs.size(), sum(jobs.apply(number).numCompletedTasks() for number in range(jobs.size()))

    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    before = totals()
    yield lambda: (totals()[0] - before[0], totals()[1] - before[1])
    spark.conf.set("spark.sql.shuffle.partitions", usual)


def test_the_check_of_executors_is_one_small_job(spark: Any, ran: Callable[[], tuple[int, int]]) -> None:
    check_executors(spark)
    assert ran() == (1, 2 * parallelism_of(spark))


def test_a_small_scan_runs_few_jobs(
    printed: Callable[..., Printed], ran: Callable[[], tuple[int, int]], damaged_copy: Path
) -> None:
    assert printed("scan", "verify", damaged_copy, "--format", "jsonl")[0] == 1
    jobs, tasks = ran()
    assert jobs <= 4
    assert tasks <= 16


def test_large_results_come_back_in_as_many_jobs_as_their_bytes_need(
    printed: Callable[..., Printed],
    ran: Callable[[], tuple[int, int]],
    damaged_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = printed("verify", damaged_copy, "--format", "jsonl")
    monkeypatch.setattr(spark_cluster, "_SMALL_SCAN_BYTES", -1)
    monkeypatch.setattr(spark_cluster, "_MOST_BYTES_AT_ONCE", 20_000)
    assert (
        printed("scan", "verify", damaged_copy, "--format", "jsonl")[1].splitlines()[:-1]
        == (expected[1].splitlines()[:-1])
    )
    jobs, tasks = ran()
    assert jobs <= 20
    assert tasks <= 100
