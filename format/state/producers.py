"""What a broker knows of each producer, rebuilt from the batches: sequences, epochs and transactions.

Source: storage ProducerStateManager, ProducerAppendInfo and ProducerStateEntry. Fed in log order; memory grows with
the number of producers and of aborted or open transactions, not with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.producer_snapshot import ProducerSnapshot
from format.limits import Limits
from format.log.batch_table import BatchTable, Int64Column
from format.log.control_records import ControlRecord
from format.node.partition import Partition
from format.state.producer_events import (
    BatchPlace,
    ProducerEpochFell,
    ProducerEvent,
    SequenceBroke,
    Transaction,
)
from format.state.transactions import TransactionState

_SEQUENCE_MASK = 2**31 - 1


@dataclass(slots=True)
class ProducerEntry:
    """One producer, with the fields of a producer snapshot; ``coordinator_epoch`` is None before the first marker.

    The last two are for snapshots of old releases: the offset of the marker after the last data batch, -1 for none, and
    the timestamp of the last data batch.
    """

    producer_epoch: int
    last_sequence: int = layout.NO_SEQUENCE
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = layout.NO_TIMESTAMP
    coordinator_epoch: int | None = None
    current_txn_first_offset: int | None = None
    marker_offset: int = field(default=-1, compare=False)
    data_timestamp: int = field(default=layout.NO_TIMESTAMP, compare=False)


_NOTHING_KNOWN = ProducerEntry(layout.NO_PRODUCER_EPOCH)


class ProducerState(msgspec.Struct):
    """The producers and transactions of a log after the batches fed so far.

    ``checks_sequences`` is false for a log that a group coordinator writes: a broker does not check sequences there
    (storage ProducerAppendInfo), and the classic coordinator gives every batch the sequence 0 (core
    GroupMetadataManager).
    """

    checks_sequences: bool = True
    entries: dict[int, ProducerEntry] = msgspec.field(default_factory=dict)
    transactions: TransactionState = msgspec.field(default_factory=TransactionState)
    _highest_epochs: dict[int, int] = msgspec.field(default_factory=dict)  # producer id -> highest epoch of its batches
    _last_data: dict[int, tuple[int, int]] = msgspec.field(
        default_factory=dict
    )  # producer id -> epoch, last offset of it

    @classmethod
    def of_topic(cls, topic: str | None) -> ProducerState:
        """The state at the start of a log of this topic."""
        return cls(checks_sequences=topic != layout.CONSUMER_OFFSETS_TOPIC)

    @classmethod
    def of_snapshot(cls, snapshot: ProducerSnapshot) -> ProducerState:
        """The state in a producer snapshot."""
        state = cls()
        for producer_id, *values, coordinator_epoch, first_offset in zip(
            *(column.tolist() for column in snapshot.columns), strict=True
        ):
            producer_epoch, last_sequence, last_offset, offset_delta, timestamp = values
            entry = ProducerEntry(producer_epoch, last_sequence, last_offset, offset_delta, timestamp)
            entry.coordinator_epoch = None if coordinator_epoch < 0 else coordinator_epoch
            if first_offset >= 0:
                entry.current_txn_first_offset = first_offset
                state.transactions.add_open(Transaction(producer_id, producer_epoch, first_offset))
            state.entries[producer_id] = entry
            state._highest_epochs[producer_id] = producer_epoch
            if last_sequence >= 0:
                state._last_data[producer_id] = producer_epoch, last_offset
        return state

    @property
    def open_transactions(self) -> dict[int, int]:
        """The first offset of each open transaction, by producer id."""
        return self.transactions.open_by_first_offset()

    def snapshot_columns(self) -> tuple[Int64Column, ...]:
        """The columns of a producer snapshot of this state, in the order of its fields; producers by their id."""
        rows = [
            (
                producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.offset_delta,
                entry.timestamp,
                -1 if entry.coordinator_epoch is None else entry.coordinator_epoch,
                -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
            )
            for producer_id, entry in sorted(self.entries.items(), key=lambda item: item[0])
        ]
        return tuple(np.array(rows, np.int64).reshape(-1, 8).T)

    def feed(self, table: BatchTable, markers: dict[int, ControlRecord]) -> list[ProducerEvent]:
        """Take the next batches in log order; returns their events in that order.

        ``markers`` maps the rows of control batches to their decoded first record. The events and the state do not
        depend on where tables are cut.
        """
        events = self.transactions.feed(table, markers)
        if not table.sums.with_producer:
            return events
        with_producer = np.flatnonzero(table.producer_id >= 0)
        ids = table.producer_id[with_producer]
        # Rows by producer, in log order within each: a stable sort keeps them so.
        order = with_producer[np.argsort(ids, kind="stable")]
        ordered_ids = table.producer_id[order]
        edges = np.flatnonzero(np.concatenate(([True], ordered_ids[1:] != ordered_ids[:-1], [True])))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            producer_id = int(ordered_ids[first])
            rows = order[first:last]
            events += self._epochs_fallen(table, rows, producer_id)
            if self.checks_sequences:
                events += self._sequences_broken(table, rows, producer_id)
        self._update(table, order, edges, markers)
        events.sort(key=lambda event: event.place.position)
        return events

    def _epochs_fallen(self, table: BatchTable, rows: NDArray[np.intp], producer_id: int) -> list[ProducerEvent]:
        epochs = table.producer_epoch[rows]
        running = np.maximum.accumulate(np.concatenate(([self._highest_epochs.get(producer_id, -1)], epochs)))
        self._highest_epochs[producer_id] = int(running[-1])
        return [
            ProducerEpochFell(_place(table, int(rows[number])), producer_id, int(epochs[number]), int(running[number]))
            for number in np.flatnonzero(epochs < running[:-1]).tolist()
        ]

    def _sequences_broken(self, table: BatchTable, rows: NDArray[np.intp], producer_id: int) -> list[ProducerEvent]:
        """Data batches that do not continue the sequence before them; a batch of another epoch in between resets it."""
        known = self.entries.get(producer_id, _NOTHING_KNOWN)
        epochs = table.producer_epoch[rows]
        epoch_run = np.cumsum(epochs != np.concatenate(([known.producer_epoch], epochs[:-1])))
        is_data = ~table.is_control[rows]
        rows, epoch_run = rows[is_data], epoch_run[is_data]
        if not len(rows):
            return []
        base = table.base_sequence[rows]
        # A group coordinator's transactional commits have no sequence.
        last = np.where(base < 0, layout.NO_SEQUENCE, (base + table.last_offset_delta[rows]) & _SEQUENCE_MASK)
        previous_last = np.concatenate(([known.last_sequence], last[:-1]))
        previous_offset = np.concatenate(([known.last_offset], table.last_offset[rows[:-1]]))
        is_same_epoch = epoch_run == np.concatenate(([0], epoch_run[:-1]))
        expected = (previous_last + 1) & _SEQUENCE_MASK
        # Sequences wrap, so that "before" and "after" go by the shorter way round.
        ahead = (base - expected) & _SEQUENCE_MASK
        # A broker takes a new epoch of a producer that it knows only from sequence 0 on.
        epoch_before, offset_before = self._last_data.get(producer_id, (layout.NO_PRODUCER_EPOCH, -1))
        data_epochs = table.producer_epoch[rows]
        before = np.concatenate(([epoch_before], data_epochs[:-1]))
        begins_late = (before != layout.NO_PRODUCER_EPOCH) & (data_epochs > before) & (base > 0)
        self._last_data[producer_id] = int(data_epochs[-1]), int(table.last_offset[rows[-1]])
        if begins_late[0]:
            previous_offset[0] = offset_before
        expected[begins_late], ahead[begins_late] = 0, 0
        previous_last[begins_late] = layout.NO_SEQUENCE
        is_broken = (is_same_epoch & (previous_last >= 0) & (base >= 0) & (base != expected)) | begins_late
        return [
            SequenceBroke(
                _place(table, int(rows[number])),
                producer_id,
                int(table.producer_epoch[rows[number]]),
                int(previous_offset[number]),
                int(previous_last[number]),
                int(expected[number]),
                int(base[number]),
                is_gap=int(ahead[number]) < 2**30,
            )
            for number in np.flatnonzero(is_broken).tolist()
        ]

    def _update(
        self,
        table: BatchTable,
        order: NDArray[np.intp],
        edges: NDArray[np.intp],
        markers: dict[int, ControlRecord],
    ) -> None:
        """The entries after this table: each producer's last data batch and the markers after it decide."""
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            rows = order[first:last]
            producer_id = int(table.producer_id[rows[0]])
            entry = self.entries.setdefault(producer_id, ProducerEntry(-1))
            is_control = table.is_control[rows]
            data, control = rows[~is_control], rows[is_control]
            if len(data):
                row = int(data[-1])
                delta = int(table.last_offset_delta[row])
                base_sequence = int(table.base_sequence[row])
                entry.producer_epoch = int(table.producer_epoch[row])
                entry.last_sequence = base_sequence if base_sequence < 0 else (base_sequence + delta) & _SEQUENCE_MASK
                entry.last_offset = int(table.last_offset[row])
                entry.offset_delta = delta
                entry.timestamp = entry.data_timestamp = int(table.max_timestamp[row])
                entry.marker_offset = -1
            for row in reversed(control.tolist()):
                marker = markers.get(row)
                if marker is not None and marker.coordinator_epoch is not None:
                    entry.coordinator_epoch = marker.coordinator_epoch
                    break
            after_data = control[control > data[-1]] if len(data) else control
            if len(after_data):
                epochs = table.producer_epoch[after_data]
                if (epochs != entry.producer_epoch).any():
                    # A marker that bumps the epoch (KIP-890) forgets the batches.
                    entry.producer_epoch = int(epochs[-1])
                    entry.last_sequence, entry.last_offset, entry.offset_delta = layout.NO_SEQUENCE, -1, 0
                entry.timestamp = int(table.max_timestamp[after_data[-1]])
                entry.marker_offset = int(table.last_offset[after_data[-1]])
            known = self.transactions.open.get(producer_id)
            entry.current_txn_first_offset = None if known is None else known.first_offset


def _place(table: BatchTable, row: int) -> BatchPlace:
    return BatchPlace(int(table.position[row]), int(table.size_bytes[row]), int(table.base_offset[row]))


def newest_sound_snapshot(
    partition: Partition, limits: Limits, most_offset: int | None = None
) -> tuple[int, ProducerSnapshot] | None:
    """The offset and the content of the newest producer snapshot without problems; None for none.

    Snapshots past ``most_offset`` are passed over, if one is given. A broker goes on to an older one, too, where it
    cannot read the newest (storage ProducerStateManager.loadFromSnapshot).
    """
    for offset in sorted(partition.snapshots, reverse=True):
        if most_offset is not None and offset > most_offset:
            continue
        try:
            snapshot = producer_snapshot.read(partition.snapshots[offset], limits)
        except KafkaLogError:
            continue
        if not snapshot.problems:
            return offset, snapshot
    return None
