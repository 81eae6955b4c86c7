"""A node with many partitions: the work for each does not grow with their number, and what people read has an end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kafkalog_cli import runner
from kafkalog_cli.main import main
from tests.benchmarks import make_many
from tests.building import batches
from tests.format.verbs.doctor.looking import node
from tests.format.verbs.txns.transaction_logs import data

COUNTS = (20, 50, 80)
READING: tuple[tuple[str, ...], ...] = (
    ("ls", "--no-scan"), ("verify", "--jobs", "1"), ("doctor", "--deep"), ("txns",), ("producers",), ("retention",),
    ("compaction",), ("dump",), ("dump", "--records", "--read-committed"), ("grep", "x"), ("groups",), ("diff",),
    ("sql", "SELECT count(*) FROM records"),
)  # fmt: skip
WRITING: tuple[tuple[str, ...], ...] = (
    ("salvage", "--output"), ("recompress", "--codec", "zstd", "--output"), ("redact", "--output"),
    ("extract", "--output"), ("rebuild-index", "--output"), ("bundle", "--output"), ("scrub", "--once", "--state"),
)  # fmt: skip


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Nodes of more and more partitions, each of a segment."""
    root = tmp_path_factory.mktemp("many")
    return [make_many.node(root / f"node-{count}", count, 1) for count in (1, *COUNTS)]


def calls_of(words: Sequence[str | Path]) -> int:
    """The number of calls and returns that Python makes while a command runs."""
    count = 0

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(see)
    try:
        code = main(list(map(str, words)))
    finally:
        sys.setprofile(None)
    assert code in (0, 1, 3) or words[0] == "diff", words  # it refuses partitions that are no replicas
    return count


@pytest.mark.slow
@pytest.mark.parametrize("is_each_given", [False, True])
@pytest.mark.parametrize("verb", [*READING, *WRITING], ids=" ".join)
def test_the_work_for_a_partition_is_the_same_for_any_number(
    verb: tuple[str, ...], is_each_given: bool, nodes: list[Path], tmp_path: Path
) -> None:
    """Of a node, or of partitions as a shell makes them of ``*``."""
    found = []
    for made in nodes:  # the first run imports modules
        suffix = ".tar.zst" if verb[0] == "bundle" else ""
        output = [tmp_path / f"{made.name}{suffix}"] if verb in WRITING else []
        paths = sorted(path for path in made.iterdir() if path.is_dir()) if is_each_given else [made]
        found.append(calls_of([*verb, *output, *paths, "--quiet"]))
    _, few, more, most = found
    assert most - more < 1.05 * (more - few), found


@pytest.mark.parametrize(
    "words",
    [["recompress", "--codec", "zstd"], ["redact"], ["rebuild-index"], ["salvage"], ["extract", "--to", "jsonl"]],
    ids=" ".join,
)
@pytest.mark.parametrize("most", [3, 2])
def test_of_many_written_files_people_see_the_first(
    words: list[str], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And how many more there are; JSON lines have all."""
    monkeypatch.setattr(runner, "_MOST_ALIKE", most)
    made = node(tmp_path / "node", {f"orders-{number}": {0: batches(2)} for number in range(3)})
    assert main([*words, str(made), "--output", str(tmp_path / "text")]) == 0
    printed = capfd.readouterr().out
    kind = "extracted file" if words[0] == "extract" else "written segment"
    assert (f"Not listed: 1 {kind} (--format jsonl has all)." in printed) == (most < 3)
    assert printed.count("orders-2/" if kind == "written segment" else "partition=2/") == (most == 3)
    assert f"3 {kind}s" in printed  # the summary counts all
    assert main([*words, str(made), "--output", str(tmp_path / "lines"), "--format", "jsonl"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3 + 1


def test_lost_bytes_are_always_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "_MOST_ALIKE", 1)
    damaged = bytearray(b"".join(batches(4)))
    damaged[90] ^= 1
    logs = {f"orders-{number}": {0: [bytes(damaged)] if number == 2 else batches(4)} for number in range(3)}
    assert main(["salvage", str(node(tmp_path / "node", logs)), "--output", str(tmp_path / "text")]) == 1
    printed = capfd.readouterr().out
    assert ("\norders-1/" in printed, "\norders-2/" in printed) == (False, True)


def test_of_many_partitions_without_producer_ids_people_see_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Those with an id are all shown."""
    monkeypatch.setattr(runner, "_MOST_ALIKE", 1)
    logs = {f"orders-{number}": {0: [*batches(1), data(3, 7), data(6, 8)]} for number in range(2)}
    made = str(node(tmp_path / "node", logs))
    assert main(["producers", made]) == 0
    printed = capfd.readouterr().out
    assert len([line for line in printed.splitlines() if line.startswith("orders ")]) == 4 + 1
    assert "Not listed: 1 row (--format jsonl has all)." in printed
    assert main(["producers", "--format", "jsonl", made]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 6 + 1
