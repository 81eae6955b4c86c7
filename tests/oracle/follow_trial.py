"""Trial of --follow: what it shows of a real broker's log directory, against what the broker acknowledged.

    python -m tests.oracle.follow_trial [--kafka 4.3.1] [--seconds 300] [--rate 100] [--keep DIR]

Three topics are written all the time: one that only rolls, one that retention deletes within seconds, and one that is
compacted. The broker is killed and started again twice. ``dump --records --follow`` and ``verify --follow`` run
beside it. Then every record that was acknowledged must have been shown once, with its value, in the order of its
partition. A record of the compacted topic may be missing only if the cleaner had removed it before the follower came
by; then the log must not hold it either. Prints these counts, processor time and memory, and how long a record takes
to be shown: from the broker's append, and from the end of a write of the trial's own into one more log, which leaves
out the broker's part. ``tail -f`` on that log shows how much of this is the wait for a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.building import batch
from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

_SETTINGS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.threads": "1",
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.message.timestamp.type": "LogAppendTime",
}
_TOPICS = {
    "rolled": {"segment.ms": "5000"},
    "deleted": {"segment.ms": "1000", "retention.ms": "3000"},
    "compacted": {"segment.ms": "1000", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
_IDLE_S = 30

Record = tuple[str, int, int]  # topic, partition, offset


class Lines:
    """The lines of a process's output, each with the time when it came."""

    def __init__(self, command: list[str], name: str) -> None:
        self.name = name
        self.lines: list[tuple[float, str]] = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
        )
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        self.errors: list[str] = []
        for each in self._threads:
            each.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.time(), line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def usage(self) -> tuple[float, int]:
        """Seconds of processor time, and the most memory in bytes."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for the end of the process and of its output; the exit code."""
        code = self.process.wait(60)
        for each in self._threads:
            each.join(30)
        return code


def follower(log_dirs: list[Path], *words: str) -> Lines:
    command = [sys.executable, "-m", "kafkalog_cli", *words, "--follow", "--format", "jsonl", *map(str, log_dirs)]
    lines = Lines(command, words[0])
    until = time.monotonic() + 60
    while not any("following" in each for each in lines.errors):
        assert time.monotonic() < until, lines.errors
        time.sleep(0.05)
    return lines


def writer(lab: KafkaLab, version: str, broker: Broker, topic: str, rate: int) -> Lines:
    options = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [*lab.java_command(version, options), "org.apache.kafka.tools.VerifiableProducer"]
    command += ["--bootstrap-server", broker.address, "--topic", topic, "--throughput", str(rate)]
    if topic == "compacted":
        command += ["--repeating-keys", "20"]
    return Lines(command, topic)


class Probe(threading.Thread):
    """Appends a batch to a log of its own every second, and notes when."""

    def __init__(self, log_dir: Path) -> None:
        super().__init__(daemon=True)
        (log_dir / "probe-0").mkdir(parents=True)
        self.log = log_dir / "probe-0" / f"{0:020d}.log"
        self.log.touch()
        self.written: list[float] = []
        self.is_over = threading.Event()
        self.size_bytes = len(batch(0, [b"probe"]))
        self._tail_times: list[float] = []
        self._tail = subprocess.Popen(["tail", "-c", "+1", "-f", str(self.log)], stdout=subprocess.PIPE)
        threading.Thread(target=self._read_tail, daemon=True).start()

    def _read_tail(self) -> None:
        assert self._tail.stdout is not None
        while self._tail.stdout.read(self.size_bytes):
            self._tail_times.append(time.time())

    def tail_delays(self) -> list[float]:
        self._tail.kill()
        self._tail.wait()
        return sorted(at - written for at, written in zip(self._tail_times, self.written, strict=False))

    def run(self) -> None:
        while not self.is_over.wait(1):
            with self.log.open("ab", buffering=0) as file:
                file.write(batch(len(self.written), [b"probe"]))
            self.written.append(time.time())

    def delays(self, shown: Lines) -> list[float]:
        rows = ((at, json.loads(line)) for at, line in shown.lines if '"probe"' in line)
        return sorted(at - self.written[row["offset"]] for at, row in rows if row["type"] == "record")


def acknowledged(writers: list[Lines]) -> dict[Record, str]:
    found: dict[Record, str] = {}
    for each in writers:
        for _, line in each.lines:
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("name") == "producer_send_success":
                found[(row["topic"], row["partition"], row["offset"])] = row["value"]
    return found


def judged(shown: Lines, acked: dict[Record, str], final: dict[Record, Any], kills: list[tuple[float, float]]) -> bool:
    """Print what the follower did; whether it did all that it must."""
    offsets: dict[tuple[str, int], int] = {}
    values: dict[Record, Any] = {}
    out_of_order = 0
    delays: list[float] = []
    findings: Counter[str] = Counter()
    for at, line in shown.lines:
        row = json.loads(line)
        if row["type"] == "finding":
            findings[row["code"]] += 1
        if row["type"] != "record" or row["topic"] not in _TOPICS:
            continue
        key = row["topic"], row["partition"]
        out_of_order += row["offset"] <= offsets.get(key, -1)
        offsets[key] = row["offset"]
        values[(*key, row["offset"])] = row["value"]
        delays.append(at - row["timestamp"] / 1000)
    missing = [each for each in acked if each not in values]
    kept = [each for each in missing if each in final]
    cleaned = [each for each in missing if each[0] == "compacted" and each not in final]
    lost = [each for each in missing if each not in cleaned]
    wrong = sum(values[each] != value for each, value in acked.items() if each in values)
    unknown = [each for each in final if each[0] in _TOPICS and each not in values]
    print(f"records acknowledged {len(acked)}, shown {len(values)}; broker killed {len(kills)} times")
    print(f"shown twice or out of order {out_of_order}, with another value {wrong}")
    print(f"acknowledged and not shown: {len(lost)} lost, {len(cleaned)} cleaned before they were read")
    print(f"in the log at the end and not shown: {len(unknown)} (acknowledged ones of these: {len(kept)})")
    print(f"findings: {dict(findings)}")
    _print_delays("from the broker's append to the line", sorted(delays))
    return not (lost or wrong or out_of_order or kept or unknown or not values)


def _print_delays(what: str, delays: list[float]) -> None:
    at = {name: delays[min(int(len(delays) * share), len(delays) - 1)] for name, share in _SHARES.items()}
    print(f"{what}: " + ", ".join(f"{name} {1000 * each:.0f} ms" for name, each in at.items()))


_SHARES = {"median": 0.5, "99 %": 0.99, "99.9 %": 0.999, "most": 1.0}


def run(version: str, seconds: int, rate: int, root: Path) -> bool:
    lab = KafkaLab()
    log_dir = root / "logs"
    log_dir.mkdir()
    broker = Broker(lab, version, log_dir, root / "work", _SETTINGS)
    kills: list[tuple[float, float]] = []
    probe = Probe(root / "probe")
    with broker:
        for topic, configs in _TOPICS.items():
            settings = [word for each in configs.items() for word in ("--config", "=".join(each))]
            words = ["--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1", *settings]
            broker.run("org.apache.kafka.tools.TopicCommand", *words)
        shown = follower([log_dir, probe.log.parent.parent], "dump", "--records")
        checked = follower([log_dir], "verify")
        probe.start()
        writers = [writer(lab, version, broker, topic, rate) for topic in _TOPICS]
        for _ in range(2):
            time.sleep(seconds / 3)
            broker.kill()
            killed = time.time()
            broker.__enter__()
            kills.append((killed, time.time()))
        time.sleep(seconds / 3)
        for each in writers:
            each.end(signal.SIGTERM)
        probe.is_over.set()
        busy = {each.name: each.usage() for each in (shown, checked)}
        time.sleep(3)
        idle = {each.name: each.usage()[0] for each in (shown, checked)}
        time.sleep(_IDLE_S)
        for each in (shown, checked):
            cpu, peak = each.usage()
            share = 100 * (cpu - idle[each.name]) / _IDLE_S
            print(f"{each.name}: {busy[each.name][0]:.1f} s of processor time in {seconds} s of writing; ", end="")
            print(f"idle {share:.2f} % of a core; at most {peak / 2**20:.0f} MiB")
    codes = {each.name: each.end(signal.SIGINT) for each in (shown, checked)}
    print(f"exit status: {codes}")
    plain = Lines(
        [sys.executable, "-m", "kafkalog_cli", "dump", "--records", "--format", "jsonl", str(log_dir)], "dump"
    )
    plain.finish()
    final = {
        (row["topic"], row["partition"], row["offset"]): row["value"]
        for row in (json.loads(line) for _, line in plain.lines)
        if row["type"] == "record" and row["topic"] in _TOPICS
    }
    is_right = judged(shown, acknowledged(writers), final, kills)
    _print_delays("from the end of a write to the line", probe.delays(shown))
    _print_delays("the same by tail -f", probe.tail_delays())
    found = Counter(json.loads(line).get("code", "summary") for _, line in checked.lines)
    print(f"verify --follow reported {dict(found)}")
    return is_right and codes == {"dump": 0, "verify": 0} and not set(found) - {"summary"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Trial of --follow beside a real broker.")
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rate", type=int, default=100, help="records a second and topic")
    parser.add_argument("--keep", type=Path, help="leave the files here")
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="follow-trial-")) if given.keep is None else given.keep
    root.mkdir(parents=True, exist_ok=True)
    try:
        return 0 if run(given.kafka, given.seconds, given.rate, root) else 1
    finally:
        if given.keep is None:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
