"""Builds the indexes of a segment as a broker of 4.x does when it recovers the segment (storage LogSegment.recover).

An offset index entry is made for a batch that starts more than ``index.interval.bytes`` after the last indexed batch,
or after the segment's start. It has the batch's last offset. With each of these entries, and when the segment is
closed, a time index entry is made if the largest timestamp so far is above that of the last entry; its offset is the
last offset of the first batch with that timestamp. A transaction index entry is made for each ABORT marker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import InvalidIndex, KafkaLogError
from format.files import offset_index, time_index, transaction_index
from format.files.producer_snapshot import read as read_producer_snapshot
from format.io.session import is_there
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.node.partition import Partition, Segment
from format.state.producers import ProducerState, TransactionEnded

DEFAULT_INTERVAL_BYTES = 4096

Int64Column = NDArray[np.int64]
#: What to do next about offsets that no batch of the source has.
LOOK_ELSEWHERE = "Look for these offsets in another replica, a backup, or where the records came from."
#: An aborted transaction as the index holds it: producer id, first offset, last offset, last stable offset.
AbortedEntry = tuple[int, int, int, int]


class SegmentIndexBuilder:
    """Builds ``.index`` and ``.timeindex`` of one segment from its batches, fed in order table by table.

    Positions are those in the segment that is indexed. Memory grows with the entries, not with the batches.
    """

    def __init__(self, base_offset: int, interval_bytes: int = DEFAULT_INTERVAL_BYTES) -> None:
        self.base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._last_indexed_position = 0
        self._offset_entries: list[Int64Column] = []  # rows of (offset, position)
        self._time_entries: list[Int64Column] = []  # rows of (largest timestamp so far, its offset)
        self._largest = layout.NO_TIMESTAMP
        self._offset_of_largest = -1

    def feed(self, table: BatchTable) -> None:
        """Add the next batches of the segment; their offsets must rise and fit in the segment."""
        if not len(table):
            return
        last_offset, position = table.last_offset, table.position
        timestamps = table.max_timestamp
        before = np.maximum.accumulate(np.concatenate(([self._largest], timestamps)))
        largest = before[1:]
        is_new = timestamps > before[:-1]
        row_of_largest = np.maximum.accumulate(np.where(is_new, np.arange(len(table)), -1))
        offset_of_largest = np.where(row_of_largest >= 0, last_offset[row_of_largest], self._offset_of_largest)
        rows = self._indexed_rows(position)
        self._offset_entries.append(np.column_stack((last_offset[rows], position[rows])))
        self._time_entries.append(np.column_stack((largest[rows], offset_of_largest[rows])))
        self._largest, self._offset_of_largest = int(largest[-1]), int(offset_of_largest[-1])

    def _indexed_rows(self, position: Int64Column) -> NDArray[np.intp]:
        rows = []
        positions = position.tolist()
        row = bisect_right(positions, self._last_indexed_position + self._interval_bytes)
        while row < len(positions):
            rows.append(row)
            self._last_indexed_position = positions[row]
            row = bisect_right(positions, self._last_indexed_position + self._interval_bytes, row)
        return np.array(rows, np.intp)

    def offset_index(self) -> bytes:
        """The bytes of the ``.index``. Raises InvalidIndex for offsets or positions that do not fit in an entry."""
        entries = self._joined(self._offset_entries)
        if len(entries) and (np.diff(entries[:, 0]) <= 0).any():
            raise InvalidIndex("the batches' offsets do not rise")
        return offset_index.write((entries[:, 0] - self.base_offset, entries[:, 1]))

    def time_index(self) -> bytes:
        """The bytes of the ``.timeindex`` of the closed segment."""
        entries = self._joined([*self._time_entries, np.array([[self._largest, self._offset_of_largest]], np.int64)])
        before = np.maximum.accumulate(np.concatenate(([layout.NO_TIMESTAMP], entries[:, 0])))
        entries = entries[entries[:, 0] > before[:-1]]
        return time_index.write((entries[:, 0], entries[:, 1] - self.base_offset))

    @staticmethod
    def _joined(entries: list[Int64Column]) -> Int64Column:
        return np.concatenate([np.empty((0, 2), np.int64), *entries])


class TransactionIndexBuilder:
    """Builds the ``.txnindex`` of a partition's segments in log order.

    A transaction that began before the log's first batch is taken from a producer snapshot at the log's start, or from
    an entry of a sound ``.txnindex`` of the source whose ABORT marker is in the log. Otherwise it is not in the index,
    as with a broker.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._state = ProducerState()
        self._entries: list[AbortedEntry] = []
        self._unmatched: set[tuple[int, int]] = set()  # ABORT markers without a known transaction: producer, offset

    def seed(self, partition: Partition) -> None:
        """Take the open transactions from the snapshot of the offset at which the log starts, if there is one."""
        if not partition.segments:
            return
        path = partition.snapshots.get(partition.segments[0].base_offset)
        if path is None:
            return
        try:
            snapshot = read_producer_snapshot(path, self._limits)
        except KafkaLogError:
            return
        if not snapshot.problems:
            columns = zip(snapshot.producer_ids.tolist(), snapshot.current_txn_first_offsets.tolist(), strict=True)
            self.open_transactions |= {producer: first for producer, first in columns if first >= 0}

    def feed(self, table: BatchTable, markers: dict[int, ControlRecord]) -> None:
        """Add the next batches; ``markers`` maps the rows of control batches to their first record."""
        matched = set()
        for each in self._state.feed(table, markers):
            if isinstance(each, TransactionEnded):
                matched.add((each.producer_id, each.last_offset))
                if each.is_aborted:
                    self._entries.append(
                        (each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
                    )
        for row, marker in markers.items():
            key = (int(table.producer_id[row]), int(table.base_offset[row]))
            if marker.type_name == "ABORT" and key not in matched:
                self._unmatched.add(key)

    def take(self, source: Segment | None) -> list[AbortedEntry]:
        """The entries of the batches that were added since the last call, in the order of their markers."""
        entries, self._entries = self._entries, []
        unmatched, self._unmatched = self._unmatched, set()
        if unmatched and source is not None and source.transaction_index is not None:
            entries.extend(each for each in self._carried(source) if (each[0], each[2]) in unmatched)
        return sorted(entries, key=lambda each: each[2])

    def _carried(self, source: Segment) -> Iterable[AbortedEntry]:
        try:
            index = transaction_index.read(source.files[layout.TRANSACTION_INDEX_SUFFIX], source.base_offset)
        except KafkaLogError:
            return ()
        if index.problems:
            return ()
        columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
        return zip(*(column.tolist() for column in columns), strict=True)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The first offsets of the open transactions, by producer id; setting them resumes from there."""
        return self._state.open_transactions

    @open_transactions.setter
    def open_transactions(self, known: dict[int, int]) -> None:
        self._state.transactions.replace_open(known)


def transaction_index_bytes(entries: list[AbortedEntry]) -> bytes:
    """The bytes of a ``.txnindex``; empty without entries, where a broker makes no file."""
    columns = np.array(entries, np.int64).reshape(-1, 4).T
    return transaction_index.write((columns[0], columns[1], columns[2], columns[3]))


class IndexedOffsets:
    """The offsets that the indexes beside a log name. They are read once, when the first question is asked.

    Compaction writes new indexes with the new log, so that an entry names no offset that compaction removed.
    """

    def __init__(self, location: Location, limits: Limits) -> None:
        """``location`` is that of the log."""
        self._location = location
        self._limits = limits

    def within(self, first: int, until: int) -> int | None:
        """The lowest offset of ``[first, until)`` that an index names; None if none does or none can be read."""
        for offsets in self._by_index:
            at = int(np.searchsorted(offsets, first))
            if at < len(offsets) and offsets[at] < until:
                return int(offsets[at])
        return None

    def names(self, position: Int64Column, first: Int64Column, last: Int64Column) -> NDArray[np.bool_]:
        """Which batches the offset index names: an entry has the position of the batch, and one of its offsets."""
        named = np.zeros(len(position), bool)
        if len(self._by_index) and len(self._positions):
            at = np.minimum(np.searchsorted(self._positions, position), len(self._positions) - 1)
            offsets = self._by_index[0][at]
            named = (self._positions[at] == position) & (first <= offsets) & (offsets <= last)
        return named

    @cached_property
    def _by_index(self) -> list[Int64Column]:
        """The sorted offsets of the offset index, then of the time index; without those that are invalid."""
        if self._location.base_offset is None:
            return []
        found = []
        self._positions = np.empty(0, np.int64)
        log = Path(self._location.path)
        for suffix, read in (
            (layout.OFFSET_INDEX_SUFFIX, offset_index.read),
            (layout.TIME_INDEX_SUFFIX, time_index.read),
        ):
            path = log.with_name(log.name.removesuffix(layout.LOG_SUFFIX) + suffix)
            try:
                if not is_there(path):
                    continue
                index = read(path, self._location.base_offset, self._limits)
            except KafkaLogError:
                continue  # another finding reports it
            if not index.problems:
                found.append(np.sort(index.offsets))
                if isinstance(index, offset_index.OffsetIndex):
                    self._positions = index.positions
        return found
