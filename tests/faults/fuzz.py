"""The fuzzer: mutations under right CRCs through verify, dump and find, with an eye on exceptions, time and memory.

    python -m tests.faults.fuzz                              100,000 cases, or as many as 150 seconds allow
    python -m tests.faults.fuzz --cases 10000000 --seconds 0 ten million cases, however long it takes
    python -m tests.faults.fuzz --seed 7                     other cases than those of the fixed seed
    python -m tests.faults.fuzz --first 12345 --cases 1 -v   one case again
    python -m tests.faults.fuzz --units 200 --cases 1000     logs of 200 batches, most of them wrong under a right CRC

KAFKALOG_FUZZ_CASES and KAFKALOG_FUZZ_SECONDS set what the test run does. One case in TWINS_ONE_IN also goes through
the other twin of the kernel, in a process of its own, and must give the same. A run that the clock ended before nine
cases in ten were through says so in capitals: it is not the run that was asked for.
"""

from __future__ import annotations

import argparse
import gc
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError
from format.internal_topics.decoder import decoder_for
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import MIB, Limits
from format.node.partition import Partition, read_partition
from format.rows.record_rows import RowBlock
from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp
from format.verbs.find.lookup import LookupResult
from format.verbs.verify.verify import VerifyTerms, verify
from tests.dumping import dump
from tests.faults.mutations import TIMESTAMP, Case, case
from tests.faults.workbench import scratch_root

SEED = 20240229
MOST_SECONDS_A_CASE = 1.0
LIMITS = Limits(max_decompressed_bytes=16 * MIB)
MOST_BYTES_OVER_LIMIT = 64 * MIB
TWINS_ONE_IN = 50
CHUNK = 500
_WRITTEN_AT = 1_700_000_000
#: The share of the cases asked for below which a run calls itself short.
ENOUGH = 0.9


@dataclass
class Outcome:
    """The result of a run of cases; ``failures`` are the numbers of cases, each with what went wrong."""

    cases: int = 0
    mutations: int = 0
    results: int = 0
    slowest_seconds: float = 0.0
    slowest_case: int = -1
    peak_bytes: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    twins: dict[int, str] = field(default_factory=dict)  # digests of the cases that both kernels get, by case

    def merge(self, other: Outcome) -> None:
        self.cases += other.cases
        self.mutations += other.mutations
        self.results += other.results
        if other.slowest_seconds > self.slowest_seconds:
            self.slowest_seconds, self.slowest_case = other.slowest_seconds, other.slowest_case
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        self.failures += other.failures
        self.twins |= other.twins


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
        os.utime(partition / name, (_WRITTEN_AT, _WRITTEN_AT))  # a look-up by time shows it
    return partition


def exercise(partition: Path, number: int) -> Iterator[object]:
    """The results of verify and dump on a partition, and in one case of eight those of each look-up."""
    yield from verify(partition, VerifyTerms(limits=LIMITS))
    for item in dump(partition, records=number % 2 == 0, limits=LIMITS):
        if isinstance(item, RowBlock):
            yield from item.rows
        else:
            yield item
    if number % 8 < len(LOOK_UPS):
        found = read_partition(partition)
        yield LOOK_UPS[number % 8](found, found.segments[0].base_offset if found.segments else 0)


def exercise_decoders(made: Case) -> Iterator[object]:
    """The decoders of internal topics, over a case's messages."""
    for topic, key, value in made.messages:
        decoder = decoder_for(topic)
        try:
            decoded = decoder.decode_key(key)
            yield decoded
            yield decoder.decode_value(decoded, value)
        except KafkaLogError as error:
            yield _error_text(error)


LOOK_UPS: tuple[Callable[[Partition, int], LookupResult], ...] = (
    lambda partition, base_offset: find_offset(partition, base_offset + 2, limits=LIMITS),
    lambda partition, base_offset: find_timestamp(partition, TIMESTAMP + 2, limits=LIMITS),
    lambda partition, base_offset: find_max_timestamp(partition, limits=LIMITS),
)


def _text(item: object, root: str) -> str:
    """A result as text that does not depend on the directory of the partition."""
    return repr(item).replace(root, "")


def _error_text(error: KafkaLogError) -> str:
    return f"{type(error).__name__} {error.message}"


@dataclass(frozen=True)
class Cases:
    """The cases of a seed: small logs, or with ``units`` logs of so many batches."""

    seed: int = SEED
    units: int | None = None

    def case(self, number: int) -> Case:
        return case(self.seed, number, self.units)

    @property
    def in_a_job(self) -> int:
        """The number of cases that a worker takes at a time."""
        return CHUNK if self.units is None else max(1, CHUNK // self.units)


@dataclass(frozen=True)
class CaseResult:
    """One case: a digest of all its results, their number, that of its mutations, and its seconds of processor time."""

    digest: str
    results: int
    mutations: int
    seconds: float


def run_case(number: int, folder: Path, which: Cases, *, is_compared: bool = True) -> CaseResult:
    """Run one case.

    Only a case that another kernel runs too needs the digest; without it a case takes less time.
    Raises whatever is not a KafkaLogError.
    """
    made = which.case(number)
    partition = lay_out(made, folder)
    texts: list[str] = []
    results = 0
    started = time.process_time()  # a busy machine can stop a process for longer than any case may take
    try:
        for item in chain(exercise_decoders(made), exercise(partition, number)):
            results += 1
            if is_compared:
                texts.append(_text(item, str(partition)))
    except KafkaLogError as error:
        texts.append(_error_text(error))
    digest = hashlib.sha256("".join(texts).encode("utf-8", "surrogatepass"))
    return CaseResult(digest.hexdigest(), results, len(made.steps), time.process_time() - started)


def run_range(job: tuple[int, int, Cases]) -> Outcome:
    """Some cases in a row, in this process."""
    first, count, which = job
    outcome = Outcome()
    gc.collect()  # between the cases it only takes time: what it would find is a few kilobytes each
    gc.disable()
    with np.errstate(all="ignore"), tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        for number in range(first, first + count):
            outcome.cases += 1
            try:
                is_compared = number % TWINS_ONE_IN == 0
                result = run_case(number, Path(folder), which, is_compared=is_compared)
            except Exception:
                outcome.failures.append((number, traceback.format_exc(limit=-3)))
                continue
            outcome.mutations += result.mutations
            outcome.results += result.results
            if is_compared:
                outcome.twins[number] = result.digest
            if result.seconds > outcome.slowest_seconds:
                outcome.slowest_seconds, outcome.slowest_case = result.seconds, number
            if result.seconds > MOST_SECONDS_A_CASE:
                outcome.failures.append((number, f"took {result.seconds:.2f} s"))
    gc.enable()
    outcome.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return outcome


def baseline_bytes() -> int:
    """What a worker takes before its first damaged case."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(run_range, [(0, 1, Cases())])[0].peak_bytes


def run(
    cases: int, seconds: float, *, first: int = 0, which: Cases | None = None, processes: int | None = None
) -> Outcome:
    """Cases from ``first`` on, in a process for each core, until they or the seconds (0: no limit) are over."""
    which = which or Cases()
    total = Outcome()
    deadline = time.monotonic() + seconds if seconds else float("inf")
    before = baseline_bytes()
    step = which.in_a_job
    jobs = ((start, min(step, first + cases - start), which) for start in range(first, first + cases, step))
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
    others = plain_digests(sorted(total.twins), which, workers) if KERNEL_IS_COMPILED else {}
    for number, digest in others.items():
        if digest != total.twins[number]:
            total.failures.append((number, f"the plain kernel says something else: {digest[:200]}"))
    total.twins = {number: total.twins[number] for number in others}
    over = total.peak_bytes - before
    if over > LIMITS.max_decompressed_bytes + MOST_BYTES_OVER_LIMIT:
        total.failures.append((-1, f"memory grew by {over >> 20} MiB"))
    total.peak_bytes = over
    return total


# -- the kernel's twins --------------------------------------------------------------------------------------


def digests(numbers: list[int], which: Cases) -> list[str]:
    """The digest of each case, or the exception it ended with, by this process's kernel."""
    found = []
    with np.errstate(all="ignore"), tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        for number in numbers:
            try:
                found.append(run_case(number, Path(folder), which).digest)
            except Exception as error:
                found.append(repr(error))
    return found


def plain_digests(numbers: list[int], which: Cases, processes: int = 1) -> dict[int, str]:
    """The digest of each case by the plain Python kernel, in so many processes of their own."""
    shares = [numbers[start::processes] for start in range(processes)]
    command = [sys.executable, "-m", "tests.faults.plain_kernel", str(which.seed), str(which.units or 0)]
    found: dict[int, str] = {}
    with ThreadPoolExecutor(processes) as threads:
        for share, done in zip(shares, threads.map(partial(_json_through, command), shares), strict=True):
            found |= dict(zip(share, done, strict=True))
    return found


def _json_through(command: list[str], numbers: list[int]) -> list[str]:
    done = subprocess.run(command, input=json.dumps(numbers), capture_output=True, check=True, text=True)
    answers: list[str] = json.loads(done.stdout)
    return answers


def different_twins(numbers: list[int], which: Cases | None = None) -> list[int]:
    """The cases that the plain Python kernel and this process's kernel make different things of."""
    which = which or Cases()
    others = plain_digests(numbers, which)
    return [each for each, ours in zip(numbers, digests(numbers, which), strict=True) if ours != others[each]]


# -- the command ---------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=150.0, help="stop after so many; 0 for never")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--units", type=int, default=None, help="batches in each log; small logs without it")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--verbose", "-v", action="store_true", help="show the cases and what is said of them")
    options = parser.parse_args()
    which = Cases(options.seed, options.units)
    if options.verbose:
        for number in range(options.first, options.first + options.cases):
            show(number, which)
        return
    started = time.monotonic()
    outcome = run(options.cases, options.seconds, first=options.first, which=which, processes=options.processes)
    elapsed = time.monotonic() - started
    print(describe(outcome, elapsed, options.cases))
    sys.exit(1 if outcome.failures else 0)


def describe(outcome: Outcome, elapsed: float, asked_for: int = 0) -> str:
    """The figures of a run, its failures, and whether it got through the cases asked for."""
    slowest = f"{outcome.slowest_seconds * 1000:.0f} ms (case {outcome.slowest_case})"
    lines = [
        f"{outcome.cases} cases with {outcome.mutations} mutations in {elapsed:.0f} s",
        f"{outcome.results} findings, rows and steps",
        f"slowest {slowest}; memory grew by {outcome.peak_bytes >> 20} MiB; {len(outcome.failures)} failures",
        f"{len(outcome.twins)} of them also through the plain kernel",
    ]
    if outcome.cases < ENOUGH * asked_for:
        lines.insert(0, f"SHORT: ONLY {outcome.cases} OF {asked_for} CASES WERE RUN BEFORE THE TIME WAS OVER")
    alike: dict[str, list[int]] = {}
    for number, words in outcome.failures:
        alike.setdefault(words, []).append(number)
    for words, numbers in list(alike.items())[:20]:
        lines.append(f"{len(numbers)} cases, such as {numbers[0]}: {words}")
    return "\n".join(lines)


def show(number: int, which: Cases) -> None:
    made = which.case(number)
    print(f"case {number}: {', '.join(made.steps)}")
    folder = Path(tempfile.mkdtemp())
    try:
        for name, content in made.files.items():
            print(f"  {name}: {len(content)} bytes")
        partition = lay_out(made, folder)
        for item in chain(exercise_decoders(made), exercise(partition, number)):
            print("  " + _text(item, str(partition))[:300])
    except KafkaLogError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
