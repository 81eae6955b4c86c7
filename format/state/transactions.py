"""Transactions along a log: when each begins and ends, and what it wrote.

Source: storage ProducerStateManager, TxnMetadata. A transaction of a producer goes from its first transactional batch
to the next end marker with its producer id. The marker may have a higher epoch than the batches: a fenced producer's
(KIP-360), or that of every transaction since KIP-890.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import repeat

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.sorted_values import are_among, distinct_values
from format.state.producer_events import (
    BatchPlace,
    MarkerOrphaned,
    NoEndMarker,
    ProducerEvent,
    Transaction,
    TransactionBegan,
    TransactionEnded,
    TransactionLeft,
)

_OUTSIDE = -1  # in place of the number of a piece


@dataclass(slots=True)
class TransactionState:
    """The open transactions after the batches fed so far, by producer id.

    ``data_records`` and ``data_bytes`` count all batches but control batches, transactional or not.
    """

    open: dict[int, Transaction] = field(default_factory=dict)
    data_records: int = 0
    data_bytes: int = 0
    _first_offsets: list[tuple[int, int]] = field(default_factory=list, compare=False)  # a heap, with some that ended
    _left_at: dict[int, int] = field(default_factory=dict, compare=False)  # producer -> first offset, once reported

    def add_open(self, transaction: Transaction) -> None:
        """Add a transaction that was open before the first batch according to a producer snapshot."""
        self.open[transaction.producer_id] = transaction
        heappush(self._first_offsets, (transaction.first_offset, transaction.producer_id))

    def first_open_offset(self) -> int | None:
        """The first offset of the oldest open transaction, None for none."""
        heap = self._first_offsets
        while heap:
            first_offset, producer_id = heap[0]
            known = self.open.get(producer_id)
            if known is not None and known.first_offset == first_offset:
                return first_offset
            heappop(heap)
        return None

    def open_by_first_offset(self) -> dict[int, int]:
        """The first offset of each open transaction, by producer id."""
        return {producer_id: each.first_offset for producer_id, each in self.open.items()}

    def replace_open(self, first_offsets: dict[int, int]) -> None:
        """Go on from these open transactions: producer id -> first offset."""
        unknown = layout.NO_PRODUCER_EPOCH
        self.open = {producer_id: Transaction(producer_id, unknown, at) for producer_id, at in first_offsets.items()}
        self._first_offsets = [(at, producer_id) for producer_id, at in first_offsets.items()]
        heapify(self._first_offsets)

    def feed(self, table: BatchTable, markers: dict[int, ControlRecord]) -> list[ProducerEvent]:
        """Take the next batches in log order; returns where transactions begin and end, in that order.

        ``markers`` maps the rows of control batches to their decoded first record. Neither the events nor the state
        depend on where tables are cut.
        """
        sums = table.sums
        if not markers and not sums.controls and not sums.transactionals:
            self.data_records += sums.record_count
            self.data_bytes += sums.size_bytes
            if not self.open or not sums.with_producer:
                return []
            return self._left(table, self._outside(table, table.producer_id >= 0, list(self.open)))
        is_data = ~table.is_control
        counts = np.where(is_data, np.maximum(table.record_count, 0), 0)
        sizes = np.where(is_data, table.size_bytes, 0)
        events = self._events(table, markers, is_data, counts, sizes)
        odd = [row for row, marker in markers.items() if not marker.is_end_transaction and table.producer_id[row] >= 0]
        if odd:
            events += [NoEndMarker(_place(table, row), int(table.producer_id[row]), markers[row]) for row in odd]
            events.sort(key=lambda each: each.place.position)
        self.data_records += int(counts.sum())
        self.data_bytes += int(sizes.sum())
        return events

    def _events(
        self,
        table: BatchTable,
        markers: dict[int, ControlRecord],
        is_data: NDArray[np.bool_],
        counts: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> list[ProducerEvent]:
        is_wanted = table.is_transactional & (table.producer_id >= 0) & is_data
        ends = [row for row, marker in markers.items() if marker.is_end_transaction]
        is_wanted[ends] = (table.is_transactional & (table.producer_id >= 0))[ends]
        rows = np.flatnonzero(is_wanted)
        outside = is_data & ~table.is_transactional & (table.producer_id >= 0)
        writers = [*self.open, *distinct_values(table.producer_id[rows]).tolist()] if outside.any() else []
        outside_rows = self._outside(table, outside, writers)
        if not len(rows):
            return self._left(table, outside_rows)
        # The batches of each producer in log order, cut after each end marker: the pieces of transactions.
        rows = rows[np.argsort(table.producer_id[rows], kind="stable")]
        ids, is_marker = table.producer_id[rows], ~is_data[rows]
        begins = np.concatenate(([True], (ids[1:] != ids[:-1]) | is_marker[:-1]))
        starts = np.flatnonzero(begins)
        stops = np.append(starts[1:], len(rows))
        pieces = _Pieces.of(table, rows, starts, stops, is_marker, counts, sizes)
        # A piece's first batch may begin a transaction, and its last may end one: these are taken in log order.
        first_rows, last_rows = rows[starts], rows[stops - 1]
        has_end = np.flatnonzero(is_marker[stops - 1])
        steps = sorted(
            [
                *((row, False, number) for number, row in enumerate(first_rows.tolist())),
                *zip(last_rows[has_end].tolist(), repeat(True), has_end.tolist(), strict=False),
                *((row, False, _OUTSIDE) for row in outside_rows.tolist()),
            ]
        )
        step_rows = np.array([step[0] for step in steps], np.intp)
        values = zip(
            steps,
            *(column[step_rows].tolist() for column in (table.position, table.size_bytes, table.base_offset)),
            table.producer_epoch[step_rows].tolist(),
            (self.data_records + (np.cumsum(counts) - counts)[step_rows]).tolist(),
            (self.data_bytes + (np.cumsum(sizes) - sizes)[step_rows]).tolist(),
            strict=True,
        )
        events: list[ProducerEvent] = []
        for (row, is_end, number), position, size_bytes, offset, epoch, records_before, bytes_before in values:
            if number == _OUTSIDE:
                events += self._left(table, np.array([row]))
                continue
            producer_id = pieces.producer_id[number]
            if is_end:
                place = BatchPlace(position, size_bytes, offset)
                events.append(self._ended(place, epoch, producer_id, markers[row]))
                continue
            if pieces.last_offset[number] is None:
                continue  # nothing but a marker
            known = self.open.get(producer_id)
            if known is None:
                known = Transaction(producer_id, epoch, offset, position, data_before=(records_before, bytes_before))
                self.add_open(known)
                events.append(TransactionBegan(BatchPlace(position, size_bytes, offset), producer_id, epoch))
            pieces.add_to(known, number)
        return events

    @staticmethod
    def _outside(table: BatchTable, which: NDArray[np.bool_], producers: list[int]) -> NDArray[np.intp]:
        """The rows of some producers among ``which``."""
        if not producers or not which.any():
            return np.empty(0, np.intp)
        return np.flatnonzero(which & are_among(table.producer_id, np.array(producers, np.int64)))

    def _left(self, table: BatchTable, rows: NDArray[np.intp]) -> list[ProducerEvent]:
        """An event for the first batch outside of each open transaction of its producer."""
        events: list[ProducerEvent] = []
        for row in rows.tolist():
            known = self.open.get(int(table.producer_id[row]))
            if known is not None and self._left_at.get(known.producer_id) != known.first_offset:
                self._left_at[known.producer_id] = known.first_offset
                events.append(TransactionLeft(_place(table, row), known.producer_id, known.first_offset))
        return events

    def _ended(self, place: BatchPlace, epoch: int, producer_id: int, marker: ControlRecord) -> ProducerEvent:
        known = self.open.pop(producer_id, None)
        is_aborted = marker.type_name == "ABORT"
        if known is None:
            return MarkerOrphaned(place, producer_id, epoch, is_aborted, marker.coordinator_epoch)
        oldest = self.first_open_offset()
        stable = place.offset + 1 if oldest is None else oldest
        return TransactionEnded(
            place, producer_id, epoch, known.first_offset, stable, is_aborted, marker.coordinator_epoch, known
        )


def _place(table: BatchTable, row: int) -> BatchPlace:
    return BatchPlace(int(table.position[row]), int(table.size_bytes[row]), int(table.base_offset[row]))


class _Pieces(msgspec.Struct, frozen=True):
    """Totals of the data batches of each piece; ``last_offset`` is None for a piece without data batches."""

    producer_id: list[int]
    last_offset: list[int | None]
    start_timestamp: list[int]
    last_timestamp: list[int]
    producer_epoch: list[int]
    record_count: list[int]
    size_bytes: list[int]

    @classmethod
    def of(
        cls,
        table: BatchTable,
        rows: NDArray[np.intp],
        starts: NDArray[np.intp],
        stops: NDArray[np.intp],
        is_marker: NDArray[np.bool_],
        counts: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> _Pieces:
        """The pieces ``rows[start:stop]``, of which only the last row may be a marker."""
        has_end = is_marker[stops - 1]
        last_data = stops - 1 - has_end
        last_rows = rows[np.maximum(last_data, starts)]
        last_offsets = table.base_offset[last_rows] + table.last_offset_delta[last_rows]
        first_rows = rows[starts]
        has_horizon = table.has_delete_horizon[first_rows]
        started = np.where(has_horizon, table.max_timestamp[first_rows], table.base_timestamp[first_rows])
        return cls(
            table.producer_id[first_rows].tolist(),
            [offset if has else None for offset, has in zip(last_offsets.tolist(), last_data >= starts, strict=True)],
            started.tolist(),
            table.max_timestamp[last_rows].tolist(),
            table.producer_epoch[last_rows].tolist(),
            np.add.reduceat(counts[rows], starts).tolist(),
            np.add.reduceat(sizes[rows], starts).tolist(),
        )

    def add_to(self, transaction: Transaction, number: int) -> None:
        """Add the totals of a piece to its transaction."""
        if transaction.start_timestamp == layout.NO_TIMESTAMP and transaction.position is not None:
            transaction.start_timestamp = self.start_timestamp[number]
        transaction.producer_epoch = self.producer_epoch[number]
        transaction.last_offset = self.last_offset[number] or 0
        transaction.last_timestamp = self.last_timestamp[number]
        transaction.record_count += self.record_count[number]
        transaction.size_bytes += self.size_bytes[number]
