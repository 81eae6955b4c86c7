"""A source over a failing disk: blocks that cannot be read are zeros, and all others are what they were."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from format.errors import FileChanged, UnreadableFile
from format.io.source import FileSource, PatchedSource
from format.location import Location

BLOCK = 4096


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FileSource, bytes]:
    """A file of five blocks and a half whose second and fourth block fail, and what a reader should get."""
    content = random.Random(1).randbytes(5 * BLOCK + 2000)
    (tmp_path / "x.log").write_bytes(content)
    read, bad = FileSource.read_at, (1, 3)

    def read_at(self: FileSource, position: int, length: int) -> bytes:
        if any(position < (block + 1) * BLOCK and block * BLOCK < position + length for block in bad):
            raise UnreadableFile("Input/output error", Location(str(self.path)))
        return read(self, position, length)

    monkeypatch.setattr(FileSource, "read_at", read_at)
    expected = bytearray(content)
    for block in bad:
        expected[block * BLOCK : (block + 1) * BLOCK] = bytes(BLOCK)
    return FileSource(tmp_path / "x.log"), bytes(expected)


def test_bad_blocks_are_zeros(failing: tuple[FileSource, bytes]) -> None:
    source, expected = PatchedSource(failing[0]), failing[1]
    chance = random.Random(2)
    for _ in range(200):
        position, length = chance.randrange(len(expected) + 100), chance.choice((0, 1, 61, BLOCK, 3 * BLOCK))
        assert source.read_at(position, length) == expected[position : position + length]
    assert source.unreadable == {1 * BLOCK, 3 * BLOCK}
    source.close()


def test_a_file_that_changed_is_no_bad_disk(failing: tuple[FileSource, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def read_at(self: FileSource, position: int, length: int) -> bytes:
        raise FileChanged("shrank", Location(str(self.path)))

    monkeypatch.setattr(FileSource, "read_at", read_at)
    with PatchedSource(failing[0])._file, pytest.raises(FileChanged):
        PatchedSource(failing[0]).read_at(0, 10)
