"""One of several paths cannot be listed, as on a dead disk: the answer is that of the others, and says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from format.node import log_dir
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
AT = ("--at", "2026-11-22T00:00:00Z")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("bundle", "--no-report", "--output", "OUT.tar.zst"), ("compaction",), ("diff",), ("doctor",),
    ("dump", "--records"),
    ("find", "users-0:3"), ("grep", "customer-27"), ("groups", *AT), ("ls",),
    ("ls", "--by", "age", *AT), ("metadata",), ("producers",),
    ("quorum",), ("retention", *AT), ("sql", "SELECT count(*) FROM records"), ("txns", *AT), ("verify",),
)  # fmt: skip


@pytest.fixture
def dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log directory whose listing ends with an error of the disk."""
    path = tmp_path / "dead"
    path.mkdir()
    (path / "meta.properties").touch()
    entries_of = log_dir.entries_of

    def failing(place: Path) -> Any:
        if place == path:
            raise OSError(5, os.strerror(5))
        return entries_of(place)

    monkeypatch.setattr(log_dir, "entries_of", failing)
    return path


@pytest.mark.slow
def test_the_others_are_read(data_dir: Path, tmp_path: Path, dead: Path, run_kafkalog_many: RunMany) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    lines: list[list[Word]] = []
    for number, (verb, *words) in enumerate(COMMANDS):
        for name, paths in (("alone", (node,)), ("both", (dead, node))):
            own = [word.replace("OUT", str(tmp_path / f"{name}-{number}")) for word in words]
            lines.append([verb, *own, *paths, *(() if verb == "bundle" else ("--format", "jsonl"))])
    runs = run_kafkalog_many(lines)
    for alone, both in zip(runs[::2], runs[1::2], strict=True):
        alone.check(0, 1, 3)
        assert both.code == max(alone.code, 3) or (both.code == alone.code == 1), both.arguments
        assert f"{dead}: cannot list: Input/output error" in both.stderr
        assert "Traceback" not in both.stderr
        if both.arguments[0] == "bundle":
            assert (tmp_path / "both-0.tar.zst").stat().st_size > 10_000
            continue
        assert both.rows() == alone.rows(), both.arguments
        assert str(dead) in both.summary["not_checked"], both.arguments


def test_what_is_not_known_is_said_where_nothing_is_wrong(
    data_dir: Path, tmp_path: Path, dead: Path, run_kafkalog_many: RunMany
) -> None:
    node = tmp_path / "node-1"
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / "users-0", node / "users-0")
    [run, none] = run_kafkalog_many([["doctor", node, dead], ["doctor", dead]])
    run.check(3)
    assert "nothing wrong found in" in run.stdout
    assert f"Not known: what is in {dead}, which cannot be listed; " in run.stdout
    none.check(3)
    assert none.stdout == ""
