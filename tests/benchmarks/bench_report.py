"""kafkalog report against kafkalog verify, in turn, and pages of nodes with many partitions; for docs/performance.md.

    python -m tests.benchmarks.bench_report [--data DIR] [--rounds N] [--partitions N …]

The first table is of processor time on the same directory with one process each, page included. The second is of nodes
of so many small partitions: the page's bytes, and how long headless Chromium takes from the address until
all tables and charts are drawn. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import make_data
from tests.benchmarks.measure import peak_bytes, run
from tests.building import batch, write_segment
from tests.kafkalog_cli.page.browser import open_browser

MIB = 1024 * 1024
_NAMES = ("none", "zstd", "tiny")


def node_of(folder: Path, partitions: int) -> Path:
    """A log directory of so many partitions: topics of 20, three batches each, one partition in fifty damaged."""
    for number in range(partitions):
        name = f"topic.{number // 20:04d}-{number % 20}"
        content = [batch(base, [b"value" * (1 + number % 40)] * 3, codec=(number + base) % 5) for base in (0, 3, 6)]
        if number % 50 == 0:
            content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
        write_segment(folder / name, 0, content)
    (folder / "meta.properties").write_text(
        "version=1\ncluster.id=bench\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    return folder


def _kafkalog(*words: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "kafkalog_cli", *words]


def compare(root: Path, rounds: int) -> None:
    """Processor time and memory of report and verify on the same logs."""
    print("| on | MB | verify CPU s | report CPU s | report / verify | peak MiB of report |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in _NAMES:
        node = root / name
        make_data.make(node, name)
        size = sum(path.stat().st_size for path in node.rglob("*.log"))
        page = root / "page.html"
        costs: dict[str, list[float]] = {"verify": [], "report": []}
        report = _kafkalog("report", "--fail-on", "fatal", "--jobs", "1", node, "--output", page)
        for _ in range(rounds):
            costs["verify"].append(run(_kafkalog("verify", "--fail-on", "fatal", "--jobs", "1", node)).cpu_s)
            page.unlink(missing_ok=True)
            costs["report"].append(run(report).cpu_s)
        page.unlink(missing_ok=True)
        peak = peak_bytes(report)
        page.unlink(missing_ok=True)
        verify, made = statistics.median(costs["verify"]), statistics.median(costs["report"])
        print(f"| {name} | {size / 1e6:.0f} | {verify:.2f} | {made:.2f} | {made / verify:.2f} | {peak / MIB:.0f} |")


def open_pages(root: Path, counts: list[int]) -> None:
    """Size of the page, and the time that a browser takes to show it."""
    print("| partitions | report CPU s | peak MiB | page MB | opened after s | partitions listed after a filter |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for count in counts:
        node = root / f"node-{count}"
        if not node.exists():
            node_of(node, count)
        page = root / f"page-{count}.html"
        page.unlink(missing_ok=True)
        words = _kafkalog("report", "--quiet", "--fail-on", "fatal", node, "--output", page)
        cost = run([sys.executable, "-c", "import subprocess, sys; subprocess.call(sys.argv[1:])", *words])
        size = page.stat().st_size
        page.unlink()
        peak = peak_bytes(["/bin/sh", "-c", '"$@" || true', "sh", *words])
        with open_browser() as browser:
            seconds = browser.open(page)
            listed = browser.filtered_rows("report_partition", "topic.0001-3")
        print(f"| {count:,} | {cost.cpu_s:.2f} | {peak / MIB:.0f} | {size / 1e6:.2f} | {seconds:.2f} | {listed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="a directory for the data, kept; else a temporary one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, nargs="*", default=[1_000, 10_000])
    options = parser.parse_args()
    root = options.data or Path(tempfile.mkdtemp(prefix="kafkalog-report-"))
    os.makedirs(root, exist_ok=True)
    try:
        compare(root, options.rounds)
        print()
        open_pages(root, options.partitions)
    finally:
        if options.data is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
