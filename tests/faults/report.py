"""Every reliability target with its figures, measured now.

    python -m tests.faults.report                      a part of each: some minutes
    python -m tests.faults.report --sweep-part 1 --fuzz-cases 100000 --kafka-cases 3000 --soak-minutes 60

What does not hold is a line that begins with FAILED, and makes the exit status 1. The figures of the last full run
stand in docs/reliability.md.
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
from format.verbs.verify.verify import verify
from tests.corpora import REPOSITORY, corpora
from tests.faults import fuzz, soak, sweep
from tests.faults.kafka_reader import differences
from tests.faults.test_against_kafka import lay_out
from tests.faults.test_bombs import BOMBS, MOST_BYTES, bombed
from tests.faults.test_sweep import unexplained
from tests.oracle.kafka_lab import KafkaLab

KAFKA_VERSIONS = ("4.3.1", "3.9.1")
MOST_SECONDS_A_BOMB = 2.0
FAILED = "FAILED: "


def single_bytes(options: argparse.Namespace) -> Iterator[str]:
    """Targets 1 to 3."""
    tally = sweep.run(options.sweep_part)
    yield sweep.report(tally)
    yield from (f"{FAILED}not reported, and not explained: {what}" for what in unexplained(tally))


def damaged_ranges(options: argparse.Namespace) -> Iterator[str]:
    """Target 4, as far as reading goes."""
    yield tested("tests/faults/test_resynchronise.py")


def mutations(options: argparse.Namespace) -> Iterator[str]:
    """Target 5."""
    started = time.monotonic()
    outcome = fuzz.run(options.fuzz_cases, 0)
    yield fuzz.describe(outcome, time.monotonic() - started, options.fuzz_cases)
    if outcome.failures:
        yield f"{FAILED}{len(outcome.failures)} cases"


def bombs(options: argparse.Namespace) -> Iterator[str]:
    """Target 6."""
    for name in BOMBS:
        with tempfile.TemporaryDirectory() as folder:
            found = bombed(name, Path(folder))
        words = f"{found.peak_bytes >> 20} MiB, {found.seconds:.2f} s, exit {found.code}"
        is_within = found.peak_bytes < MOST_BYTES and found.seconds < MOST_SECONDS_A_BOMB
        is_right = found.codes == ["limit-exceeded"] and found.code == 3
        yield f"{'' if is_within and is_right else FAILED}{name}: {', '.join(found.codes)}, {words}"


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
        words = f"{logs} logs, {rules.total()} differences, {rules['']} of them unexplained"
        yield f"{FAILED if rules.pop('', 0) else ''}Kafka {version}: {words}"
        yield from (f"    {count} {rule}" for rule, count in rules.most_common())


def system_calls(options: argparse.Namespace) -> Iterator[str]:
    """Target 9."""
    yield tested("tests/faults/test_system_calls.py")


def live_broker(options: argparse.Namespace) -> Iterator[str]:
    """Target 10."""
    reason = soak.missing()
    if reason is not None:
        yield f"not measured: {reason}"
        return
    soaked = soak.soak(options.soak_minutes * 60)
    yield (FAILED if soaked.has_failed else "") + soaked.describe()


def hostile_strings(options: argparse.Namespace) -> Iterator[str]:
    """Target 11."""
    yield tested("tests/faults/test_hostile_output.py", "tests/kafkalog_cli/render")


def healthy_logs(options: argparse.Namespace) -> Iterator[str]:
    """Target 12."""
    for corpus in corpora():
        runs = [verify(log_dir) for log_dir in corpus.log_dirs]
        false = [each for run in runs for each in run if each.severity >= Severity.WARNING]
        covered = f"{sum(run.coverage.batches for run in runs)} batches, "
        covered += f"{sum(run.coverage.records for run in runs)} records"
        yield f"{FAILED if false else ''}{corpus.id}: {covered}, {len(false)} false findings"


def tested(*modules: str) -> str:
    """The last line of a test run."""
    command = [sys.executable, "-m", "pytest", "-q", *modules]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    *_, last = done.stdout.strip().splitlines()
    return last if done.returncode == 0 else f"{FAILED}{last}"


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
    has_failed = False
    for title, section in SECTIONS.items():
        if options.target and not title.startswith(tuple(options.target)):
            continue
        print(f"\n== {title}")
        for text in section(options):
            print(text, flush=True)
            has_failed |= text.startswith(FAILED)
    sys.exit(1 if has_failed else 0)


if __name__ == "__main__":
    main()
