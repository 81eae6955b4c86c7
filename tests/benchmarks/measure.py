"""What one run of a program costs, and the least that any program could need for the same data."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY

MIB = 1024 * 1024
_SAMPLE_S = 0.02


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of processors, children included, of one run."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Ratio:
    """How many times as long the peer takes, turn by turn: the median and the range."""

    values: tuple[float, ...]

    def __str__(self) -> str:
        return f"{statistics.median(self.values):.1f} ({min(self.values):.1f}-{max(self.values):.1f})"


def environment() -> dict[str, str]:
    """That of a user: the package from the checkout, bytecode kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(REPOSITORY)}


def kafkalog(words: Sequence[str], logs: Sequence[Path]) -> list[str]:
    """The program as a user starts it; dump-log takes its files as Kafka's tool does."""
    command = [sys.executable, "-m", "kafkalog_cli", *words]
    if words and words[-1] == "--files":
        return [*command, ",".join(map(str, logs))]
    return [*command, *map(str, logs)]


def _started(command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
    """A process whose output is thrown away."""
    return subprocess.Popen(
        [os.fspath(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        cwd=REPOSITORY,
    )


def run(command: Sequence[str | Path], expected: Sequence[int] = (0,)) -> Cost:
    """One run; what it prints is thrown away. Raises RuntimeError where it ends with another code than ``expected``."""
    started = time.perf_counter()
    process = _started(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime)


def peak_bytes(command: Sequence[str | Path]) -> int:
    """The most memory that a run and its children hold together: pages that they share count once."""
    process = _started(command)
    peak = 0
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    while not ended.wait(_SAMPLE_S):
        peak = max(peak, sum(map(_pss_bytes, _family(process.pid))))
    return peak


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    except OSError:
        return found
    return found


def _pss_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0


def in_turn(ours: Sequence[str | Path], peers: Sequence[str | Path], rounds: int) -> tuple[list[Cost], list[Cost]]:
    """A B A B: what both cost, round by round; a first run of each warms the page cache and does not count."""
    run(ours)
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(rounds):
        costs[0].append(run(ours))
        costs[1].append(run(peers))
    return costs


def ratio(ours: Sequence[Cost], peers: Sequence[Cost], name: str) -> Ratio:
    """Of the costs of that name."""
    pairs = zip(ours, peers, strict=True)
    return Ratio(tuple(getattr(theirs, name) / max(getattr(own, name), 0.001) for own, theirs in pairs))


def floor(logs: Sequence[Path], *, with_records: bool, passes: int = 3) -> Cost:
    """Read, CRC and decompress by the C libraries alone, in one process; imports and start are not counted."""
    words = [sys.executable, "-m", "tests.benchmarks.floor", *map(os.fspath, logs), f"--passes={passes}"]
    if with_records:
        words.append("--records")
    done = subprocess.run(words, env=environment(), cwd=REPOSITORY, capture_output=True, text=True, check=True)
    wall_s, cpu_s = map(float, done.stdout.split())
    return Cost(wall_s, cpu_s)
