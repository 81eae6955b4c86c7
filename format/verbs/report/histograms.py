"""Sums of batches by time, by offset and by size, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.log.batch_table import BatchTable, Int64Column

_SECOND_MS = 1_000
#: The most pairs of topic and time that are kept; then the intervals of time are doubled.
_MOST_TIMES = 24_000
#: How many more numbers than values may be counted one by one.
_CLOSE = 1_000
_MOST_RELATIVE = layout.MAX_RELATIVE_OFFSET
#: The number of ranges of offsets by which the bytes of one partition are added up.
OFFSET_RANGES = 128
#: The number of classes of batch sizes, which are powers of two.
SIZE_CLASSES = 40


class BytesByTime(msgspec.Struct):
    """Bytes and records by topic and interval of the batches' largest timestamps.

    Only intervals with batches are kept, so that a few impossible timestamps cost nothing.
    """

    width_ms: int = _SECOND_MS
    sums: dict[tuple[int, int], list[int]] = msgspec.field(default_factory=dict)  # topic number, time -> bytes, records

    def add(self, topic: int, table: BatchTable) -> None:
        """Add the batches of one topic."""
        times = table.max_timestamp
        known = times >= 0
        sizes, counts = table.size_bytes, np.maximum(table.record_count, 0)
        if not known.all():
            times, sizes, counts = times[known], sizes[known], counts[known]
        if not len(times):
            return
        numbers, places = _numbered(times // self.width_ms)
        all_bytes = np.bincount(places, weights=sizes)
        all_records = np.bincount(places, weights=counts)
        for number, size_bytes, records in zip(numbers, all_bytes.tolist(), all_records.tolist(), strict=True):
            if not size_bytes:
                continue
            found = self.sums.setdefault((topic, number), [0, 0])
            found[0] += int(size_bytes)
            found[1] += int(records)
        while len(self.sums) > _MOST_TIMES:
            self.width_ms *= 2
            before, self.sums = self.sums, {}
            for (topic, number), (size_bytes, records) in before.items():
                found = self.sums.setdefault((topic, number // 2), [0, 0])
                found[0] += size_bytes
                found[1] += records


def _numbered(values: Int64Column) -> tuple[Sequence[int], Int64Column]:
    """Numbers in rising order with all values among them, and the place of each value there."""
    least = int(values.min())
    width = int(values.max()) - least + 1
    if width <= len(values) + _CLOSE:
        return range(least, least + width), values - least
    numbers, places = np.unique(values, return_inverse=True)  # it sorts, which takes longer
    return numbers.tolist(), places


class BytesByOffset(msgspec.Struct):
    """The bytes of one log by ranges of offsets; the ranges grow with the log."""

    start: int | None = None
    width: int = 1
    sums: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(OFFSET_RANGES, np.int64))

    def add(self, table: BatchTable, segment_base_offset: int) -> None:
        """Add the batches whose offsets their segment can hold, each spread evenly over its offsets."""
        offsets, sizes = table.base_offset, table.size_bytes
        most = segment_base_offset + _MOST_RELATIVE
        sound = (offsets >= segment_base_offset) & (offsets <= most)
        if self.start is not None:
            sound &= offsets >= self.start
        # The last offset of a batch with a wrong CRC may be any.
        deltas = np.where(table.crc_valid == 0, 0, np.clip(table.last_offset_delta, 0, None))
        if not sound.all():
            offsets, sizes, deltas = offsets[sound], sizes[sound], deltas[sound]
        if not len(offsets):
            return
        deltas = np.minimum(deltas, most - offsets)
        is_first = self.start is None
        if self.start is None:
            self.start = int(offsets.min())
        relative = offsets - self.start
        furthest = int((relative + deltas).max())
        if is_first:
            self.width = 1 << (furthest // OFFSET_RANGES).bit_length()
        while furthest >= self.width * OFFSET_RANGES:
            self.sums = np.concatenate((self.sums.reshape(-1, 2).sum(axis=1), np.zeros(OFFSET_RANGES // 2, np.int64)))
            self.width *= 2
        shift = self.width.bit_length() - 1  # the width is a power of two, and a shift is quicker
        places = relative >> shift
        counts = ((relative + deltas) >> shift) - places + 1
        if (counts > 1).any():
            relative, deltas, sizes = (np.repeat(each, counts) for each in (relative, deltas, sizes))
            first_rows = np.cumsum(counts) - counts
            places = np.repeat(places, counts) + np.arange(len(relative)) - np.repeat(first_rows, counts)
            sizes = _bytes_before(places + 1, shift, relative, deltas, sizes) - _bytes_before(
                places, shift, relative, deltas, sizes
            )
        self.sums += np.bincount(places, weights=sizes, minlength=OFFSET_RANGES).astype(np.int64)

    def ranges(self) -> list[tuple[int, int, int]]:
        """First offset, last offset and bytes of each range up to the last that has any."""
        if self.start is None:
            return []
        last = int(np.flatnonzero(self.sums)[-1]) if self.sums.any() else -1
        return [
            (self.start + number * self.width, self.start + (number + 1) * self.width - 1, int(self.sums[number]))
            for number in range(last + 1)
        ]


def _bytes_before(
    place: Int64Column, shift: int, relative: Int64Column, deltas: Int64Column, sizes: Int64Column
) -> Int64Column:
    """The part of each batch's bytes that lies on offsets before a range."""
    before: Int64Column = sizes * np.clip((place << shift) - relative, 0, deltas + 1) // (deltas + 1)
    return before


class BatchSizes(msgspec.Struct):
    """The number, bytes and records of batches by codec and power of two of their size."""

    sums: NDArray[np.int64] = msgspec.field(
        default_factory=lambda: np.zeros((3, len(layout.CODEC_BITS_NAMES) * SIZE_CLASSES), np.int64)
    )

    def add(self, table: BatchTable) -> None:
        """Add batches."""
        sizes: Int64Column = table.size_bytes
        powers = np.clip(np.frexp(sizes.astype(np.float64))[1] - 1, 0, SIZE_CLASSES - 1)
        cells = table.codec * SIZE_CLASSES + powers
        length = self.sums.shape[1]
        self.sums[0] += np.bincount(cells, minlength=length)
        self.sums[1] += np.bincount(cells, weights=sizes, minlength=length).astype(np.int64)
        self.sums[2] += np.bincount(cells, weights=np.maximum(table.record_count, 0), minlength=length).astype(np.int64)

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Codec, least size, batches, bytes and records of each class that has any."""
        found = []
        for cell in np.flatnonzero(self.sums[0]).tolist():
            codec, power = divmod(cell, SIZE_CLASSES)
            counts = self.sums[:, cell].tolist()
            found.append((layout.CODEC_BITS_NAMES[codec], 1 << power, *counts))
        return found
