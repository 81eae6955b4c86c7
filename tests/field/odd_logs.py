"""Healthy but odd logs, on which no command may report damage.

    python -m tests.field --prepare
    python -m tests.field.odd_logs [--kafka 4.3.1]

writes them with a real broker (``clients/python/odd_logs.py``), and runs the reading commands on the log directory
while the broker runs, on a copy that ``cp -r`` made meanwhile, on what ``kill -9`` left, and after three more kills and
a clean stop. Prints every finding from a warning on, every exit status but the expected one, and a line of totals.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.field.clients import cache_folder
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

_SETTINGS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "log.initial.task.delay.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
_COMMANDS = (
    ("verify",), ("boot",), ("ls",), ("txns",), ("producers",), ("groups",), ("metadata",), ("retention",),
    ("compaction",), ("dump", "--records"), ("grep", "v1"), ("find", "--offset", "30"),
)  # fmt: skip
_FORBIDDEN_STEPS = ("refuse", "offline", "unknown", "rename", "create")


def complaints(log_dir: Path, *, is_live: bool) -> tuple[int, list[str]]:
    """The number of commands that were run on a log directory, and what they reported that is not so."""
    found, count = [], 0
    for name, *options in _COMMANDS:
        place = str(log_dir / "stamps-0" if name == "find" else log_dir)
        words = [sys.executable, "-m", "kafkalog_cli", name, "--format", "jsonl", *options, place]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        count += 1
        if done.returncode != (3 if is_live and name == "boot" else 0):
            found.append(f"{name}: exit {done.returncode}: {done.stderr[-300:]}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        found += [f"{name}: {row}" for row in rows if _is_complaint(row, is_live=is_live)]
    return count, found


def _is_complaint(row: dict[str, Any], *, is_live: bool) -> bool:
    if row["type"] == "finding":
        return row["severity"] != "info"
    is_lost = row.get("lost_offsets") is not None
    return row["type"] == "boot_step" and (is_lost or (row["action"] in _FORBIDDEN_STEPS and not is_live))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    options = parser.parse_args()
    lab, version = KafkaLab(), options.kafka
    settings = {name: value for name, value in _SETTINGS.items() if version >= "4" or "initial" not in name}
    program = Path(__file__).parent / "clients" / "python" / "odd_logs.py"
    total, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="odd-logs-") as scratch:
        work = Path(scratch)
        log_dir = work / "node-1"
        log_dir.mkdir()
        judged: list[tuple[str, tuple[int, list[str]]]] = []
        with Broker(lab, version, log_dir, work / "broker", settings) as broker:
            python = str(cache_folder() / "py" / "bin" / "python")
            subprocess.run([python, str(program), broker.address], check=True, timeout=900, env={})
            judged.append(("live", complaints(log_dir, is_live=True)))
            subprocess.run(["cp", "-r", str(log_dir), str(work / "copied")], check=False)
            broker.kill()
        shutil.copytree(log_dir, work / "killed")
        for _ in range(3):
            with Broker(lab, version, log_dir, work / "broker", settings) as broker:
                broker.kill()
        with Broker(lab, version, log_dir, work / "broker", settings):
            pass
        for name, place in (("copied", work / "copied"), ("killed", work / "killed"), ("stopped", log_dir)):
            judged.append((name, complaints(place, is_live=False)))
    for state, (count, found) in judged:
        total += count
        failed += len(found)
        print("\n".join(f"{state}: {each}" for each in found), end="\n" if found else "")
    print(f"Kafka {version}: {total} runs of commands, {failed} complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
