"""kafkalog against kafka-dump-log, in turn, on segments made for it; prints the table of docs/performance.md.

    python -m tests.benchmarks [--data DIR] [--rounds N] [--only WORD …] [--aiokafka PYTHON]

Ratios are of whole processes, with a warm page cache and output to /dev/null, on the clock and, since other work on
the machine disturbs those less, in time of processors; each is the median of the rounds, with their range. ``--only``
picks rows by words in their first columns. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from kafkalog_cli.main import version_text
from tests.benchmarks import make_data
from tests.benchmarks.large_logs import print_large_logs
from tests.benchmarks.measure import MIB, Cost, Ratio, environment, floor, in_turn, kafkalog, peak_bytes, ratio, run
from tests.benchmarks.threads import print_threads
from tests.corpora import REPOSITORY
from tests.oracle.kafka_lab import KafkaLab, _dump_log_class

KAFKA = "4.3.1"
_JAVA_OPTIONS = ("-Xmx1g",)  # as the lab's kafka_run.sh has it
HEADINGS = (
    "what",
    "on",
    "kafkalog s",
    "CPU s",
    "peer s",
    "peer CPU s",
    "times as fast",
    "by CPU",
    "floor s",
    "peak MiB",
)


class NamedRow(Protocol):
    """A row of a table that can be asked for by words of its first two columns."""

    @property
    def name(self) -> str: ...

    @property
    def data(self) -> str: ...


RowT = TypeVar("RowT", bound=NamedRow)


@dataclass(frozen=True)
class Row:
    """One comparison: what kafkalog does with a partition, and what its peer does."""

    name: str
    data: str
    ours: tuple[str, ...]
    peers: tuple[str, ...]  # of kafka-dump-log; "kafkalog" first for kafkalog against itself
    floor: str = ""  # "crc" or "records"


CRC = ("verify", "--level", "crc")
RECORDS = ("verify", "--level", "records")
JSON = ("dump", "--records", "--format", "jsonl")
PRINT = ("dump-log", "--print-data-log", "--files")
ROWS = (
    Row("start: --version", "", ("--version",), ("--version",)),
    Row("start: --help", "", ("--help",), ("--version",)),
    Row("headers and CRCs", "none", CRC, ("--files",), "crc"),
    Row("headers and CRCs", "many", CRC, ("--files",)),
    Row("headers and CRCs, tiny batches", "tiny", CRC, ("--files",), "crc"),
    *(
        Row("every record", name, RECORDS, ("--deep-iteration", "--files"), "records")
        for name in ("none", "zstd", "lz4", "snappy", "gzip", "v1", "v1-lz4")
    ),
    *(
        Row("every record as JSON lines", name, JSON, ("--print-data-log", "--files"))
        for name in ("none", "zstd", "lz4")
    ),
    *(
        Row("dump-log --print-data-log", name, PRINT, ("--print-data-log", "--files"))
        for name in ("none", "zstd", "lz4")
    ),
    Row(
        "every record of 1.6 GiB, 2 processes", "many-zstd", (*RECORDS, "--jobs", "2"), ("--deep-iteration", "--files")
    ),
    Row("JSON lines, 2 processes against 1", "many-zstd", (*JSON, "--jobs", "2"), ("kafkalog", *JSON, "--jobs", "1")),
    Row(
        "dump-log, 2 processes against 1",
        "many-zstd",
        ("dump-log", "--jobs", "2", *PRINT[1:]),
        ("kafkalog", "dump-log", "--jobs", "1", *PRINT[1:]),
    ),
)


def kafka_dump_log(lab: KafkaLab, words: Sequence[str], logs: Sequence[Path]) -> list[str]:
    """Kafka's own tool, as its script starts it."""
    libraries = lab.home / f"kafka-{KAFKA}" / "libs"
    command = [str(lab.java), *_JAVA_OPTIONS, "-cp", f"{libraries}/*", _dump_log_class(libraries), *words]
    return [*command, ",".join(map(str, logs))] if logs else command


def measured(row: Row, root: Path, rounds: int, lab: KafkaLab) -> list[str]:
    """The cells of a row."""
    logs = sorted(make_data.make(root, row.data).glob("*.log")) if row.data else []
    # A partition is one piece of work for several processes; logs that are listed are one each.
    places = logs if len(logs) < 2 or "--files" in row.ours else [logs[0].parent]
    ours = kafkalog(row.ours, places)
    if row.peers[0] == "kafkalog":
        peers = kafkalog(row.peers[1:], places)
    else:
        peers = kafka_dump_log(lab, row.peers, logs)
    own, theirs = in_turn(ours, peers, rounds)
    least = floor(logs[:1], with_records=row.floor == "records") if row.floor else None
    return [
        row.name,
        row.data,
        *cells_of(own, theirs),
        "" if least is None else f"{least.wall_s:.2f}",
        f"{peak_bytes(ours) / MIB:.0f}",
    ]


def cells_of(own: Sequence[Cost], theirs: Sequence[Cost] | None) -> list[str]:
    """The seconds of both, and how many times as fast the first is; empty cells where nothing is compared."""
    cells = [median_of(own, "wall_s"), median_of(own, "cpu_s")]
    if theirs is None:
        return [*cells, *[""] * 4]
    cells += [median_of(theirs, "wall_s"), median_of(theirs, "cpu_s")]
    return [*cells, str(ratio(own, theirs, "wall_s")), str(ratio(own, theirs, "cpu_s"))]


def median_of(costs: Sequence[Cost], name: str) -> str:
    """The median of the costs of that name, in seconds."""
    return f"{statistics.median(getattr(cost, name) for cost in costs):.2f}"


def machine() -> str:
    """The machine and the programs, in a line each."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    load = os.getloadavg()[0]
    host = f"{model}, {os.cpu_count()} processors, {memory_bytes // 2**30} GiB, Linux {platform.release()}"
    lines = [f"{host}; load average at the start {load:.1f}", ", ".join(version_text().splitlines())]
    return "\n".join(f"- {line}" for line in lines)


def options_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark whose rows have names and data of their own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "kafkalog-benchmarks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    return parser


def sized(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options that were given, with the bytes of a log, for a benchmark whose logs may be smaller."""
    parser.add_argument("--mib", type=int, default=1024, help="bytes of each log")
    return parser.parse_args()


def print_table(
    headings: Sequence[str],
    rows: Sequence[RowT],
    cells: Callable[[RowT, Path, int, KafkaLab], list[str]],
    options: argparse.Namespace,
) -> None:
    """The machine, and the rows that were asked for, each as soon as it is measured; exits where there is no Kafka."""
    lab = KafkaLab()
    missing = lab.missing(KAFKA)
    if missing is not None:
        sys.exit(missing)
    print(machine(), end="\n\n")
    print("| " + " | ".join(headings) + " |\n|" + " --- |" * len(headings), flush=True)
    for row in rows:
        if all(word in f"{row.name} {row.data}" for word in options.only):
            print("| " + " | ".join(cells(row, options.data, options.rounds, lab)) + " |", flush=True)


def main() -> None:
    parser = options_parser(__doc__)
    parser.set_defaults(rounds=2)  # about ten minutes
    parser.add_argument("--aiokafka", metavar="PYTHON", help="a Python that has aiokafka, to read the same segments")
    options = parser.parse_args()
    print_table(HEADINGS, ROWS, measured, options)
    if not options.only:
        print_large_logs(options.data, options.rounds)
        print_threads(options.data, options.rounds)
        _print_lookups(options.data, options.rounds)
    if options.aiokafka and not options.only:
        _print_aiokafka(options.aiokafka, options.data, options.rounds)


LOOKUPS = (
    ("--offset", str(11 * make_data.RECORD_COUNT // 2)),
    ("--timestamp", str(make_data.START_MS + make_data.RECORD_COUNT // 20)),
    ("--max-timestamp",),
)


def _print_lookups(root: Path, rounds: int) -> None:
    partition = make_data.make(root, "many")
    size_bytes = sum(each.stat().st_size for each in partition.glob("*.log"))
    print(f"\n| find in {size_bytes / 2**30:.1f} GiB | s (range) | bytes read |\n| --- | --- | --- |")
    for words in LOOKUPS:
        command = kafkalog(("find", *words, "--explain"), [partition])
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=REPOSITORY)
        (bytes_read,) = re.findall(r"(\d+) bytes were read", done.stdout)
        seconds = [run(command).wall_s for _ in range(3 * rounds)]
        spread = f"{statistics.median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"
        print(f"| {' '.join(words)} | {spread} | {int(bytes_read):,} |", flush=True)


def _print_aiokafka(python: str, root: Path, rounds: int) -> None:
    print("\n| every record, imports aside | processes | aiokafka's reader s | kafkalog's verify s | times as fast |")
    print("| --- | --- | --- | --- | --- |")
    for name in ("none", "zstd", "lz4"):
        (log,) = make_data.make(root, name).glob("*.log")
        theirs = [python, str(Path(__file__).with_name("aiokafka_reader.py")), str(log)]
        for jobs in ("1", "2"):
            ours = [sys.executable, "-m", "tests.benchmarks.own_reader", str(log), jobs]
            pairs = [(_told_seconds(ours), _told_seconds(theirs)) for _ in range(rounds)]
            ratios = Ratio(tuple(their_s / own_s for own_s, their_s in pairs))
            own_s, their_s = (statistics.median(each) for each in zip(*pairs, strict=True))
            print(f"| {name} | {jobs} | {their_s:.2f} | {own_s:.2f} | {ratios} |", flush=True)


def _told_seconds(command: Sequence[str]) -> float:
    """The first word that a reader prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=REPOSITORY)
    return float(done.stdout.split()[0])


if __name__ == "__main__":
    main()
