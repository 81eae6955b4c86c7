"""kafkalog scan verify prints what kafkalog verify prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark
from tests.running import Run


@needs_spark
def test_scan_verify_prints_what_verify_prints(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    scanned = run_kafkalog("scan", "verify", log_dir, "--master", "local[2]", "--format", "jsonl")
    verified = run_kafkalog("verify", log_dir, "--format", "jsonl")
    assert scanned.code == verified.code
    got, expected = scanned.stdout.splitlines(), verified.stdout.splitlines()
    assert got[:-1] == expected[:-1]
    last, last_expected = json.loads(got[-1]), json.loads(expected[-1])
    assert last["counts"] == last_expected["counts"]
    assert scanned.stderr == ""  # nothing of the JVM's chatter
