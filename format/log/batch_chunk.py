"""A chunk: consecutive batches of a log, their bytes, and the damage that ends the chunk."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.kernel.tables import RECORD_COLUMNS
from format.log.batch_table import BatchTable, Int64Column
from format.value_class import state_class, value_class

_BATCH = RECORD_COLUMNS.index("batch")


@state_class
class OpenedWrappers:
    """Some compressed messages of a chunk, opened: their inner messages as record columns over one buffer.

    ``rows`` are theirs in the chunk's table, in order; ``errors`` says of some why they cannot be opened. ``columns``
    is None where the inner messages were not kept, so that they have to be opened again.
    """

    rows: NDArray[np.intp]
    columns: Int64Column | None
    buffer: memoryview
    errors: dict[int, KafkaLogError]

    def split(self, count: int) -> tuple[OpenedWrappers, OpenedWrappers]:
        """The first ``count`` of them, and the others."""
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


@value_class
class Damage:
    """Bytes of a log that belong to no readable batch.

    ``code`` is a finding code; a whole batch that was left out has the code of the limit it exceeds.
    ``next_base_offset`` is the base offset of the intact batch after the damage, None if there is none;
    ``after_offset`` is the last offset read before it. ``lost_offsets`` are the first and the last of the offsets that
    are missing because of it, as far as they are known. Where it reaches the end of the file, ``lost_from`` is the
    first offset that may be missing, None where that is not known.
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


@value_class
class BatchChunk:
    """Some consecutive batches; ``buffer`` holds their bytes, None when only headers are read.

    ``buffer[0]`` lies at ``buffer_position`` in the file. ``damage`` lies after the last row, before the next chunk.
    ``after_offset`` is the last offset before the chunk, and ``next_offset`` the first one of the batch behind it: that
    is looked up only where the chunk's last batch has a wrong CRC. Both are of batches with right CRCs, None otherwise.
    ``repeated`` marks batches that the file holds before, byte for byte; None where no batch is one, or where CRCs are
    not computed. ``opened`` caches compressed v0/v1 messages that were opened, by the row of the first. ``window`` is
    what was read from ``buffer_position`` on where only headers are read: the last batches may not be whole in it.
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

    @property
    def covered_bytes(self) -> int:
        """The bytes from the chunk's start to the next chunk's; the buffer may also hold part of the next chunk."""
        if self.damage is not None:
            return self.damage.position + self.damage.length - self.buffer_position
        return int(self.table.end_position[-1]) - self.buffer_position if len(self.table) else 0
