"""Trial of compaction: what the command says the cleaner keeps, and what a real broker's cleaner then keeps.

    python -m tests.oracle.compaction_trial [--kafka 4.3.1] [--seed N] [--topics N] [--rounds N] [--keep DIR]

fills a node with keyed records, tombstones, transactions and codecs, stops it, asks the command, starts a broker whose
cleaner works at once, and compares every offset that is left, the bytes, and the cleaner's checkpoint. Then it writes
more, and does so again: the second time delete horizons are over.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

from format.files import offset_checkpoint
from format.io.source import FileSource
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.compaction.compaction import Compaction, CompactionTerms, LogCompaction
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.log_scenario import ScenarioNode

_CLEANING = {
    "log.initial.task.delay.ms": "3600000",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.enable": "true",
    "log.retention.ms": "-1",
}
_HOUR = 3_600_000
_OPEN = {"segment.ms": "60000", "message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}

Topic = dict[str, Any]


class Draw:
    """Draws the batches of a topic; its times go on from round to round, so that segments are rolled."""

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = random.Random(seed)
        self._time_ms = start_ms

    def batches(self, count: int, *, keys: int, transactions: bool, codecs: bool, nulls: bool) -> list[dict[str, Any]]:
        found = []
        for _ in range(count):
            draw = self._random
            if draw.random() < 0.3:
                self._time_ms += 2 * _HOUR
            records = [
                [
                    None if nulls and draw.random() < 0.1 else f"key-{draw.randrange(keys)}",
                    -1 if draw.random() < 0.2 else draw.randrange(200),
                    self._time_ms + draw.randrange(20_000),
                ]
                for _ in range(draw.randrange(1, 12))
            ]
            batch: dict[str, Any] = {"records": records, "producer": draw.randrange(3)}
            if transactions and draw.random() < 0.7:
                batch["transaction"] = draw.choice(("commit", "commit", "abort"))
            if codecs:
                batch["codec"] = draw.choice(("none", "gzip", "snappy", "lz4", "zstd"))
            found.append(batch)
        return found


def topics(count: int, draw: Draw, seed: int, number: int) -> list[Topic]:
    """Topics of every kind, drawn; the same ones in every round."""
    kinds = random.Random(seed)
    found: list[Topic] = []
    for at in range(count):
        transactions, codecs, nulls = (kinds.random() < 0.5 for _ in range(3))
        codecs = codecs and at % 3 == 0
        late = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": kinds.choice(("0.0", "0.01", "0.3", "0.6"))}
        late["delete.retention.ms"] = kinds.choice(("1", "86400000"))
        if kinds.random() < 0.15:
            late["min.compaction.lag.ms"] = str(kinds.randrange(1, 100) * _HOUR)
        nulls = nulls and number == 1  # a compacted topic takes no more of them
        batches = draw.batches(
            kinds.randrange(2, 25), keys=kinds.choice((1, 5, 40)), transactions=transactions, codecs=codecs, nulls=nulls
        )
        if transactions and at % 5 == 4 and number == 1:
            open_one = {
                "transaction": "open",
                "producer": 100 + at,
                "records": [["key-1", 5, batches[0]["records"][0][2]]],
            }
            batches.insert(len(batches) // 2, open_one)
        found.append({"topic": f"drawn-{at}", "configs": _OPEN, "late_configs": late, "batches": batches})
    return found


def predicted(log_dir: Path, now: int) -> dict[str, LogCompaction]:
    """What the command says of each compacted log."""
    target = Target(log_dir)
    run = Compaction(read_context([target], ContextTerms()), CompactionTerms(now, with_offsets=True))
    found = {}
    for item in run.of_target(target):
        assert isinstance(item, LogCompaction), item
        if item.partition.topic is not None and not item.partition.topic.startswith("__"):
            found[item.partition.name] = item
    return found


def offsets_in(partition: Path, end: int | None = None, start: int = 0) -> list[int]:
    """The offsets of the records in the live segments, from one offset up to another."""
    found: list[int] = []
    for path in sorted(partition.glob("*.log")):
        with FileSource(path) as source:
            for chunk in batch_chunks(source):
                for table in record_tables(chunk):
                    found += table.offset.tolist()
    return [each for each in found if each >= start and (end is None or each < end)]


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1  # the cleaner has just replaced it


def state(log_dir: Path) -> dict[str, tuple[int, ...]]:
    """The sizes of all live segments, to see when nothing changes any more."""
    return {
        path.name: tuple(_size_of(each) for each in sorted(path.glob("*.log")))
        for path in log_dir.iterdir()
        if path.is_dir() and path.name.startswith("drawn-")
    }


def compared(log_dir: Path, said: dict[str, LogCompaction], before: dict[str, tuple[list[int], int]]) -> dict[str, int]:
    """Counts of logs and records, and how many logs differ."""
    counts = dict.fromkeys(("logs", "cleaned", "records", "removed", "differ", "bytes differ", "estimates"), 0)
    checkpoint = offset_checkpoint.read(log_dir / "cleaner-offset-checkpoint").by_partition()
    for name, judged in sorted(said.items()):
        partition = log_dir / name
        old_offsets, old_bytes = before[name]
        expected, expected_bytes = old_offsets, old_bytes
        cleaned = judged.cleaned
        counts["logs"] += 1
        counts["records"] += len(old_offsets)
        if judged.blocked_by is None and cleaned is not None:
            edge = judged.range.first_uncleanable_offset
            kept = chain.from_iterable(each.tolist() for each in cleaned.kept_offsets)
            expected = sorted([*kept, *(each for each in old_offsets if each >= edge)])
            expected_bytes = old_bytes - cleaned.read_bytes + cleaned.kept_bytes
            counts["cleaned"] += 1
            counts["removed"] += len(old_offsets) - len(expected)
            if checkpoint.get(judged.partition.key) != cleaned.end_offset:  # type: ignore[call-overload]
                print(f"{name}: the checkpoint says {checkpoint.get(judged.partition.key)}, not {cleaned.end_offset}")  # type: ignore[call-overload]
                counts["differ"] += 1
        real = offsets_in(partition)
        real_bytes = sum(path.stat().st_size for path in partition.glob("*.log"))
        if real != expected:
            counts["differ"] += 1
            extra, missing = sorted(set(real) - set(expected))[:9], sorted(set(expected) - set(real))[:9]
            print(f"{name}: kept besides {extra}, missing {missing}; blocked by {judged.blocked_by}, {judged.range}")
        if cleaned is not None and cleaned.is_estimate:
            counts["estimates"] += 1
        elif real_bytes != expected_bytes:
            counts["bytes differ"] += 1
            print(f"{name}: {real_bytes} bytes, predicted {expected_bytes}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="compaction-trial-"))
    differ = 0
    try:
        node = ScenarioNode(KafkaLab(), options.kafka, work)
        node.format()
        draw = Draw(options.seed, int(time.time() * 1000) - 2000 * _HOUR)
        for number in range(1, options.rounds + 1):
            node.fill(topics(options.topics, draw, options.seed, number))
            moment = int(time.time() * 1000)
            said = predicted(node.log_dir, moment)
            before = {name: (offsets_in(node.log_dir / name), sum(size)) for name, size in state(node.log_dir).items()}
            last = number == options.rounds
            if options.keep is not None and last:
                ignored = shutil.ignore_patterns("__consumer*", "__transaction*", ".lock")
                shutil.copytree(node.log_dir, options.keep / "node-1", ignore=ignored)
            node.run_until_quiet(_CLEANING, lambda: state(node.log_dir))
            counts = compared(node.log_dir, said, before)
            differ += counts["differ"] + counts["bytes differ"]
            if options.keep is not None and last:
                truth = {name: offsets_in(node.log_dir / name) for name in said}
                (options.keep / "truth").mkdir()
                text = json.dumps({"now": moment, "left": truth}, sort_keys=True) + "\n"
                (options.keep / "truth" / "compaction.json").write_text(text)
            print(f"Kafka {options.kafka}, seed {options.seed}, round {number}: {counts}")
        return 1 if differ else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
