"""Where reading starts: an entry of an index is only a hint, which the bytes at its position must bear out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from format.io.source import FileSource
from format.node.partition import Segment
from format.scan.selection import Selection, is_batch_start, start_position
from tests.building import batch, batches, wrapper, write_segment


@pytest.mark.parametrize(
    ("content", "at_most_offset", "is_start"),
    [
        (batch(5), 5, True),
        (batch(5), 4, False),
        (batch(5), 6, True),
        (batch(0), 0, True),
        (batch(-1), 5, False),
        (batch(5)[:-1], 5, False),
        (batch(5) + b"x", 5, True),
        (batch(5)[:16] + b"\x03" + batch(5)[17:], 5, False),
        (wrapper(0, 5), 7, True),
        (wrapper(1, 5), 7, True),
        (wrapper(1, 5)[:25], 7, False),
        (struct.pack(">qi", 5, 13) + bytes(100), 7, False),
        (struct.pack(">qi", 5, 14) + bytes(100), 7, True),
        (struct.pack(">qi", 5, 14) + bytes(14), 7, True),
        (b"", 7, False),
    ],
)
def test_a_plausible_batch_starts_at_a_position(
    content: bytes, at_most_offset: int, is_start: bool, tmp_path: Path
) -> None:
    (tmp_path / "0.log").write_bytes(b"before" + content)
    with FileSource(tmp_path / "0.log") as source:
        assert is_batch_start(source, 6, at_most_offset=at_most_offset) is is_start


@pytest.mark.parametrize(
    ("from_offset", "number", "is_used"),
    [(7, 2, True), (6, 2, True), (5, 2, False), (8, 3, False), (9, 3, True), (None, 2, False)],
)
def test_an_entry_that_points_past_the_wanted_offset_is_ignored(
    from_offset: int | None, number: int, is_used: bool, tmp_path: Path
) -> None:
    """The entry says that offset 5 is before the batch of a number, each of which has three records."""
    content = batches(5)
    position = sum(map(len, content[:number]))
    log = write_segment(tmp_path / "t-0", 0, content)
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 5, position))
    segment = Segment(log.parent, 0, files={".log": log, ".index": index})
    with FileSource(log) as source:
        assert start_position(segment, source, Selection(from_offset=from_offset)) == (position if is_used else 0)


def test_without_an_index_or_an_entry_in_it_reading_starts_at_the_beginning(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(5))
    index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
    first_ms = 1_714_564_800_000
    index.write_bytes(struct.pack(">ii", 5, len(batches(2)[0]) * 2))
    time_index.write_bytes(struct.pack(">qi", first_ms, 6))
    starts = []
    for files in ({}, {".index": index}, {".index": index, ".timeindex": time_index}):
        segment = Segment(log.parent, 0, files={".log": log, **files})
        with FileSource(log) as source:
            starts += [
                start_position(segment, source, Selection(from_timestamp=at)) for at in (first_ms - 1, first_ms + 1)
            ]
            starts.append(start_position(segment, source, Selection(from_offset=4)))
    position = len(batches(2)[0]) * 2
    assert starts == [0, 0, 0, 0, 0, 0, 0, position, 0]
