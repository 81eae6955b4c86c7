"""kafkalog scan extract writes every record of a range to Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark
from tests.running import Run


@needs_spark
def test_the_records_of_a_range(run_kafkalog: Callable[..., Run], data_dir: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("pyarrow.dataset", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    dumped = run_kafkalog("dump", "--records", partition, "--to-offset", "9", "--format", "jsonl")
    words = ("scan", "extract", partition, "--to-offset", "9", "--output", tmp_path / "out", "--master", "local[1]")
    run_kafkalog(*words).check(0)
    table = datasets.dataset(tmp_path / "out", format="parquet", partitioning="hive", exclude_invalid_files=True)
    offsets = sorted(table.to_table(columns=["offset"])["offset"].to_pylist())
    assert offsets == [row["offset"] for row in dumped.rows("record")] != []
