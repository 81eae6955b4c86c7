"""A chunk: consecutive batches of a log, their bytes, and the damage that ends the chunk."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.kernel.tables import RECORD_COLUMNS
from format.log.batch_table import BatchTable, Int64Column

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
    ``lost_from`` is the first offset that may be missing, None if unknown.
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


@dataclass(frozen=True, slots=True)
class BatchChunk:
    """Consecutive batches; ``buffer`` has their bytes, from ``buffer_position`` on, None if only headers are read.

    ``damage`` is after the last row, before the next chunk. ``after_offset`` is the last offset before the chunk, and
    ``next_offset`` the first offset of the batch after it, which is read only if the chunk's last batch has a wrong
    CRC. Both are None unless the CRC of that batch is right. ``repeated`` (bool for each row) marks batches that are
    also at an earlier position of the file, byte for byte; it is None if there are none, or if CRCs are not computed.
    ``opened`` caches decompressed wrappers, by the row of the first one. ``window`` is the buffer that headers were
    read from, starting at ``buffer_position``; the last batches may not be whole in it.
    """

    table: BatchTable
    buffer: memoryview | None
    buffer_position: int
    damage: Damage | None = None
    repeated: NDArray[np.bool_] | None = None
    opened: dict[int, OpenedWrappers] = field(default_factory=dict, compare=False)
    after_offset: int | None = None
    next_offset: int | None = None
    window: memoryview | None = field(default=None, compare=False)

    @property
    def bodies(self) -> memoryview:
        """The buffer of a chunk that was read with bodies. Raises ValueError for a chunk of headers."""
        if self.buffer is None:
            raise ValueError("the chunk was read without bodies")
        return self.buffer

    def is_sound_after(self, offset: int | None) -> bool:
        """Whether no byte is damaged, no CRC is wrong, and the offsets rise from ``offset``, the last one before.

        It is the one rule by which a chunk may be read alone. What is not sound depends on all that is before it.
        """
        return self.damage is None and bool(self.table.crc_valid.all()) and self.table.rises_from(offset)

    @property
    def covered_bytes(self) -> int:
        """The bytes from the start of the chunk to the start of the next; the buffer may be longer."""
        if self.damage is not None:
            return self.damage.position + self.damage.length - self.buffer_position
        return int(self.table.end_position[-1]) - self.buffer_position if len(self.table) else 0
