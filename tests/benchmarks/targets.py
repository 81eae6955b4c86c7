"""All targets of speed in one run: the floor, kafkalog and kafka-dump-log in turn; a table with what was asked.

    python -m tests.benchmarks.targets [--data DIR] [--rounds N] [--only WORD …] [--share S]

Logs have 1.7 GiB of records, decompressed. With the default of two rounds it takes about ten minutes on two processors,
and three more to make the data the first time. ``--share`` makes smaller logs, to try the program. Ratios are medians
over the rounds, with their range. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import make_data, make_many
from tests.benchmarks.__main__ import JSON, KAFKA, PRINT, RECORDS, kafka_dump_log, machine, options_parser
from tests.benchmarks.bench_scale import TEBIBYTE_OFFSET, small_partition
from tests.benchmarks.large_logs import CODECS
from tests.benchmarks.measure import MIB, Cost, Ratio, environment, floor, kafkalog, peak_bytes, ratio, run
from tests.corpora import REPOSITORY
from tests.oracle.kafka_lab import KafkaLab

HEADINGS = ("what", "on", "kafkalog", "compared with", "ratio (range)", "asked")
_QUIET = ("--quiet", "--format", "jsonl")
_EMPTY = (sys.executable, "-c", "pass")


@dataclass(frozen=True)
class Terms:
    """How the rows are measured."""

    data: Path
    rounds: int
    share: float
    lab: KafkaLab

    def partition(self, name: str) -> Path:
        """The partition directory of that name, made unless it is there."""
        return make_data.make(self.data if self.share == 1 else self.data / f"share-{self.share}", name, self.share)

    def in_turn(self, *measured: Callable[[], Cost]) -> list[list[Cost]]:
        """The costs of each, round by round."""
        rounds = [[each() for each in measured] for _ in range(self.rounds)]
        return [list(costs) for costs in zip(*rounds, strict=True)]


def _seconds(costs: Sequence[Cost], name: str) -> str:
    return f"{statistics.median(getattr(cost, name) for cost in costs):.2f} s"


def _shown(ratios: Ratio) -> str:
    values = ratios.values
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def _starts(terms: Terms) -> Iterator[tuple[str, ...]]:
    """Commands on a small partition, by processor time; the empty program shows how fast the machine is now."""
    partition, offsets = small_partition("orders-0"), small_partition("__consumer_offsets-1")
    commands: tuple[tuple[str, Sequence[str | Path], str], ...] = (
        ("start: an empty program", _EMPTY, ""),
        ("start: --version", kafkalog(("--version",), ()), "≤ 0.10 s"),
        ("start: --help", kafkalog(("--help",), ()), "≤ 0.10 s"),
        ("start: verify", kafkalog(("verify", *_QUIET), [small_partition("clicks-uncompressed-0")]), "≤ 0.12 s"),
        ("start: find --offset", kafkalog(("find", "--offset", "3", *_QUIET), [partition]), "≤ 0.12 s"),
        ("start: ls", kafkalog(("ls", *_QUIET), [partition]), "≤ 0.12 s"),
        ("start: groups", kafkalog(("groups", *_QUIET), [offsets]), "≤ 0.12 s"),
    )
    for name, command, asked in commands:
        run(command, (0, 1))
        cpu = [run(command, (0, 1)).cpu_s for _ in range(5 * terms.rounds)]
        yield name, "", f"{statistics.median(cpu):.3f} s CPU", "", f"({min(cpu):.3f}-{max(cpu):.3f})", asked


def _checks(terms: Terms) -> Iterator[tuple[str, ...]]:
    """verify with one process against the floor, with two against one and against kafka-dump-log, for each codec."""
    for codec, name in CODECS.items():
        partition = terms.partition(name)
        logs = sorted(partition.glob("*.log"))
        one, two = (kafkalog((*RECORDS, "--jobs", jobs), [partition]) for jobs in "12")
        peer = kafka_dump_log(terms.lab, ("--deep-iteration", "--files"), logs)
        run(one)  # warms the page cache, and does not count
        floors, ones, twos, peers = terms.in_turn(
            lambda logs=logs: floor(logs, with_records=True, passes=1),
            lambda one=one: run(one),
            lambda two=two: run(two),
            lambda peer=peer: run(peer),
        )
        own_cpu, two_s, peer_s = _seconds(ones, "cpu_s"), _seconds(twos, "wall_s"), _seconds(peers, "wall_s")
        least = f"floor {_seconds(floors, 'cpu_s')} CPU"
        yield "verify, one process", codec, f"{own_cpu} CPU", least, _shown(ratio(floors, ones, "cpu_s")), "≤ 1.2"
        one_s = f"one process {_seconds(ones, 'wall_s')}"
        yield "verify, two processes", codec, two_s, one_s, _shown(ratio(twos, ones, "wall_s")), "≥ 1.6"
        faster = _shown(ratio(twos, peers, "wall_s"))
        yield "verify, two processes", codec, two_s, f"--deep-iteration {peer_s}", faster, "≥ 15"
        peaks = " and ".join(f"{peak_bytes(command) / MIB:.0f}" for command in (one, two))
        yield "memory of verify, one and two processes", codec, f"{peaks} MiB", "", "", "≤ 150 MiB"


def _lines(terms: Terms) -> Iterator[tuple[str, ...]]:
    """Printing with two processes against one, and against kafka-dump-log."""
    partition = terms.partition("many-zstd")
    logs = sorted(partition.glob("*.log"))
    peer = kafka_dump_log(terms.lab, ("--print-data-log", "--files"), logs)
    commands: dict[str, Callable[[str], list[str]]] = {
        "JSON lines": lambda jobs: kafkalog((*JSON, "--jobs", jobs), [partition]),
        "logfmt": lambda jobs: kafkalog(("dump", "--records", "--format", "logfmt", "--jobs", jobs), [partition]),
        "dump-log": lambda jobs: kafkalog(("dump-log", "--jobs", jobs, *PRINT[1:]), logs),
    }
    for name, command in commands.items():
        one, two = command("1"), command("2")
        run(one)
        ones, twos, peers = terms.in_turn(lambda one=one: run(one), lambda two=two: run(two), lambda: run(peer))
        two_s = _seconds(twos, "wall_s")
        one_s, peer_s = f"one process {_seconds(ones, 'wall_s')}", f"--print-data-log {_seconds(peers, 'wall_s')}"
        what = f"{name}, two processes"
        yield what, "zstd", two_s, one_s, _shown(ratio(twos, ones, "wall_s")), "≥ 1.6"
        yield what, "zstd", two_s, peer_s, _shown(ratio(twos, peers, "wall_s")), "≥ 12"
        yield f"memory of {name}, two processes", "zstd", f"{peak_bytes(two) / MIB:.0f} MiB", "", "", "≤ 150 MiB"


def _scale(terms: Terms) -> Iterator[tuple[str, ...]]:
    """ls of 100,000 segments, and look-ups in a tebibyte, by processor time."""
    node = make_many.node(terms.data / f"node-{terms.share}", max(1, int(10_000 * terms.share)), 10)
    tebibyte = make_many.tebibyte(terms.data / "tebibyte" / "t-0")
    start_ms = make_data.START_MS
    commands: tuple[tuple[str, tuple[str, ...], Path, str], ...] = (
        ("ls of 100,000 segments", ("ls",), node, "≤ 1.5 s"),
        ("ls --no-scan of 100,000 segments", ("ls", "--no-scan"), node, "≤ 1.5 s"),
        ("find --offset in 1 TiB", ("find", "--offset", str(TEBIBYTE_OFFSET)), tebibyte, "≤ 0.25 s"),
        ("find --timestamp in 1 TiB", ("find", "--timestamp", str(start_ms + TEBIBYTE_OFFSET)), tebibyte, "≤ 0.25 s"),
        ("find --max-timestamp in 1 TiB", ("find", "--max-timestamp"), tebibyte, "≤ 0.25 s"),
    )
    for name, words, path, asked in commands:
        command = kafkalog((*words, *_QUIET), [path])
        run(command)
        cpu = [run(command).cpu_s for _ in range(2 * terms.rounds)]
        read = _bytes_read(words, path) if words[0] == "find" else ""
        yield name, "", f"{statistics.median(cpu):.2f} s CPU", read, f"({min(cpu):.2f}-{max(cpu):.2f})", asked


def _bytes_read(words: Sequence[str], path: Path) -> str:
    command = kafkalog((*words, "--explain"), [path])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=REPOSITORY)
    (bytes_read,) = re.findall(r"(\d+) bytes were read", done.stdout)
    return f"{int(bytes_read):,} bytes read"


PARTS = {"start": _starts, "verify": _checks, "lines": _lines, "scale": _scale}


def _options() -> argparse.Namespace:
    parser = options_parser(__doc__)
    parser.set_defaults(rounds=2)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    unknown = set(options.only) - PARTS.keys()
    if unknown:
        parser.error(f"--only takes {', '.join(PARTS)}")
    return options


def main() -> None:
    options = _options()
    lab = KafkaLab()
    missing = lab.missing(KAFKA)
    if missing is not None:
        sys.exit(missing)
    terms = Terms(options.data, options.rounds, options.share, lab)
    print(machine(), end="\n\n")
    print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS), flush=True)
    for name, rows in PARTS.items():
        if not options.only or name in options.only:
            for row in rows(terms):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
