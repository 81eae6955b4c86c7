"""A node with many partitions: what is read of its log directory, and printed, does not grow with their number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from format.node import log_dir
from format.verbs.find import visibility
from kafkalog_cli import runner
from kafkalog_cli.main import main
from tests.building import batches
from tests.format.verbs.doctor.looking import node
from tests.format.verbs.txns.transaction_logs import data


@pytest.mark.parametrize(
    "words",
    [
        ["boot"],
        ["compaction"],
        ["doctor"],
        ["dump", "--records"],
        ["dump", "--records", "--read-committed"],
        ["extract", "--to", "jsonl", "--read-committed", "--output", "written"],
        ["grep", "value"],
        ["ls"],
        ["producers"],
        ["producers", "--duplicates"],
        ["recompress", "--codec", "zstd", "--output", "written"],
        ["redact", "--output", "written"],
        ["retention"],
        ["salvage", "--output", "written"],
        ["txns"],
        ["verify"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_each_given", [False, True])
def test_a_log_directory_is_listed_and_its_checkpoints_are_read_as_often_for_many_partitions(
    words: list[str], is_each_given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counted(name: str, call: Any) -> Any:
        def counting(first: Any, *others: Any, **named: Any) -> Any:
            calls[name] += name == "read" or Path(first).name == "node"
            return call(first, *others, **named)

        return counting

    for module, name in ((log_dir, "read_checkpoints"), (visibility, "read_checkpoints")):
        monkeypatch.setattr(module, name, counted("read", getattr(module, name)))
    monkeypatch.setattr(log_dir, "list_directory", counted("listed", log_dir.list_directory))
    found = []
    for count in (2, 6):
        root = tmp_path / str(count)
        names = [f"orders-{number}" for number in range(count)]
        made = node(root / "node", {name: {0: batches(2)} for name in names}, marks=dict.fromkeys(names, 6))
        monkeypatch.chdir(root)
        calls.clear()
        main([*words, *([str(made / name) for name in names] if is_each_given else [str(made)])])
        found.append(dict(calls))
    assert found[0] == found[1]


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
