"""Decides whether records that one replica has and others lack were compacted away there, or are lost.

Compaction removes a record only where a later one of the same key follows, tombstones and transaction markers after a
while, and records of aborted transactions. It never removes a record without a key, as a compacted topic has none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.errors import KafkaLogError
from format.log.control_records import decode_control_record
from format.log.record_table import RecordTable
from format.offset_ranges import Int64s

#: The most missing records that wait for a later one of their key at a time, about 100 bytes each.
MOST_WAITING = 500_000


class MissingRecords:
    """The records of one replica that others lack. Its later records are fed in order.

    The other replicas are numbers, and bits in masks. By number, ``compacted`` counts the records that compaction
    explains, ``first_compacted`` has the first offset of them, and ``undecided`` counts those that were too many to
    keep.
    """

    def __init__(self) -> None:
        self.compacted: dict[int, int] = {}
        self.first_compacted: dict[int, int] = {}
        self.undecided: dict[int, int] = {}
        self._masks: dict[int, int] = {}
        self._offsets_of_key: dict[int, list[int]] = {}
        self._offsets_of_producer: dict[int, list[int]] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether later records are needed."""
        return bool(self._masks)

    def add(self, table: RecordTable, other: int) -> Int64s:
        """Add records that another replica lacks; returns the offsets of those that no compaction can explain."""
        batches = table.batch
        is_control = table.batches.is_control[batches]
        is_explained = is_control | ((table.key_length >= 0) & (table.value_length < 0))
        lost = ~is_explained & (table.key_length < 0)
        offsets = table.offset
        self._explain(offsets[is_explained].tolist(), other)
        is_transactional = table.batches.is_transactional[batches].tolist()
        producers = table.batches.producer_id[batches].tolist()
        for row in np.flatnonzero(~is_explained & ~lost).tolist():
            offset = int(offsets[row])
            if offset in self._masks:
                self._masks[offset] |= 1 << other
            elif len(self._masks) >= MOST_WAITING:
                self.undecided[other] = self.undecided.get(other, 0) + 1
            else:
                self._masks[offset] = 1 << other
                self._offsets_of_key.setdefault(hash(table.key(row)), []).append(offset)
                if is_transactional[row]:
                    self._offsets_of_producer.setdefault(producers[row], []).append(offset)
        return offsets[lost]

    def feed(self, table: RecordTable) -> None:
        """Read the next records of this replica: a later record of a key explains why an earlier one is missing."""
        offsets = table.offset.tolist()
        is_control = table.batches.is_control[table.batch]
        for row in np.flatnonzero((table.key_length >= 0) & ~is_control).tolist():
            waiting = self._offsets_of_key.get(hash(table.key(row)))
            if waiting is not None and waiting[0] < offsets[row]:
                explained = [offset for offset in waiting if offset < offsets[row]]
                del waiting[: len(explained)]
                if not waiting:
                    del self._offsets_of_key[hash(table.key(row))]
                self._settle(explained)
        for row in np.flatnonzero(is_control).tolist():
            self._end_transaction(table, row, offsets[row])

    def _end_transaction(self, table: RecordTable, row: int, offset: int) -> None:
        producer_id = int(table.batches.producer_id[table.batch[row]])
        waiting = self._offsets_of_producer.pop(producer_id, None)
        if waiting is None:
            return
        try:
            marker = decode_control_record(table.key(row), table.value(row))
        except KafkaLogError:
            return
        if marker.type_name == "ABORT":
            self._settle(each for each in waiting if each < offset)

    def left(self) -> Iterator[tuple[int, int]]:
        """After the last record: the unexplained offsets in order, each with the mask of the replicas that lack it."""
        yield from sorted(self._masks.items())

    def _settle(self, offsets: Iterator[int] | list[int]) -> None:
        for offset in offsets:
            mask = self._masks.pop(offset, 0)
            for other in range(mask.bit_length()):
                if mask >> other & 1:
                    self._explain([offset], other)

    def _explain(self, offsets: list[int], other: int) -> None:
        if offsets:
            self.compacted[other] = self.compacted.get(other, 0) + len(offsets)
            self.first_compacted[other] = min(self.first_compacted.get(other, offsets[0]), offsets[0])
