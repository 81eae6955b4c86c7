"""Events of producers and transactions, from the batches of a log in log order.

``format.state.producers`` emits them; checks make findings of them, writers indexes and snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from format import layout
from format.location import Location
from format.log.control_records import ControlRecord


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
