"""A real broker, written to without a pause, and verify over its log directory again and again: no false corruption.

    python -m tests.faults.soak --minutes 60

Needs Java, Kafka's jars and the shared folder's ``kafka-lab/cluster.sh``. Four topics are written to: three partitions
of small segments that retention soon deletes, transactions that commit and abort, a compacted topic, and one that is
created and deleted over and over.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from format.findings import Finding, Severity
from format.verbs.verify.verify import Verification, verify
from tests.corpora import SHARED
from tests.oracle.kafka_lab import KafkaLab

VERSION = "4.3.1"
LAB = SHARED / "kafka-lab"
BROKER = ("127.0.0.1", 29191)
BOOTSTRAP = ("--bootstrap-server", f"{BROKER[0]}:{BROKER[1]}")
SMALL_SEGMENTS = ("--config", "segment.bytes=1048576", "--config", "file.delete.delay.ms=500")
TOPICS = {
    "soak-rolled": ("--partitions", "3", "--config", "retention.bytes=3000000", *SMALL_SEGMENTS),
    "soak-transactions": ("--partitions", "1", *SMALL_SEGMENTS),
    "soak-compacted": (
        "--partitions", "1", "--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0.01",
        "--config", "segment.ms=2000", *SMALL_SEGMENTS,
    ),
}  # fmt: skip


@dataclass
class Soaked:
    """What came of it: how many scans over how much, the findings of each code, and those that accuse a sound log."""

    scans: int = 0
    batches: int = 0
    bytes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    false: list[Finding] = field(default_factory=list)

    def describe(self) -> str:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.codes.items()))
        lines = [
            f"{self.scans} scans, {self.batches} batches, {self.bytes >> 20} MiB; {len(self.false)} false findings"
        ]
        lines += [f"findings: {codes}"]
        lines += [f"FALSE {each.code} {each.location}: {each.message}" for each in self.false[:20]]
        return "\n".join(lines)


def missing() -> str | None:
    """Why there can be no soak here, in words."""
    if not (LAB / "cluster.sh").exists():
        return f"there is no {LAB / 'cluster.sh'}"
    if is_listening():
        return f"something listens on port {BROKER[1]} already"
    return KafkaLab().missing(VERSION)


def is_listening() -> bool:
    try:
        with socket.create_connection(BROKER, timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def broker(folder: Path) -> Iterator[Path]:
    """A broker in a folder, while the block runs; gives its log directory."""
    script = str(LAB / "cluster.sh")
    run(script, "start", VERSION, str(folder), "1")
    try:
        deadline = time.monotonic() + 90
        while not is_listening():
            if time.monotonic() > deadline:
                raise TimeoutError((folder / "node-1.log").read_text()[-2000:])
            time.sleep(0.5)
        yield folder / "node-1"
    finally:
        run(script, "stop", str(folder))


def run(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kafka(main: str, *arguments: str) -> list[str]:
    return [str(LAB / "kafka_run.sh"), VERSION, main, *arguments]


def producers() -> Iterator[subprocess.Popen[bytes]]:
    """Programs that write until they are stopped; each topic its own codec."""
    endless = ("--num-records", "1000000000", "--record-size", "300")
    perf = (
        ("soak-rolled", "1500", "compression.type=lz4", ()),
        ("soak-rolled", "300", "compression.type=none", ()),
        ("soak-transactions", "500", "compression.type=zstd", ("--transaction-duration-ms", "200")),
    )
    for topic, throughput, codec, more in perf:
        words = ("--topic", topic, "--throughput", throughput, "--command-property", codec, "linger.ms=5", *more)
        yield start(kafka("perf-producer", *BOOTSTRAP, *words, *endless))
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    console = start(kafka("console-producer", *BOOTSTRAP, "--topic", "soak-compacted", *keyed), subprocess.PIPE)
    threading.Thread(target=write_keys, args=(console,), daemon=True).start()
    yield console


def start(command: list[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write_keys(console: subprocess.Popen[bytes]) -> None:
    """A few hundred keys over and over, so that there is something to compact."""
    assert console.stdin is not None
    try:
        for number in itertools.count():
            console.stdin.write(b"key-%d:%s\n" % (number % 300, b"value" * (number % 40)))
            console.stdin.flush()
            time.sleep(0.001)
    except OSError:
        return  # it was stopped


def come_and_go(is_over: threading.Event) -> None:
    """Creates a topic and deletes it, over and over."""
    for number in itertools.count():
        for words in (("--create", "--partitions", "2"), ("--delete",)):
            if is_over.wait(3):
                return
            run(*kafka("topics", *BOOTSTRAP, "--topic", f"soak-brief-{number}", *words), check=False)


def is_false(finding: Finding) -> bool:
    """Whether a finding accuses a log that is sound: anything above info that does not say "not checked"."""
    return finding.severity >= Severity.WARNING and not finding.is_incomplete


def soak(seconds: float) -> Soaked:
    """Writes and verifies for so long."""
    soaked = Soaked()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    is_over = threading.Event()
    started: list[subprocess.Popen[bytes]] = []
    try:
        with broker(folder) as log_dir:
            for topic, words in TOPICS.items():
                run(*kafka("topics", *BOOTSTRAP, "--create", "--topic", topic, *words))
            started += producers()
            threading.Thread(target=come_and_go, args=(is_over,), daemon=True).start()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                scan(log_dir, soaked)
            is_over.set()
            for each in started:
                each.terminate()
            for each in started:
                each.wait(30)
        scan(log_dir, soaked)  # and once more when all is still
    finally:
        is_over.set()
        for each in started:
            if each.poll() is None:
                each.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return soaked


def scan(log_dir: Path, soaked: Soaked) -> None:
    terms = Verification()
    for each in verify(log_dir, terms):
        soaked.codes[each.code] += 1
        if is_false(each):
            soaked.false.append(each)
    soaked.scans += 1
    soaked.batches += terms.coverage.batches
    soaked.bytes += terms.coverage.bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    reason = missing()
    if reason is not None:
        sys.exit(f"cannot soak: {reason}")
    soaked = soak(options.minutes * 60)
    print(soaked.describe())
    sys.exit(1 if soaked.false else 0)


if __name__ == "__main__":
    main()
