"""Rewrites one segment of the source, alone or with worker processes: new batches, the comparison, then indexes.

There is one pipeline: the batches of each chunk that are kept become new batches, after which comes what the rest of
the log needs to know of the chunk. Of a log that is plainly sound, as most are, all batches are kept; it is read once,
and other processes may make its new batches. Where a chunk is not plainly sound, nothing that was made of its log is
used: the log is scanned as a whole, which shows the batches to keep. So the output never depends on which process made
it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Self

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.errors import FileChanged, UnreadableFile
from format.io.source import FileSource, FileState, PatchedSource
from format.limits import Limits
from format.log.batch_chunk import BatchChunk, OffsetRange
from format.log.batch_table import BatchTable, whole_batches
from format.log.control_records import ControlRecord, first_control_records
from format.log.walker import batch_chunks
from format.node.partition import segment_file_name
from format.rewriting.carried_files import pieces_of
from format.rewriting.flipped_bit import flipped_bits
from format.rewriting.index_builder import (
    AbortedEntry,
    IndexedOffsets,
    SegmentIndexBuilder,
    TransactionIndexBuilder,
    transaction_index_bytes,
)
from format.rewriting.intact_batches import (
    ProducerBatches,
    Repair,
    SegmentScan,
    offsets_agree,
    proven_repairs,
    scan_segment,
    unreadable_markers,
)
from format.rewriting.publication import NewFile, Publication
from format.rewriting.read_back import Became, OutputRange, Rewritten
from format.rewriting.rewriter import (
    Decision,
    Failure,
    FirstLook,
    NewBatches,
    Remark,
    Rewriter,
    SegmentResult,
    SourceLog,
    WrittenSegment,
    batch_bytes,
    copied,
    joined,
    written_segment,
)
from format.scan.processes import Outbox, RangeTask, SharedRanges, Unsound, Workers, sound_chunks
from format.scan.progress import SpanProgress, no_progress
from format.sorted_values import distinct_values

#: Positions in an index have 32 bits.
_MAX_SEGMENT_BYTES = 2**31 - 1
#: The size of the new batches that are passed on at once: large enough that sending them to a process costs little.
_PORTION_BYTES = 1024 * 1024
_CHANGED = "the file changed while it was read"


# -- new segments --------------------------------------------------------------------------------------------


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


class OutputMark(NamedTuple):
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

    def mark(self) -> OutputMark:
        """The current position."""
        return OutputMark(len(self._segments) - 1, self._segments[-1].size_bytes)

    def ranges(self, start: OutputMark, end: OutputMark) -> tuple[OutputRange, ...]:
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

    def __exit__(self, *error: object) -> None:
        if not self._is_closed:
            for segment in self._segments:
                segment.discard()


# -- what becomes of a chunk ---------------------------------------------------------------------------------


class RewrittenChunk(msgspec.Struct, frozen=True):
    """What became of a chunk, which comes after its new batches: its range in the source, and the count of records.

    The rest is about all its batches that were kept, also those that a verb does not take. ``first_offset`` and
    ``last_offset`` are None if there is none, ``has_gap`` says whether offsets are missing before the last one, None if
    it is the only one. ``transactional`` are the transactional and control batches, ``markers`` the control records by
    row of those, and ``plain_producers`` the producers of the others.
    """

    start: int
    end: int
    record_count: int
    transactional: BatchTable
    markers: dict[int, ControlRecord]
    plain_producers: frozenset[int]
    digest: bytes | None
    first_offset: int | None
    last_offset: int | None
    has_gap: bool | None
    remarks: tuple[Remark, ...] = ()

    def may_stop_broker(self, open_producers: Collection[int]) -> bool:
        """Whether a broker may stop at a batch of it; ``open_producers`` have open transactions before it."""
        table = self.transactional
        if next(unreadable_markers(table, self.markers), None) is not None:
            return True
        begun = table.producer_id[~table.is_control].tolist() if self.plain_producers else ()
        return not self.plain_producers.isdisjoint(open_producers) or not self.plain_producers.isdisjoint(begun)


#: What the pipeline yields of a chunk, in this order: new batches and bytes that are no batch, then the chunk itself.
Made = NewBatches | bytes | RewrittenChunk


class NotSound(Exception):
    """A chunk is not plainly sound, or cannot be read."""


def rewritten(
    chunk: BatchChunk, is_kept: NDArray[np.bool_], log: SourceLog, rewriter: Rewriter, report: Callable[[Failure], None]
) -> Iterator[NewBatches | RewrittenChunk]:
    """The new batches of the kept batches of a chunk, and then what became of it.

    ``report`` is called for each batch that could not be rebuilt. Raises Refused, and what ``report`` raises.
    """
    is_left = is_kept.copy()
    is_taken = rewriter.taken(chunk, is_kept)
    digest = None
    remarks: list[Remark] = []
    gathered: list[NewBatches] = []
    gathered_bytes = 0
    for item in rewriter.portions(chunk, is_taken, log.location):
        if isinstance(item, Failure):
            report(item)
            is_left[item.row] &= not item.is_left_out
            continue
        if isinstance(item, Remark):
            remarks.append(item)
            continue
        digest = item.digest
        gathered.append(item)
        gathered_bytes += len(item.content)
        if gathered_bytes >= _PORTION_BYTES:
            yield joined(gathered)
            gathered, gathered_bytes = [], 0
    if gathered:
        yield joined(gathered)
    done = _rewritten_chunk(chunk, is_left, is_left & is_taken, digest, rewriter.terms.limits)
    yield replace(done, remarks=tuple(remarks))


def _rewritten_chunk(
    chunk: BatchChunk, is_left: NDArray[np.bool_], is_written: NDArray[np.bool_], digest: bytes | None, limits: Limits
) -> RewrittenChunk:
    table = chunk.table
    rows = np.flatnonzero(is_left)
    which = is_left & (table.is_transactional | table.is_control)
    plain = table.producer_id[is_left & ~which]
    return RewrittenChunk(
        chunk.buffer_position,
        chunk.buffer_position + chunk.covered_bytes,
        int(np.maximum(table.record_count[is_written], 0).sum()),
        table.rows(which),
        first_control_records(chunk, which, limits),
        frozenset(distinct_values(plain[plain >= 0]).tolist()),
        digest,
        int(table.base_offset[rows[0]]) if len(rows) else None,
        table.last_offset_of(int(rows[-1])) if len(rows) else None,
        int(table.base_offset[rows[-1]]) > table.last_offset_of(int(rows[-2])) + 1 if len(rows) > 1 else None,
    )


def _rewritten_sound(
    chunks: Iterable[BatchChunk], log: SourceLog, rewriter: Rewriter, after_offset: int | None
) -> Iterator[NewBatches | RewrittenChunk]:
    """What becomes of the chunks of a log, or of a range of it, in order. Raises NotSound, Refused.

    ``after_offset`` is the last offset before them.
    """

    def fail(failure: Failure) -> None:
        raise NotSound

    first_possible = log.first_possible(after_offset)
    for chunk in chunks:
        table = chunk.table
        if chunk.buffer is None or not len(table) or not chunk.is_sound_after(first_possible - 1):
            raise NotSound
        first_possible = table.last_offset_of(len(table) - 1) + 1
        if first_possible > log.last_possible + 1 or not offsets_agree(chunk).all():
            raise NotSound
        if rewriter.wants_every_offset and (table.base_offset[1:] != table.last_offset[:-1] + 1).any():
            raise NotSound
        yield from rewritten(chunk, np.ones(len(table), bool), log, rewriter, fail)


# -- worker processes ----------------------------------------------------------------------------------------


class _Comparison(msgspec.Struct, frozen=True):
    """A task for a worker: compare a range of a log with what was written for it."""

    log: SourceLog
    state: FileState
    became: Became


class SharedRewriting:
    """Worker processes that make new batches, and compare the written ones with the source; close it at the end.

    ``logs`` are all logs of which new batches will be made, in order. Each process calls ``begin`` before it works.
    They are forked here, which must happen before any thread is started. New batches come back in log order, through
    shared memory.
    """

    def __init__(self, logs: Sequence[SourceLog], rewriter: Rewriter, begin: Callable[[], None] = lambda: None) -> None:
        self._logs = {each.path: each for each in logs}
        jobs = rewriter.terms.jobs
        self._readers = Workers(jobs, partial(_compare, rewriter), begin)
        self._makers = None
        if rewriter.shares_making:
            self._makers = SharedRanges(logs, jobs, rewriter.chunk_bytes, partial(_make, rewriter), begin=begin)

    def made(self, log: SourceLog) -> Iterator[NewBatches | RewrittenChunk] | None:
        """What became of the chunks of a log; None if the processes only compare. Raises NotSound, Refused, WorkerDied.

        Logs must be requested in their order.
        """
        if self._makers is None:
            return None
        ranges = self._makers.tasks(self._logs[log.path])
        return _received(item for _, items in ranges for item in items)

    def leave(self, log: SourceLog) -> None:
        """Stop making new batches of a log."""
        if self._makers is not None:
            self._makers.leave(self._logs[log.path])

    def read_back(self, source: FileSource, log: SourceLog, became: Iterable[Became]) -> Iterator[int]:
        """Read everything back and compare; yields the number of source bytes done.

        Raises as ``Rewriter.read_back``.
        """
        tasks = (_Comparison(log, source.state, each) for each in became)
        for task, items in self._readers.results(tasks):
            for _ in items:
                pass
            yield task.became.end - task.became.start

    def close(self) -> None:
        """End the processes."""
        if self._makers is not None:
            self._makers.close()
        self._readers.close()


def _make(rewriter: Rewriter, task: RangeTask[SourceLog], outbox: Outbox) -> None:
    """The new batches of one range, or of one whole log, in a worker."""
    log = task.log
    try:
        with FileSource(log.path, task.state) as source:
            chunks = sound_chunks(source, task, rewriter.terms.limits, rewriter.chunk_bytes)
        if chunks is None:
            raise NotSound
        for item in _rewritten_sound(chunks, log, rewriter, task.batch_range.after_offset):
            if isinstance(item, NewBatches):
                outbox.send((replace(item, content=b""), len(item.content)))  # the columns, and then the content
                outbox.send_part(item.content)
            else:
                outbox.send(item)
    except (NotSound, UnreadableFile):
        outbox.send(Unsound())


def _received(items: Iterator[object]) -> Iterator[NewBatches | RewrittenChunk]:
    """What workers sent, with the content of new batches from shared memory."""
    for item in items:
        if isinstance(item, tuple):
            batches, length = item
            yield replace(batches, content=_received_bytes(items, length))
        elif isinstance(item, RewrittenChunk):
            yield item
        elif isinstance(item, Unsound):
            raise NotSound
        else:
            raise TypeError(f"{item!r} came for new batches")


def _received_bytes(items: Iterator[object], length: int) -> bytes | bytearray:
    parts = bytearray()
    while len(parts) < length:
        item = next(items)
        if not isinstance(item, memoryview):
            raise TypeError(f"{item!r} came for the content of new batches")
        if len(item) == length:
            return bytes(item)
        parts += item
    return parts


def _compare(rewriter: Rewriter, task: _Comparison, outbox: Outbox) -> None:
    with FileSource(task.log.path, task.state) as source:
        rewriter.read_back(Rewritten(source, [task.became], None, task.log.location), no_progress)


# -- one segment ---------------------------------------------------------------------------------------------


class SegmentRewriting(msgspec.Struct):
    """Rewrites one segment into ``directory`` of the publication; ``do`` fills in the result."""

    publication: Publication
    rewriter: Rewriter
    shared: SharedRewriting | None
    directory: str
    log: SourceLog
    transactions: TransactionIndexBuilder

    def do(self, result: SegmentResult) -> None:
        """Write the segment, or the several that it becomes; the result has the last offset before it.

        Raises FileChanged, OutputError, and Refused, then with the findings so far in the result.
        """
        try:
            file = FileSource(self.log.path)
        except UnreadableFile as error:
            self._report_unreadable(error, result)
        else:
            with file:
                self._write_file(file, result)
        result.open_transactions = self.transactions.open_transactions
        self.rewriter.check(result)

    def _write_file(self, file: FileSource, result: SegmentResult) -> None:
        progress = SpanProgress(self.rewriter.terms.advance, self.rewriter.passes * file.size_bytes)
        try:
            if self.rewriter.repairs or not self._write_sound(file, result, progress):
                self._write_kept(file, result, progress)
        except FileChanged as error:
            message = f"{error.message}; no process may write the sources during the run"
            raise FileChanged(message, error.location or self.log.location) from error
        except UnreadableFile as error:
            self._report_unreadable(error, result)
        progress.finish()

    def _report_unreadable(self, error: UnreadableFile, result: SegmentResult) -> None:
        result.is_read = False
        self.rewriter.report_unreadable(error, self.log, result)

    def _write(
        self,
        source: FileSource | PatchedSource,
        made: Iterator[Made],
        kept: SegmentScan | None,
        result: SegmentResult,
        progress: SpanProgress,
    ) -> None:
        """Write new batches as they come, read them back, and write the indexes."""
        log, became, remarks = self.log, [], list[Remark]()
        with SegmentOutput(self.publication, self.rewriter, self.directory, log, source.mtime_ns) as output:
            before = output.mark()
            for item in made:
                if isinstance(item, NewBatches):
                    output.put(item)
                elif isinstance(item, bytes):
                    output.put_unindexed(item)
                else:
                    mark = output.mark()
                    became.append(Became(item.start, item.end, output.ranges(before, mark), item.digest))
                    before = mark
                    self.transactions.feed(item.transactional, item.markers)
                    result.last_offset = result.last_offset if item.last_offset is None else item.last_offset
                    result.record_count += item.record_count
                    remarks += item.remarks
                    progress.advance(item.end - item.start)
            output.finish_log()
            is_shared = kept is None and self.rewriter.writes_log and len(became) > 1
            if is_shared and self.shared is not None and isinstance(source, FileSource):
                for length_bytes in self.shared.read_back(source, log, became):
                    progress.advance(length_bytes)
            else:
                self.rewriter.read_back(Rewritten(source, became, kept, log.location), progress.advance)
            result.segments = output.close(self.transactions.take(log.segment))
        self.rewriter.report_remarks(remarks, result)
        result.segments[0].source_bytes = source.size_bytes
        result.segments[0].lost_bytes = result.lost_bytes

    # -- a log that is plainly sound ---------------------------------------------------------------------------

    def _write_sound(self, file: FileSource, result: SegmentResult, progress: SpanProgress) -> bool:
        """Write the whole log while it is read. Returns False and removes the output where it is not plainly sound."""
        after_offset, open_transactions = result.last_offset, self.transactions.open_transactions
        try:
            self._write(file, self._made_sound(file, result), None, result, progress)
        except NotSound:
            if self.shared is not None:
                self.shared.leave(self.log)
            progress.restart()
            result.last_offset, result.record_count = after_offset, 0
            self.transactions.open_transactions = open_transactions
            self.transactions.take(None)
            return False
        return True

    def _made_sound(self, file: FileSource, result: SegmentResult) -> Iterator[NewBatches | RewrittenChunk]:
        """What becomes of the whole log. Raises NotSound."""
        log, rewriter = self.log, self.rewriter
        made = None if self.shared is None else self.shared.made(log)
        if made is None:
            chunks = batch_chunks(file, limits=rewriter.terms.limits, chunk_bytes=rewriter.chunk_bytes)
            made = _rewritten_sound(chunks, log, rewriter, result.last_offset)
        position = 0
        has_gap = False  # before the last batch, whose base offset may then be false: only a scan of all shows that
        try:
            for item in made:
                if isinstance(item, RewrittenChunk):
                    first = item.first_offset
                    if item.start != position or first is None or not self._follows(first, result):
                        raise NotSound
                    if rewriter.keeps_misplaced and item.may_stop_broker(self.transactions.open_transactions):
                        raise NotSound
                    has_gap = first > log.first_possible(result.last_offset) if item.has_gap is None else item.has_gap
                    position = item.end
                yield item
        except UnreadableFile as error:
            raise NotSound from error
        until = log.next_base_offset
        has_gap &= until is None and not rewriter.has_judged_offsets
        if position != file.size_bytes or has_gap or (until is not None and not self._follows(until, result)):
            raise NotSound

    def _follows(self, first_offset: int, result: SegmentResult) -> bool:
        """Whether a batch may start at ``first_offset`` after those that were written."""
        least = self.log.first_possible(result.last_offset)
        return first_offset == least or (first_offset > least and not self.rewriter.wants_every_offset)

    # -- any other log -----------------------------------------------------------------------------------------

    def _write_kept(self, file: FileSource, result: SegmentResult, progress: SpanProgress) -> None:
        """Scan the whole log, then write the batches that are kept."""
        source = PatchedSource(file) if self.rewriter.reads_around_errors else file
        look = self._first_look(file, source, result.last_offset)
        progress.advance(source.size_bytes)
        self.rewriter.report_look(look, result)
        with contextlib.closing(self._made_kept(look, result)) as made:
            self._write(source, made, look.scan, result, progress)

    def _first_look(self, file: FileSource, source: FileSource | PatchedSource, after_offset: int | None) -> FirstLook:
        log, rewriter, limits = self.log, self.rewriter, self.rewriter.terms.limits
        offsets = OffsetRange(log.first_possible(after_offset), log.last_possible)
        indexed = IndexedOffsets(log.location, limits)
        repairs: list[Repair] = []
        while True:
            producers = None
            if rewriter.keeps_misplaced:
                producers = ProducerBatches(self.transactions.open_transactions, limits)
            judges_end = not rewriter.has_judged_offsets
            scan = scan_segment(source, offsets, limits, producers, indexed, judges_end=judges_end)
            repairable: list[Repair] = []
            if rewriter.keeps_misplaced and isinstance(source, PatchedSource):
                repairable = proven_repairs(source, scan, log.location, limits)
                repairable += list(flipped_bits(source, scan, repairable, log.location, limits))
            known = {(each.position, each.field) for each in repairs}
            new = [each for each in repairable if each.is_offered and (each.position, each.field) not in known]
            if not (rewriter.repairs and new and isinstance(source, PatchedSource)):
                break
            for each in new:
                each.apply(source)
            repairs += new
        is_live = log.next_base_offset is None and file.current_size_bytes() != file.size_bytes
        return FirstLook(log, source, scan, is_live, tuple(repairs), tuple(repairable))

    def _made_kept(self, look: FirstLook, result: SegmentResult) -> Generator[Made, None, None]:
        """What becomes of the batches that are kept, which are read again; reports on the way. Raises Refused."""
        log, rewriter, scan = self.log, self.rewriter, look.scan
        quarantine: NewFile | None = None
        first = 0
        with contextlib.ExitStack() as stack:
            for chunk in batch_chunks(look.source, limits=rewriter.terms.limits, offsets=scan.offsets):
                rows = slice(first, first + len(chunk.table))
                first = rows.stop
                is_kept = scan.is_kept[rows]
                is_same = np.array_equal(scan.table.position[rows], chunk.table.position)
                if not is_same or (chunk.table.crc_valid[is_kept] != 1).any():
                    raise FileChanged(_CHANGED, log.location)
                rewriter.report_chunk(look, chunk, is_kept, result)
                rewriter.check(result)
                if rewriter.copies_damage:
                    yield from self._copied_with_gaps(look.source, chunk, is_kept)
                    continue
                report = partial(rewriter.report_failure, chunk=chunk, location=log.location, result=result)
                yield from rewritten(chunk, is_kept, log, rewriter, report)
                rewriter.check(result)
                for row in np.flatnonzero((chunk.table.crc_valid == 1) & ~is_kept) if rewriter.keeps_misplaced else ():
                    if quarantine is None:
                        name = f"{self.directory}.{log.base_offset:020d}.quarantine"
                        quarantine = stack.enter_context(self.publication.create(name))
                    quarantine.write(batch_bytes(chunk, int(row)))
            if first != len(scan.table):
                raise FileChanged(_CHANGED, log.location)

    def _copied_with_gaps(
        self, source: FileSource | PatchedSource, chunk: BatchChunk, is_kept: NDArray[np.bool_]
    ) -> Iterator[Made]:
        """The kept batches of a chunk, and the bytes between and after them as they are."""
        done = _rewritten_chunk(chunk, is_kept, is_kept, None, self.rewriter.terms.limits)
        rows, table, copied_to = np.flatnonzero(is_kept), chunk.table, done.start
        edges = np.flatnonzero(table.position[rows[1:]] != table.end_position[rows[:-1]]) + 1
        for run in np.split(rows, edges) if len(rows) else ():
            yield from pieces_of(source, copied_to, int(table.position[run[0]]))
            yield copied(chunk, run)
            copied_to = int(table.end_position[run[-1]])
        yield from pieces_of(source, copied_to, done.end)
        yield done
