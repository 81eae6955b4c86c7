"""The segments that one segment becomes: filled in order, and rolled as a broker would roll them."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from format import layout
from format.log.batch_table import whole_batches
from format.node.partition import Partition
from format.rewriting.index_builder import AbortedEntry
from format.rewriting.publish import Publication
from format.rewriting.written_segments import SegmentWriter, WrittenSegment, written_segment
from format.verbs.recompress.new_batches import Decision, NewBatches, joined
from format.verbs.recompress.terms import Recompression

#: What is put together before it is written.
_PENDING_BYTES = 1024 * 1024
#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1


class Mark(NamedTuple):
    """How far an output is filled: the number of the segment, and the bytes in it."""

    number: int
    size_bytes: int


class OutputRange(NamedTuple):
    """Bytes of a log that was written."""

    path: Path
    start: int
    end: int


class SegmentOutput:
    """The output of one segment of the source; as a context it removes, unless closed, what it has written."""

    def __init__(
        self,
        publication: Publication,
        terms: Recompression,
        name: str,
        partition: Partition,
        base_offset: int,
        mtime_ns: int | None,
    ) -> None:
        self._publication = publication
        self._terms = terms
        self._name = name
        self._partition = partition
        self._mtime_ns = mtime_ns
        self._most_bytes = min(terms.segment_bytes or _MAX_SEGMENT_BYTES, _MAX_SEGMENT_BYTES)
        self._writers: list[SegmentWriter] = []
        self._pending: list[NewBatches] = []
        self._pending_bytes = 0
        self._is_closed = False
        self._start(base_offset)

    def _start(self, base_offset: int) -> None:
        written = written_segment(self._name, self._partition.topic, self._partition.number, base_offset)
        self._writers.append(
            SegmentWriter(self._publication, self._name, written, self._terms.interval_bytes, mtime_ns=self._mtime_ns)
        )

    def put(self, batches: NewBatches) -> None:
        """Put the batches in the open segment, or roll a new one first as a broker would (LogSegment.shouldRoll)."""
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

    def _flush(self) -> None:
        """Write what was made, and index it as its own headers say."""
        if not self._pending:
            return
        writer, batches = self._writers[-1], joined(self._pending)
        table = whole_batches(batches.content, writer.size_bytes, len(batches))
        writer.write(batches.content)
        writer.index(table)
        counts = np.bincount(batches.decisions, minlength=len(Decision)).tolist()
        writer.written.copied_count += counts[Decision.COPIED]
        writer.written.recompressed_count += counts[Decision.RECOMPRESSED]
        writer.written.rebuilt_count += counts[Decision.REBUILT]
        self._pending, self._pending_bytes = [], 0

    def mark(self) -> Mark:
        """How far it is filled."""
        return Mark(len(self._writers) - 1, self._writers[-1].size_bytes + self._pending_bytes)

    def ranges(self, start: Mark, end: Mark) -> tuple[OutputRange, ...]:
        """What was put between two marks."""
        found = []
        for number in range(start.number, end.number + 1):
            writer = self._writers[number]
            first = start.size_bytes if number == start.number else 0
            last = end.size_bytes if number == end.number else writer.size_bytes
            if first < last:
                found.append(OutputRange(self._publication.place_of(writer.log_path), first, last))
        return tuple(found)

    def everything(self) -> tuple[OutputRange, ...]:
        """All that was put."""
        return self.ranges(Mark(0, 0), self.mark())

    def finish_log(self) -> None:
        """Write what is left of the open segment's log, so that it can be read back. Raises OutputError."""
        self._flush()
        self._writers[-1].finish_log()

    def close(self, aborted: list[AbortedEntry]) -> list[WrittenSegment]:
        """Close the new segments, compared with their source as ``everything`` tells, with their indexes.

        Each gets the aborted transactions whose marker it holds. Raises OutputError.
        """
        written = []
        for number, writer in enumerate(self._writers):
            start = writer.written.segment_base_offset if number else 0
            is_last = number == len(self._writers) - 1
            end = None if is_last else self._writers[number + 1].written.segment_base_offset
            mine = [each for each in aborted if each[2] >= start and (end is None or each[2] < end)]
            written.append(writer.close(mine))
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
