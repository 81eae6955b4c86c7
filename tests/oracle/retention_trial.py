"""Trial of retention: what the command says goes, and what a real broker then deletes.

    python -m tests.oracle.retention_trial [--kafka 4.3.1] [--seed N] [--topics N] [--keep DIR]

fills a node with topics of many segments, ages, sizes and configs, stops it, asks the command, and starts a broker that
checks every half second. The segments that are left must be those that the command says stay.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from format.columns import SEGMENT_RETENTION
from format.findings import Finding
from format.log.encode_batches import encode_message
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.retention import Retention, RetentionTerms
from tests.building import batch, write_segment
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.log_scenario import ScenarioNode

HOUR = 3_600_000
_FOR_EVER = str(2**63 - 1)
_CHECKING = {
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.enable": "true",
    "log.retention.ms": "604800000",
}
_ROLLING = {"segment.ms": "60000", "message.timestamp.after.max.ms": _FOR_EVER, "retention.ms": "-1"}

Topic = dict[str, Any]


def topic(name: str, times: list[int], late: dict[str, str], *, size: int = 2000, **more: Any) -> Topic:
    """A topic with a batch of one record for each time; a new segment begins where the time has moved on."""
    batches = [{"records": [["k", size, each]]} for each in times]
    return {"topic": name, "configs": _ROLLING, "late_configs": late, "batches": batches, **more}


def chosen_topics(now: int) -> list[Topic]:
    """One topic for each rule."""
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}
    future = [now + 50 * HOUR + each * HOUR for each in range(3)]
    ages = [now - hours * HOUR for hours in range(9, 1, -1)]
    by_time = {"retention.ms": str(9 * HOUR // 2)}
    return [
        topic("by-time", ages, by_time),
        topic("by-size", ages, {"retention.bytes": "9000"}),
        topic("by-both", ages, by_time | {"retention.bytes": "12000"}),
        topic("unlimited", ages, {}),
        topic("untimed", ages[:2], by_time),
        topic("odd-times", ages[:2], by_time),
        topic("odd-times-for-ever", ages[:2], {"retention.ms": str(2**63 - 1)}),
        topic("times-of-files", ages[:2], by_time),
        topic("times-below-zero", ages[:2], by_time),
        topic("future", [*ages[:2], *future], by_time),
        topic("future-goes-for-its-size", future, {"retention.bytes": "3000"}),
        topic("wandering", [ages[0], ages[1], ages[0], ages[7], ages[2], ages[7] + HOUR], by_time),
        topic("all-old", ages[:4], {"retention.ms": "1000"}),
        topic("trimmed", ages, {}, delete_before=3),
        topic("trimmed-compact", ages, compact, delete_before=4),
        topic("compact-and-delete", ages,
              by_time | {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "1.0"}),
        topic("compact", ages, compact),
        topic("size-of-nothing", ages, {"retention.bytes": "0"}),
        topic("never-written", [], by_time),
    ]  # fmt: skip


def random_topics(count: int, seed: int, now: int) -> list[Topic]:
    """Topics whose segments and configs are drawn."""
    draw = random.Random(seed)
    topics = []
    for number in range(count):
        time_ms = now - draw.randrange(20, 60) * HOUR
        times = []
        for _ in range(draw.randrange(1, 14)):
            time_ms += draw.choice((-3, -1, 0, 1, 2, 5, 9)) * HOUR
            times.append(time_ms + draw.randrange(1000))
        late: dict[str, str] = {}
        if draw.random() < 0.7:
            late["retention.ms"] = str(draw.randrange(1, 50) * HOUR + HOUR // 2)
        if draw.random() < 0.5:
            late["retention.bytes"] = str(draw.randrange(0, 20_000))
        if draw.random() < 0.2:
            late |= {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "1.0"}
        topics.append(topic(f"random-{number}", times, late, size=draw.randrange(10, 4000)))
        if times and draw.random() < 0.2:
            topics[-1]["delete_before"] = draw.randrange(len(times) + 1)
    return topics


def change_files(log_dir: Path, now: int) -> None:
    """What no client can write: segments of v0, whose records have no time, times that no clock has, and a high
    watermark that is too low.
    """
    old = (now - 30 * HOUR) / 1000
    _write_untimed(log_dir / "untimed-0", [(now - hours * HOUR) / 1000 for hours in (30, 20, 3, 2)])
    _write_untimed(log_dir / "times-of-files-0", [0.0, 1.0, now / 1000 + 3600 * 24 * 365, old])
    for name in ("odd-times-0", "odd-times-for-ever-0"):
        _write_timed(log_dir / name, [0, 1, now - 30 * HOUR, 2**63 - 1, now - 30 * HOUR, 0], old)
    _write_timed(log_dir / "times-below-zero-0", [-1, -5, -(2**63), 2**62, -1], old)
    checkpoint = log_dir / "replication-offset-checkpoint"
    lines = [line if not line.startswith("by-time ") else "by-time 0 2" for line in checkpoint.read_text().splitlines()]
    checkpoint.write_text("\n".join(lines) + "\n")


def _emptied(partition: Path) -> Path:
    for path in partition.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    return partition


def _write_untimed(partition: Path, modified: list[float]) -> None:
    """Segments of v0 whose files have these modification times, in seconds."""
    for number, seconds in enumerate(modified):
        path = write_segment(_emptied(partition) if not number else partition, number,
                             [encode_message(0, number, b"k", b"v" * 50)])  # fmt: skip
        os.utime(path, (seconds, seconds))


def _write_timed(partition: Path, times: list[int], modified: float) -> None:
    """Segments of one batch with these timestamps, in files of one modification time."""
    for number, time_ms in enumerate(times):
        path = write_segment(_emptied(partition) if not number else partition, number,
                             [batch(number, [b"v"], timestamp=time_ms)])  # fmt: skip
        os.utime(path, (modified, modified))


def predicted(log_dir: Path, now: int) -> dict[str, list[int]]:
    """The base offsets of the segments that stay, by partition."""
    target = Target(log_dir)
    run = Retention(read_context([target], ContextTerms()), RetentionTerms(now))
    found: dict[str, list[int]] = {}
    for item in run.of_target(target):
        assert not isinstance(item, Finding), item
        row = dict(zip(SEGMENT_RETENTION.names, item, strict=True))
        stays = found.setdefault(f"{row['topic']}-{row['partition']}", [])
        if row["deletable_by"] is None:
            stays.append(row["segment_base_offset"])
    return found


def segments(log_dir: Path) -> dict[str, list[int]]:
    """The base offsets of the live segments of each partition."""
    return {
        path.name: sorted(int(each.stem) for each in path.glob("*.log"))
        for path in log_dir.iterdir()
        if path.is_dir() and path.name.rpartition("-")[2].isdigit()
    }


def differences(expected: dict[str, list[int]], before: dict[str, list[int]], left: dict[str, list[int]]) -> list[str]:
    """Partitions of which other segments are left. Where all went, the broker begins an empty one at the log's end."""
    found = []
    for name, stays in sorted(expected.items()):
        real = [each for each in left[name] if each in before[name]]
        if real != stays:
            found.append(f"{name}: {before[name]} became {left[name]}, predicted {stays}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="retention-trial-"))
    now = int(time.time() * 1000)
    try:
        node = ScenarioNode(KafkaLab(), options.kafka, work)
        node.format()
        node.fill([*chosen_topics(now), *random_topics(options.topics, options.seed, now)])
        change_files(node.log_dir, now)
        before = segments(node.log_dir)
        moment = int(time.time() * 1000)
        expected = predicted(node.log_dir, moment)
        if options.keep is not None:
            _keep(node.log_dir, options.keep)
        left = node.run_until_quiet(_CHECKING, lambda: segments(node.log_dir))
        found = differences(expected, before, left)
        for each in found:
            print(each)
        if options.keep is not None:
            truth = {name: [each for each in left[name] if each in before[name]] for name in expected}
            (options.keep / "truth").mkdir()
            text = json.dumps({"now": moment, "left": truth}, indent=1, sort_keys=True) + "\n"
            (options.keep / "truth" / "retention.json").write_text(text)
        count = sum(map(len, before.values()))
        gone = count - sum(map(len, expected.values()))
        print(f"Kafka {options.kafka}, seed {options.seed}: {len(expected)} partitions, {count} segments, {gone} "
              f"predicted to go; {len(found)} partitions differ")  # fmt: skip
        return 1 if found else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _keep(log_dir: Path, target: Path) -> None:
    shutil.copytree(
        log_dir, target / "node-1", ignore=shutil.ignore_patterns("__consumer*", "__transaction*", "random-*")
    )


if __name__ == "__main__":
    sys.exit(main())
