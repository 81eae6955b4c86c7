"""Chunks of a log, the ranges of bytes that are read as chunks, and the offsets that a log can have.

A range is a chunk of a reader of the whole log, and can be read independently: in a log without damage, readers of
single ranges get the same chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.io.source import Source
from format.kernel.headers import hop, skip_batches
from format.kernel.tables import BATCH_COLUMNS, RECORD_COLUMNS
from format.log.batch_table import BatchTable, HeaderTable, Int64Column

_WINDOW_BYTES = 16 * 1024
_FOUND, _NEEDS_MORE = 0, 1  # returned by skip_batches, as 2 is for damage


class BatchRange(msgspec.Struct, frozen=True):
    """The bytes of a log from ``start`` to ``end``; an end of None is the end of the log.

    ``after_offset`` is the last offset before the range, None if unknown. ``read_from`` is the start of the first range
    of the log, None if this is the first.
    """

    start: int = 0
    end: int | None = None
    after_offset: int | None = None
    read_from: int | None = None


WHOLE_LOG = BatchRange()


def batch_ranges(source: Source, chunk_bytes: int, *, start: int = 0) -> Iterator[BatchRange]:
    """The ranges of a log that ``batch_chunks`` reads as chunks of ``chunk_bytes``, from batch boundary ``start`` on.

    Reads only the headers of batches. After damage, the rest is one range. Raises only the errors of the source.
    """
    status = np.zeros(3, np.int64)
    range_start, after_offset = start, None
    position, before = start, -1
    while source.size_bytes - range_start > chunk_bytes:
        room = source.size_bytes - position
        window = memoryview(source.read_at(position, min(_WINDOW_BYTES, room)))
        target = range_start + chunk_bytes - position
        outcome = skip_batches(window, 0, len(window), room, target, memoryview(status))
        at, last, size_bytes = (int(number) for number in status)
        if last >= 0:
            before = position + last
        position += at
        if outcome == _FOUND:
            if position == range_start:  # one batch larger than a chunk
                before, position = position, position + size_bytes
            yield BatchRange(range_start, position, after_offset, start)
            range_start, after_offset = position, _last_offset(source, before)
        elif outcome != _NEEDS_MORE or (at == 0 and len(window) == room):
            break
    if range_start == start or range_start < source.size_bytes:
        yield BatchRange(range_start, None, after_offset, start)


def _last_offset(source: Source, position: int) -> int:
    """The last offset of the batch at a position, from its header."""
    header = memoryview(source.read_at(position, layout.RECORD_BATCH.size_bytes))
    row = np.zeros((1, len(BATCH_COLUMNS)), np.int64)
    hop(header, 0, len(header), position, memoryview(row), 0, memoryview(np.array([0, 0, -1], np.int64)))
    return HeaderTable(row).last_offset_of(0)


_BATCH = RECORD_COLUMNS.index("batch")


class OpenedWrappers(msgspec.Struct):
    """Decompressed wrappers (compressed v0/v1 messages) of a chunk: their inner messages as columns over one buffer.

    ``rows`` are the rows of the wrappers in the chunk's table, in order. ``errors`` has the error, by row, of each
    wrapper that cannot be decompressed or indexed. ``columns`` (int64, RECORD_COLUMNS) is None if the inner messages
    were not kept, and must be decompressed again.
    """

    rows: NDArray[np.intp]
    columns: Int64Column | None
    buffer: memoryview
    errors: dict[int, KafkaLogError]

    def split(self, count: int) -> tuple[OpenedWrappers, OpenedWrappers]:
        """Split after the first ``count`` wrappers."""
        next_row = int(self.rows[count])
        first = second = None
        if self.columns is not None:
            cut = int(np.searchsorted(self.columns[:, _BATCH], next_row))
            first, second = self.columns[:cut], self.columns[cut:]
        before = {row: error for row, error in self.errors.items() if row < next_row}
        after = {row: error for row, error in self.errors.items() if row >= next_row}
        return (
            OpenedWrappers(self.rows[:count], first, self.buffer, before),
            OpenedWrappers(self.rows[count:], second, self.buffer, after),
        )


class Damage(msgspec.Struct, frozen=True):
    """Bytes of a log that belong to no readable batch.

    ``code`` is the code of the finding; it is ``limit-exceeded`` for a whole batch that was left out because of a
    limit. ``next_base_offset`` is the base offset of the intact batch after the damage, None if there is none;
    ``after_offset`` is the last offset before it. ``lost_offsets`` are the first and last of the offsets that are
    missing because of it, None if unknown. ``readable`` are the first and last offset of a batch in it whose records
    are proven to be intact, since only a field outside its CRC is wrong. If it reaches the end of the file,
    ``lost_from`` is the first offset that may be missing, None if unknown; ``is_cut``: a broker takes it for a batch
    that the end of the file cuts off.
    """

    code: str
    position: int
    length: int
    reason: str
    after_offset: int | None = None
    next_base_offset: int | None = None
    reaches_end: bool = False
    lost_offsets: tuple[int, int] | None = None
    lost_from: int | None = None
    readable: tuple[int, int] | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChunk:
    """Consecutive batches by their headers, as they lie in the file from ``buffer_position`` on.

    ``damage`` is after the last row, before the next chunk. ``after_offset`` is the last offset before the chunk, and
    ``next_offset`` the first offset of the batch after it, which is read only if the chunk's last batch has a wrong
    CRC. Both are None unless the CRC of that batch is right. ``window`` is the buffer that headers were read from; the
    last batches may not be whole in it.
    """

    headers: HeaderTable
    buffer_position: int
    damage: Damage | None = None
    after_offset: int | None = None
    next_offset: int | None = None
    window: memoryview | None = field(default=None, compare=False)

    def with_batches(self, table: BatchTable) -> BatchChunk:
        """The chunk with batches that were made of its headers."""
        return BatchChunk(**{each.name: getattr(self, each.name) for each in fields(HeaderChunk)}, table=table)

    @property
    def covered_bytes(self) -> int:
        """The bytes from the start of the chunk to the start of the next; the buffer may be longer."""
        if self.damage is not None:
            return self.damage.position + self.damage.length - self.buffer_position
        return int(self.headers.end_position[-1]) - self.buffer_position if len(self.headers) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChunk(HeaderChunk):
    """Consecutive batches, with compressed messages opened, and their bytes from ``buffer_position`` on.

    ``buffer`` is None if only headers were read. ``repeated`` (bool for each row) marks batches that are also at an
    earlier position of the file, byte for byte; it is None if there are none, or if CRCs are not computed. ``opened``
    keeps decompressed wrappers, by the row of the first one.
    """

    table: BatchTable
    buffer: memoryview | None = None
    repeated: NDArray[np.bool_] | None = None
    opened: dict[int, OpenedWrappers] = field(default_factory=dict, compare=False)

    @property
    def bodies(self) -> memoryview:
        """The buffer of a chunk that was read with bodies. Raises ValueError for a chunk of headers."""
        if self.buffer is None:
            raise ValueError("the chunk was read without bodies")
        return self.buffer

    def rest(self, row: int) -> BatchChunk:
        """The chunk from a row on, which is not the first; no message of it may be compressed."""
        at = int(self.table.position[row])
        return replace(
            self,
            headers=self.headers.rows(slice(row, None)),
            table=self.table.rows(slice(row, None)),
            buffer_position=at,
            buffer=self.bodies[at - self.buffer_position :],
            after_offset=self.table.last_offset_of(row - 1),
            repeated=None if self.repeated is None else self.repeated[row:],
            opened={},
        )

    def is_sound_after(self, offset: int | None) -> bool:
        """Whether no byte is damaged, no CRC is wrong, and the offsets rise from ``offset``, the last one before.

        It is the one rule by which a chunk may be read alone. What is not sound depends on all that is before it.
        """
        return self.damage is None and bool(self.table.crc_valid.all()) and self.table.rises_from(offset)


_MAX_OFFSET = 2**63 - 1


class OffsetRange(msgspec.Struct, frozen=True):
    """The offsets that batches of a log can have; the base offset of a batch outside the range is damaged."""

    first: int = 0
    last: int = _MAX_OFFSET - 1

    @classmethod
    def of_segment(cls, base_offset: int | None) -> OffsetRange:
        """The offsets that a segment can have: its indexes have them relative to its base offset, with 31 bits."""
        if base_offset is None or base_offset >= _MAX_OFFSET:
            return cls()
        return cls(base_offset, min(base_offset + layout.MAX_RELATIVE_OFFSET, _MAX_OFFSET - 1))

    def possible(self, table: BatchTable) -> BatchTable:
        """The batches whose offsets are in the range."""
        is_possible = self.holds(table.base_offset, table.last_offset_delta)
        return table if is_possible.all() else table.rows(is_possible)

    def holds(self, base_offset: Int64Column, last_offset_delta: Int64Column) -> NDArray[np.bool_]:
        """Which of these batches are in the range, as bool; computed without sums that could overflow int64."""
        is_held: NDArray[np.bool_] = (base_offset >= self.first) & (base_offset <= self.last) & (last_offset_delta >= 0)
        is_held &= last_offset_delta <= self.last - np.clip(base_offset, self.first, max(self.first, self.last))
        return is_held


def possible_offsets(path: str) -> OffsetRange:
    """The offsets that the batches of a file can have, by its name: all for a file with another name."""
    match = layout.SEGMENT_FILE.match(path.rpartition("/")[2])
    return OffsetRange.of_segment(None if match is None else int(match["base_offset"]))


def offset_before(path: str) -> int | None:
    """The offset before the base offset in the name of a segment; None for a file with another name."""
    match = layout.SEGMENT_FILE.match(path.rpartition("/")[2])
    return None if match is None or int(match["base_offset"]) >= _MAX_OFFSET else int(match["base_offset"]) - 1
