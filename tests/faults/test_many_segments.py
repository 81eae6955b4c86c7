"""Partitions of many segments: the work grows with their number, not with its square."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kafkalog_cli.main import main
from tests.building import batch, write_segment


def calls_of(words: list[str]) -> int:
    """How many functions a run calls, those of C included."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        assert main(words) in (0, 1)  # grep finds nothing
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("words", [["dump"], ["dump", "--records"], ["grep", "--count", "v"], ["ls"], ["verify"]])
def test_twice_as_many_segments_are_twice_the_work(tmp_path: Path, words: list[str]) -> None:
    calls = []
    for count in (1, 30, 60, 120):  # the first run imports modules
        partition = tmp_path / str(count) / "t-0"
        for number in range(count):
            log = write_segment(partition, 3 * number, [batch(3 * number)])
            for suffix in (".index", ".timeindex"):
                log.with_suffix(suffix).touch()
        calls.append(calls_of([*words, "--output", os.devnull, "--quiet", str(partition)]))
    first, second = calls[2] - calls[1], calls[3] - calls[2]
    assert second < 2.2 * first
