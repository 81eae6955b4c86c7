"""The history of a partition as its replicas know it: leader epochs with their starts, and who followed which.

In one leader epoch there is one leader, and each offset is written once. So two batches of the same epoch at the same
offset are the same, and so is all that comes before them. A batch belongs to the history exactly if the history has the
epoch of the batch at its offsets. Messages of v0 and v1 have no epochs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint, offset_index
from format.files.leader_epoch_checkpoint import EpochEntry
from format.io.source import FileSource
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.log.batch_chunk import BatchRange
from format.log.batch_header import header_tables
from format.log.batch_table import BatchTable, HeaderTable
from format.log.walker import header_chunks
from format.node.partition import Partition, Segment
from format.offset_ranges import Int64s

_MAX_OFFSET = 2**63 - 1


class Claims(msgspec.Struct):
    """What one replica says of the history: the start offset of each epoch, and the end of its log.

    ``noted`` are the epochs of the checkpoint. ``doubtful`` are those of a single batch alone, as no CRC covers that
    field.
    """

    starts: dict[int, int] = msgspec.field(default_factory=dict)
    noted: set[int] = msgspec.field(default_factory=set)
    doubtful: set[int] = msgspec.field(default_factory=set)
    log_end_offset: int = 0

    @property
    def latest(self) -> int:
        """The latest epoch, -1 for none."""
        return max(self.starts, default=-1)


def claims_of(partition: Partition, limits: Limits) -> Claims:
    """The epochs of a replica by its checkpoint, and by the headers of its batches where that says nothing.

    Epochs that begin past the end of the log are kept: a log that has lost its end shows by them what it had.
    """
    noted: list[EpochEntry] = []
    if partition.leader_epoch_checkpoint is not None:
        try:
            entries = leader_epoch_checkpoint.read(partition.leader_epoch_checkpoint, limits).entries
        except KafkaLogError:
            entries = ()
        for entry in entries:
            while noted and (
                noted[-1].leader_epoch >= entry.leader_epoch or noted[-1].start_offset >= entry.start_offset
            ):
                noted.pop()
            noted.append(entry)
    claims = Claims({each.leader_epoch: each.start_offset for each in noted})
    claims.noted = set(claims.starts)
    latest = claims.latest
    counts: dict[int, int] = {}
    if partition.segments:
        claims.log_end_offset = partition.segments[-1].base_offset
    if noted and not _read_headers(claims, partition.segments[-1:], latest, counts, from_end=True):
        return claims
    _read_headers(claims, partition.segments[-1:] if noted else partition.segments, latest, counts)
    claims.doubtful = {number for number, count in counts.items() if count == 1}
    return claims


def _read_headers(
    claims: Claims, segments: Sequence[Segment], latest: int, counts: dict[int, int], *, from_end: bool = False
) -> bool:
    """Take the epochs after ``latest`` and the end of the log from headers; returns whether there are such epochs.

    ``counts`` has the batches of each epoch. With ``from_end`` only the last headers are read, and no epochs are taken.
    """
    has_later = False
    for segment in segments:
        last = segment.base_offset + MAX_RELATIVE_OFFSET
        for table in _headers(segment, from_end=from_end):
            epoch, first, end = table.leader_epoch, table.header_offset, table.last_offset
            fits = (first >= segment.base_offset) & (end <= last)
            if fits.any():
                claims.log_end_offset = max(claims.log_end_offset, int(end[fits].max()) + 1)
            fits &= table.magic == 2
            has_later |= bool((epoch[fits] > latest).any())
            if not from_end:
                _take_epochs(claims, epoch[fits], first[fits], latest, counts)
    return has_later


def _take_epochs(claims: Claims, epoch: Int64s, first: Int64s, latest: int, counts: dict[int, int]) -> None:
    """Take the epochs of some batches; one of a single batch is none if an earlier epoch comes after it."""
    if not len(epoch):
        return
    for number in [each for each, count in counts.items() if count == 1 and each > epoch.min()]:
        del claims.starts[number], counts[number]
    least_after = np.append(np.minimum.accumulate(epoch[::-1])[::-1][1:], _MAX_OFFSET)
    for number in np.unique(epoch[epoch > latest]).tolist():
        which = epoch == number
        count = counts.get(number, 0) + int(which.sum())
        if count == 1 and (which & (epoch > least_after)).any():
            continue
        counts[number] = count
        claims.starts[number] = min(claims.starts.get(number, _MAX_OFFSET), int(first[which].min()))


def _headers(segment: Segment, *, from_end: bool) -> Iterator[HeaderTable]:
    """The headers of a segment as far as they can be read; after damage they go on where an entry of its index is.

    With ``from_end`` they start at the last of these entries.
    """
    if segment.log is None:
        return
    try:
        with FileSource(segment.log) as source:
            positions = _indexed(segment)
            positions = positions[positions < source.size_bytes]
            at = int(positions.max()) if from_end and len(positions) else 0
            while True:
                for table in header_tables(source, at, source.size_bytes):
                    yield table
                    at = int(table.end_position[-1])
                if at >= source.size_bytes:
                    return
                after = positions[positions > at]
                if not len(after):
                    break
                at = int(after.min())
            for chunk in header_chunks(source, BatchRange(at)):
                if len(chunk.headers):
                    yield chunk.headers
    except KafkaLogError:
        return


def _indexed(segment: Segment) -> Int64s:
    """The positions that the offset index of a segment names; none where it cannot be trusted."""
    if segment.offset_index is not None:
        with contextlib.suppress(KafkaLogError):
            index = offset_index.read(segment.offset_index, segment.base_offset)
            if not index.problems:
                return index.positions
    return np.empty(0, np.int64)


def confirm(claims: Sequence[Claims]) -> None:
    """Drop the doubtful epochs that another log contradicts: one that goes on there without the epoch."""
    for number, each in enumerate(claims):
        for epoch in sorted(each.doubtful):
            others = [other for at, other in enumerate(claims) if at != number]
            starts = [other.starts[epoch] for other in others if epoch in other.starts and epoch not in other.doubtful]
            is_false = any(start > each.starts[epoch] for start in starts)
            is_shared = any(epoch in other.starts for other in others)
            if is_false or (not is_shared and any(other.log_end_offset > each.starts[epoch] for other in others)):
                del each.starts[epoch]


def has_no_epoch(table: BatchTable) -> NDArray[np.bool_]:
    """Which batches are messages of v0 or v1, or have no leader epoch."""
    has_none: NDArray[np.bool_] = (table.magic < 2) | (table.leader_epoch == layout.NO_LEADER_EPOCH)
    return has_none


class History(msgspec.Struct, frozen=True):
    """The leader epochs of the branch that is kept, and the start offset of each; both rise."""

    epochs: Int64s
    starts: Int64s

    def epoch_at(self, offsets: Int64s) -> Int64s:
        """The epoch at each offset, -1 where none is known.

        The first one has an earlier start than is noted: that moves with the start of the log.
        """
        if not len(self.epochs):
            return np.full(len(offsets), -1, np.int64)
        found: Int64s = self.epochs[np.maximum(np.searchsorted(self.starts, offsets, "right") - 1, 0)]
        return found

    def has(self, table: BatchTable) -> NDArray[np.bool_]:
        """Which batches are of this history by their epochs. Those without an epoch are, as far as is known."""
        own = table.leader_epoch
        is_here = (self.epoch_at(table.base_offset) == own) & (self.epoch_at(table.last_offset) == own)
        is_of_history: NDArray[np.bool_] = has_no_epoch(table) | is_here
        return is_of_history

    def end_of_epoch(self, offset: int) -> int:
        """The offset at which the next epoch after that of an offset starts."""
        at = int(np.searchsorted(self.starts, offset, "right"))
        return int(self.starts[at]) if at < len(self.starts) else _MAX_OFFSET


def history_of(base: Claims, others: Sequence[Claims]) -> History:
    """The history of the base, with what others know of it: all that is before an epoch that both have."""
    known = dict(base.starts)
    for other in sorted(others, key=lambda each: -each.latest):
        common = max((epoch for epoch in other.starts if epoch in known), default=-1)
        for epoch, start in other.starts.items():
            if epoch <= common:
                known[epoch] = min(known.get(epoch, start), start)
    entries: list[tuple[int, int]] = []
    for epoch in sorted(known, reverse=True):  # from the last: a start that does not fit before it is no start
        if not entries or known[epoch] < entries[-1][1]:
            entries.append((epoch, known[epoch]))
    entries.reverse()
    return History(np.array([each[0] for each in entries], np.int64), np.array([each[1] for each in entries], np.int64))
