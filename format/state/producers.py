"""What a broker knows of each producer, rebuilt from the batches: sequences, epochs and transactions.

Source: storage ProducerStateManager, ProducerAppendInfo and ProducerStateEntry. Fed in log order; memory grows with
the number of producers and of aborted or open transactions, not with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise, repeat
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.producer_snapshot import ProducerSnapshot
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable, Int64Column
from format.log.control_records import ControlRecord
from format.node.partition import Partition
from format.sorted_values import are_among, distinct_values


class BatchPlace(NamedTuple):
    """The position of a batch in its log file, and its base offset."""

    position: int
    size_bytes: int
    offset: int

    def location(self, log: Location) -> Location:
        """The place as a Location in the log file at ``log``."""
        return log.at(self.position, self.size_bytes, self.offset)


class Transaction(msgspec.Struct):
    """The batches of one transaction so far, without its end marker.

    ``position`` is the position of its first batch, None if that batch was not read. ``last_offset`` is the last offset
    of its batches, -1 before the first. ``producer_epoch`` is the epoch of its batches. ``data_before`` are the numbers
    of records and bytes in all data batches of the log before its first one.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    position: int | None = None
    last_offset: int = -1
    start_timestamp: int = layout.NO_TIMESTAMP
    last_timestamp: int = layout.NO_TIMESTAMP
    record_count: int = 0
    size_bytes: int = 0
    data_before: tuple[int, int] = (0, 0)


class ProducerEpochFell(msgspec.Struct, frozen=True):
    """A batch of a producer has a lower epoch than one before it."""

    place: BatchPlace
    producer_id: int
    producer_epoch: int
    highest_epoch: int


class SequenceBroke(msgspec.Struct, frozen=True):
    """A data batch does not continue the sequence of the producer's batch before it, or begins an epoch above 0.

    ``previous_sequence`` is -1 where the epoch is new. ``previous_offset`` is the last offset of the batch before, -1
    where it is not known. ``is_gap``: the sequence is above the expected one; otherwise it repeats or falls.
    """

    place: BatchPlace
    producer_id: int
    producer_epoch: int
    previous_offset: int
    previous_sequence: int
    expected_sequence: int
    base_sequence: int
    is_gap: bool


class TransactionBegan(msgspec.Struct, frozen=True):
    """The first batch of a transaction in this log."""

    place: BatchPlace
    producer_id: int
    producer_epoch: int

    @property
    def first_offset(self) -> int:
        return self.place.offset


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """The end marker of a transaction whose first offset is known.

    ``last_offset`` is the offset of the marker, ``last_stable_offset`` the log's last stable offset right after the
    marker was appended, and ``transaction`` has the batches.
    """

    place: BatchPlace
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_stable_offset: int
    is_aborted: bool
    coordinator_epoch: int | None
    transaction: Transaction | None = field(default=None, compare=False, repr=False)

    @property
    def last_offset(self) -> int:
        return self.place.offset


class MarkerOrphaned(msgspec.Struct, frozen=True):
    """An end marker of a producer that has no open transaction in this log."""

    place: BatchPlace
    producer_id: int
    producer_epoch: int
    is_aborted: bool
    coordinator_epoch: int | None


class NoEndMarker(msgspec.Struct, frozen=True):
    """A control record of a producer that is no end marker, but of another type."""

    place: BatchPlace
    producer_id: int
    control: ControlRecord


class TransactionLeft(msgspec.Struct, frozen=True):
    """The first batch of a producer outside of its transaction, while this is open."""

    place: BatchPlace
    producer_id: int
    first_offset: int


ProducerEvent = (
    ProducerEpochFell
    | SequenceBroke
    | TransactionBegan
    | TransactionEnded
    | TransactionLeft
    | MarkerOrphaned
    | NoEndMarker
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


def rows_by_producer(table: BatchTable, rows: NDArray[np.intp]) -> list[tuple[int, NDArray[np.intp]]]:
    """The producer ids of some batches, each with its rows in log order."""
    if not len(rows):
        return []
    order = rows[np.argsort(table.producer_id[rows], kind="stable")]
    ids = table.producer_id[order]
    edges = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1], [True]))).tolist()
    return [(int(ids[first]), order[first:last]) for first, last in pairwise(edges)]


def last_sequence_of(table: BatchTable, row: int) -> int:
    """The sequence of the last record of a batch, which wraps; negative for none."""
    base = int(table.base_sequence[row])
    return base if base < 0 else (base + int(table.last_offset_delta[row])) & _SEQUENCE_MASK


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
    # producer id -> epoch, last offset of it
    _last_data: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)

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
        return {producer_id: each.first_offset for producer_id, each in self.transactions.open.items()}

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
        groups = rows_by_producer(table, np.flatnonzero(table.producer_id >= 0))
        for producer_id, rows in groups:
            events += self._epochs_fallen(table, rows, producer_id)
            if self.checks_sequences:
                events += self._sequences_broken(table, rows, producer_id)
        for producer_id, rows in groups:
            self._update(table, rows, producer_id, markers)
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
        self, table: BatchTable, rows: NDArray[np.intp], producer_id: int, markers: dict[int, ControlRecord]
    ) -> None:
        """Bring an entry up to date: the producer's last data batch and the markers after it decide."""
        entry = self.entries.setdefault(producer_id, ProducerEntry(-1))
        is_control = table.is_control[rows]
        data, control = rows[~is_control], rows[is_control]
        if len(data):
            row = int(data[-1])
            entry.producer_epoch = int(table.producer_epoch[row])
            entry.last_sequence = last_sequence_of(table, row)
            entry.last_offset = int(table.last_offset[row])
            entry.offset_delta = int(table.last_offset_delta[row])
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
