"""Transactions against real brokers: what txns and find say of a log directory, and what clients of its broker saw.

    python -m tests.oracle.transaction_trials [--seeds N ...] [--steps N] [--kafka 4.3.1] [--work DIR] [--keep DIR]

For each seed a broker is filled with transactions that commit, abort, are fenced, stay open and hang; one topic is
compacted, one partition trimmed. Clients read all of it under both isolation levels, and Kafka's own find-hanging runs.
Then the broker stops and its directory is compared; each hanging transaction is aborted by the command that txns
prints, on the broker, which is then compared again. ``--keep`` copies the last directory and what clients saw.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from format.layout import TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.transaction_truth import TransactionTruth, compared
from tests.record_encoder import NewRecord, encode_record

_LAB = Path(__file__).with_name("TransactionLab.java")
_TOOL = "org.apache.kafka.tools.TransactionsCommand"
_TOPICS = ("payments", "accounts")
_SETTINGS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Without it a broker refuses batches of transactions that their coordinator does not know of (KIP-890).
    "transaction.partition.verification.enable": "false",
    "log.initial.task.delay.ms": "100",
    "auto.create.topics.enable": "false",
}
_GHOST = 999_000


@dataclass
class Lab:
    """A running broker, and the client program that fills and reads it."""

    kafka: KafkaLab
    version: str
    broker: Broker
    libraries: Path = field(init=False)

    def __post_init__(self) -> None:
        self.libraries = self.kafka.home / f"kafka-{self.version}" / "libs"

    def run(self, *words: str, timeout: float = 240) -> str:
        """One run of the client program."""
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.libraries}/*"]
        command = [str(self.kafka.java), *options, str(_LAB), self.broker.address, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr[-4000:]}")
        return done.stdout

    def truth(self) -> TransactionTruth:
        """What clients see now."""
        hanging = self.broker.run(_TOOL, "find-hanging", "--topic", "payments", "--max-transaction-timeout", "0")
        return TransactionTruth.of_lines(self.run("read", *_TOPICS).splitlines(), hanging.splitlines())


def hang(lab: Lab) -> None:
    """Write batches of transactions that no coordinator knows of, as KAFKA-14402 has them."""
    truth = lab.truth()
    late = [each for each in truth.producers["payments-0"] if each["open_since"] < 0 and each["coordinator_epoch"] >= 0]
    known = {each["producer_id"]: each["transactional_id"] for each in truth.transactions}
    late = [each for each in late if each["producer_id"] in known]
    port = int(lab.broker.address.rpartition(":")[2])
    if late:  # a write that arrives after the transaction was ended
        each = late[0]
        produce(port, "payments", 0, known[each["producer_id"]], each["producer_id"], each["producer_epoch"])
    produce(port, "payments", 1, "ghost", _GHOST, 0)


def produce(
    port: int, topic: str, partition: int, transactional_id: str, producer_id: int, epoch: int, age_ms: int = 0
) -> None:
    """One transactional batch by a produce request of version 7; raises RuntimeError where the broker refuses it."""
    written = time.time_ns() // 1_000_000 - age_ms
    header = BatchHeader(0, 1, 2, written, written, -1, TRANSACTIONAL_BIT, producer_id, epoch, 0)
    records = b"".join(encode_record(NewRecord(each, 0, b"late", b"write")) for each in range(2))
    batch = encode_batch(header, records)

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    body = text(transactional_id) + struct.pack(">hii", -1, 10_000, 1) + text(topic)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    request = struct.pack(">hhi", 0, 7, 1) + text("trial") + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            part = connection.recv(4096)
            if not part:
                raise RuntimeError("the broker closed the connection")
            answer += part
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 4 + 2 + len(topic) + 4 + 4)
    if error:
        raise RuntimeError(f"the broker refused a late write to {topic}-{partition}: error {error}")


def kafkalog(*words: str | Path) -> list[dict[str, Any]]:
    """The rows of a command, as JSON."""
    command = [sys.executable, "-m", "kafkalog_cli", *map(str, words), "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    return [json.loads(line) for line in done.stdout.splitlines()]


def trial(kafka: KafkaLab, version: str, seed: int, steps: int, work: Path, keep: Path | None) -> Counter[str]:
    """Fill a broker, compare, abort what hangs, compare again; counts of what was compared, and what differs."""
    node, counts = work / "node-1", Counter[str]()
    with Broker(kafka, version, node, work / "first", _SETTINGS) as broker:
        lab = Lab(kafka, version, broker)
        lab.run("fill", str(seed), str(steps))
        hang(lab)
        truth = lab.truth()
    counts += compared(node, truth)
    if keep is not None:
        _keep(node, truth, keep)
    commands = [row["abort_command"] for row in kafkalog("txns", "--hanging", "--max-timeout", "1", "--at", "+1d", node)
                if row["type"] == "transaction"]  # fmt: skip
    with Broker(kafka, version, node, work / "second", _SETTINGS) as broker:
        for command in commands:
            _, _, _, *words = shlex.split(command)
            broker.run(_TOOL, *words)
        counts["commands that abort"] += len(commands)
        truth = Lab(kafka, version, broker).truth()
    counts += compared(node, truth)
    counts["still hanging"] += len(truth.hanging)
    return counts


def _keep(node: Path, truth: TransactionTruth, keep: Path) -> None:
    if keep.exists():
        shutil.rmtree(keep)
    unwanted = ("__consumer_offsets-*", "*.checkpoint", ".lock", "__share*", "*.log.deleted")
    shutil.copytree(node, keep / "node-1", ignore=shutil.ignore_patterns(*unwanted))
    (keep / "truth").mkdir()
    (keep / "truth" / "transactions.json").write_text(json.dumps(truth.as_json(), indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    kafka = KafkaLab()
    missing = kafka.missing(options.kafka)
    if missing is not None:
        sys.exit(missing)
    total = Counter[str]()
    for seed in options.seeds:
        with tempfile.TemporaryDirectory(dir=options.work, prefix=f"transactions-{seed}-") as work:
            counts = trial(kafka, options.kafka, seed, options.steps, Path(work), options.keep)
        print(f"seed {seed}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())), flush=True)
        total += counts
    print("all: " + ", ".join(f"{count} {name}" for name, count in sorted(total.items())))
    sys.exit(any(name.startswith(("different", "still")) and count for name, count in total.items()))


if __name__ == "__main__":
    main()
