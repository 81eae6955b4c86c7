"""The walk "Add a verb" of CONTRIBUTING.md: its verb runs, over logs of every format, and cannot misread offsets."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from format.findings import Finding
from format.node.target import target_at
from format.scan.drivers import scan_logs
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import selected_logs
from format.scan.selection import EVERYTHING
from tests.building import batches, wrapper, write_segment
from tests.corpora import REPOSITORY

#: Whole logs of four batches, the last of which ends at offset 19.
LOGS = {
    "v1": [wrapper(1, first, 5) for first in (0, 5, 10, 15)],
    "v0": [wrapper(0, first, 5) for first in (0, 5, 10, 15)],
    "v2": batches(4, values=5),
}


def walk_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the verb as the walk prints it."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [code] = [each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class LargestScan" in each]
    module = ModuleType("the_walk")
    monkeypatch.setitem(sys.modules, "the_walk", module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_verb_of_the_walk_runs(name: str, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "t-0", 0, LOGS[name])
    [found] = walk_module(monkeypatch).largest(tmp_path / "t-0", jobs=jobs)
    assert (found.batch_count, found.largest_bytes) == (4, max(map(len, LOGS[name])))


class Gaps(msgspec.Struct, frozen=True):
    """A verb written by the walk: the number of offsets that are missing between the batches of a log."""

    depth: Depth

    @property
    def needs(self) -> Needs:
        return Needs(self.depth, EVERYTHING)

    def parts(self, opened: OpenedRange) -> Iterator[list[tuple[int, int]] | Finding]:
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
            else:
                table = item.chunk.table
                yield list(zip(table.base_offset.tolist(), table.last_offset.tolist(), strict=True))

    def fold(self, log: LogUnit, parts: LogParts[Any]) -> Iterator[int | Finding]:
        missing, following = 0, log.location.base_offset or 0
        for part in parts:
            for first, last in part:
                missing += first - following
                following = last + 1
        yield missing


@pytest.mark.parametrize("depth", Depth)
@pytest.mark.parametrize("name", LOGS)
def test_a_verb_of_the_walk_misses_no_offset_in_a_whole_log(name: str, depth: Depth, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, LOGS[name])
    assert list(scan_logs(Gaps(depth), selected_logs(target_at(tmp_path / "t-0"), EVERYTHING))) == [0]
    write_segment(tmp_path / "t-0", 0, [LOGS[name][0], *LOGS[name][2:]])
    assert list(scan_logs(Gaps(depth), selected_logs(target_at(tmp_path / "t-0"), EVERYTHING))) == [5]


@pytest.mark.slow
def test_no_verb_can_take_headers_for_batches(tmp_path: Path) -> None:
    """The type checker refuses a scan of headers that asks for first offsets, and headers where batches are needed."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    verb = tmp_path / "verb.py"
    verb.write_text(
        "from format.log.batch_table import BatchTable, HeaderTable\n"
        "from format.scan.protocol import OpenedRange\n"
        "def count(table: BatchTable) -> int:\n    return len(table)\n"
        "def stated(table: HeaderTable) -> int:\n    return len(table)\n"
        "def parts(opened: OpenedRange) -> None:\n"
        "    for chunk in opened.chunks:\n"
        "        print(chunk.headers.base_offset)\n"
        "        print(chunk.table)\n"
        "        count(chunk.headers)\n"
        "    for whole in opened.batches:\n"
        "        print(whole.table.base_offset)\n"
        "        stated(whole.table)\n"
    )
    # In a process of its own: mypy raises the limit of recursion, with which other tests would find other results.
    words = [sys.executable, "-m", "mypy", "--no-pretty", "--cache-dir", tmp_path, "--follow-imports", "silent", verb]
    output = subprocess.run(words, capture_output=True, text=True).stdout
    assert sorted(set(map(int, re.findall(r"verb\.py:(\d+): error", output)))) == [9, 10, 11, 14], output
