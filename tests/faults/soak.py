"""A real broker, written to without a pause, and verify over its log directory again and again: no false corruption.

    python -m tests.faults.soak --minutes 60

Needs Java, Kafka's jars and the shared folder's ``kafka-lab/cluster.sh``. Four topics are written to: three partitions
of small segments that retention soon deletes, transactions that commit and abort, a compacted topic, and one that is
created and deleted over and over.

After each scan a partition is copied, and the first log of the copy is cut, replaced, renamed or removed while verify
and dump read it, by one process or two in turn. Nothing but a file that changed may be reported, no record twice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest.mock import patch

from format.findings import Finding, Severity
from format.rows.line_blocks import LineBlock
from format.verbs.dump import DumpTerms, dump_lines
from format.verbs.verify.verify import VerifyTerms, verify
from kafkalog_cli.render.lines import LINE_STYLES
from tests.corpora import SHARED
from tests.oracle.kafka_lab import KafkaLab
from tests.ports import LAB_PORTS, is_open

VERSION = "4.3.1"
LAB = SHARED / "kafka-lab"
BROKER = ("127.0.0.1", LAB_PORTS[1])
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
    changes: Counter[str] = field(default_factory=Counter)
    wrong_changes: list[str] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)  # of producers that ended, by topic

    @property
    def has_failed(self) -> bool:
        return bool(self.false or self.wrong_changes)

    def describe(self) -> str:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.codes.items()))
        lines = [
            f"{self.scans} scans, {self.batches} batches, {self.bytes >> 20} MiB; {len(self.false)} false findings"
        ]
        lines += [f"findings: {codes}"]
        lines += [f"FALSE {each.code} {each.location}: {each.message}" for each in self.false[:20]]
        lines += [f"{self.changes.total()} readings while a file changed; {len(self.wrong_changes)} wrong"]
        lines += [f"{what} {count}" for what, count in sorted(self.changes.items())]
        lines += [f"WRONG {words}" for words in self.wrong_changes[:20]]
        lines += [f"a producer of {topic} ended {count} times" for topic, count in sorted(self.restarts.items())]
        return "\n".join(lines)


def missing() -> str | None:
    """Why there can be no soak here, in words."""
    if not (LAB / "cluster.sh").exists():
        return f"there is no {LAB / 'cluster.sh'}"
    if is_open(BROKER[1]):
        return f"something listens on port {BROKER[1]} already"
    return KafkaLab().missing(VERSION)


@contextmanager
def broker(folder: Path) -> Iterator[Path]:
    """A broker in a folder, while the block runs; gives its log directory."""
    script = str(LAB / "cluster.sh")
    run(script, "start", VERSION, str(folder), "1")
    try:
        deadline = time.monotonic() + 240  # on a busy machine
        while not is_open(BROKER[1]):
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


@dataclass
class Producer:
    """A program that writes to a topic; ``start`` starts it, and again once it ended, as one that is fenced does."""

    topic: str
    start: Callable[[], subprocess.Popen[bytes]]

    def __post_init__(self) -> None:
        self.process = self.start()

    def has_ended(self) -> bool:
        """Whether it ended by itself; it is started again then."""
        if self.process.poll() is None:
            return False
        self.process = self.start()
        return True


def producers() -> Iterator[Producer]:
    """Programs that write until they are stopped; each topic its own codec."""
    endless = ("--num-records", "1000000000", "--record-size", "300")
    perf = (
        ("soak-rolled", "1500", "compression.type=lz4", ()),
        ("soak-rolled", "300", "compression.type=none", ()),
        ("soak-transactions", "500", "compression.type=zstd", ("--transaction-duration-ms", "200")),
    )
    for topic, throughput, codec, more in perf:
        words = ("--topic", topic, "--throughput", throughput, "--command-property", codec, "linger.ms=5", *more)
        yield Producer(topic, partial(start, kafka("perf-producer", *BOOTSTRAP, *words, *endless)))
    yield Producer("soak-compacted", start_console)


def start_console() -> subprocess.Popen[bytes]:
    """A console producer, which a thread gives its lines."""
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    console = start(kafka("console-producer", *BOOTSTRAP, "--topic", "soak-compacted", *keyed), subprocess.PIPE)
    threading.Thread(target=write_keys, args=(console,), daemon=True).start()
    return console


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
    chance = random.Random(1)
    started: list[Producer] = []
    try:
        with broker(folder) as log_dir:
            for topic, words in TOPICS.items():
                run(*kafka("topics", *BOOTSTRAP, "--create", "--topic", topic, *words))
            started += producers()
            threading.Thread(target=come_and_go, args=(is_over,), daemon=True).start()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                scan(log_dir, soaked)
                change_while_read(log_dir, folder / "copy", soaked, chance)
                soaked.restarts.update(each.topic for each in started if each.has_ended())
            is_over.set()
            for each in started:
                each.process.terminate()
            for each in started:
                with suppress(subprocess.TimeoutExpired):  # it is killed below
                    each.process.wait(30)
        scan(log_dir, soaked)  # and once more when all is still
    finally:
        is_over.set()
        for each in started:
            if each.process.poll() is None:
                each.process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return soaked


def scan(log_dir: Path, soaked: Soaked) -> None:
    verified = verify(log_dir)
    for each in verified:
        soaked.codes[each.code] += 1
        if is_false(each):
            soaked.false.append(each)
            print(f"FALSE {each.code} {each.location}: {each.message}", file=sys.stderr, flush=True)
    soaked.scans += 1
    soaked.batches += verified.coverage.batches
    soaked.bytes += verified.coverage.bytes


# -- files that change while they are read -----------------------------------------------------------------------


def cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size // 2)


def replace(log: Path) -> None:
    other = log.with_name("other")
    shutil.copy(log, other)
    os.replace(other, log)


def rename(log: Path) -> None:
    log.rename(log.with_name(log.name + ".deleted"))


#: What is read at once of a log that changes.
CHUNK_BYTES = 64 * 1024
CHANGES: tuple[Callable[[Path], object], ...] = (cut, replace, rename, Path.unlink)


class Changing:
    """Takes progress, and changes a log once so many bytes are read."""

    def __init__(self, log: Path, change: Callable[[Path], object], after_bytes: float) -> None:
        self._log = log
        self._change: Callable[[Path], object] | None = change
        self._left_bytes = after_bytes

    def advance(self, length_bytes: int) -> None:
        self._left_bytes -= length_bytes
        if self._left_bytes <= 0 and self._change is not None:
            change, self._change = self._change, None
            change(self._log)


def change_while_read(log_dir: Path, copy: Path, soaked: Soaked, chance: random.Random) -> None:
    """Copies a partition as it is, and reads the copy while its first log changes."""
    for reads in (verify_reads, dump_reads):
        shutil.rmtree(copy, ignore_errors=True)
        partition = copy / chance.choice(["soak-rolled-0", "soak-rolled-1", "soak-rolled-2", "soak-transactions-0"])
        log = copied(log_dir / partition.name, partition)
        if log is None:
            continue  # retention was faster
        change, jobs = chance.choice(CHANGES), chance.choice([1, 2])
        changing = Changing(log, change, chance.random() * 0.9 * log.stat().st_size)
        with small_work_is_shared():
            words = reads(partition, jobs, changing)
        what = f"{reads.__name__.removesuffix('_reads')}, {change.__name__}, --jobs {jobs}"
        soaked.changes[what] += 1
        soaked.wrong_changes += [f"{what}: {each}" for each in words]


@contextmanager
def small_work_is_shared() -> Iterator[None]:
    """Logs of a mebibyte are read in several ranges, and by several processes where these are asked for."""
    with (
        patch("format.scan.drivers.is_worth_sharing", lambda *_: True),
        patch("format.verbs.dump.DUMP_CHUNK_BYTES", CHUNK_BYTES),
        patch("format.verbs.verify.walk.WALK_CHUNK_BYTES", CHUNK_BYTES),
    ):
        yield


def copied(source: Path, target: Path) -> Path | None:
    """The whole logs of a partition that is written to: all but its last one. Returns the first, None for none."""
    target.mkdir(parents=True)
    try:
        for each in sorted(source.glob("*.log"))[:-1]:
            shutil.copy(each, target)
    except FileNotFoundError:
        return None
    return min(target.glob("*.log"), default=None)


def verify_reads(partition: Path, jobs: int, changing: Changing) -> list[str]:
    """What is wrong with what verify says."""
    found = list(verify(partition, VerifyTerms(jobs=jobs, advance=changing.advance)))
    false = [each for each in found if is_false(each) and not is_missing(each)]
    accused = [f"{each.code} {each.location}: {each.message}" for each in false]
    if not any(each.code == "file-changed" for each in found):
        accused.append("the change was not reported")
    return accused


def is_missing(finding: Finding) -> bool:
    """Whether a finding is about the files beside the logs, which were not copied."""
    has_no_index = not Path(finding.location.path).with_suffix(".txnindex").exists()
    return finding.code == "index-missing" or (finding.code == "transaction-index-mismatch" and has_no_index)


def dump_reads(partition: Path, jobs: int, changing: Changing) -> list[str]:
    """What is wrong with what dump says."""
    wrong: list[str] = []
    last = -1
    blocks = dump_lines([partition], DumpTerms(records=True), LINE_STYLES["jsonl"], jobs=jobs, advance=changing.advance)
    for block in blocks:
        if isinstance(block, Finding):
            wrong += [f"{block.code}: {block.message}"] * is_false(block)
        elif isinstance(block, LineBlock):
            for line in bytes(block.lines).splitlines():
                offset = json.loads(line)["offset"]
                wrong += [f"offset {offset} after {last}"] * (offset <= last)
                last = offset
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    reason = missing()
    if reason is not None:
        sys.exit(f"cannot soak: {reason}")
    soaked = soak(options.minutes * 60)
    print(soaked.describe())
    sys.exit(1 if soaked.has_failed else 0)


if __name__ == "__main__":
    main()
