"""Every reliability target with its figures, measured now.

    python -m tests.faults.report                      a part of each: some minutes
    python -m tests.faults.report --sweep-part 1 --fuzz-cases 100000 --kafka-cases 3000 --soak-minutes 60

The figures of the last full run stand in docs/reliability.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from format.findings import Severity
from format.operations.verify import Verification, verify
from tests.corpora import REPOSITORY, corpora
from tests.faults import fuzz, soak, sweep
from tests.faults.kafka_reader import differences
from tests.faults.test_against_kafka import lay_out
from tests.faults.test_bombs import BOMBS, bombed
from tests.oracle.kafka_lab import KafkaLab

KAFKA_VERSIONS = ("4.3.1", "3.9.1")


def single_bytes(options: argparse.Namespace) -> Iterator[str]:
    """Targets 1 to 3."""
    yield sweep.report(sweep.run(options.sweep_part))


def damaged_ranges(options: argparse.Namespace) -> Iterator[str]:
    """Target 4, as far as reading goes."""
    yield tested("tests/faults/test_resynchronise.py")


def mutations(options: argparse.Namespace) -> Iterator[str]:
    """Target 5."""
    started = time.monotonic()
    outcome = fuzz.run(options.fuzz_cases, 0)
    yield fuzz.describe(outcome, time.monotonic() - started)


def bombs(options: argparse.Namespace) -> Iterator[str]:
    """Target 6."""
    for name in BOMBS:
        with tempfile.TemporaryDirectory() as folder:
            found = bombed(name, Path(folder))
        words = f"{found.peak_bytes >> 20} MiB, {found.seconds:.2f} s, exit {found.code}"
        yield f"{name}: {', '.join(found.codes)}, {words}"


def against_kafka(options: argparse.Namespace) -> Iterator[str]:
    """Target 7."""
    for version in KAFKA_VERSIONS:
        reason = KafkaLab().missing(version)
        if reason is not None:
            yield f"not measured: {reason}"
            continue
        with tempfile.TemporaryDirectory() as folder:
            logs = lay_out(Path(folder), options.kafka_cases)
            rules = Counter(each.rule for each in differences(KafkaLab(), version, Path(folder)))
        yield f"Kafka {version}: {logs} logs, {rules.total()} differences, {rules.pop('', 0)} of them unexplained"
        yield from (f"    {count} {rule}" for rule, count in rules.most_common())


def system_calls(options: argparse.Namespace) -> Iterator[str]:
    """Target 9."""
    yield tested("tests/faults/test_system_calls.py")


def live_broker(options: argparse.Namespace) -> Iterator[str]:
    """Target 10."""
    reason = soak.missing()
    yield f"not measured: {reason}" if reason else soak.soak(options.soak_minutes * 60).describe()


def hostile_strings(options: argparse.Namespace) -> Iterator[str]:
    """Target 11."""
    yield tested("tests/faults/test_hostile_output.py", "tests/cli/test_escape.py", "tests/cli/test_render.py")


def healthy_logs(options: argparse.Namespace) -> Iterator[str]:
    """Target 12."""
    for corpus in corpora():
        terms = Verification()
        found = [each for log_dir in corpus.log_dirs for each in verify(log_dir, terms)]
        false = [each for each in found if each.severity >= Severity.WARNING]
        covered = f"{terms.coverage.batches} batches, {terms.coverage.records} records"
        yield f"{corpus.id}: {covered}, {len(false)} false findings"


def tested(*modules: str) -> str:
    """The last line of a test run."""
    command = [sys.executable, "-m", "pytest", "-q", *modules]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1]


SECTIONS = {
    "1 to 3: single bytes, truncations, side files": single_bytes,
    "4: intact batches around a damaged range": damaged_ranges,
    "5: mutations under a right CRC": mutations,
    "6: bombs": bombs,
    "7: against Kafka's own reader": against_kafka,
    "9: system calls": system_calls,
    "10: a live broker": live_broker,
    "11: hostile strings": hostile_strings,
    "12: healthy logs": healthy_logs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep-part", type=int, default=97, metavar="N", help="one case in N")
    parser.add_argument("--fuzz-cases", type=int, default=20_000)
    parser.add_argument("--kafka-cases", type=int, default=1000)
    parser.add_argument("--soak-minutes", type=float, default=1.0)
    parser.add_argument(
        "--target", action="append", default=[], help="the number a section begins with; several at will"
    )
    options = parser.parse_args()
    for title, section in SECTIONS.items():
        if options.target and not title.startswith(tuple(options.target)):
            continue
        print(f"\n== {title}")
        for text in section(options):
            print(text, flush=True)


if __name__ == "__main__":
    main()
