"""A log with a hole of a terabyte: what is stored in it is read, the hole is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from format.findings import Finding
from format.io.source import FileSource
from format.node.partition import read_partition
from format.verbs.find.find import find_offset
from format.verbs.verify.verify import Verification, verify
from tests.building import batch, batches, write_segment
from tests.dumping import dump

TIB = 1 << 40
#: A batch that seems to start in random bytes may claim a part of a hole, up to the limit of a batch.
MOST_READ = 1 << 30
RANDOM = np.random.default_rng(1)


@pytest.fixture
def count_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes that were read so far; a test is cut short where they are too many."""
    count = [0]
    read = FileSource._pread

    def counting(self: FileSource, position: int, length: int) -> bytes:
        count[0] += length
        assert count[0] < MOST_READ, f"a hole is read: {self.path} at {position}"
        return read(self, position, length)

    monkeypatch.setattr(FileSource, "_pread", counting)
    return count


def large(base_offset: int) -> bytes:
    """A batch whose CRC is computed by the index of CRCs."""
    return batch(base_offset, [RANDOM.bytes(40_000)], codec=0)


def sparse(folder: Path, *parts: tuple[int, bytes], size_bytes: int = 0) -> Path:
    """A partition whose log holds these parts at these positions, and nothing but holes between."""
    log = write_segment(folder / "t-0", 0, batches(20))
    with log.open("r+b") as file:
        for position, part in parts:
            file.seek(position)
            file.write(part)
        file.truncate(max(size_bytes, file.tell()))
    if log.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("the file system stores holes")
    return log.parent


def offsets_of(partition: Path) -> list[int]:
    blocks = [block for block in dump(partition, records=True) if not isinstance(block, Finding)]
    return [row[2] for block in blocks for row in block.rows]


def test_a_hole_up_to_the_end(tmp_path: Path, count_read: list[int]) -> None:
    partition = sparse(tmp_path, size_bytes=TIB)
    assert [each.code for each in verify(partition, Verification()) if each.code != "index-missing"] == ["tail-zeros"]
    assert offsets_of(partition) == [*range(60)]
    assert find_offset(read_partition(partition), 30).steps
    assert count_read[0] > 0


@pytest.mark.usefixtures("count_read")
@pytest.mark.parametrize("behind", [lambda: b"".join(batches(20, 60)), lambda: large(60) + large(61)])
def test_a_hole_in_the_middle(tmp_path: Path, behind: Callable[[], bytes]) -> None:
    partition = sparse(tmp_path, (TIB, behind()))
    found = [each for each in verify(partition, Verification()) if each.code != "index-missing"]
    assert [each.code for each in found] == ["log-framing-broken"]
    assert found[0].location.length == TIB - len(b"".join(batches(20)))
    offsets = offsets_of(partition)
    assert offsets[:60] == [*range(60)]
    assert offsets[60:62] == [60, 61]


@pytest.mark.usefixtures("count_read")
def test_damaged_batches_on_both_sides_of_holes(tmp_path: Path) -> None:
    torn = large(60)[:-1] + b"x"
    partition = sparse(tmp_path, (30, b"x"), (TIB // 2, torn + large(61)), (TIB, b"".join(batches(20, 70))))
    assert [each for each in offsets_of(partition) if each > 2] == [*range(3, 60), 61, *range(70, 130)]
