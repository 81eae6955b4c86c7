"""Waiting for changes: by inotify, by looking again and again, and what ends the wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from format.scan import follow
from format.scan.follow import Changes, Stopping, is_silent


def look_at(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a"
    file.write_bytes(b"1")
    return file


@pytest.mark.parametrize("may_watch", [True, False])
def test_what_changes_is_reported_once(file: Path, may_watch: bool) -> None:
    with Changes(may_watch=may_watch) as found:
        found.add(file.parent, lambda: look_at(file))
        assert found.wait(0.15) == set()
        file.write_bytes(b"12")
        assert found.wait(60) == {file.parent}
        found.seen(file.parent)
        assert found.wait(0.15) == set()


def test_inotify_is_used_where_it_is_there(file: Path) -> None:
    with Changes() as found:
        found.add(file.parent, lambda: look_at(file))
        assert found.polled_count() == 0
        file.write_bytes(b"12")
        started = time.process_time()
        assert found.wait(60) == {file.parent}
        assert time.process_time() - started < 0.05


def test_a_directory_of_which_inotify_tells_nothing_is_polled(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inotify_simple import flags

    monkeypatch.setattr(follow, "_mask", lambda: int(flags.UNMOUNT | flags.ATTRIB))
    monkeypatch.setattr(follow, "SWEEP_S", 0.01)
    with Changes() as found:
        found.add(file.parent, lambda: look_at(file))
        for size in (2, 3):
            assert found.polled_count() == 0
            with file.open("ab") as appended:
                appended.write(b"x")
            assert found.wait(60) == {file.parent}, size
            found.seen(file.parent)
        assert found.polled_count() == 1


def test_no_more_watches(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_mask", lambda: 0)  # which inotify refuses, as it does when there are too many
    with Changes() as found:
        found.add(file.parent, lambda: look_at(file))
        assert found.polled_count() == 1
        file.write_bytes(b"12")
        assert found.wait(60) == {file.parent}


def test_without_the_package(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "inotify_simple", None)
    with Changes() as found:
        found.add(file.parent, lambda: look_at(file))
        file.write_bytes(b"12")
        assert found.wait(60) == {file.parent}


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.mark.parametrize("may_watch", [True, False])
def test_a_wait_ends_when_it_is_asked_to(file: Path, pipe: tuple[int, int], may_watch: bool) -> None:
    asked: list[bool] = []

    def ask() -> None:
        asked.append(True)
        os.write(pipe[1], b"x")

    with Changes(Stopping(lambda: bool(asked), wake_fd=pipe[0]), may_watch=may_watch) as found:
        found.add(file.parent, lambda: look_at(file))
        timer = threading.Timer(0.05, ask)
        timer.start()
        assert found.wait(120) == set()
        assert found.is_over()
        timer.join()


def test_a_wait_ends_when_the_reader_of_the_output_goes(file: Path, pipe: tuple[int, int]) -> None:
    with Changes(Stopping(lambda: False, reader_fd=pipe[1])) as found:
        found.add(file.parent, lambda: look_at(file))
        assert not found.is_over()
        os.close(pipe[0])
        assert found.wait(120) == set()
        assert found.is_over()


def test_file_systems_of_other_hosts_are_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "30 20 0:5 / /net\\040data rw,relatime shared:1 - nfs4 host:/x rw\n"
        "31 20 0:6 / /fuse rw - fuse.sshfs host: rw\n"
        "32 30 8:2 / /net\\040data/local rw - xfs /dev/sdb rw\n"
    )
    monkeypatch.setattr(follow, "_MOUNTS", mounts)
    assert is_silent(Path("/net data/kafka"))
    assert is_silent(Path("/fuse"))
    assert not is_silent(Path("/net data/local/kafka"))
    assert not is_silent(Path("/var/kafka"))
    monkeypatch.setattr(follow, "_MOUNTS", tmp_path / "none")
    assert not is_silent(Path("/net data/kafka"))


def test_many_directories_take_little_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def slow_look() -> int:
        nonlocal looks
        looks += 1
        time.sleep(0.01)
        return 0

    with Changes(may_watch=False) as found:
        for number in range(10):
            found.add(file.parent / str(number), slow_look)
        looks = 0
        found.wait(1)
        assert looks <= 20  # each round takes 0.1 s, so that the next one comes after 20 s
