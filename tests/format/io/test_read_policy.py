"""Reading beside a broker: the bytes are the same, the rate is kept, and what was not in memory is let go."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from format.io.session import Description, Session
from format.io.source import FileSource

CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "00000000000000000000.log"
    made.write_bytes(CONTENT)
    return made


class Clock:
    """Time that passes only in sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def test_a_rate_is_kept_over_all_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    path = Session(Description(max_bytes_per_s=len(CONTENT) // 4)).path(path)
    with FileSource(path) as one, FileSource(path) as other:
        assert one.read_at(0, len(CONTENT)) == CONTENT
        assert other.read_at(5, 1000) == CONTENT[5:1005]
    seconds = 4 * (len(CONTENT) + 1000) / len(CONTENT)
    assert clock.now - 100 == pytest.approx(seconds)
    assert max(clock.sleeps) <= 1 / 16 + 0.01, "it reads in bursts"


def test_the_rate_is_reached_however_long_each_chunk_is_processed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with FileSource(Session(Description(max_bytes_per_s=len(CONTENT))).path(path)) as source:
        for _chunk in range(20):
            source.read_at(0, len(CONTENT))
            clock.now += 0.9
    assert clock.now - 100 == pytest.approx(20 + 0.9)


def test_a_long_pause_is_made_up_for_by_one_second_at_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with FileSource(Session(Description(max_bytes_per_s=len(CONTENT))).path(path)) as source:
        clock.now += 3600
        before = clock.now
        for _second in range(5):
            source.read_at(0, len(CONTENT))
    assert clock.now - before == pytest.approx(4)


def test_what_was_in_memory_stays_and_the_rest_goes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = range(300_000, 700_000)
    let_go: list[range] = []

    def preadv(fd: int, buffers: list[bytearray], position: int, flags: int) -> int:
        assert flags == os.RWF_NOWAIT
        if position not in in_memory:
            raise BlockingIOError(11, "not at once")
        count = min(len(buffers[0]), in_memory.stop - position)
        buffers[0][:count] = CONTENT[position : position + count]
        return count

    def fadvise(fd: int, start: int, length: int, advice: int) -> None:
        if advice == os.POSIX_FADV_DONTNEED:
            let_go.append(range(start, start + length))

    monkeypatch.setattr(os, "preadv", preadv)
    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    with FileSource(Session(Description(spares_cache=True)).path(path)) as source:
        assert source.read_at(100, len(CONTENT)) == CONTENT[100:]
    covered = {position // 4096 for each in let_go for position in each[::4096]}
    assert covered >= set(range(300_000 // 4096)) | set(range(700_000 // 4096 + 1, len(CONTENT) // 4096))
    slice_bytes = 128 * 1024 + 4096
    assert not covered & set(range((300_000 + slice_bytes) // 4096, 700_000 // 4096))


def test_the_bytes_are_the_same_on_this_system(path: Path) -> None:
    with FileSource(Session(Description(spares_cache=True)).path(path)) as source:
        assert source.read_at(0, len(CONTENT)) == CONTENT
        assert source.read_at(len(CONTENT) - 7, 100) == CONTENT[-7:]
        assert source.read_at(len(CONTENT), 1) == b""
