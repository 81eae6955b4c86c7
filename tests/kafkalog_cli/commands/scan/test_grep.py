"""kafkalog scan grep finds what kafkalog grep finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark
from tests.running import Run


def test_usage_errors(run_kafkalog_many: Callable[..., list[Run]], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    wrong = (
        ("pattern",),
        ("--regex", "(", partition),
        ("x", partition, "--from-offset", "2", "--to-offset", "1"),
    )
    for run in run_kafkalog_many([("scan", "grep", *words) for words in wrong]):
        assert run.code == 2, run.arguments


@needs_spark
def test_the_same_records(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    words = ("--regex", "E", "--ignore-case", partition, "--from-offset", "3", "--format", "jsonl")
    scanned = run_kafkalog("scan", "grep", *words, "--master", "local[1]")
    found = run_kafkalog("grep", *words)
    assert found.rows("record")
    assert scanned.rows() == found.rows()
    assert run_kafkalog("scan", "grep", "no such text", partition, "--master", "local[1]").code == 1
