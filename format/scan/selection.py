"""Selection: the offsets and times that a command reads, and the position in a segment at which reading starts."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.files import offset_index, time_index
from format.io.source import FileSource, Source
from format.log.batch_header import read_header
from format.log.batch_table import BatchTable
from format.log.record_table import RecordTable
from format.node.partition import Segment


class Selection(msgspec.Struct, frozen=True):
    """A half-open range of offsets, from ``from_offset`` to before ``to_offset``, and one of timestamps (ms).

    ``from_log_start`` leaves out records below the log start offset of their partition. ``read_committed`` selects what
    a consumer with that isolation level gets; each log then has a CommittedView.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    from_timestamp: int | None = None
    to_timestamp: int | None = None
    read_committed: bool = False
    from_log_start: bool = False

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def excludes_segment(self, base_offset: int, next_base_offset: int | None) -> bool:
        """Whether all offsets of a segment, from its base offset to the next segment's, are outside the range."""
        if self.to_offset is not None and base_offset >= self.to_offset:
            return True
        return self.from_offset is not None and next_base_offset is not None and next_base_offset <= self.from_offset

    def within(self, from_offset: int | None, to_offset: int | None) -> Selection:
        """The part of the selection from one offset to before another; None for no bound."""
        starts = [each for each in (self.from_offset, from_offset) if each is not None]
        ends = [each for each in (self.to_offset, to_offset) if each is not None]
        return replace(self, from_offset=max(starts, default=None), to_offset=min(ends, default=None))

    def batches(self, table: BatchTable) -> NDArray[np.bool_]:
        """Which batches may contain a selected record (bool)."""
        keep = np.ones(len(table), bool)
        if self.from_offset is not None:
            keep &= table.last_offset >= self.from_offset
        if self.to_offset is not None:
            # The header of a compressed v0/v1 message has only its last offset.
            keep &= (table.base_offset < self.to_offset) | (table.record_count < 0)
        if self.from_timestamp is not None:
            keep &= table.max_timestamp >= self.from_timestamp
        if self.to_timestamp is not None:
            # Records may be older than the first one, so only an append time is a lower bound for a batch.
            keep &= ~table.is_append_time | (table.max_timestamp < self.to_timestamp)
        return keep

    def records(self, table: RecordTable) -> NDArray[np.bool_]:
        """Which records are selected (bool)."""
        keep = np.ones(len(table), bool)
        if self.from_offset is not None:
            keep &= table.offset >= self.from_offset
        if self.to_offset is not None:
            keep &= table.offset < self.to_offset
        if self.from_timestamp is not None:
            keep &= table.timestamp >= self.from_timestamp
        if self.to_timestamp is not None:
            keep &= table.timestamp < self.to_timestamp
        return keep

    def is_past(self, table: BatchTable) -> bool:
        """Whether all batches after this table are past the range of offsets. A damaged batch does not show it."""
        if self.to_offset is None or not len(table):
            return False
        return int(table.last_offset[-1]) + 1 >= self.to_offset and bool(table.crc_valid[-1] != 0)


EVERYTHING = Selection()


class CommittedView(msgspec.Struct, frozen=True):
    """What a read_committed consumer gets of a partition: no control records, and no aborted ones, up to the LSO.

    ``aborted`` has, for each producer id, the first offsets of its aborted transactions and the offsets of their
    markers (int64), in log order. The view starts at ``log_start_offset``, and ends before ``last_stable_offset``. That
    can lie in a batch, if records of an open transaction were deleted; brokers serve only whole batches before it.
    """

    log_start_offset: int
    last_stable_offset: int
    aborted: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def batches(self, table: BatchTable) -> NDArray[np.bool_]:
        """Which batches have records for the consumer (bool); the first may also have some below the log start."""
        keep = ~table.is_control & (table.last_offset < self.last_stable_offset)
        keep &= table.last_offset >= self.log_start_offset
        for row in np.flatnonzero(keep & table.is_transactional).tolist():
            keep[row] = not self.is_aborted(int(table.producer_id[row]), int(table.base_offset[row]))
        return keep

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Whether the transactional record of a producer at an offset belongs to an aborted transaction."""
        known = self.aborted.get(producer_id)
        if known is None:
            return False
        firsts, markers = known
        number = int(np.searchsorted(markers, offset))
        return number < len(markers) and offset >= int(firsts[number])


def start_position(segment: Segment, source: Source, selection: Selection) -> int:
    """A batch boundary in the segment's log before which no record is selected, from its indexes.

    An index is only a hint: an entry is ignored if there is no plausible batch at its position, or one past the target.
    """
    target = selection.from_offset
    if selection.from_timestamp is not None:
        by_time = _offset_by_time(segment, selection.from_timestamp)
        if by_time is not None:
            target = by_time if target is None else max(target, by_time)
    if target is None or segment.offset_index is None:
        return 0
    try:
        with FileSource(segment.offset_index) as index:
            entry = offset_index.floor_entry(index, segment.base_offset, target)
    except KafkaLogError:
        return 0
    if entry is None or not is_batch_start(source, entry.position, at_most_offset=target):
        return 0
    return entry.position


def _offset_by_time(segment: Segment, timestamp: int) -> int | None:
    if segment.time_index is None:
        return None
    try:
        with FileSource(segment.time_index) as index:
            entry = time_index.floor_entry(index, segment.base_offset, timestamp)
    except KafkaLogError:
        return None
    return None if entry is None else entry.offset


def is_batch_start(source: Source, position: int, *, at_most_offset: int) -> bool:
    """Whether a plausible batch with a base offset of at most ``at_most_offset`` starts at a position."""
    header = read_header(source, position)
    return header is not None and header.end_position <= source.size_bytes and header.base_offset <= at_most_offset
