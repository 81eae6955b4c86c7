"""Totals of what each producer wrote to a log: epochs, sequences, batches, codecs, times; without control batches."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.layout import CODEC_BITS_NAMES
from format.log.batch_table import BatchTable
from format.sorted_values import distinct_values
from format.value_class import state_class

_SEQUENCE_MASK = 2**31 - 1


@state_class
class ProducerTotals:
    """The totals of one producer; ``codec_counts`` are batches by the codec's number."""

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
    epochs: set[int] = field(default_factory=set)
    magics: set[int] = field(default_factory=set)
    codec_counts: list[int] = field(default_factory=lambda: [0] * len(CODEC_BITS_NAMES))

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

    @property
    def codecs_text(self) -> str:
        """The codecs with their batches, such as ``none:12,zstd:3``."""
        pairs = zip(CODEC_BITS_NAMES, self.codec_counts, strict=True)
        return ",".join(f"{name}:{count}" for name, count in pairs if count)

    @property
    def epochs_text(self) -> str | None:
        """The epochs as ranges, such as ``0-3,7``; None for a producer without an id."""
        return ranges_text(sorted(self.epochs - {layout.NO_PRODUCER_EPOCH})) or None


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
