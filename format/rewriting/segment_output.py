"""Writes the segments that one source segment becomes, in order, and rolls them as a broker would."""

from __future__ import annotations

import math
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from format import layout
from format.log.batch_table import BatchTable, whole_batches
from format.node.segment import segment_file_name
from format.rewriting.index_builder import AbortedEntry, SegmentIndexBuilder, transaction_index_bytes
from format.rewriting.publication import NewFile, Publication
from format.rewriting.read_back import OutputRange
from format.rewriting.rewriter import Decision, NewBatches, Rewriter, SourceLog, WrittenSegment, written_segment

#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1


class _NewSegment:
    """A segment while it is written: its log, if the verb writes logs, and what its indexes will have."""

    def __init__(
        self,
        publication: Publication,
        rewriter: Rewriter,
        directory: str,
        written: WrittenSegment,
        mtime_ns: int | None,
    ) -> None:
        self.written = written
        self.size_bytes = 0  # of the log so far; without a log it is only counted
        self._publication = publication
        self._indexes = SegmentIndexBuilder(written.segment_base_offset, rewriter.terms.interval_bytes)
        self._stem = f"{directory}/{segment_file_name(written.segment_base_offset, '')}"
        self._log: NewFile | None = None
        if rewriter.writes_log:
            self._log = publication.create(written.path, write_beside=True)
            self._log.mtime_ns = mtime_ns

    def write(self, content: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the log."""
        self.size_bytes += len(content)
        if self._log is not None:
            self._log.write(content)

    def put(self, batches: NewBatches, table: BatchTable) -> None:
        """Write the next batches, and index them by their own headers, which are in the table."""
        self._indexes.feed(table)
        self.write(batches.content)
        self.written.batch_count += len(batches)
        if self._log is not None:
            counts = np.bincount(batches.decisions, minlength=len(Decision)).tolist()
            self.written.copied_count += counts[Decision.COPIED]
            self.written.recompressed_count += counts[Decision.RECOMPRESSED]
            self.written.rebuilt_count += counts[Decision.REBUILT]

    def finish_log(self) -> None:
        """End the log, so that it can be read back while it is flushed to the disk."""
        if self._log is not None:
            self._log.finish_writing()

    def close(self, aborted: list[AbortedEntry]) -> WrittenSegment:
        """Close the log, which was read back, and write the indexes. Raises OutputError and InvalidIndex."""
        written = self.written
        if self._log is not None:
            self._log.close()
            self._publication.mark_read_back(written.path)
            written.size_bytes = self._log.size_bytes
        offsets, times = self._indexes.offset_index(), self._indexes.time_index()
        self._publication.write_file(self._stem + layout.OFFSET_INDEX_SUFFIX, offsets)
        self._publication.write_file(self._stem + layout.TIME_INDEX_SUFFIX, times)
        if aborted:
            self._publication.write_file(self._stem + layout.TRANSACTION_INDEX_SUFFIX, transaction_index_bytes(aborted))
        written.index_entries = len(offsets) // layout.OFFSET_INDEX_ENTRY.size_bytes
        written.time_index_entries = len(times) // layout.TIME_INDEX_ENTRY.size_bytes
        written.aborted_txns = len(aborted)
        return written

    def discard(self) -> None:
        """Close and remove the log, unless it was closed before."""
        if self._log is not None:
            self._log.discard()


class Mark(NamedTuple):
    """A position in the output: the number of the segment, and the bytes in it so far."""

    number: int
    size_bytes: int


class SegmentOutput:
    """The output of one segment of the source; as a context manager it removes what it has written, unless closed.

    ``mtime_ns`` is the modification time of the source's log, which decides retention where a log has no timestamps.
    """

    def __init__(
        self, publication: Publication, rewriter: Rewriter, directory: str, log: SourceLog, mtime_ns: int | None
    ) -> None:
        self._publication = publication
        self._rewriter = rewriter
        self._directory = directory
        self._log = log
        self._mtime_ns = mtime_ns
        most_bytes = min(rewriter.segment_bytes or _MAX_SEGMENT_BYTES, _MAX_SEGMENT_BYTES)
        self._most_bytes = most_bytes if rewriter.writes_log else math.inf  # indexes by themselves are never rolled
        self._segments: list[_NewSegment] = []
        self._is_closed = False
        self._start(log.base_offset)

    def _start(self, base_offset: int) -> None:
        location = self._log.location
        written = written_segment(self._directory, location.topic, location.partition, base_offset)
        self._segments.append(_NewSegment(self._publication, self._rewriter, self._directory, written, self._mtime_ns))

    def put(self, batches: NewBatches) -> None:
        """Append batches to the open segment, after rolling a new one where a broker would (LogSegment.shouldRoll)."""
        if not len(batches):
            return
        segment = self._segments[-1]
        table = whole_batches(batches.content, segment.size_bytes, len(batches))
        is_full = segment.size_bytes + len(batches.content) > self._most_bytes
        is_full &= segment.size_bytes > 0 or len(batches) > 1
        reach = int(table.last_offset.max()) - segment.written.segment_base_offset
        if is_full or reach > layout.MAX_RELATIVE_OFFSET:
            if len(batches) > 1:
                for each in batches.each(table.size_bytes):
                    self.put(each)
                return
            self.finish_log()
            self._start(int(batches.first_offsets[0]))
            table = whole_batches(batches.content, 0, 1)
        self._segments[-1].put(batches, table)

    def put_unindexed(self, content: bytes) -> None:
        """Append bytes that are no batch, without indexing them."""
        self._segments[-1].write(content)

    def mark(self) -> Mark:
        """The current position."""
        return Mark(len(self._segments) - 1, self._segments[-1].size_bytes)

    def ranges(self, start: Mark, end: Mark) -> tuple[OutputRange, ...]:
        """The ranges of the files that were written between two marks; none where no log is written."""
        found = []
        for number in range(start.number, end.number + 1) if self._rewriter.writes_log else ():
            segment = self._segments[number]
            first = start.size_bytes if number == start.number else 0
            last = end.size_bytes if number == end.number else segment.size_bytes
            if first < last:
                found.append(OutputRange(self._publication.place_of(segment.written.path), first, last))
        return tuple(found)

    def finish_log(self) -> None:
        """End the open log, so that it can be read back. Raises OutputError."""
        self._segments[-1].finish_log()

    def close(self, aborted: list[AbortedEntry]) -> list[WrittenSegment]:
        """Close the new segments, which were read back and compared, with their indexes.

        Each gets the aborted transactions whose marker it holds. Raises OutputError.
        """
        starts = [0, *(each.written.segment_base_offset for each in self._segments[1:]), math.inf]
        written = [
            segment.close([each for each in aborted if starts[number] <= each[2] < starts[number + 1]])
            for number, segment in enumerate(self._segments)
        ]
        self._is_closed = True
        return written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_closed:
            for segment in self._segments:
                segment.discard()
