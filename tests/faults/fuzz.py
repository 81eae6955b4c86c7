"""The fuzzer: mutations under right CRCs through verify, dump and find, with an eye on exceptions, time and memory.

    python -m tests.faults.fuzz                              100,000 cases, or as many as 150 seconds allow
    python -m tests.faults.fuzz --cases 10000000 --seconds 0 ten million cases, however long it takes
    python -m tests.faults.fuzz --first 12345 --cases 1 -v   one case again

KAFKALOG_FUZZ_CASES and KAFKALOG_FUZZ_SECONDS set what the test run does. One case in TWINS_ONE_IN also goes through
the other twin of the kernel, in a process of its own, and must give the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError
from format.findings import Finding
from format.internal_topics import decoder_for
from format.limits import MIB, Limits
from format.operations.dump import dump
from format.operations.find import find_max_timestamp, find_offset, find_timestamp
from format.operations.verify import Verification, verify
from format.partition import Partition, read_partition
from format.rows import RowBlock
from tests.faults.mutations import TIMESTAMP, Case, case
from tests.faults.workbench import scratch_root

SEED = 20240229
MOST_SECONDS_A_CASE = 1.0
LIMITS = Limits(max_decompressed_bytes=16 * MIB)
MOST_BYTES_OVER_LIMIT = 64 * MIB
TWINS_ONE_IN = 50
CHUNK = 500


@dataclass
class Outcome:
    """What a run of cases came to; ``failures`` are cases with what went wrong, in words."""

    cases: int = 0
    findings: int = 0
    slowest_seconds: float = 0.0
    slowest_case: int = -1
    peak_bytes: int = 0
    twins: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def merge(self, other: Outcome) -> None:
        self.cases += other.cases
        self.findings += other.findings
        if other.slowest_seconds > self.slowest_seconds:
            self.slowest_seconds, self.slowest_case = other.slowest_seconds, other.slowest_case
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        self.failures += other.failures


def lay_out(made: Case, folder: Path) -> Path:
    """The files of a case in a partition directory, in the place of those before."""
    partition = folder / "fuzzed-0"
    if partition.exists():
        for each in partition.iterdir():
            each.unlink()
    else:
        partition.mkdir(parents=True)
    for name, content in made.files.items():
        (partition / name).write_bytes(content)
    return partition


def exercise(partition: Path, number: int) -> Iterator[str]:
    """What reads a partition, over one: verify always, dump and the look-ups in turn; yields what they said."""
    root = str(partition)
    for finding in verify(partition, Verification(limits=LIMITS)):
        yield _line(finding, root)
    for item in dump(partition, records=number % 2 == 0, limits=LIMITS):
        if isinstance(item, RowBlock):
            for row in item.rows:
                yield repr(row)
        else:
            yield _line(item, root)
    if number % 4 < len(LOOK_UPS):
        found = read_partition(partition)
        for step in LOOK_UPS[number % 4](found, found.segments[0].base_offset if found.segments else 0):
            yield repr(step).replace(root, "")


def exercise_decoders(made: Case) -> Iterator[str]:
    """The decoders of internal topics, over a case's messages."""
    for topic, key, value in made.messages:
        decoder = decoder_for(topic)
        try:
            decoded = decoder.decode_key(key)
            yield repr(decoded)
            yield repr(decoder.decode_value(decoded, value))
        except KafkaLogError as error:
            yield f"{type(error).__name__} {error.message}"


LOOK_UPS: tuple[Callable[[Partition, int], Iterator[object]], ...] = (
    lambda partition, base_offset: find_offset(partition, base_offset + 2, limits=LIMITS),
    lambda partition, base_offset: find_timestamp(partition, TIMESTAMP + 2, limits=LIMITS),
    lambda partition, base_offset: find_max_timestamp(partition, limits=LIMITS),
)


def _line(finding: Finding, root: str) -> str:
    return repr(finding).replace(root, "")


def run_case(number: int, folder: Path, seed: int = SEED) -> tuple[str, int, float]:
    """One case: a digest of all that was said of it, how many lines that was, and how long it took.

    Raises whatever is not a KafkaLogError.
    """
    made = case(seed, number)
    partition = lay_out(made, folder)
    digest = hashlib.sha256()
    lines = 0
    started = time.perf_counter()
    try:
        for line in chain(exercise_decoders(made), exercise(partition, number)):
            digest.update(line.encode("utf-8", "surrogatepass"))
            lines += 1
    except KafkaLogError as error:
        digest.update(f"{type(error).__name__} {error.message}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest(), lines, time.perf_counter() - started


def run_range(job: tuple[int, int, int]) -> Outcome:
    """Some cases in a row, in this process."""
    first, count, seed = job
    outcome = Outcome()
    with np.errstate(all="ignore"), tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        for number in range(first, first + count):
            outcome.cases += 1
            try:
                _, lines, seconds = run_case(number, Path(folder), seed)
            except Exception:
                outcome.failures.append((number, traceback.format_exc(limit=-3)))
                continue
            outcome.findings += lines
            if seconds > outcome.slowest_seconds:
                outcome.slowest_seconds, outcome.slowest_case = seconds, number
            if seconds > MOST_SECONDS_A_CASE:
                outcome.failures.append((number, f"took {seconds:.2f} s"))
    outcome.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return outcome


def baseline_bytes() -> int:
    """What a worker takes before its first damaged case."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(run_range, [(0, 1, SEED)])[0].peak_bytes


def run(cases: int, seconds: float, *, first: int = 0, seed: int = SEED, processes: int | None = None) -> Outcome:
    """Cases from ``first`` on, in a process for each core, until they or the seconds (0: no limit) are over."""
    total = Outcome()
    deadline = time.monotonic() + seconds if seconds else float("inf")
    before = baseline_bytes()
    jobs = ((start, min(CHUNK, first + cases - start), seed) for start in range(first, first + cases, CHUNK))
    workers = processes or os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pending: list[multiprocessing.pool.AsyncResult[Outcome]] = []
        for job in jobs:
            pending.append(pool.apply_async(run_range, (job,)))
            while len(pending) >= 2 * workers or (pending and pending[0].ready()):
                total.merge(pending.pop(0).get())
            if time.monotonic() > deadline:
                break
        for each in pending:
            total.merge(each.get())
    over = total.peak_bytes - before
    if over > LIMITS.max_decompressed_bytes + MOST_BYTES_OVER_LIMIT:
        total.failures.append((-1, f"memory grew by {over >> 20} MiB"))
    total.peak_bytes = over
    return total


# -- the kernel's twins --------------------------------------------------------------------------------------


def digests(numbers: list[int], seed: int = SEED) -> list[str]:
    """The digest of each case, or the exception it ended with, by this process's kernel."""
    found = []
    with np.errstate(all="ignore"), tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        for number in numbers:
            try:
                found.append(run_case(number, Path(folder), seed)[0])
            except Exception as error:
                found.append(repr(error))
    return found


def different_twins(numbers: list[int], seed: int = SEED) -> list[int]:
    """The cases that the plain Python kernel and this process's kernel make different things of."""
    command = [sys.executable, "-m", "tests.faults.plain_kernel", str(seed), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, text=True)
    others = json.loads(done.stdout)
    return [each for each, ours, theirs in zip(numbers, digests(numbers, seed), others, strict=True) if ours != theirs]


# -- the command ---------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=150.0, help="stop after so many; 0 for never")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--verbose", "-v", action="store_true", help="show the cases and what is said of them")
    options = parser.parse_args()
    if options.verbose:
        for number in range(options.first, options.first + options.cases):
            show(number, options.seed)
        return
    started = time.monotonic()
    outcome = run(options.cases, options.seconds, first=options.first, seed=options.seed, processes=options.processes)
    elapsed = time.monotonic() - started
    print(describe(outcome, elapsed))
    sys.exit(1 if outcome.failures else 0)


def describe(outcome: Outcome, elapsed: float) -> str:
    slowest = f"{outcome.slowest_seconds * 1000:.0f} ms (case {outcome.slowest_case})"
    lines = [
        f"{outcome.cases} cases in {elapsed:.0f} s, {outcome.findings} findings, rows and steps",
        f"slowest {slowest}; memory grew by {outcome.peak_bytes >> 20} MiB; {len(outcome.failures)} failures",
    ]
    alike: dict[str, list[int]] = {}
    for number, words in outcome.failures:
        alike.setdefault(words, []).append(number)
    for words, numbers in list(alike.items())[:20]:
        lines.append(f"{len(numbers)} cases, such as {numbers[0]}: {words}")
    return "\n".join(lines)


def show(number: int, seed: int) -> None:
    made = case(seed, number)
    print(f"case {number}: {', '.join(made.steps)}")
    folder = Path(tempfile.mkdtemp())
    try:
        for name, content in made.files.items():
            print(f"  {name}: {len(content)} bytes")
        for line in chain(exercise_decoders(made), exercise(lay_out(made, folder), number)):
            print("  " + line[:300])
    except KafkaLogError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
