"""Batches that stand in a file a second time are known again, wherever chunks and ranges are cut."""

from __future__ import annotations

import pytest

from format.log.batch_chunk import BatchRange
from format.log.walker import batch_chunks
from tests.building import batch, batches
from tests.sources import BytesSource

PARTS = batches(60)
SIZE = len(PARTS[0])


def repeated(log: bytes, **more: object) -> list[int]:
    """The positions of the batches that are marked as repeated."""
    found: list[int] = []
    for chunk in batch_chunks(BytesSource(log), **more):  # type: ignore[arg-type]
        if chunk.repeated is not None:
            found += chunk.table.position[chunk.repeated].tolist()
    return found


@pytest.mark.parametrize("chunk_bytes", [150, 1000, 1 << 20])
def test_a_copy_is_known_again(chunk_bytes: int) -> None:
    log = b"".join(PARTS)
    assert repeated(log, chunk_bytes=chunk_bytes) == []
    assert repeated(log * 3, chunk_bytes=chunk_bytes) == [SIZE * number for number in range(60, 180)]


@pytest.mark.parametrize("chunk_bytes", [150, 1 << 20])
def test_only_what_is_the_same_is_repeated(chunk_bytes: int) -> None:
    other_value = batch(30, [b"value-0", b"value-1", b"value-X"])
    other_offset = (31).to_bytes(8, "big") + PARTS[10][8:]
    log = b"".join([*PARTS[:20], other_value, other_offset, PARTS[10], PARTS[10], *PARTS[20:]])
    assert repeated(log, chunk_bytes=chunk_bytes) == [22 * SIZE, 23 * SIZE]


def test_a_damaged_batch_is_not_repeated_by_its_sound_copy() -> None:
    damaged = PARTS[7][:-1] + b"\xff"
    log = b"".join([*PARTS[:7], damaged, *PARTS[8:20]])
    copies = [20 * SIZE + SIZE * number for number in range(20) if number != 7]
    assert repeated(log + b"".join(PARTS[:20])) == copies


def test_batches_behind_damage_are_repeated_too() -> None:
    log = b"".join([*PARTS[:5], b"garbage", *PARTS[5:9]])
    assert repeated(log + b"".join(PARTS[3:7])) == [9 * SIZE + 7 + SIZE * number for number in range(4)]


def test_a_range_knows_the_batches_before_it() -> None:
    log = b"".join([*PARTS[:10], *PARTS[4:8]])
    start = 11 * SIZE
    # Offsets that rise here: where ranges are cut shows that they go back.
    assert repeated(log, batch_range=BatchRange(start, after_offset=14, read_from=0)) == []
    from_10 = BatchRange(10 * SIZE, after_offset=29, read_from=0)
    assert repeated(log, batch_range=from_10) == [SIZE * number for number in range(10, 14)]
    from_10 = BatchRange(10 * SIZE, after_offset=29, read_from=6 * SIZE)
    assert repeated(log, batch_range=from_10) == [12 * SIZE, 13 * SIZE]
    assert repeated(log, batch_range=BatchRange(10 * SIZE, after_offset=29)) == []
