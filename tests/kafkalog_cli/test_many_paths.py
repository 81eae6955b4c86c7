"""Many paths on one command line, as a shell makes of ``*``: the work for each path is the same for any number."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kafkalog_cli.main import main
from tests.benchmarks.make_many import node

COUNTS = (20, 50, 80)
READING: tuple[tuple[str, ...], ...] = (
    ("ls", "--no-scan"), ("verify", "--jobs", "1"), ("doctor", "--deep"), ("txns",), ("producers",), ("retention",),
    ("compaction",), ("dump",), ("grep", "x"), ("groups",), ("diff",), ("metadata",), ("sql", "SELECT 1"),
)  # fmt: skip
WRITING: tuple[tuple[str, ...], ...] = (
    ("salvage", "--output"), ("recompress", "--codec", "zstd", "--output"), ("redact", "--output"),
    ("extract", "--output"), ("rebuild-index", "--output"), ("bundle", "--output"), ("scrub", "--once", "--state"),
)  # fmt: skip


@pytest.fixture(scope="module")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The partition directories of one node, each of a segment."""
    made = node(tmp_path_factory.mktemp("many") / "node-1", COUNTS[-1], 1)
    return sorted(path for path in made.iterdir() if path.is_dir())


def calls_of(words: Sequence[str | Path], monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of calls and returns that Python makes while a command runs."""
    count = 0
    code: object = None

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    monkeypatch.setattr(sys, "argv", ["kafkalog", *map(str, words)])
    sys.setprofile(see)
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.setprofile(None)
    assert code in (None, 0, 1, 3), words
    return count


@pytest.mark.slow
@pytest.mark.parametrize("verb", [*READING, *WRITING], ids=lambda verb: verb[0])
def test_the_work_grows_with_the_number_of_paths(
    verb: tuple[str, ...], partitions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for count in (1, *COUNTS):  # the first run imports modules
        suffix = ".tar.zst" if verb[0] == "bundle" else ""
        output = [tmp_path / f"{count}{suffix}"] if verb in WRITING else []
        found.append(calls_of([*verb, *output, *partitions[:count], "--quiet"], monkeypatch))
    _, few, more, most = found
    assert most - more < 1.05 * (more - few), found
