"""Trial of verify and find beside a real broker that writes, and of verify on live copies: all of it is sound.

    python -m tests.oracle.live_trial [--kafka 4.3.1] [--seconds 600] [--rounds 3] [--keep DIR]

A broker rolls, compacts and deletes logs while clients commit and abort transactions, one of them is started again and
again, records are deleted and a topic comes and goes (LiveWriter.java); one topic has records from before 1970.
Meanwhile the log directory is verified over and over, and so is a copy that is made of it file by file, the logs before
or after their indexes; and find looks up the newest record of each partition by time and by offset. After each of
several rounds the broker is stopped cleanly, and its log directory verified once more. Prints the number of scans and
the findings of each code, and what accuses a sound log: beside the broker anything above info that does not say "not
checked", and a record that find says is hidden; in a copy anything above a warning but what was created, deleted or
renamed while the copy was made; and after a stop anything above info.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.node.log_dir import read_log_dir
from format.node.target import Target
from format.verbs.find.find import find_max_timestamp, find_offset, partition_to_search
from format.verbs.find.lookup import Visibility
from format.verbs.verify.verify import VerifyTerms, verify_all
from tests.building import batch
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

LIVE_SETTINGS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "4096",
}
_COMPACTED = ("accounts", "limits", "__transaction_state")
LIVE_WRITER = Path(__file__).with_name("LiveWriter.java")


def verified(log_dir: Path) -> list[Finding]:
    """What verify says of a log directory, as the command runs it."""
    return list(verify_all([Target(log_dir)], VerifyTerms()))


def copied(log_dir: Path, target: Path, chance: random.Random) -> None:
    """A copy of a directory that is written to, as cp -a makes it: each file as it is when its turn comes."""
    shutil.rmtree(target, ignore_errors=True)
    is_shuffled, is_reverse = chance.random() < 0.3, chance.random() < 0.5
    for root, _, names in os.walk(log_dir):
        directory = Path(root)
        own = target / directory.relative_to(log_dir)
        own.mkdir()
        names.sort(reverse=is_reverse)
        if is_shuffled:
            chance.shuffle(names)
        for name in names:
            try:
                shutil.copy2(directory / name, own / name)
            except FileNotFoundError:
                continue
            time.sleep(0.002)


class Trial:
    """The counts of a trial."""

    def __init__(self) -> None:
        self.scans: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.false: list[str] = []

    def note(self, what: str, findings: list[Finding], is_false: Callable[[Finding], bool]) -> None:
        """Count the findings of a scan."""
        self.scans[what] += 1
        for each in findings:
            self.codes[f"{what}: {each.code} {each.severity.label}"] += 1
            if is_false(each):
                words = f"{what}: {each.code} {each.severity.label} {each.location}: {each.message}"
                self.false.append(words)
                print("FALSE", words, flush=True)

    def look_up(self, log_dir: Path) -> None:
        """Look up the newest record of each partition by time, and by its offset: no broker hides it for long."""
        for path in read_log_dir(log_dir).partitions:
            try:
                partition = partition_to_search(path)
            except KafkaLogError:
                continue  # a topic that was deleted
            newest = find_max_timestamp(partition)
            found = [newest]
            if newest.match is not None:
                found.append(find_offset(partition, newest.match.location.offset or 0))
            for each in found:
                self.note("find beside the broker", each.findings, _accuses)
                if each.visibility is Visibility.NOT_REPLICATED or (each is newest and each.nearest is not None):
                    self.false.append(f"find beside the broker: {partition.name}: {each.reason}{each.match}")
                    print("FALSE", self.false[-1], flush=True)

    def describe(self) -> str:
        lines = [", ".join(f"{count} scans {what}" for what, count in self.scans.items())]
        lines += [f"{count:6} {words}" for words, count in sorted(self.codes.items())]
        return "\n".join([*lines, f"{len(self.false)} false findings"])


def run(lab: KafkaLab, version: str, folder: Path, seconds: int, rounds: int) -> Trial:
    """The trial, in a folder: the broker is started again for each round."""
    trial, chance = Trial(), random.Random(1)
    log_dir = folder / "node-1"
    log_dir.mkdir(parents=True)
    for number in range(rounds):
        with Broker(lab, version, log_dir, folder / f"work-{number}", LIVE_SETTINGS) as broker:
            if number == 0:
                broker.run("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "old-records")
            write_old_records(broker.address)
            java = lab.java_command(version, extra=lab.logging_jars())
            _round(trial, log_dir, [*java, str(LIVE_WRITER), broker.address, str(seconds // rounds)], chance)
        trial.note("after a clean stop", verified(log_dir), lambda each: each.severity > Severity.INFO)
    return trial


def write_old_records(address: str) -> None:
    """Records from before 1970, which the Java client refuses to send and other clients do not."""
    for codec in range(5):
        records = batch(0, codec=codec, timestamp=-5000, max_timestamp=-4998)
        partition = struct.pack(">ii", 0, len(records)) + records
        topic = b"old-records"
        body = struct.pack(">hhiih", -1, 1, 10_000, 1, len(topic)) + topic + struct.pack(">i", 1) + partition
        request = struct.pack(">hhih", 0, 7, codec, -1) + body
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb").read(4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2)
        (error,) = struct.unpack(">h", answer[-2:])
        assert error == 0, f"the broker refused the records: error {error}"


def _round(trial: Trial, log_dir: Path, command: list[str], chance: random.Random) -> None:
    """Verify a log directory and copies of it until the clients end."""
    output_path, copy = log_dir.with_name("writer.log"), log_dir.with_name("copy")
    with output_path.open("w") as output:
        writer = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        while writer.poll() is None:
            trial.note("beside the broker", verified(log_dir), _accuses)
            trial.look_up(log_dir)
            copied(log_dir, copy, chance)
            trial.note("of a copy", verified(copy), _accuses_a_copy)
    finally:
        writer.kill()
        writer.wait()
    if writer.returncode != 0:
        raise RuntimeError(output_path.read_text()[-2000:])


def _accuses(found: Finding) -> bool:
    return found.severity > Severity.INFO and not found.is_incomplete


def _accuses_a_copy(found: Finding) -> bool:
    """Whether a finding is an error in what was copied.

    A topic that came or went meanwhile is really missing in the copy, and so are files that a deletion renamed after
    the log was copied; and a log that was compacted meanwhile is copied in part from before, in part from after that.
    """
    is_moved = found.code in ("replica-missing", "replica-stray") or found.location.topic in ("brief", *_COMPACTED)
    is_moved |= found.code == "transaction-index-mismatch" and "no .txnindex" in found.message
    return found.severity > Severity.WARNING and not is_moved


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave the log directory here")
    options = parser.parse_args()
    lab = KafkaLab()
    missing = lab.missing(options.kafka)
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    folder = options.keep or Path(tempfile.mkdtemp(prefix="live-trial-"))
    try:
        trial = run(lab, options.kafka, folder, options.seconds, options.rounds)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(trial.describe())
    return 1 if trial.false else 0


if __name__ == "__main__":
    sys.exit(main())
