"""The start of a command, and kafkalog on very many or very large files; for docs/performance.md.

    python -m tests.benchmarks.bench_scale [--data DIR] [--rounds N] [--only WORD …] [--share PERCENT]

Rows: the start (beside an empty program of the same Python), ls of 10,000 partitions with 100,000 segments, look-ups
in a tebibyte of segments, and verify, dump and grep of logs of 10,000, 20,000 and 50,000 segments. ``--share`` makes
the directories of ls smaller. The time to compare is that of processors; the page cache is warm, output is thrown away.
Nothing here asserts a time.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import make_many
from tests.benchmarks.__main__ import machine, options_parser
from tests.benchmarks.measure import environment, kafkalog, run
from tests.corpora import REPOSITORY

HEADINGS = ("what", "on", "CPU s (range)", "s", "bytes read")
_EMPTY = (sys.executable, "-c", "pass")
_SMALL = REPOSITORY / "tests" / "_data" / "kafka-4.3-single" / "node-1"
_START_MS = 1_700_000_000_000
TEBIBYTE_OFFSET = 500 * 65536 + 12345  # in the one segment whose batches are all there


@dataclass(frozen=True)
class Row:
    """One command, and what makes its data."""

    name: str
    words: tuple[str, ...]
    data: Callable[[Path, int], Path | None]


def _nothing(root: Path, share: int) -> Path | None:
    return None


def small_partition(name: str) -> Path:
    """A partition of the tests' corpora."""
    return _SMALL / name


def _small(name: str) -> Callable[[Path, int], Path]:
    return lambda root, share: small_partition(name)


def _node(root: Path, share: int) -> Path:
    return make_many.node(root / f"node-{share}", 100 * share, 10)


def _tebibyte(root: Path, share: int) -> Path:
    return make_many.tebibyte(root / "tebibyte" / "t-0")


def _segments(count: int) -> Callable[[Path, int], Path]:
    return lambda root, share: make_many.node(root / f"segments-{count}", 1, count) / "topic-00000-0"


_QUIET = ("--quiet", "--format", "jsonl")
ROWS = (
    Row("start: empty program", _EMPTY, _nothing),
    Row("start: --version", ("--version",), _nothing),
    Row("start: --help", ("--help",), _nothing),
    Row("start: verify", ("verify", *_QUIET), _small("clicks-uncompressed-0")),
    Row("start: verify, five codecs", ("verify", *_QUIET), _small("orders-0")),
    Row("start: find", ("find", "--offset", "3", *_QUIET), _small("orders-0")),
    Row("start: ls", ("ls", *_QUIET), _small("orders-0")),
    Row("start: groups", ("groups", *_QUIET), _small("__consumer_offsets-1")),
    Row("many partitions: ls", ("ls", *_QUIET), _node),
    Row("many partitions: ls --no-scan", ("ls", "--no-scan", *_QUIET), _node),
    Row("tebibyte: find --offset", ("find", "--offset", str(TEBIBYTE_OFFSET), *_QUIET), _tebibyte),
    Row("tebibyte: find --timestamp", ("find", "--timestamp", str(_START_MS + TEBIBYTE_OFFSET), *_QUIET), _tebibyte),
    Row("tebibyte: find --max-timestamp", ("find", "--max-timestamp", *_QUIET), _tebibyte),
    *(
        Row(f"many segments: {' '.join(words)}", (*words, *_QUIET), _segments(count))
        for words in (("verify",), ("dump", "--records"), ("grep", "no such text"))
        for count in (10_000, 20_000, 50_000)
    ),
)


def _cells(row: Row, root: Path, rounds: int, share: int) -> list[str]:
    path = row.data(root, share)
    paths = [] if path is None else [path]
    command: Sequence[str | Path] = row.words if row.words is _EMPTY else kafkalog(row.words, paths)
    expected = (0, 1)  # grep that finds nothing, groups of an empty partition
    run(command, expected)
    costs = [run(command, expected) for _ in range(rounds)]
    cpu = [cost.cpu_s for cost in costs]
    shown = f"{statistics.median(cpu):.3f} ({min(cpu):.3f}-{max(cpu):.3f})"
    on = "" if path is None else path.name
    return [row.name, on, shown, f"{statistics.median(cost.wall_s for cost in costs):.2f}", _bytes_read(command)]


def _bytes_read(command: Sequence[str | Path]) -> str:
    """What ``find`` says that it has read; empty for other commands."""
    if "find" not in command:
        return ""
    done = subprocess.run(list(map(str, command)), capture_output=True, env=environment(), cwd=REPOSITORY, check=True)
    counts = json.loads(done.stdout.splitlines()[-1])["counts"]
    return f"{counts['bytes_read'] + counts.get('visibility_bytes_read', 0):,}"


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--share", type=int, default=100)
    options = parser.parse_args()
    print(machine(), end="\n\n")
    print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS), flush=True)
    for row in ROWS:
        if all(word in row.name for word in options.only):
            print("| " + " | ".join(_cells(row, options.data, options.rounds, options.share)) + " |", flush=True)


if __name__ == "__main__":
    main()
