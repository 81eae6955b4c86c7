"""What a broker knows of each producer, rebuilt from the batches: sequences, epochs and transactions.

Source: storage ProducerStateManager, ProducerAppendInfo and ProducerStateEntry. Fed in log order; memory grows with
the number of producers and of aborted or open transactions, not with the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Certainty, Finding, finding
from format.location import Location
from format.log.batch_table import BatchTable, batch_location
from format.log.control_records import ControlRecord
from format.timestamps import iso_time

_SEQUENCE_MASK = 2**31 - 1


@dataclass(slots=True)
class ProducerEntry:
    """One producer, as a snapshot would hold it; ``coordinator_epoch`` is None until a marker was seen."""

    producer_epoch: int
    last_sequence: int = layout.NO_SEQUENCE
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = layout.NO_TIMESTAMP
    coordinator_epoch: int | None = None
    current_txn_first_offset: int | None = None


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction with its end marker: offsets of its first record and of the marker, and where the marker lies."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


@dataclass(slots=True)
class ProducerState:
    """The state after the batches fed so far; ``ended`` collects ended transactions until ``take_ended``."""

    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    ended: list[EndedTransaction] = field(default_factory=list)
    open_transactions: dict[int, int] = field(default_factory=dict)  # producer id -> first offset

    def take_ended(self) -> list[EndedTransaction]:
        ended, self.ended = self.ended, []
        return ended

    def feed(
        self,
        table: BatchTable,
        markers: dict[int, ControlRecord],
        location: Location,
        *,
        is_compacted: bool,
    ) -> Iterator[Finding]:
        """Findings for one table; ``markers`` maps the rows of control batches to their decoded first record.

        Compaction removes batches, so a compacted log's sequences may have gaps.
        """
        with_producer = np.flatnonzero(table.producer_id >= 0)
        if not len(with_producer):
            return
        ids = table.producer_id[with_producer]
        # Rows by producer, in log order within each: a stable sort keeps them so.
        order = with_producer[np.argsort(ids, kind="stable")]
        ordered_ids = table.producer_id[order]
        edges = np.flatnonzero(np.concatenate(([True], ordered_ids[1:] != ordered_ids[:-1], [True])))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            producer_id = int(ordered_ids[first])
            rows = order[first:last]
            is_control = table.is_control[rows]
            data_rows = rows[~is_control]
            yield from self._check_epochs(table, rows, producer_id, location)
            yield from self._check_sequences(table, data_rows, producer_id, location, is_compacted)
        yield from self._transactions(table, with_producer, markers, location)
        self._update(table, order, edges, markers)

    def _check_epochs(
        self, table: BatchTable, rows: NDArray[np.intp], producer_id: int, location: Location
    ) -> Iterator[Finding]:
        epochs = table.producer_epoch[rows]
        known = self.entries.get(producer_id)
        running = np.maximum.accumulate(np.concatenate(([-1 if known is None else known.producer_epoch], epochs)))
        for number in np.flatnonzero(epochs < running[:-1]).tolist():
            yield finding(
                "producer-epoch-decreasing",
                batch_location(location, table, int(rows[number])),
                f"producer {producer_id} writes with epoch {epochs[number]} after epoch {running[number]}",
                expected=int(running[number]),
                actual=int(epochs[number]),
            )

    def _check_sequences(
        self,
        table: BatchTable,
        rows: NDArray[np.intp],
        producer_id: int,
        location: Location,
        is_compacted: bool,
    ) -> Iterator[Finding]:
        rows = rows[table.base_sequence[rows] >= 0]  # a group coordinator's transactional commits carry none
        if not len(rows):
            return
        base = table.base_sequence[rows]
        last = (base + table.last_offset_delta[rows]) & _SEQUENCE_MASK
        epochs = table.producer_epoch[rows]
        known = self.entries.get(producer_id)
        has_known = known is not None and known.last_sequence >= 0
        previous_last = np.concatenate(([known.last_sequence if known is not None else -1], last[:-1]))
        previous_epoch = np.concatenate(([known.producer_epoch if known is not None else -1], epochs[:-1]))
        comparable = (previous_epoch == epochs) & (previous_last >= 0)
        comparable[0] &= has_known
        expected = (previous_last + 1) & _SEQUENCE_MASK
        # Sequences wrap, so "before" and "after" are told by the shorter way round.
        ahead = (base - expected) & _SEQUENCE_MASK
        for number in np.flatnonzero(comparable & (base != expected)).tolist():
            is_gap = int(ahead[number]) < 2**30
            if is_gap and is_compacted:
                continue
            yield finding(
                "sequence-gap" if is_gap else "sequence-duplicate",
                batch_location(location, table, int(rows[number])),
                f"producer {producer_id} epoch {epochs[number]}: sequence {base[number]} follows "
                f"{previous_last[number]}",
                certainty=Certainty.LIKELY,
                expected=int(expected[number]),
                actual=int(base[number]),
            )

    def _transactions(
        self,
        table: BatchTable,
        with_producer: NDArray[np.intp],
        markers: dict[int, ControlRecord],
        location: Location,
    ) -> Iterator[Finding]:
        """Open and end transactions in log order, over the first transactional batch of each and the markers."""
        transactional = with_producer[table.is_transactional[with_producer]]
        if not len(transactional):
            return
        columns = zip(
            transactional.tolist(),
            table.producer_id[transactional].tolist(),
            table.base_offset[transactional].tolist(),
            table.is_control[transactional].tolist(),
            strict=True,
        )
        open_transactions = self.open_transactions
        for row, producer_id, base_offset, is_control in columns:
            if not is_control:
                if producer_id not in open_transactions:
                    open_transactions[producer_id] = base_offset
                continue
            marker = markers.get(row)
            if marker is None or not marker.is_end_transaction:
                continue
            first_offset = open_transactions.pop(producer_id, None)
            if first_offset is None:
                yield finding(
                    "transaction-marker-orphan",
                    batch_location(location, table, row),
                    f"a {marker.type_name} marker of producer {producer_id}, which has no open transaction in this log",
                )
                continue
            stable = min(open_transactions.values(), default=base_offset + 1)
            self.ended.append(
                EndedTransaction(producer_id, first_offset, base_offset, marker.type_name == "ABORT", stable)
            )

    def _update(
        self,
        table: BatchTable,
        order: NDArray[np.intp],
        edges: NDArray[np.intp],
        markers: dict[int, ControlRecord],
    ) -> None:
        """The entries after this table: each producer's last batch and last marker decide."""
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            rows = order[first:last]
            producer_id = int(table.producer_id[rows[0]])
            entry = self.entries.setdefault(producer_id, ProducerEntry(-1))
            is_control = table.is_control[rows]
            data, control = np.flatnonzero(~is_control), np.flatnonzero(is_control)
            last_data = int(data[-1]) if len(data) else -1
            last_control = int(control[-1]) if len(control) else -1
            if last_data >= 0:
                row = int(rows[last_data])
                delta = int(table.last_offset_delta[row])
                base_sequence = int(table.base_sequence[row])
                entry.producer_epoch = int(table.producer_epoch[row])
                entry.last_sequence = base_sequence if base_sequence < 0 else (base_sequence + delta) & _SEQUENCE_MASK
                entry.last_offset = int(table.last_offset[row])
                entry.offset_delta = delta
                entry.timestamp = int(table.max_timestamp[row])
            if last_control >= 0:
                row = int(rows[last_control])
                marker = markers.get(row)
                if marker is not None and marker.coordinator_epoch is not None:
                    entry.coordinator_epoch = marker.coordinator_epoch
                if last_control > last_data:
                    epoch = int(table.producer_epoch[row])
                    if epoch != entry.producer_epoch:  # a marker that bumps the epoch (KIP-890) forgets the batches
                        entry.producer_epoch = epoch
                        entry.last_sequence, entry.last_offset, entry.offset_delta = layout.NO_SEQUENCE, -1, 0
                    entry.timestamp = int(table.max_timestamp[row])
            entry.current_txn_first_offset = self.open_transactions.get(producer_id)


def check_open_transactions(state: ProducerState, location: Location) -> Iterator[Finding]:
    """One finding per transaction without an end marker at the log's end, the oldest first."""
    for producer_id, first_offset in sorted(state.open_transactions.items(), key=lambda each: each[1]):
        entry = state.entries.get(producer_id)
        since = f", last written at {iso_time(entry.timestamp)}" if entry is not None else ""
        yield finding(
            "transaction-open",
            location.at(offset=first_offset),
            f"producer {producer_id} has an open transaction since offset {first_offset}{since}: "
            "the last stable offset cannot pass it",
            actual=producer_id,
        )
