"""One segment of recompress: new batches written in order, read back and compared with the source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import batch_location
from format.node.partition import Partition
from format.node.segment import Segment
from format.rewriting.index_builder import TransactionIndexBuilder, end_markers
from format.rewriting.intact_batches import SegmentScan, salvage_chunks, scan_segment
from format.rewriting.publish import Publication
from format.rewriting.written_segments import WrittenSegment
from format.scan.read_log import crc_findings, tail_finding
from format.verbs.recompress.portions import out_of_order, portions
from format.verbs.recompress.read_back import compare_output
from format.verbs.recompress.rolled_segments import Mark, SegmentOutput
from format.verbs.recompress.sharing import Became, MadeChunk, SharedRecompression
from format.verbs.recompress.terms import Recompression


@dataclass(slots=True)
class SegmentRecompression:
    """One segment; after ``write``, ``damage`` holds what could not be taken over as it should, ``notes`` the rest.

    ``shared`` are processes that make the new batches of a segment which is plainly sound; else this one makes them.
    """

    publication: Publication
    terms: Recompression
    shared: SharedRecompression | None
    name: str
    partition: Partition
    segment: Segment
    transactions: TransactionIndexBuilder
    last_offset: int | None
    damage: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    _told_bytes: int = 0  # of the progress, before the segment was begun anew

    def write(self) -> list[WrittenSegment]:
        """Write the segment (or the several that it becomes) and compare; stops early at damage that is not skipped.

        Raises UnreadableFile, OutputError, Refused.
        """
        if self.segment.log is None:
            return []
        with FileSource(self.segment.log) as source:
            return self._write_shared(source) or self._write_alone(source)

    @property
    def _location(self) -> Location:
        return self.partition.location(self.segment.log, self.segment.base_offset)

    @property
    def _first_possible(self) -> int:
        """The lowest offset that the next batch may start with."""
        return max(-1 if self.last_offset is None else self.last_offset, self.segment.base_offset - 1) + 1

    def _output(self, source: FileSource) -> SegmentOutput:
        base_offset, mtime_ns = self.segment.base_offset, source.mtime_ns
        return SegmentOutput(self.publication, self.terms, self.name, self.partition, base_offset, mtime_ns)

    def _closed(self, output: SegmentOutput, source: FileSource) -> list[WrittenSegment]:
        written = output.close(self.transactions.take(self.segment))
        written[0].source_bytes = source.size_bytes
        return written

    def _advance(self, length_bytes: int) -> None:
        told = min(length_bytes, self._told_bytes)
        self._told_bytes -= told
        self.terms.advance(length_bytes - told)

    # -- made by other processes -------------------------------------------------------------------------------

    def _write_shared(self, source: FileSource) -> list[WrittenSegment] | None:
        """The segment from the batches that other processes make; None, and nothing is left, where it is not sound."""
        if self.shared is None or not self.shared.makes:
            return None
        last_offset, open_transactions = self.last_offset, self.transactions.open_transactions
        with self._output(source) as output:
            became = self._put_made(self.shared, output, source)
            if became is not None:
                output.finish_log()
                self._compare(output, source, became)
                return self._closed(output, source)
        self.shared.leave(Path(source.path))
        self.last_offset, self.transactions.open_transactions = last_offset, open_transactions
        self.transactions.take(None)
        return None

    def _put_made(self, shared: SharedRecompression, output: SegmentOutput, source: FileSource) -> list[Became] | None:
        """Put what comes; what each chunk became, and None where that is not the whole of a sound log."""
        chunks: list[tuple[int, int]] = []
        marks = []
        position = 0
        for item in shared.made(Path(source.path)):
            if item is None:
                self._told_bytes = position
                return None
            if not isinstance(item, MadeChunk):
                output.put(item)
                continue
            if item.start != position or item.first_offset < self._first_possible:
                self._told_bytes = position
                return None
            chunks.append((item.start, item.end))
            marks.append(output.mark())
            self.transactions.feed(item.transactional, item.markers)
            self.last_offset = item.last_offset
            self._advance(item.end - position)
            position = item.end
        if position != source.size_bytes:  # it has become longer
            self._told_bytes = position
            return None
        return _became(chunks, [*marks, output.mark()], output)

    # -- made here ---------------------------------------------------------------------------------------------

    def _write_alone(self, source: FileSource) -> list[WrittenSegment]:
        scan = self._scan(source) if self.terms.skip_damaged else None
        with self._output(source) as output:
            chunks, marks = [], []
            first = 0
            for chunk in salvage_chunks(source, self.terms.limits, chunk_bytes=self.terms.chunk_bytes):
                chunks.append((chunk.buffer_position, chunk.buffer_position + chunk.covered_bytes))
                marks.append(output.mark())
                rows = slice(first, first + len(chunk.table))
                first += len(chunk.table)
                is_kept = self._kept(source, chunk, scan, rows)
                if self._is_refused():
                    return []
                self._feed_transactions(chunk, is_kept)
                self._put(chunk, is_kept, output)
                if self._is_refused():
                    return []
                self._advance(chunk.covered_bytes)
            output.finish_log()
            self._compare(output, source, _became(chunks, [*marks, output.mark()], output), scan)
            written = self._closed(output, source)
            written[0].lost_bytes = self._lost_bytes(source, scan)
            return written

    def _is_refused(self) -> bool:
        return bool(self.damage) and not self.terms.skip_damaged

    def _scan(self, source: FileSource) -> SegmentScan:
        return scan_segment(
            source,
            first_possible=self._first_possible,
            next_base_offset=self.partition.next_base_offset(self.segment),
            base_offset=self.segment.base_offset,
            limits=self.terms.limits,
        )

    def _kept(self, source: FileSource, chunk: BatchChunk, scan: SegmentScan | None, rows: slice) -> NDArray[np.bool_]:
        """The rows to take; what is not taken becomes damage."""
        table = chunk.table
        self.damage.extend(crc_findings(chunk, self._location))
        if chunk.damage is not None:
            is_last = self.partition.next_base_offset(self.segment) is None
            found = tail_finding(source, chunk, self._location, is_last)
            (self.notes if found.code == "tail-zeros" else self.damage).append(found)
        is_kept: NDArray[np.bool_] = table.crc_valid == 1 if scan is None else scan.is_kept[rows]
        is_wrong = out_of_order(table, self._first_possible) if scan is None else (table.crc_valid == 1) & ~is_kept
        for row in np.flatnonzero(is_wrong).tolist():
            message = f"the batch's offsets, from {table.base_offset[row]} on, cannot be here"
            place = batch_location(self._location, table, row)
            self.damage.append(finding("offset-not-increasing", place, message))
        if is_kept.any():
            self.last_offset = int(table.last_offset[is_kept][-1])
        return is_kept

    def _feed_transactions(self, chunk: BatchChunk, is_kept: NDArray[np.bool_]) -> None:
        kept = chunk.table.rows(is_kept)
        self.transactions.feed(kept, end_markers(chunk, is_kept, self.terms.limits))

    def _put(self, chunk: BatchChunk, is_kept: NDArray[np.bool_], output: SegmentOutput) -> None:
        for portion in portions(chunk, is_kept, self.terms.plan, self.terms.limits, self._location):
            if portion.error is not None:
                found = finding_of(portion.error, batch_location(self._location, chunk.table, portion.row))
                self.damage.append(replace(found, message=f"copied as it is, unreadable: {found.message}"))
            output.put(portion.batches)

    def _lost_bytes(self, source: FileSource, scan: SegmentScan | None) -> int:
        if scan is None:
            return 0
        return int(source.size_bytes - (scan.end_position - scan.position)[scan.is_kept].sum())

    # -- reading back ------------------------------------------------------------------------------------------

    def _compare(
        self, output: SegmentOutput, source: FileSource, became: list[Became], scan: SegmentScan | None = None
    ) -> None:
        if self.shared is not None and scan is None and len(became) > 1:
            for length_bytes in self.shared.compare(source, became, self._location):
                self._advance(length_bytes)
            return
        compare_output(source, output.everything(), self.terms, self._location, scan=scan, advance=self._advance)


def _became(chunks: list[tuple[int, int]], marks: list[Mark], output: SegmentOutput) -> list[Became]:
    """What was written for each chunk, between the marks before and after it."""
    return [
        Became(start, end, output.ranges(*marks[number : number + 2])) for number, (start, end) in enumerate(chunks)
    ]
