"""Totals of what each producer wrote to a log: epochs, sequences, batches, codecs, times; without control batches."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.layout import CODEC_BITS_NAMES
from format.log.batch_table import BatchTable
from format.sorted_values import distinct_values

_SEQUENCE_MASK = 2**31 - 1
#: Among how many batches before it a repeated batch is looked for: a client sends it again within seconds.
_REMEMBERED = 4096
_MIX = np.uint64(0x9E3779B97F4A7C15)


class ProducerTotals(msgspec.Struct):
    """The totals of one producer; ``codec_counts`` are batches by the codec's number.

    ``repeated_batch_count``: batches with the CRC, size, times and record count of one of the few thousand before them.
    It is counted for batches without a producer id, which sequences do not tell apart.
    """

    first_offset: int
    first_sequence: int
    first_timestamp: int
    last_offset: int = -1
    last_sequence: int = layout.NO_SEQUENCE
    last_timestamp: int = layout.NO_TIMESTAMP
    batch_count: int = 0
    transactional_batch_count: int = 0
    record_count: int = 0
    size_bytes: int = 0
    gap_count: int = 0
    duplicate_count: int = 0
    repeated_batch_count: int = 0
    epochs: set[int] = msgspec.field(default_factory=set)
    magics: set[int] = msgspec.field(default_factory=set)
    codec_counts: list[int] = msgspec.field(default_factory=lambda: [0] * len(CODEC_BITS_NAMES))
    _remembered: NDArray[np.uint64] = msgspec.field(default_factory=lambda: np.zeros(0, np.uint64))

    def add(self, table: BatchTable) -> None:
        """Add batches of this producer, in log order."""
        last = slice(len(table) - 1, len(table))
        delta = int(table.last_offset_delta[-1])
        base_sequence = int(table.base_sequence[-1])
        self.last_offset = int(table.last_offset[last][0])
        self.last_sequence = base_sequence if base_sequence < 0 else (base_sequence + delta) & _SEQUENCE_MASK
        self.last_timestamp = int(table.max_timestamp[-1])
        self.batch_count += len(table)
        self.transactional_batch_count += int(np.count_nonzero(table.is_transactional))
        self.record_count += int(np.maximum(table.record_count, 0).sum())
        self.size_bytes += int(table.size_bytes.sum())
        self.epochs.update(distinct_values(table.producer_epoch).tolist())
        self.magics.update(distinct_values(table.magic).tolist())
        counts = np.bincount(table.codec, minlength=len(self.codec_counts)).tolist()
        self.codec_counts = [known + new for known, new in zip(self.codec_counts, counts, strict=True)]

    def count_repeated(self, table: BatchTable) -> None:
        """Count the batches that repeat one of those before them, in log order."""
        known = self._remembered
        for start in range(0, len(table), _REMEMBERED):
            marks = _marks(table.rows(slice(start, start + _REMEMBERED)))
            both = np.concatenate((known, marks))
            self.repeated_batch_count += (
                len(both) - len(distinct_values(both)) - len(known) + len(distinct_values(known))
            )
            known = both[-_REMEMBERED:]
        self._remembered = known

    @property
    def codecs_text(self) -> str:
        """The codecs with their batches, such as ``none:12,zstd:3``."""
        pairs = zip(CODEC_BITS_NAMES, self.codec_counts, strict=True)
        return ",".join(f"{name}:{count}" for name, count in pairs if count)

    @property
    def epochs_text(self) -> str | None:
        """The epochs as ranges, such as ``0-3,7``; None for a producer without an id."""
        return ranges_text(sorted(self.epochs - {layout.NO_PRODUCER_EPOCH})) or None


def _marks(table: BatchTable) -> NDArray[np.uint64]:
    """A number for each batch that is equal for equal CRCs, sizes, times and record counts."""
    mark = np.zeros(len(table), np.uint64)
    for column in (table.crc, table.size_bytes, table.base_timestamp, table.max_timestamp, table.record_count):
        mark = (mark ^ column.astype(np.uint64)) * _MIX
        mark ^= mark >> np.uint64(29)
    return mark


def ranges_text(numbers: list[int]) -> str:
    """Rising numbers as ranges, such as ``0-3,7``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def add_batches(totals: dict[int, ProducerTotals], table: BatchTable) -> None:
    """Add the next batches of a log to the totals by producer id; NO_PRODUCER_ID stands for none."""
    data: NDArray[np.intp] = np.flatnonzero(~table.is_control)
    if not len(data):
        return
    data = data[np.argsort(table.producer_id[data], kind="stable")]
    ids = table.producer_id[data]
    edges = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1], [True])))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        own = table.rows(data[first:last])
        producer_id = int(ids[first])
        known = totals.get(producer_id)
        if known is None:
            started = own.max_timestamp[0] if own.has_delete_horizon_at(0) else own.base_timestamp[0]
            known = ProducerTotals(int(own.base_offset[0]), int(own.base_sequence[0]), int(started))
            totals[producer_id] = known
        known.add(own)
        if producer_id == layout.NO_PRODUCER_ID:
            known.count_repeated(own)
