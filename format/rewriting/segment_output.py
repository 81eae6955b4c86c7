"""Writes the segments that one source segment becomes, in order, and rolls them as a broker would."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from format import layout
from format.log.batch_table import BatchTable, whole_batches
from format.node.partition import segment_file_name
from format.rewriting.index_builder import AbortedEntry, SegmentIndexBuilder, transaction_index_bytes
from format.rewriting.publishing.new_file import NewFile
from format.rewriting.publishing.publication import Publication
from format.rewriting.read_back import OutputRange
from format.rewriting.rewriter import Rewriter, SourceLog
from format.rewriting.written_batches import Decision, NewBatches, joined
from format.rewriting.written_segments import WrittenSegment, written_segment

#: The bytes that are collected before they are written.
_PENDING_BYTES = 1024 * 1024
#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1


@dataclass(slots=True)
class SegmentWriter:
    """Writes the files of one segment; ``writes_log`` False writes its indexes alone.

    ``write`` takes the bytes of the log, ``index`` the batches in them, and ``close`` writes the indexes. ``mtime_ns``
    is the modification time of the source's log, which decides retention where a log has no timestamps.
    """

    publication: Publication
    directory: str
    written: WrittenSegment
    interval_bytes: int
    writes_log: bool = True
    mtime_ns: int | None = None
    size_bytes: int = field(init=False, default=0)  # of the log so far
    _log: NewFile | None = field(init=False, default=None)
    _indexes: SegmentIndexBuilder = field(init=False)

    def __post_init__(self) -> None:
        self._indexes = SegmentIndexBuilder(self.written.segment_base_offset, self.interval_bytes)
        if self.writes_log:
            self._log = self.publication.create(self.log_path, write_beside=True)
            self._log.mtime_ns = self.mtime_ns

    @property
    def log_path(self) -> str:
        return self._file(layout.LOG_SUFFIX)

    def _file(self, suffix: str) -> str:
        return f"{self.directory}/{segment_file_name(self.written.segment_base_offset, suffix)}"

    def write(self, content: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the log; without a log they only count as size."""
        self.size_bytes += len(content)
        if self._log is not None:
            self._log.write(content)

    def index(self, table: BatchTable) -> None:
        """Index the batches of the bytes written, with their positions in the new log."""
        self._indexes.feed(table)
        self.written.batch_count += len(table)

    def finish_log(self) -> None:
        """End the log, so that it can be read back while it is flushed to the disk."""
        if self._log is not None:
            self._log.finish_writing()

    def close(self, aborted: list[AbortedEntry]) -> WrittenSegment:
        """Close the log and write the indexes. Raises OutputError, and InvalidIndex where the offsets fit no index."""
        if self._log is not None:
            self._log.close()
            self.written.size_bytes = self._log.size_bytes
        offsets, times = self._indexes.offset_index(), self._indexes.time_index()
        self.publication.write_file(self._file(layout.OFFSET_INDEX_SUFFIX), offsets)
        self.publication.write_file(self._file(layout.TIME_INDEX_SUFFIX), times)
        if aborted:
            self.publication.write_file(self._file(layout.TRANSACTION_INDEX_SUFFIX), transaction_index_bytes(aborted))
        self.written.index_entries = len(offsets) // layout.OFFSET_INDEX_ENTRY.size_bytes
        self.written.time_index_entries = len(times) // layout.TIME_INDEX_ENTRY.size_bytes
        self.written.aborted_txns = len(aborted)
        return self.written

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

    ``mtime_ns`` is as in SegmentWriter.
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
        self._writers: list[SegmentWriter] = []
        self._pending: list[NewBatches] = []
        self._pending_bytes = 0
        self._is_closed = False
        self._start(log.base_offset)

    def _start(self, base_offset: int) -> None:
        location = self._log.location
        written = written_segment(self._directory, location.topic, location.partition, base_offset)
        self._writers.append(
            SegmentWriter(
                self._publication,
                self._directory,
                written,
                self._rewriter.terms.interval_bytes,
                self._rewriter.writes_log,
                self._mtime_ns,
            )
        )

    def put(self, batches: NewBatches) -> None:
        """Append batches to the open segment, after rolling a new one where a broker would (LogSegment.shouldRoll)."""
        if not len(batches):
            return
        writer = self._writers[-1]
        size_bytes, before = len(batches.content), writer.size_bytes + self._pending_bytes
        is_full = before + size_bytes > self._most_bytes and (before > 0 or len(batches) > 1)
        if is_full or int(batches.last_offsets.max()) - writer.written.segment_base_offset > layout.MAX_RELATIVE_OFFSET:
            if len(batches) > 1:
                for each in batches.each():
                    self.put(each)
                return
            self.finish_log()
            self._start(int(batches.first_offsets[0]))
        self._pending.append(batches)
        self._pending_bytes += size_bytes
        if self._pending_bytes >= _PENDING_BYTES:
            self._flush()

    def put_unindexed(self, content: bytes) -> None:
        """Append bytes that are no batch, without indexing them."""
        self._flush()
        self._writers[-1].write(content)

    def _flush(self) -> None:
        """Write the pending batches, and index them by their own headers."""
        if not self._pending:
            return
        writer, batches = self._writers[-1], joined(self._pending)
        table = whole_batches(batches.content, writer.size_bytes, len(batches))
        writer.write(batches.content)
        writer.index(table)
        if self._rewriter.writes_log:
            counts = np.bincount(batches.decisions, minlength=len(Decision)).tolist()
            writer.written.copied_count += counts[Decision.COPIED]
            writer.written.recompressed_count += counts[Decision.RECOMPRESSED]
            writer.written.rebuilt_count += counts[Decision.REBUILT]
        self._pending, self._pending_bytes = [], 0

    def mark(self) -> Mark:
        """The current position."""
        return Mark(len(self._writers) - 1, self._writers[-1].size_bytes + self._pending_bytes)

    def ranges(self, start: Mark, end: Mark) -> tuple[OutputRange, ...]:
        """The ranges of the files that were written between two marks; none where no log is written."""
        found = []
        for number in range(start.number, end.number + 1) if self._rewriter.writes_log else ():
            writer = self._writers[number]
            first = start.size_bytes if number == start.number else 0
            last = end.size_bytes if number == end.number else writer.size_bytes
            if first < last:
                found.append(OutputRange(self._publication.place_of(writer.log_path), first, last))
        return tuple(found)

    def finish_log(self) -> None:
        """Write the pending batches and end the open log, so that it can be read back. Raises OutputError."""
        self._flush()
        self._writers[-1].finish_log()

    def close(self, aborted: list[AbortedEntry]) -> list[WrittenSegment]:
        """Close the new segments, which were read back and compared, with their indexes.

        Each gets the aborted transactions whose marker it holds. Raises OutputError.
        """
        written = []
        for number, writer in enumerate(self._writers):
            start = writer.written.segment_base_offset if number else 0
            is_last = number == len(self._writers) - 1
            end = None if is_last else self._writers[number + 1].written.segment_base_offset
            own = [each for each in aborted if each[2] >= start and (end is None or each[2] < end)]
            written.append(writer.close(own))
            if self._rewriter.writes_log:
                self._publication.mark_read_back(writer.log_path)
        self._is_closed = True
        return written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_closed:
            for writer in self._writers:
                writer.discard()
