"""A file holds the bytes that were given to its writer, and their digest, whether a thread writes them or not."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from format.io.file_writer import DigestingWriter


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def no_thread_is_left() -> bool:
    return not [each for each in threading.enumerate() if each.name.startswith("writer")]


def write_all(writer: DigestingWriter, pieces: list[bytes]) -> None:
    for piece in pieces:
        writer.write(memoryview(piece))
    writer.wait()


@pytest.mark.parametrize("in_thread", [False, True])
def test_pieces_of_every_size_in_order(in_thread: bool, fd: int) -> None:
    rng = random.Random(4)
    pieces = [rng.randbytes(size) for size in (1, 300_000, 5, 0, 131_072, 131_071, 2_000_000, 400_000, 7, 200_000)]
    writer = DigestingWriter(fd, in_thread=in_thread)
    write_all(writer, pieces)
    content = b"".join(pieces)
    assert os.pread(fd, 2 * len(content), 0) == content
    writer.begin_flush()
    writer.flush()
    assert writer.hexdigest() == hashlib.sha256(content).hexdigest()
    writer.close()
    assert no_thread_is_left()


def test_no_more_than_two_pieces_wait(fd: int) -> None:
    writer = DigestingWriter(fd, in_thread=True)
    content = memoryview(bytes(4 << 20))
    for _ in range(6):
        writer.write(content)
        assert len(writer._waiting) <= 2
    writer.close()
    assert no_thread_is_left()


@pytest.mark.parametrize("in_thread", [False, True])
def test_what_the_disk_does_not_take_is_an_error(in_thread: bool, fd: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[0][1]))
    writer = DigestingWriter(fd, in_thread=in_thread)
    try:
        with pytest.raises(OSError, match="File too large") as error:
            write_all(writer, [bytes(300_000)] * 8)
        assert error.value.errno == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
        writer.close()


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_failed_flush_is_an_error(in_thread: bool, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    writer = DigestingWriter(fd, in_thread=in_thread)
    writer.write(memoryview(bytes(200_000)))
    writer.wait()
    writer.begin_flush()
    with pytest.raises(OSError, match="Input/output error"):
        writer.flush()
    writer.close()
