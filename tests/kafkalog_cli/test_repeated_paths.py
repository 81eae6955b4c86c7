"""A path that is given twice, or with another one in which it is, is read once: the answer is that for one path."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
AT = ("--at", "2026-11-22T00:00:00Z")
NAME = "users-0"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("boot",), ("compaction",), ("doctor",), ("dump", "--records"), ("find", "users-0:3"), ("grep", "customer-27"),
    ("groups", *AT), ("ls",), ("ls", "--by", "age", *AT), ("metadata",), ("producers",), ("quorum",),
    ("retention", *AT), ("sql", "SELECT count(*) FROM records"), ("txns", *AT), ("verify",),
)  # fmt: skip


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Path:
    """A node of three partitions, in a directory of its own."""
    source, target = data_dir / "kafka-4.3-single" / "node-1", tmp_path / "data" / "node-1"
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, target)
    for name in (NAME, "payments-0", "__cluster_metadata-0"):
        shutil.copytree(source / name, target / name)
    return target


def test_it_is_read_once(node: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    link = tmp_path / "link"
    link.symlink_to(node)
    repeated: list[Path] = [node, tmp_path / "data" / ".." / "data" / "node-1", link, link / NAME, node / NAME]
    repeated += (node / NAME).glob("*.log")
    lines: list[list[Word]] = []
    for verb in COMMANDS:
        paths = repeated[:3] if verb[0] == "boot" else repeated
        lines += [[*verb, *each, "--format", "jsonl"] for each in ([node], paths)]
    runs = run_kafkalog_many(lines)
    for alone, all_ in zip(runs[::2], runs[1::2], strict=True):
        assert (all_.code, all_.stdout) == (alone.code, alone.stdout), all_.arguments


def test_scrub_reads_it_once(node: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    (run,) = run_kafkalog_many([("scrub", "--once", "--state", tmp_path / "state", node, node / NAME)])
    assert run.check(0).stdout.startswith("4 segments verified")


def test_directories_that_the_other_path_does_not_read_stay(
    node: Path, tmp_path: Path, run_kafkalog_many: RunMany
) -> None:
    saved = shutil.copytree(node / NAME, node / "users-0.bak")
    far = shutil.copytree(node, tmp_path / "data" / "a" / "b" / "c" / "d" / "e")
    once, odd, deep = run_kafkalog_many(
        ("ls", *paths, "--format", "jsonl") for paths in ((node,), (node, saved), (tmp_path / "data", far))
    )
    count = len(once.rows("partition"))
    assert len(odd.rows("partition")) == count + 1
    assert len(deep.rows("partition")) == 2 * count
