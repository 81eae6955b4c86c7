"""verify of partitions of 1.6 GiB of records against the floor, with one process and with two, by codec."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import make_data
from tests.benchmarks.measure import MIB, Cost, Ratio, floor, kafkalog, peak_bytes, ratio, run

#: Partitions by what their batches are compressed with.
CODECS = {"none": "many", **{name: f"many-{name}" for name in ("lz4", "zstd", "snappy", "gzip")}}
HEADINGS = (
    "codec",
    "floor CPU s",
    "one process CPU s",
    "of the floor",
    "start taken off",
    "one s",
    "two s",
    "two times as fast",
    "two CPU s",
    "peak MiB of one",
    "of two",
)
_VERIFY = ("verify", "--level", "records", "--jobs")


def print_large_logs(root: Path, rounds: int) -> None:
    """A row for each codec, as soon as it is measured: the floor, one process and two, in turn."""
    small = sorted(make_data.make(root / "small", "none", 0.001).glob("*.log"))
    start_s = statistics.median(run(kafkalog((*_VERIFY, "1"), small)).cpu_s for _ in range(2 * rounds))
    print(f"\nverify of a small log takes {start_s:.2f} s of processor time; that is the start.\n")
    print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS), flush=True)
    for codec, name in CODECS.items():
        partition = make_data.make(root, name)
        print(f"| {' | '.join((codec, *_cells(partition, start_s, rounds)))} |", flush=True)


def _cells(partition: Path, start_s: float, rounds: int) -> list[str]:
    logs = sorted(partition.glob("*.log"))
    one, two = (kafkalog((*_VERIFY, jobs), [partition]) for jobs in "12")
    run(one)  # warms the page cache, and does not count
    floors: list[Cost] = []
    ones: list[Cost] = []
    twos: list[Cost] = []
    for _ in range(rounds):
        floors.append(floor(logs, with_records=True, passes=1))
        ones.append(run(one))
        twos.append(run(two))
    without_start = [Cost(each.wall_s, each.cpu_s - start_s) for each in ones]

    def seconds(costs: Sequence[Cost], name: str) -> str:
        return f"{statistics.median(getattr(each, name) for each in costs):.2f}"

    return [
        seconds(floors, "cpu_s"),
        seconds(ones, "cpu_s"),
        _two_digits(ratio(floors, ones, "cpu_s")),
        _two_digits(ratio(floors, without_start, "cpu_s")),
        seconds(ones, "wall_s"),
        seconds(twos, "wall_s"),
        _two_digits(ratio(twos, ones, "wall_s")),
        seconds(twos, "cpu_s"),
        f"{peak_bytes(one) / MIB:.0f}",
        f"{peak_bytes(two) / MIB:.0f}",
    ]


def _two_digits(ratios: Ratio) -> str:
    values = ratios.values
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    print_large_logs(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
