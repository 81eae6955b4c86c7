"""The live files of a partition's segments as a table, with the sizes of the logs: objects are made on request."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import msgspec

from format.kernel.directories import group_files
from format.kernel.tables import (
    F_BASE_OFFSET,
    F_LOG_BYTES,
    F_SUFFIXES,
    OTHER_COLUMNS,
    SEGMENT_COLUMNS,
    SEGMENT_SUFFIXES,
)
from format.node.segment import NamedFiles, Segment, segment_file_name

_WIDTH = len(SEGMENT_COLUMNS)
_LOG_BIT = 1 << SEGMENT_SUFFIXES.index(".log")
_PLAIN_BITS = _LOG_BIT | 1 << SEGMENT_SUFFIXES.index(".index") | 1 << SEGMENT_SUFFIXES.index(".timeindex")
_SNAPSHOT_BIT = 1 << SEGMENT_SUFFIXES.index(".snapshot")


class LiveFiles(msgspec.Struct, frozen=True):
    """Rows of SEGMENT_COLUMNS by base offset, one after the other: segments that have a log."""

    columns: array[int]
    have_indexes: bool = True  # whether each has an offset index and a time index

    def __len__(self) -> int:
        return len(self.columns) // _WIDTH

    @property
    def table(self) -> memoryview:
        """The rows as the kernel reads them; there must be one."""
        return memoryview(self.columns).cast("B").cast("q", (len(self), _WIDTH))

    def log_size_bytes(self, start: int = 0, end: int | None = None) -> int:
        """The bytes of all logs together, or of those from ``start`` to before ``end``."""
        return sum(self.columns[F_LOG_BYTES::_WIDTH][start:end])

    def base_offset(self, number: int) -> int:
        """The base offset of a segment."""
        return self.columns[_WIDTH * number + F_BASE_OFFSET]

    def log_bytes(self, number: int) -> int:
        """The size of a segment's log."""
        return self.columns[_WIDTH * number + F_LOG_BYTES]

    def segment(self, directory: Path, number: int) -> Segment:
        """A segment as an object."""
        return _segment(directory, self.base_offset(number), self.columns[_WIDTH * number + F_SUFFIXES])

    def segments(self, directory: Path) -> list[Segment]:
        """All segments as objects."""
        return [self.segment(directory, number) for number in range(len(self))]


class ListedFiles(msgspec.Struct, frozen=True):
    """What a directory holds: the segments, files without a log by their base offset, and other names with sizes.

    ``snapshots`` are the base offsets of all producer snapshots. The size of what is no regular file is -1.
    """

    live: LiveFiles
    without_log: tuple[Segment, ...]
    snapshots: tuple[int, ...]
    others: tuple[tuple[str, int], ...]
    size_bytes: int


def listed_files(directory: Path, directory_fd: int, names: list[str]) -> ListedFiles | None:
    """The files of these names, which are sorted, in an open directory; None if the size of one cannot be read."""
    if not names:
        return ListedFiles(LiveFiles(array("q")), (), (), (), 0)
    count = len(names)
    room = array("q", bytes(8 * (_WIDTH + len(OTHER_COLUMNS)) * count))
    split_at = _WIDTH * count
    segments = memoryview(room)[:split_at].cast("B").cast("q", (count, _WIDTH))
    others = memoryview(room)[split_at:].cast("B").cast("q", (count, len(OTHER_COLUMNS)))
    counts = array("q", bytes(8 * 4))
    found = group_files(directory_fd, os.fsencode("\0".join(names) + "\0"), segments, others, memoryview(counts))
    if found < 0:
        return None
    other_count, size_bytes, any_bits, common_bits = counts
    live = LiveFiles(room[: _WIDTH * found], common_bits & _PLAIN_BITS == _PLAIN_BITS)
    pairs = room[split_at : split_at + 2 * other_count].tolist()
    other_names = tuple((names[number], size) for number, size in zip(pairs[::2], pairs[1::2], strict=True))
    if common_bits & _LOG_BIT and not any_bits & _SNAPSHOT_BIT:
        return ListedFiles(live, (), (), other_names, size_bytes)
    kept = array("q")
    without_log: list[Segment] = []
    snapshots: list[int] = []
    for base_offset, suffixes, log_bytes in _rows(live):
        if suffixes & _SNAPSHOT_BIT:
            snapshots.append(base_offset)
        if suffixes & _LOG_BIT:
            kept.extend((base_offset, suffixes, log_bytes))
        elif suffixes != _SNAPSHOT_BIT:
            without_log.append(_segment(directory, base_offset, suffixes))
    have_indexes = all(bits & _PLAIN_BITS == _PLAIN_BITS for bits in kept[F_SUFFIXES::_WIDTH])
    return ListedFiles(LiveFiles(kept, have_indexes), tuple(without_log), tuple(snapshots), other_names, size_bytes)


def _rows(live: LiveFiles) -> Iterator[tuple[int, ...]]:
    return zip(*(live.columns[column::_WIDTH] for column in range(_WIDTH)), strict=True)


def _segment(directory: Path, base_offset: int, suffixes: int) -> Segment:
    names = {
        suffix: segment_file_name(base_offset, suffix)
        for bit, suffix in enumerate(SEGMENT_SUFFIXES)
        if suffixes >> bit & 1
    }
    return Segment(directory, base_offset, None, NamedFiles(directory, names))
