"""One segment of recompress: read in chunks, made anew by threads, written in order, read back and compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BODY_CHUNK_BYTES, BatchChunk, BatchTable, whole_batches
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, Refused, UnsupportedError
from format.findings import Finding, finding, finding_of
from format.location import Location
from format.operations.compare_records import (
    Pair,
    ReadBackMismatch,
    Rows,
    RunOfPairs,
    compare_pair,
    compare_run,
    paired,
)
from format.operations.index_builder import TransactionIndexBuilder, end_markers
from format.operations.read_log import crc_findings, tail_finding
from format.operations.recompress_batches import (
    NewBatches,
    copied,
    packed,
    rebuilt,
    recompressed,
    rewrapped,
    unpacked,
)
from format.operations.recompress_plan import COPIED, DECISIONS, RECOMPRESSED, TOGETHER, Reason, Work, plan
from format.operations.salvage_scan import SegmentScan, salvage_chunks, scan_segment
from format.operations.written_segments import SegmentWriter, WrittenSegment, written_segment
from format.partition import Partition
from format.publish import Publication
from format.records import batch_location
from format.segment import Segment
from format.source import FileSource

if TYPE_CHECKING:
    from format.operations.recompress import Recompression

#: Source bytes that one task of a thread takes at the least and at the most; tasks that may wait for each thread, and
#: how many bytes they should come to in all.
_LEAST_TASK_BYTES, _MOST_TASK_BYTES = 128 * 1024, 1024 * 1024
_TASKS_PER_JOB = 2
_WAITING_BYTES = 4 * 1024 * 1024
#: What is read at once; more would push it out of the processor's cache before it is used.
_CHUNK_BYTES = 2 * 1024 * 1024
#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1


class _Made(NamedTuple):
    """Batches that a task made, and how; or that it copied because of an error, met at the row."""

    batches: NewBatches
    decision: str
    error: KafkaLogError | None = None
    row: int = -1


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
    _pending: list[NewBatches] = field(default_factory=list)
    _pending_bytes: int = 0
    _waiting: deque[tuple[Future[list[_Made]], BatchChunk]] = field(default_factory=deque)

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
            # Batches of different chunks are never merged, so that the size of chunks is part of what comes out.
            chunk_bytes = BODY_CHUNK_BYTES if self.terms.plan.merge_bytes else _CHUNK_BYTES
            for chunk in salvage_chunks(source, self.terms.limits, chunk_bytes=chunk_bytes):
                rows = slice(first, first + len(chunk.table))
                first += len(chunk.table)
                is_kept = self._kept(source, chunk, scan, rows)
                if self.damage and not self.terms.skip_damaged:
                    return []
                self._feed_transactions(chunk, is_kept)
                self._give_out(chunk, is_kept, source)
                if self.damage and not self.terms.skip_damaged:
                    return []
                self.terms.advance(0 if chunk.buffer is None else len(chunk.buffer))
            self._take_until(0, source)
            if self.damage and not self.terms.skip_damaged:
                return []
            self._flush(source)
            written = self._close()
            written[0].source_bytes = source.size_bytes
            written[0].lost_bytes = self._lost_bytes(source, scan)
            self._compare(source, scan)
        return written

    @property
    def _location(self) -> Location:
        return self.partition.location(self.segment.log, self.segment.base_offset)

    @property
    def _task_bytes(self) -> int:
        fair_bytes = _WAITING_BYTES // (_TASKS_PER_JOB * self.terms.jobs)
        return min(max(fair_bytes, _LEAST_TASK_BYTES), _MOST_TASK_BYTES)

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

    def _give_out(self, chunk: BatchChunk, is_kept: NDArray[np.bool_], source: FileSource) -> None:
        """Give the chunk's work to the threads; takes what they have made where too much of it waits."""
        for task in self._tasks(plan(chunk.table, is_kept, self.terms.plan), chunk.table):
            self._waiting.append((self.pool.submit(self._make, chunk, task), chunk))
            self._take_until(_TASKS_PER_JOB * self.terms.jobs if self.terms.jobs > 1 else 0, source)

    def _take_until(self, count: int, source: FileSource) -> None:
        """Take what the threads have made, in order, until no more than ``count`` tasks wait."""
        while len(self._waiting) > count:
            future, chunk = self._waiting.popleft()
            self._take(future.result(), chunk, source)

    def _tasks(self, works: list[Work], table: BatchTable) -> Iterator[list[Work]]:
        """The work in portions of about the same size; only what is made of several batches stays in one."""
        sizes = table.size_bytes.tolist()
        task: list[Work] = []
        task_bytes = 0
        for work in works:
            first = 0
            for number, row in enumerate(work.rows, 1):
                task_bytes += sizes[row]
                if task_bytes >= self._task_bytes and (work.reason not in TOGETHER or number == len(work.rows)):
                    yield [*task, Work(work.reason, work.rows[first:number])]
                    task, task_bytes, first = [], 0, number
            if first < len(work.rows):
                task.append(Work(work.reason, work.rows[first:]))
        if task:
            yield task

    def _make(self, chunk: BatchChunk, task: list[Work]) -> list[_Made]:
        """In a thread: the new batches of each piece of work; one that fails is copied, with its error."""
        made: list[_Made] = []
        for work in task:
            rows = work.rows
            decision = DECISIONS[work.reason][0]
            while rows:
                batches, done, error = self._new_batches(chunk, work.reason, rows)
                if batches is not None:
                    made.append(_Made(batches, decision))
                if error is not None:
                    end = len(rows) if work.reason in TOGETHER else done + 1
                    made.append(_Made(copied(chunk, rows[done:end]), COPIED, error, rows[done]))
                    done = end
                rows = rows[done:]
        return made

    def _new_batches(
        self, chunk: BatchChunk, reason: Reason, rows: tuple[int, ...]
    ) -> tuple[NewBatches | None, int, KafkaLogError | None]:
        """What becomes of the first rows, how many of them that is, and what stopped it at the row after them."""
        target, limits = self.terms.plan.target, self.terms.limits
        first = rows[0]
        if DECISIONS[reason][0] == COPIED:
            return copied(chunk, rows), len(rows), None
        magic = int(chunk.table.magic[first])
        if reason is Reason.NEEDS_V2:
            raise Refused(
                f"messages of format v{magic} cannot be compressed with zstd: it exists from v2 on, and no consumer of "
                "that time could read it (KIP-110); convert them with --magic 2, or choose another codec",
                batch_location(self._location, chunk.table, first),
            )
        if DECISIONS[reason][0] == RECOMPRESSED and magic == 2:
            is_v2 = chunk.table.magic[list(rows)] == 2
            run = rows if is_v2.all() else rows[: int(is_v2.argmin())]
            batches, error = recompressed(chunk, run, target, limits)
            return (batches if len(batches) else None), len(batches), error
        try:
            if reason is Reason.UNPACKED:
                return unpacked(chunk, first, limits), 1, None
            if reason is Reason.PACKED:
                return packed(chunk, rows, target), len(rows), None
            if reason in TOGETHER:
                return rebuilt(chunk, rows, target, limits), len(rows), None
            return rewrapped(chunk, first, target, limits), 1, None
        except (CorruptDataError, UnsupportedError, LimitExceeded) as error:
            return None, 0, error

    # -- writing -----------------------------------------------------------------------------------------------

    def _take(self, made: list[_Made], chunk: BatchChunk, source: FileSource) -> None:
        for each in made:
            if each.error is not None:
                place = batch_location(self._location, chunk.table, each.row)
                found = finding_of(each.error, place)
                self.damage.append(replace(found, message=f"copied as it is, unreadable: {found.message}"))
            self._put(each.batches, source)
            written = self._writers[-1].written
            if each.decision == COPIED:
                written.copied_count += len(each.batches)
            elif each.decision == RECOMPRESSED:
                written.recompressed_count += len(each.batches)
            else:
                written.rebuilt_count += len(each.batches)

    def _put(self, batches: NewBatches, source: FileSource) -> None:
        """Put the batches in the open segment, or roll a new one first as a broker would (LogSegment.shouldRoll)."""
        if not len(batches):
            return
        most = min(self.terms.segment_bytes or _MAX_SEGMENT_BYTES, _MAX_SEGMENT_BYTES)
        writer = self._writers[-1]
        size_bytes, before = len(batches.content), writer.size_bytes + self._pending_bytes
        is_full = before + size_bytes > most and (before > 0 or len(batches) > 1)
        if is_full or int(batches.last_offsets.max()) - writer.written.segment_base_offset > layout.MAX_RELATIVE_OFFSET:
            if len(batches) > 1:
                for each in batches.each():
                    self._put(each, source)
                return
            self._flush(source)
            self._start(int(batches.first_offsets[0]), source)
        self._pending.append(batches)
        self._pending_bytes += size_bytes
        if self._pending_bytes >= self._task_bytes:
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
        contents = [each.content for each in self._pending]
        content = contents[0] if len(contents) == 1 else b"".join(contents)
        table = whole_batches(content, writer.size_bytes, sum(map(len, self._pending)))
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
        waiting: deque[Future[None]] = deque()
        task: list[RunOfPairs | Pair] = []
        task_bytes = 0
        sides = self._source_rows(source, scan), self._output_rows(paths)
        for each in paired(
            *sides, self._location, most_bytes=self._task_bytes if self.terms.jobs > 1 else _CHUNK_BYTES
        ):
            task.append(each)
            task_bytes += each.source_bytes
            if task_bytes >= self._task_bytes:
                waiting.append(self.pool.submit(self._compare_all, task))
                task, task_bytes = [], 0
            while len(waiting) > _TASKS_PER_JOB * self.terms.jobs:
                waiting.popleft().result()
        self._compare_all(task)
        while waiting:
            waiting.popleft().result()
        for writer in self._writers:
            self.publication.mark_read_back(writer.log_path)

    def _compare_all(self, task: list[RunOfPairs | Pair]) -> None:
        for each in task:
            if isinstance(each, Pair):
                compare_pair(each, self.terms.limits, self._location)
            else:
                compare_run(each, self.terms.limits, self._location)

    def _source_rows(self, source: FileSource, scan: SegmentScan | None) -> Iterator[Rows]:
        """The batches that were taken, read once more.

        Without a scan all CRCs were right, or there would be no output; what is not as it was then differs from it.
        """
        first = 0
        for chunk in salvage_chunks(source, self.terms.limits, check_crc=scan is not None, chunk_bytes=_CHUNK_BYTES):
            rows = np.arange(len(chunk.table))
            yield Rows(chunk, rows if scan is None else np.flatnonzero(scan.is_kept[first : first + len(rows)]))
            first += len(rows)
            self.terms.advance(0 if chunk.buffer is None else len(chunk.buffer))

    def _output_rows(self, paths: list[Path]) -> Iterator[Rows]:
        for path in paths:
            with FileSource(path) as output:
                for chunk in salvage_chunks(output, self.terms.limits, chunk_bytes=_CHUNK_BYTES):
                    if chunk.damage is not None or (chunk.table.crc_valid != 1).any():
                        raise ReadBackMismatch("what was written is damaged", Location(str(path)))
                    yield Rows(chunk, np.arange(len(chunk.table)))
