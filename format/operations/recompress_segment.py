"""One segment of recompress: read in chunks, made anew by threads, written in order, read back and compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BatchChunk, BatchTable, read_batch_table
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, Refused, UnsupportedError
from format.findings import Finding, finding, finding_of
from format.location import Location
from format.operations.compare_records import Pair, PlacedBatch, compare_pair, paired, placed_batches
from format.operations.index_builder import TransactionIndexBuilder, end_markers
from format.operations.read_log import crc_findings, tail_finding
from format.operations.recompress_batches import NewBatch, copied, packed, rebuilt, recompressed, unpacked
from format.operations.recompress_plan import COPIED, DECISIONS, RECOMPRESSED, Reason, Work, plan
from format.operations.salvage_scan import SegmentScan, salvage_chunks, scan_segment
from format.operations.written_segments import SegmentWriter, WrittenSegment, written_segment
from format.partition import Partition
from format.publish import Publication
from format.records import batch_location
from format.segment import Segment
from format.source import BytesSource, FileSource

if TYPE_CHECKING:
    from format.operations.recompress import Recompression

#: Source bytes that one task of a thread takes, and tasks that may wait for each thread.
_TASK_BYTES = 256 * 1024
_TASKS_PER_JOB = 3
#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1


@dataclass(slots=True)
class _Made:
    """What a task gave back: for each piece of work the new batches, or the error that stopped it."""

    made: list[tuple[Work, list[NewBatch], KafkaLogError | None]]


@dataclass(slots=True)
class SegmentRecompression:
    """One segment; after ``write``, ``damage`` holds what could not be taken over as it should, ``notes`` the rest."""

    publication: Publication
    terms: Recompression
    pool: Executor
    name: str
    partition: Partition
    segment: Segment
    transactions: TransactionIndexBuilder
    last_offset: int | None
    damage: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    _writers: list[SegmentWriter] = field(default_factory=list)
    _pending: list[NewBatch] = field(default_factory=list)
    _pending_bytes: int = 0

    def write(self) -> list[WrittenSegment]:
        """Write the segment (or the several that it becomes) and compare; stops early at damage that is not skipped.

        Raises UnreadableFile, OutputError, Refused.
        """
        if self.segment.log is None:
            return []
        with FileSource(self.segment.log) as source:
            scan = self._scan(source) if self.terms.skip_damaged else None
            self._start(self.segment.base_offset, source)
            first = 0
            for chunk in salvage_chunks(source, self.terms.limits):
                rows = slice(first, first + len(chunk.table))
                first += len(chunk.table)
                is_kept = self._kept(source, chunk, scan, rows)
                if self.damage and not self.terms.skip_damaged:
                    return []
                self._feed_transactions(chunk, is_kept)
                self._chunk(chunk, is_kept, source)
                if self.damage and not self.terms.skip_damaged:
                    return []
                self.terms.advance(0 if chunk.buffer is None else len(chunk.buffer))
            self._flush(source)
            written = self._close()
            written[0].source_bytes = source.size_bytes
            written[0].lost_bytes = self._lost_bytes(source, scan)
            self._compare(source, scan)
        return written

    @property
    def _location(self) -> Location:
        return self.partition.location(self.segment.log, self.segment.base_offset)

    # -- what is taken -----------------------------------------------------------------------------------------

    def _scan(self, source: FileSource) -> SegmentScan:
        first_possible = self.segment.base_offset
        if self.last_offset is not None:
            first_possible = max(first_possible, self.last_offset + 1)
        return scan_segment(
            source,
            first_possible=first_possible,
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
        if scan is None:
            before = -1 if self.last_offset is None else self.last_offset
            previous = np.concatenate(([max(before, self.segment.base_offset - 1)], table.last_offset[:-1]))
            wrong = np.flatnonzero((table.base_offset <= previous) | (table.last_offset_delta < 0))
        else:
            wrong = np.flatnonzero((table.crc_valid == 1) & ~is_kept)
        for row in wrong.tolist():
            message = f"the batch's offsets, from {table.base_offset[row]} on, cannot be here"
            place = batch_location(self._location, table, row)
            self.damage.append(finding("offset-not-increasing", place, message))
        if is_kept.any():
            self.last_offset = int(table.last_offset[is_kept][-1])
        return is_kept

    def _feed_transactions(self, chunk: BatchChunk, is_kept: NDArray[np.bool_]) -> None:
        kept = chunk.table.rows(is_kept)
        self.transactions.feed(kept, end_markers(chunk, is_kept, self.terms.limits), self._location)

    def _lost_bytes(self, source: FileSource, scan: SegmentScan | None) -> int:
        if scan is None:
            return 0
        return int(source.size_bytes - (scan.end_position - scan.position)[scan.is_kept].sum())

    # -- making new batches ------------------------------------------------------------------------------------

    def _chunk(self, chunk: BatchChunk, is_kept: NDArray[np.bool_], source: FileSource) -> None:
        waiting: deque[Future[_Made]] = deque()
        for task in self._tasks(plan(chunk.table, is_kept, self.terms.plan), chunk.table):
            waiting.append(self.pool.submit(self._make, chunk, task))
            if len(waiting) > _TASKS_PER_JOB * self.terms.jobs:
                self._take(waiting.popleft().result(), chunk, source)
        while waiting:
            self._take(waiting.popleft().result(), chunk, source)

    def _tasks(self, works: list[Work], table: BatchTable) -> Iterator[list[Work]]:
        sizes = table.size_bytes.tolist()
        task: list[Work] = []
        task_bytes = 0
        for work in works:
            task.append(work)
            task_bytes += sum(sizes[row] for row in work.rows)
            if task_bytes >= _TASK_BYTES:
                yield task
                task, task_bytes = [], 0
        if task:
            yield task

    def _make(self, chunk: BatchChunk, task: list[Work]) -> _Made:
        """In a thread: the new batches of each piece of work; one that fails is copied, with its error."""
        made: list[tuple[Work, list[NewBatch], KafkaLogError | None]] = []
        for work in task:
            try:
                made.append((work, self._new_batches(chunk, work), None))
            except (CorruptDataError, UnsupportedError, LimitExceeded) as error:
                made.append((work, [copied(chunk, row) for row in work.rows], error))
        return _Made(made)

    def _new_batches(self, chunk: BatchChunk, work: Work) -> list[NewBatch]:
        target, limits = self.terms.plan.target, self.terms.limits
        rows = list(work.rows)
        if DECISIONS[work.reason][0] == COPIED:
            return [copied(chunk, row) for row in rows]
        if work.reason is Reason.NEEDS_V2:
            magic = int(chunk.table.magic[rows[0]])
            raise Refused(
                f"messages of format v{magic} cannot be compressed with zstd: it exists from v2 on, and no consumer of "
                "that time could read it (KIP-110); convert them with --magic 2, or choose another codec",
                batch_location(self._location, chunk.table, rows[0]),
            )
        if work.reason is Reason.UNPACKED:
            return list(unpacked(chunk, rows[0], limits))
        if work.reason is Reason.PACKED:
            return [packed(chunk, rows, target)]
        if work.reason in (Reason.CONVERTED, Reason.MERGED):
            return [rebuilt(chunk, rows, target, limits)]
        return [recompressed(chunk, rows[0], target, limits)]

    # -- writing -----------------------------------------------------------------------------------------------

    def _take(self, made: _Made, chunk: BatchChunk, source: FileSource) -> None:
        for work, batches, error in made.made:
            if error is not None:
                place = batch_location(self._location, chunk.table, work.rows[0])
                found = finding_of(error, place)
                self.damage.append(replace(found, message=f"copied as it is, unreadable: {found.message}"))
            self._roll_if_needed(batches, source)
            written = self._writers[-1].written
            decision = COPIED if error is not None else DECISIONS[work.reason][0]
            if decision == COPIED:
                written.copied_count += len(batches)
            elif decision == RECOMPRESSED:
                written.recompressed_count += len(batches)
            else:
                written.rebuilt_count += len(batches)

    def _roll_if_needed(self, batches: list[NewBatch], source: FileSource) -> None:
        """Put the batches in the open segment, or roll a new one first as a broker would (LogSegment.shouldRoll)."""
        most = min(self.terms.segment_bytes or _MAX_SEGMENT_BYTES, _MAX_SEGMENT_BYTES)
        for batch in batches:
            writer = self._writers[-1]
            size_bytes = writer.size_bytes + self._pending_bytes
            is_full = size_bytes > 0 and size_bytes + len(batch.content) > most
            if is_full or batch.last_offset - writer.written.segment_base_offset > layout.MAX_RELATIVE_OFFSET:
                self._flush(source)
                self._start(batch.first_offset, source)
            self._pending.append(batch)
            self._pending_bytes += len(batch.content)
        if self._pending_bytes >= _TASK_BYTES:
            self._flush(source)

    def _start(self, base_offset: int, source: FileSource) -> None:
        written = written_segment(self.name, self.partition.topic, self.partition.number, base_offset)
        self._writers.append(
            SegmentWriter(self.publication, self.name, written, self.terms.interval_bytes, mtime_ns=source.mtime_ns)
        )

    def _flush(self, source: FileSource) -> None:
        """Write what was made, and index it as its own headers say."""
        if not self._pending:
            return
        writer = self._writers[-1]
        content = b"".join(each.content for each in self._pending)
        table = read_batch_table(BytesSource(content, writer.log_path), limits=self.terms.limits)
        table.position[:] += writer.size_bytes
        writer.write(content)
        writer.index(table)
        self._pending, self._pending_bytes = [], 0

    def _close(self) -> list[WrittenSegment]:
        """Close the new segments; each gets the aborted transactions whose marker it holds."""
        aborted = self.transactions.take(self.segment)
        written = []
        for number, writer in enumerate(self._writers):
            start = writer.written.segment_base_offset if number else 0
            is_last = number == len(self._writers) - 1
            end = None if is_last else self._writers[number + 1].written.segment_base_offset
            mine = [each for each in aborted if each[2] >= start and (end is None or each[2] < end)]
            written.append(writer.close(mine))
        return written

    # -- reading back ------------------------------------------------------------------------------------------

    def _compare(self, source: FileSource, scan: SegmentScan | None) -> None:
        paths = [self.publication.place_of(writer.log_path) for writer in self._writers]
        pairs = paired(self._source_batches(source, scan), self._output_batches(paths), self._location)
        waiting: deque[Future[None]] = deque()
        task: list[Pair] = []
        task_bytes = 0
        for pair in pairs:
            task.append(pair)
            task_bytes += sum(len(each.content) for each in pair.source)
            if task_bytes >= _TASK_BYTES:
                waiting.append(self.pool.submit(self._compare_all, task))
                task, task_bytes = [], 0
            while len(waiting) > _TASKS_PER_JOB * self.terms.jobs:
                waiting.popleft().result()
        self._compare_all(task)
        while waiting:
            waiting.popleft().result()
        for writer in self._writers:
            self.publication.mark_read_back(writer.log_path)

    def _compare_all(self, pairs: list[Pair]) -> None:
        for pair in pairs:
            compare_pair(pair, self.terms.limits, self._location)

    def _source_batches(self, source: FileSource, scan: SegmentScan | None) -> Iterator[PlacedBatch]:
        first = 0
        for chunk in salvage_chunks(source, self.terms.limits):
            rows = slice(first, first + len(chunk.table))
            first += len(chunk.table)
            yield from placed_batches(chunk, chunk.table.crc_valid == 1 if scan is None else scan.is_kept[rows])
            self.terms.advance(0 if chunk.buffer is None else len(chunk.buffer))

    def _output_batches(self, paths: list[Path]) -> Iterator[PlacedBatch]:
        for path in paths:
            with FileSource(path) as output:
                for chunk in salvage_chunks(output, self.terms.limits):
                    yield from placed_batches(chunk, chunk.table.crc_valid == 1)
