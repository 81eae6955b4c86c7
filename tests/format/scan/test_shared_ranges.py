"""Ranges of a log in processes of their own: what a worker does with a range whose offsets do not rise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS
from format.log.batch_chunk import BatchRange
from format.scan.processes import RangeTask, sound_chunks
from tests.building import batch, write_segment


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
@pytest.mark.parametrize(
    ("bases", "after_offset", "is_sound"),
    [
        ((10, 13, 16), None, True),
        ((10, 13, 16), 9, True),
        ((10, 13, 16), 7, True),
        ((10, 13, 16), 10, False),
        ((10, 13, 16), 12, False),
        ((10, 12, 16), 9, False),
        ((10, 13, 10), None, False),
        ((10, 14, 20), 9, True),
        ((0, 3), None, True),
        ((0, 3), 0, False),
        ((), 9, True),
    ],
)
def test_offsets_rise_from_range_to_range_and_in_each(
    bases: tuple[int, ...], after_offset: int | None, is_sound: bool, chunk_bytes: int, tmp_path: Path
) -> None:
    """The batches have three records each, and end two offsets after their base offsets."""
    log = write_segment(tmp_path / "t-0", 0, [batch(base) for base in bases])
    task = RangeTask[Any](0, log, BatchRange(after_offset=after_offset), None)
    with FileSource(log) as source:
        chunks = sound_chunks(source, task, DEFAULT_LIMITS, chunk_bytes)
    assert (chunks is not None) is is_sound
    if chunks is not None:
        assert [int(base) for chunk in chunks for base in chunk.table.base_offset] == list(bases)


@pytest.mark.parametrize(
    ("content", "is_left"), [(batch(0), True), (batch(0)[:-1] + b"!", False), (batch(0) + b"torn", False)]
)
def test_a_damaged_range_and_one_that_is_left_are_not_sound(content: bytes, is_left: bool, tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [content])
    task = RangeTask[Any](0, log, BatchRange(), None, is_left=is_left)
    with FileSource(log) as source:
        assert sound_chunks(source, task, DEFAULT_LIMITS, 1 << 20) is None
