"""Trials of odd records in the topics of coordinators: what verify says of them, and what a real broker loads.

    python -m tests.oracle.coordinator_trials [--kafka 4.3.1] [--write]

One broker gets a node on which each partition of ``__consumer_offsets``, ``__transaction_state`` and
``__share_group_state`` holds a case of ``odd_coordinator_records``. What it then logs and answers is compared with the
findings of verify, and printed where the two differ. ``--write`` records what the broker did.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from format.findings import Severity
from format.layout import coordinator_partition
from format.node.target import Target
from format.verbs.verify.verify import VerifyTerms, verify
from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.odd_coordinator_records import AFTER, BEFORE, OFFSETS, SHARES, TRANSACTIONS, Case, named, partitions

VERSION = "4.3.1"
#: Partitions of each of the topics; more than there are cases.
PARTITION_COUNT = 192
VERDICTS = REPOSITORY / "tests" / "_data" / "trials" / "coordinators" / "verdicts.json"
_CODES = ("internal-record-invalid", "version-unknown")
#: Where verify says more, or less, than a broker does with a record; the first word of each is verify's.
EXPECTED = {
    f"{OFFSETS}/version 4 with an unknown tagged field": "warns",  # of what it cannot show; a broker skips it
    f"{TRANSACTIONS}/an unknown tagged field": "warns",
    f"{SHARES}/an unknown tagged field": "warns",
    # Offset commits are not replayed: they make an empty classic group where there is no group.
    f"{OFFSETS}/share group after a commit": "reads",
    f"{OFFSETS}/consumer tombstone after a commit": "reads",
    f"{OFFSETS}/share tombstone after a commit": "reads",
    f"{OFFSETS}/streams tombstone after a commit": "reads",
}
_TOPICS = (OFFSETS, TRANSACTIONS, SHARES)
_SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITION_COUNT),
    "transaction.state.log.num.partitions": str(PARTITION_COUNT),
    "share.coordinator.state.topic.num.partitions": str(PARTITION_COUNT),
    "log.index.size.max.bytes": "4096",
}
_FAILED = re.compile(r"Failed to load metadata from (\S+) with epoch|Error loading \w+ from (?:\w+ log )?(\S+)[ \n]")
_IGNORED = re.compile(r"^WARN.*Unknown (?:record type|message \w+).* from (\S+?)\.? Ignoring", re.MULTILINE)
_DONE = re.compile(r"Finished loading .*?(?:from|for) (__\w+-\d+)|Failed to load metadata from (\S+) with")
_LOAD_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """What a broker did with a partition: whether an error ended the load, and what clients get of two names."""

    has_failed: bool
    warns: bool
    before: str
    after: str

    @property
    def words(self) -> str:
        return "fails" if self.has_failed else "warns" if self.warns else "reads"


def names_of(case: Case, number: int) -> tuple[str, str]:
    """The names of the sound records before and after the odd ones."""
    return (
        named(BEFORE, number, PARTITION_COUNT, coordinator_partition),
        named(AFTER, number, PARTITION_COUNT, coordinator_partition),
    )


def write_logs(log_dir: Path) -> None:
    """Put each case into its partition of a log directory; the partitions of a broker are there or are made."""
    for case, number in partitions():
        folder = log_dir / f"{case.topic}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{0:020d}.log").write_bytes(case.log(*names_of(case, number)))


def said(partition: Path) -> str:
    """What verify says of the records of a partition, as a broker has it: that it fails, warns, or reads them."""
    found = [each for each in verify(Target(partition), VerifyTerms()) if each.code in _CODES]
    if any(each.severity >= Severity.WARNING for each in found if each.code == "version-unknown"):
        return "fails"
    if any(each.severity >= Severity.ERROR for each in found):
        return "fails"
    return "warns" if any(each.code == "version-unknown" for each in found) else "reads"


def observed(lab: KafkaLab, version: str, work: Path) -> dict[str, Verdict]:
    """What a broker does with all the cases."""
    log_dir = work / "node"
    log_dir.mkdir(parents=True)
    with Broker(lab, version, log_dir, work / "first", _SETTINGS) as broker:
        _witness(lab, broker, "create", str(PARTITION_COUNT), *_TOPICS)
        time.sleep(3)
    write_logs(log_dir)
    with Broker(lab, version, log_dir, work / "second", _SETTINGS) as broker:
        _wait_until_loaded(broker)
        asked = work / "names.tsv"
        asked.write_text("".join(_questions()))
        answers = dict(
            line.rsplit("\t", 1) for line in _witness(lab, broker, "ask", str(asked)).splitlines() if "\t" in line
        )
        text = broker.log_text
    failed = {each for match in _FAILED.finditer(text) for each in match.groups() if each}
    ignored = set(_IGNORED.findall(text))
    found = {}
    for case, number in partitions():
        place = f"{case.topic}-{number}"
        before, after = (
            "" if case.topic == SHARES else answers.get(f"{_kind(case)}\t{name}", "") for name in names_of(case, number)
        )
        found[str(case)] = Verdict(place in failed, place in ignored, before, after)
    return found


def _kind(case: Case) -> str:
    return "id" if case.topic == TRANSACTIONS else "group"


def _questions() -> list[str]:
    return [
        f"{_kind(case)}\t{name}\n"
        for case, number in partitions()
        if case.topic != SHARES
        for name in names_of(case, number)
    ]


def _wait_until_loaded(broker: Broker) -> None:
    expected = {f"{case.topic}-{number}" for case, number in partitions()}
    end = time.monotonic() + _LOAD_SECONDS
    while time.monotonic() < end:
        text = broker.log_text
        done = {each for match in _DONE.finditer(text) for each in match.groups() if each}
        if expected <= done:
            return
        time.sleep(0.5)
    print(f"not loaded: {sorted(expected - done)}", file=sys.stderr)


def _witness(lab: KafkaLab, broker: Broker, *words: str) -> str:
    source = str(REPOSITORY / "tests" / "oracle" / "CoordinatorWitness.java")
    command = [*lab.java_command(VERSION, ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]), source]
    done = subprocess.run([*command, broker.address, *words], capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")[-4000:]
    return done.stdout.decode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default=VERSION)
    parser.add_argument("--write", action="store_true", help="record the verdicts of the broker")
    parser.add_argument("--work", type=Path, help="keep everything in this folder")
    options = parser.parse_args()
    lab = KafkaLab()
    missing = lab.missing(options.kafka)
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="coordinator-trials-") as scratch:
        work = options.work or Path(scratch)
        found = observed(lab, options.kafka, work)
        logs = work / "logs"
        write_logs(logs)
        differing = 0
        for case, number in partitions():
            verdict = found[str(case)]
            words = said(logs / f"{case.topic}-{number}")
            differing += words != EXPECTED.get(str(case), verdict.words)
            print(f"{'  ' if words == verdict.words else '! '}{case}: verify: {words}; {verdict.words}, {verdict}")
    print(f"{len(found) - differing} of {len(found)} agree; {len(EXPECTED)} differences are expected")
    if options.write:
        VERDICTS.parent.mkdir(parents=True, exist_ok=True)
        content = {name: asdict(each) for name, each in found.items()}
        VERDICTS.write_text(json.dumps(content, indent=1) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
