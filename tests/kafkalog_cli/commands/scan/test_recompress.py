"""kafkalog scan recompress --estimate, and what its estimates leave out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark
from tests.running import Run


@needs_spark
def test_an_estimate_says_what_was_not_measured(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    words = (
        "scan",
        "recompress",
        "--estimate",
        partition,
        "--sample",
        "2KB",
        "--master",
        "local[1]",
        "--codec",
        "gzip",
    )
    done = run_kafkalog(*words, "--format", "jsonl")
    expected = ["what lies outside the samples, of up to 2000 log bytes per topic"]
    assert json.loads(done.stdout.splitlines()[-1])["not_checked"] == expected
