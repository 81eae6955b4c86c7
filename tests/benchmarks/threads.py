"""Two threads against two forked processes: verify of eight segments, four for each, without the program's start.

``python -m tests.benchmarks.threads DIR [ROUNDS]`` prints a row for each codec. Nothing is sent between processes, so
that this is the most that either can gain.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from format.io.read_policy import keep_freed_memory
from format.verbs.verify.terms import Verification
from format.verbs.verify.verify import verify
from format.verbs.verify.walk import Level
from tests.benchmarks import make_data
from tests.benchmarks.measure import environment
from tests.corpora import REPOSITORY

WAYS = ("one thread", "two threads", "two processes")
_DATA = ("many", "many-zstd", "many-lz4")


def print_threads(root: Path, rounds: int) -> None:
    """A row for each codec; the ways in turn."""
    print(f"\n| verify, its start aside | {' | '.join(f'{way} s, CPU s' for way in WAYS)} |\n|" + " --- |" * 4)
    for name in _DATA:
        directory = make_data.make(root, name)
        costs: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                words = [sys.executable, "-m", "tests.benchmarks.threads", os.fspath(directory), way]
                done = subprocess.run(
                    words, env=environment(), cwd=REPOSITORY, capture_output=True, text=True, check=True
                )
                wall_s, cpu_s = map(float, done.stdout.split())
                costs[way].append((wall_s, cpu_s))
        medians = [[statistics.median(seconds) for seconds in zip(*each, strict=True)] for each in costs.values()]
        cells = [f"{wall_s:.2f}, {cpu_s:.2f}" for wall_s, cpu_s in medians]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _verify(logs: Sequence[Path]) -> None:
    for log in logs:
        assert not list(verify(log, Verification(level=Level.RECORDS)))


def _measure(directory: Path, way: str) -> tuple[float, float]:
    """Seconds on the clock and of processors for all segments, in one of the ways."""
    keep_freed_memory()
    logs = sorted(directory.glob("*.log"))
    _verify(logs[:1])
    started, before = time.perf_counter(), os.times()
    if way == "one thread":
        _verify(logs)
    elif way == "two threads":
        threads = [threading.Thread(target=_verify, args=(logs[first::2],)) for first in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        processes = []
        for first in range(2):
            process = os.fork()
            if not process:
                _verify(logs[first::2])
                os._exit(0)
            processes.append(process)
        for process in processes:
            os.waitpid(process, 0)
    return time.perf_counter() - started, sum(os.times()[:4]) - sum(before[:4])


if __name__ == "__main__":
    if sys.argv[2:] and sys.argv[2] in WAYS:
        print(*_measure(Path(sys.argv[1]), sys.argv[2]))
    else:
        print_threads(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 3)
