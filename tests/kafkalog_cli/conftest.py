"""A small partition, sound or damaged, that the tests of the writing commands start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.building import batches, write_segment


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """``t-0`` with one segment of four batches."""
    write_segment(tmp_path / "src" / "t-0", 0, batches(4, values=9))
    return tmp_path / "src" / "t-0"


@pytest.fixture
def damaged(partition: Path) -> Path:
    """The same with a bit of its second batch flipped."""
    log = partition / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2 - 1] ^= 1
    log.write_bytes(content)
    return partition
