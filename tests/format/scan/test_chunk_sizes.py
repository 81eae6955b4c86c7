"""A batch over the limit is left out wherever it lies, and however much a scan reads at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.log.batch_chunk import WHOLE_LOG
from format.scan.protocol import Needs
from tests.building import batch, batches, write_segment

LARGE = batch(30, [b"x" * 150_000])
LIMITS = Limits(max_decompressed_bytes=100_000)


def read(path: Path, needs: Needs) -> tuple[list[int], int]:
    """The offsets of the batches that are read, and how often something is in the way."""
    with FileSource(path) as source:
        chunks = [*needs.chunks(source, WHOLE_LOG)]
    offsets = [offset for each in chunks for offset in each.table.base_offset.tolist()]
    return offsets, sum(each.damage is not None for each in chunks)


@pytest.mark.parametrize("chunk_bytes", [None, 10_000, MIB, 8 * MIB])
@pytest.mark.parametrize("before", [0, 1, 10])
def test_a_batch_over_the_limit(chunk_bytes: int | None, before: int, tmp_path: Path) -> None:
    path = write_segment(tmp_path / "orders-0", 0, [*batches(before), LARGE, *batches(5, 31)])
    offsets = [*range(0, 3 * before, 3), 30, *range(31, 46, 3)]
    assert read(path, Needs(chunk_bytes=chunk_bytes)) == (offsets, 0)
    offsets.remove(30)
    assert read(path, Needs(limits=LIMITS, chunk_bytes=chunk_bytes)) == (offsets, 1)


def test_ranges_are_as_long_as_chunks() -> None:
    assert Needs(limits=LIMITS, chunk_bytes=MIB).range_bytes == LIMITS.max_decompressed_bytes
    assert Needs(limits=LIMITS, chunk_bytes=10_000).range_bytes == 10_000
    assert Needs(limits=DEFAULT_LIMITS, chunk_bytes=MIB).range_bytes == MIB
