"""kafkalog report against kafkalog verify, in turn, and pages of nodes with many partitions; for docs/performance.md.

    python -m tests.benchmarks.bench_report [--data DIR] [--rounds N] [--partitions N …] [--kafka 4.3.1]

The first table is of processor time on the same directory with one process each, page included: partitions with one
large log, a log of 2 GB, a node of 1,000 partitions that hold 2 GB in all, nodes of so many tiny partitions, and, with
``--kafka``, a node of 1,000 partitions that a broker wrote, stopped cleanly, and the same as after a crash. The
second has the bytes of the page of the latter, and how long headless Chromium takes from the address until all tables
and charts are drawn. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import make_data
from tests.benchmarks.measure import peak_bytes, run
from tests.building import batch, write_segment
from tests.kafkalog_cli.page.browser import open_browser
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

MIB = 1024 * 1024
_NAMES = ("none", "zstd", "tiny", "many", "many-zstd")
#: The share of a log of make_data that each partition of a node of 2 GB has, and how many there are.
_SHARE, _FILLED = 0.01, 1_000
_META = "version=1\ncluster.id=bench\nnode.id=1\ndirectory.id=b1xkOZ5lSA2Xh6pHyb0lJQ\n"


def node_of(folder: Path, partitions: int) -> Path:
    """A log directory of so many partitions: topics of 20, three batches each, one partition in fifty damaged."""
    for number in range(partitions):
        name = f"topic.{number // 20:04d}-{number % 20}"
        content = [batch(base, [b"value" * (1 + number % 40)] * 3, codec=(number + base) % 5) for base in (0, 3, 6)]
        if number % 50 == 0:
            content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
        write_segment(folder / name, 0, content)
    (folder / "meta.properties").write_text(_META)
    return folder


def filled_node(root: Path) -> Path:
    """A log directory of partitions of some 2 MB each. Their files are one file under many names."""
    folder = root / f"filled-{_FILLED}"
    if not folder.exists():
        source = make_data.make(root / "small", "none", _SHARE)
        for number in range(_FILLED):
            shutil.copytree(source, folder / f"topic.{number // 20:04d}-{number % 20}", copy_function=os.link)
        (folder / "meta.properties").write_text(_META)
    return folder


def broker_node(root: Path, version: str) -> Path:
    """A log directory of some 1,000 partitions as a broker leaves it: five topics, each with a codec of its own."""
    folder = root / f"broker-{version}"
    if folder.exists():
        return folder
    with Broker(KafkaLab(), version, folder, root / "broker-work") as broker:
        for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
            topic = f"topic.{codec}"
            words = ["--create", "--topic", topic, "--partitions", "200", "--config", f"compression.type={codec}"]
            broker.run("org.apache.kafka.tools.TopicCommand", *words)
            words = ["--topic", topic, "--max-messages", "30000", "--throughput", "3000"]
            broker.run("org.apache.kafka.tools.VerifiableProducer", *words)
    return folder


def crashed(node: Path) -> Path:
    """A copy of a log directory without the mark of a clean stop."""
    folder = node.with_name(f"{node.name}-crashed")
    if not folder.exists():
        shutil.copytree(node, folder)
        (folder / ".kafka_cleanshutdown").unlink()
    return folder


def _nodes(root: Path, counts: list[int], version: str | None) -> Iterator[tuple[str, Path]]:
    for name in _NAMES:
        yield name, make_data.make(root / "logs", name)  # apart from the nodes: a report looks around a partition
    yield f"{_FILLED:,} partitions of 2 MB", filled_node(root)
    for count in counts:
        folder = root / f"node-{count}"
        yield f"{count:,} partitions of 300 bytes", folder if folder.exists() else node_of(folder, count)
    if version is not None:
        node = broker_node(root, version)
        yield f"1,000 partitions of a {version} broker", node
        yield "the same after a crash", crashed(node)


def _kafkalog(*words: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "kafkalog_cli", *words]


def compare(root: Path, rounds: int, counts: list[int], version: str | None) -> None:
    """Processor time and memory of report and verify on the same logs."""
    print("| on | MB | verify CPU s | report CPU s | report / verify | peak MiB of report |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, node in _nodes(root, counts, version):
        size = sum(path.stat().st_size for path in node.rglob("*.log"))
        page = root / "page.html"
        costs: dict[str, list[float]] = {"verify": [], "report": []}
        report = _kafkalog("report", "--quiet", "--jobs", "1", node, "--output", page)
        for _ in range(rounds):
            costs["verify"].append(run(_kafkalog("verify", "--jobs", "1", node), (0, 1)).cpu_s)
            page.unlink(missing_ok=True)
            costs["report"].append(run(report, (0, 1)).cpu_s)
        page.unlink(missing_ok=True)
        peak = peak_bytes(["/bin/sh", "-c", '"$@" || true', "sh", *report])
        page.unlink(missing_ok=True)
        verify, made = statistics.median(costs["verify"]), statistics.median(costs["report"])
        cells = (name, f"{size / 1e6:.0f}", f"{verify:.2f}", f"{made:.2f}", f"{made / verify:.2f}", f"{peak / MIB:.0f}")
        print(f"| {' | '.join(cells)} |", flush=True)


def open_pages(root: Path, counts: list[int]) -> None:
    """Size of the page, and the time that a browser takes to show it."""
    print("| partitions | page MB | opened after s | partitions listed after a filter |")
    print("| ---: | ---: | ---: | ---: |")
    for count in counts:
        node = root / f"node-{count}"
        page = root / f"page-{count}.html"
        page.unlink(missing_ok=True)
        run(_kafkalog("report", "--quiet", node, "--output", page), (0, 1))
        size = page.stat().st_size
        with open_browser() as browser:
            seconds = browser.open(page)
            listed = browser.filtered_rows("report_partition", "topic.0001-3")
        page.unlink()
        print(f"| {count:,} | {size / 1e6:.2f} | {seconds:.2f} | {listed} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="a directory for the data, kept; else a temporary one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--kafka", metavar="VERSION", help="a release of the lab that writes a node, too")
    options = parser.parse_args()
    root = options.data or Path(tempfile.mkdtemp(prefix="kafkalog-report-"))
    os.makedirs(root, exist_ok=True)
    try:
        compare(root, options.rounds, options.partitions, options.kafka)
        print()
        open_pages(root, options.partitions)
    finally:
        if options.data is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
