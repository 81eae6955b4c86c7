"""CRCs of parts of a file from those up to every few kilobytes."""

from __future__ import annotations

from random import Random

import pytest

from format.codecs.checksums import crc32_of, crc32c_of
from format.log.damaged_batches import CrcIndex
from tests.sources import BytesSource

CONTENT = Random(5).randbytes(700_001)


@pytest.mark.parametrize("is_v2", [False, True])
def test_any_part_has_its_crc(is_v2: bool) -> None:
    crc_of = crc32c_of if is_v2 else crc32_of
    source = BytesSource(CONTENT)
    random = Random(6)
    for first in (0, 3, 4096, 5000):
        index = CrcIndex(source, len(CONTENT), is_v2=is_v2)
        assert index.crc(first, len(CONTENT)) == crc_of(CONTENT[first:])
        for _ in range(100):
            start, stop = sorted(random.randrange(len(CONTENT) + 1) for _ in range(2))
            assert index.crc(start, stop) == crc_of(CONTENT[start:stop]), (start, stop)


def test_a_part_past_the_end_has_none() -> None:
    index = CrcIndex(BytesSource(CONTENT), len(CONTENT), is_v2=True)
    for start in (0, len(CONTENT) - 10, len(CONTENT) - 100_000):
        assert index.crc(start, len(CONTENT) + 1) is None


def test_parts_of_megabytes_cost_kilobytes() -> None:
    source = BytesSource(CONTENT)
    index = CrcIndex(source, len(CONTENT), is_v2=True)
    index.crc(0, len(CONTENT))
    read = source.bytes_read
    for start in range(100):
        index.crc(start, len(CONTENT) - start)
    assert source.bytes_read - read < 100 * 10_000


@pytest.mark.parametrize("order", [1, -1])
def test_parts_far_apart_cost_nothing_of_what_is_between_them(order: int) -> None:
    content = bytes(40 * 1024 * 1024)
    source = BytesSource(content)
    index = CrcIndex(source, len(content), is_v2=False)
    for start in (0, 10**7, 2 * 10**7, 3 * 10**7)[::order]:
        assert index.crc(start, start + 50_000) == crc32_of(bytes(50_000))
    assert source.bytes_read < 8 * 1024 * 1024
    assert index.crc(5, len(content) - 5) == crc32_of(bytes(len(content) - 10))
    assert index.crc(10**7 + 5, len(content) - 5) == crc32_of(bytes(len(content) - 10 - 10**7))
    assert source.bytes_read < 2.2 * len(content)
