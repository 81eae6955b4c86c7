"""Waiting for changes, by looking again and again, and what ends the wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from format.scan.follow import FollowedChanges, Stopping


def look_at(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a"
    file.write_bytes(b"1")
    return file


def test_what_changes_is_reported_once(file: Path) -> None:
    found = FollowedChanges()
    found.add(file.parent, lambda: look_at(file))
    assert found.wait(0.15) == set()
    file.write_bytes(b"12")
    assert found.wait(60) == {file.parent}
    found.seen(file.parent)
    assert found.wait(0.15) == set()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_a_wait_ends_when_it_is_asked_to(file: Path, pipe: tuple[int, int]) -> None:
    asked: list[bool] = []

    def ask() -> None:
        asked.append(True)
        os.write(pipe[1], b"x")

    found = FollowedChanges(Stopping(lambda: bool(asked), wake_fd=pipe[0]))
    found.add(file.parent, lambda: look_at(file))
    timer = threading.Timer(0.05, ask)
    timer.start()
    assert found.wait(120) == set()
    assert found.is_over()
    timer.join()


def test_a_wait_ends_when_the_reader_of_the_output_goes(file: Path, pipe: tuple[int, int]) -> None:
    found = FollowedChanges(Stopping(lambda: False, reader_fd=pipe[1]))
    found.add(file.parent, lambda: look_at(file))
    assert not found.is_over()
    os.close(pipe[0])
    assert found.wait(120) == set()
    assert found.is_over()


def test_many_directories_take_little_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def slow_look() -> int:
        nonlocal looks
        looks += 1
        time.sleep(0.01)
        return 0

    found = FollowedChanges()
    for number in range(10):
        found.add(file.parent / str(number), slow_look)
    looks = 0
    found.wait(1)
    assert looks <= 20  # each round takes 0.1 s, so that the next one comes after 5 s
