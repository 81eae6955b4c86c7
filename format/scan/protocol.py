"""The scan protocol: what a verb defines so that any driver can run it over any number of logs.

A verb that reads logs is a ``Scan``. It states what it needs of the logs, makes parts from the batches of a range, and
folds the parts of each log, in log order, into results. Drivers do everything else: they open files, cut logs into
ranges, run processes, count progress, and detect files that change while they are read.

With two rules, all drivers produce the same results:

- ``parts`` depends only on the bytes of its range. It may keep state within one range, but not from range to range.
- All state that crosses ranges is in ``fold``, which gets the parts of a log in log order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from format.io.source import FileSource, FileState
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange, HeaderChunk
from format.log.walker import BODY_CHUNK_BYTES, HEADER_CHUNK_BYTES, batch_chunks, header_chunks
from format.node.partition import Segment
from format.scan.selection import EVERYTHING, CommittedView, Selection, start_position

PartT = TypeVar("PartT")
PartT_co = TypeVar("PartT_co", covariant=True)
ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)

#: Chunks are at least this large, even under a smaller limit.
_LEAST_CHUNK_BYTES = 64 * 1024
#: A function that returns free memory of SLOT_BYTES for the bytes of a part, see ``OpenedRange.room``.
Room = Callable[[], memoryview]


class Depth(IntEnum):
    """How much of each batch is read."""

    HEADERS = 0  # only headers: each chunk is a HeaderChunk, and CRCs are not computed
    CRC = 1  # whole batches: each chunk is a BatchChunk, and CRCs are computed
    RECORDS = 2  # whole batches, whose records the scan decodes


class Cost(msgspec.Struct, frozen=True):
    """The processor time of a scan, in seconds: per batch, per byte, and per compressed byte."""

    batch_s: float
    byte_s: float
    compressed_byte_s: float


class Needs(msgspec.Struct, frozen=True):
    """What a scan needs of the logs. A ``cost`` of None means that several processes are never faster.

    ``chunk_bytes`` is the size of a chunk, None for the default of the walker. Chunks are not larger than the limit for
    batches: otherwise it would depend on the chunk whether a batch over the limit is read.
    """

    depth: Depth = Depth.RECORDS
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    chunk_bytes: int | None = None
    cost: Cost | None = None

    @property
    def reads_bodies(self) -> bool:
        """Whether whole batches are read, or only their headers."""
        return self.depth >= Depth.CRC

    @property
    def range_bytes(self) -> int:
        """The size of the ranges for worker processes, which is the size of the chunks of a single reader."""
        wanted = self.chunk_bytes or BODY_CHUNK_BYTES
        return min(wanted, max(self.limits.max_decompressed_bytes, _LEAST_CHUNK_BYTES))

    @property
    def may_end_early(self) -> bool:
        """Whether the selection may end before the log does, so that reading ahead may be wasted."""
        return self.selection.to_offset is not None or self.selection.to_timestamp is not None

    def chunks(self, source: FileSource, batch_range: BatchRange) -> Iterator[HeaderChunk]:
        """The chunks of a range of a log."""
        if self.reads_bodies:
            return batch_chunks(source, batch_range, limits=self.limits, chunk_bytes=self.range_bytes)
        chunk_bytes = self.chunk_bytes or HEADER_CHUNK_BYTES
        return header_chunks(source, batch_range, limits=self.limits, chunk_bytes=chunk_bytes)


class LogUnit(msgspec.Struct, frozen=True):
    """One log file to scan, with its place in the partition.

    ``segment`` is None for a file that belongs to no segment. ``next_base_offset`` is the base offset of the next
    segment, None for the last one. ``known_end`` is an offset that the log once reached, None if unknown. ``state`` is
    the state of the file when the work was planned, for a driver on another host; with None the file is taken as it is.
    ``end`` is the position at which reading ends, None for the end of the file. ``log_start_offset`` is the first
    offset that a broker serves of the partition, None if unknown. ``committed`` restricts the log to what a
    read_committed consumer gets. ``keeps_end``: after a clean stop a broker does not cut off an unreadable end.
    """

    path: Path
    location: Location
    segment: Segment | None = None
    next_base_offset: int | None = None
    known_end: int | None = None
    state: FileState | None = None
    end: int | None = None
    log_start_offset: int | None = None
    committed: CommittedView | None = None
    keeps_end: bool = False

    @property
    def is_last_segment(self) -> bool:
        """Whether it is the last segment of its partition."""
        return self.next_base_offset is None

    @property
    def offsets_end(self) -> int | None:
        """The offset after the last one that the file has or may have had; None if unknown."""
        return self.known_end if self.next_base_offset is None else self.next_base_offset

    def whole_range(self, source: FileSource, selection: Selection) -> BatchRange:
        """The range to read, from a batch boundary at or before the selection on."""
        if self.segment is None or selection.is_everything:
            return BatchRange(end=self.end)
        return BatchRange(start_position(self.segment, source, selection), self.end)


class OpenedRange(msgspec.Struct, frozen=True):
    """A range of an open log; ``chunks`` are its batches or headers, which can be iterated once.

    A walk that makes a part with many bytes should write them into ``room()``, so that they reach another process
    without a copy. Such a part is valid until the next one is requested, because the room is reused.
    """

    log: LogUnit
    source: FileSource
    batch_range: BatchRange
    chunks: Iterable[HeaderChunk]
    room: Room

    @property
    def batches(self) -> Iterator[BatchChunk]:
        """The chunks of a scan that reads whole batches. Raises ValueError for one that reads headers."""
        for chunk in self.chunks:
            if not isinstance(chunk, BatchChunk):
                raise ValueError("the scan reads only headers")
            yield chunk


class LogParts(Iterator[PartT]):
    """The parts of one log, in log order, which can be iterated once.

    ``state`` is the state of the opened file, set when the first part is requested; it stays None if the file cannot
    be opened. Iteration raises KafkaLogError if reading ends before the log does, FileChanged if the file was
    truncated, replaced or removed.
    """

    __slots__ = ("_parts", "state")

    def __init__(self, read: Callable[[LogParts[PartT]], Iterator[PartT]]) -> None:
        self.state: FileState | None = None
        self._parts = read(self)

    def __next__(self) -> PartT:
        return next(self._parts)

    def close(self) -> None:
        """End the reading of this log."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()


class Walk(Protocol[PartT_co]):
    """The part of a scan that drivers run: its needs, and the parts of a range."""

    @property
    def needs(self) -> Needs: ...

    def parts(self, opened: OpenedRange) -> Iterator[PartT_co]:
        """The parts of a range, in order: what the fold needs of it. Parts are picklable and small, or numpy columns.

        Parts that are bytes or memoryviews are a stream, which a driver may join and split.
        """
        ...


class Scan(Walk[PartT], Protocol[PartT, ResultT_co]):
    """A scan of single logs. A verb whose fold crosses logs, such as verify, uses a driver directly."""

    def fold(self, log: LogUnit, parts: LogParts[PartT]) -> Iterator[ResultT_co]:
        """The results for one log. It may stop early, and need not catch the errors of ``parts``."""
        ...


class Unfolded(Generic[PartT]):
    """The base of scans whose results are their parts."""

    __slots__ = ()

    def fold(self, log: LogUnit, parts: LogParts[PartT]) -> Iterator[PartT]:
        return parts


class Driver(Protocol[PartT]):
    """Reads logs for one scan. Planned logs must be requested in their order."""

    def parts(self, log: LogUnit) -> LogParts[PartT]:
        """The parts of a log."""
        ...


#: The size of the room for the bytes of one part.
SLOT_BYTES = 4 * MIB


def own_room() -> Room:
    """A room in the memory of this process, which is reused for all parts; it is allocated when it is first needed."""
    return cache(lambda: memoryview(bytearray(SLOT_BYTES)))
