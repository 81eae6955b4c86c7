"""Rewrites one segment of the source: batches in order, then the comparison with the source, then the indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import FileChanged, UnreadableFile
from format.io.source import FileSource, PatchedSource
from format.log.batch_chunk import BatchChunk
from format.log.control_records import first_control_records
from format.node.partition import Segment
from format.rewriting.index_builder import IndexedOffsets, TransactionIndexBuilder
from format.rewriting.intact_batches import KeptBatches, ProducerBatches, salvage_chunks, scan_segment
from format.rewriting.publishing.new_file import NewFile
from format.rewriting.publishing.publication import Publication
from format.rewriting.read_back import Became
from format.rewriting.repairs import Repair, proven_repairs
from format.rewriting.rewriter import FirstLook, Rewriter, SourceLog
from format.rewriting.segment_output import Mark, SegmentOutput
from format.rewriting.sharing import SharedRewriting
from format.rewriting.sound_chunks import MadeChunk, MadeDigest, NotSound, made_here, transactional_rows
from format.rewriting.written_batches import batch_bytes
from format.rewriting.written_segments import SegmentResult
from format.scan.progress import SpanProgress

_COPY_BYTES = 4 * 1024 * 1024
_CHANGED = "the file changed while it was read"


class Written(msgspec.Struct):
    """What the chunks became so far: the range of each in the source, the output's mark before each, and digests."""

    chunks: list[tuple[int, int]] = msgspec.field(default_factory=list)
    marks: list[Mark] = msgspec.field(default_factory=list)
    digests: dict[int, bytes] = msgspec.field(default_factory=dict)

    def begin(self, start: int, end: int, mark: Mark) -> None:
        """Begin a chunk, which lies in the source from ``start`` to ``end``."""
        self.chunks.append((start, end))
        self.marks.append(mark)

    def became(self, output: SegmentOutput) -> list[Became]:
        """The list for the read-back, once all chunks are in the output."""
        marks = [*self.marks, output.mark()]
        return [
            Became(start, end, output.ranges(*marks[number : number + 2]), self.digests.get(number))
            for number, (start, end) in enumerate(self.chunks)
        ]


class SegmentRewriting:
    """Rewrites one segment; ``do`` returns the result.

    A log that is plainly sound is read once, and other processes may make its new batches. Any other log is scanned as
    a whole first, which shows the batches to keep.
    """

    def __init__(
        self,
        publication: Publication,
        rewriter: Rewriter,
        shared: SharedRewriting | None,
        directory: str,
        segment: Segment,
        log: SourceLog,
        transactions: TransactionIndexBuilder,
    ) -> None:
        self._publication = publication
        self._rewriter = rewriter
        self._shared = shared
        self._directory = directory
        self._segment = segment
        self._log = log
        self._transactions = transactions

    def do(self, after_offset: int | None) -> SegmentResult:
        """Write the segment, or the several that it becomes; stops early where the rewriter refuses.

        ``after_offset`` is the last offset before the segment. Raises FileChanged, OutputError, Refused.
        """
        result = SegmentResult(after_offset, self._transactions.open_transactions)
        try:
            file = FileSource(self._log.path)
        except UnreadableFile as error:
            self._report_unreadable(error, result)
            return result
        with file:
            progress = SpanProgress(self._rewriter.terms.advance, self._rewriter.passes * file.size_bytes)
            try:
                if not self._write_sound(file, result, progress):
                    self._write_kept(file, result, progress)
            except FileChanged as error:
                message = f"{error.message}; no process may write the sources during the run"
                raise FileChanged(message, error.location or self._log.location) from error
            except UnreadableFile as error:
                self._report_unreadable(error, result)
            progress.finish()
        result.open_transactions = self._transactions.open_transactions
        return result

    def _report_unreadable(self, error: UnreadableFile, result: SegmentResult) -> None:
        result.is_read = False
        self._rewriter.report_unreadable(error, self._log, result)

    def _output(self, source: FileSource | PatchedSource) -> SegmentOutput:
        return SegmentOutput(self._publication, self._rewriter, self._directory, self._log, source.mtime_ns)

    def _close(self, output: SegmentOutput, source: FileSource | PatchedSource, result: SegmentResult) -> None:
        result.segments = output.close(self._transactions.take(self._segment))
        result.segments[0].source_bytes = source.size_bytes
        result.segments[0].lost_bytes = result.lost_bytes

    # -- a log that is plainly sound ---------------------------------------------------------------------------

    def _write_sound(self, file: FileSource, result: SegmentResult, progress: SpanProgress) -> bool:
        """Write the whole log while it is read. Returns False and removes the output where it is not plainly sound."""
        after_offset, open_transactions = result.last_offset, self._transactions.open_transactions
        if self._rewriter.repairs:
            return False
        try:
            with self._output(file) as output:
                became = self._put_sound(output, file, result, progress)
                output.finish_log()
                self._read_back(file, became, progress)
                self._close(output, file, result)
        except NotSound:
            if self._shared is not None:
                self._shared.leave(self._log)
            progress.restart()
            result.last_offset, result.record_count = after_offset, 0
            self._transactions.open_transactions = open_transactions
            self._transactions.take(None)
            return False
        return True

    def _put_sound(
        self, output: SegmentOutput, file: FileSource, result: SegmentResult, progress: SpanProgress
    ) -> list[Became]:
        """Put the whole log into the output; returns what each chunk became. Raises NotSound."""
        log = self._log
        if self._shared is not None and self._shared.makes:
            items = self._shared.made(log)
        else:
            items = made_here(file, log, self._rewriter, result.last_offset)
        written = Written()
        position = 0
        is_after_gap = (
            False  # the last batch, whose base offset may then be false: only a scan of all batches shows that
        )
        for item in items:
            if isinstance(item, MadeDigest):
                written.digests[len(written.chunks) - 1] = item.digest
            elif not isinstance(item, MadeChunk):
                output.put(item)
            elif item.start != position or not self._is_taken_whole(item, result.last_offset):
                raise NotSound
            else:
                written.begin(item.start, item.end, output.mark())
                self._transactions.feed(item.transactional, item.markers)
                before_last = item.end_before_last
                if before_last is None:
                    before_last = log.first_possible(result.last_offset) - 1
                is_after_gap = item.last_base_offset > before_last + 1
                result.last_offset = item.last_offset
                result.record_count += item.record_count
                progress.advance(item.end - position)
                position = item.end
        ends_early = log.next_base_offset is not None and not self._follows(log.next_base_offset, result.last_offset)
        has_grown = position != file.size_bytes
        if has_grown or ends_early or (is_after_gap and log.next_base_offset is None):
            raise NotSound
        return written.became(output)

    def _is_taken_whole(self, item: MadeChunk, last_offset: int | None) -> bool:
        if self._rewriter.keeps_misplaced and item.may_stop_broker(self._transactions.open_transactions):
            return False
        return self._follows(item.first_offset, last_offset)

    def _follows(self, first_offset: int, last_offset: int | None) -> bool:
        """Whether a batch of this log may start at ``first_offset``, if ``last_offset`` is the last one before it."""
        least = self._log.first_possible(last_offset)
        return first_offset == least or (first_offset > least and not self._rewriter.wants_every_offset)

    def _read_back(self, file: FileSource, became: list[Became], progress: SpanProgress) -> None:
        if self._shared is not None and self._rewriter.writes_log and len(became) > 1:
            for length_bytes in self._shared.read_back(file, self._log, became):
                progress.advance(length_bytes)
            return
        self._rewriter.read_back(file, became, None, self._log.location, progress.advance)

    # -- any other log -----------------------------------------------------------------------------------------

    def _write_kept(self, file: FileSource, result: SegmentResult, progress: SpanProgress) -> None:
        """Scan the whole log, then write the batches that are kept."""
        source = PatchedSource(file) if self._rewriter.reads_around_errors else file
        look = self._first_look(file, source, result.last_offset)
        progress.advance(source.size_bytes)
        self._rewriter.report_look(look, result)
        with ExitStack() as stack:
            output = stack.enter_context(self._output(source))
            written = Written()
            quarantine: NewFile | None = None
            copied_to = 0
            is_written = look.scan.is_kept.copy()
            for chunk, is_kept, first in self._kept_chunks(look):
                self._rewriter.report_chunk(look, chunk, is_kept, result)
                if self._rewriter.refusal(result) is not None:
                    return
                written.begin(chunk.buffer_position, chunk.buffer_position + chunk.covered_bytes, output.mark())
                if self._rewriter.copies_damage:
                    copied_to = self._copy_with_gaps(look, chunk, is_kept, copied_to, output)
                else:
                    is_kept = self._put(chunk, is_kept, output, written, result)
                    is_written[first : first + len(is_kept)] = is_kept
                if self._rewriter.refusal(result) is not None:
                    return
                if self._rewriter.keeps_misplaced:
                    misplaced = look.scan.is_intact[first : first + len(is_kept)] & ~is_kept
                    quarantine = self._put_apart(chunk, misplaced, quarantine, stack)
                self._note_written(chunk, is_kept, result)
                progress.advance(chunk.covered_bytes)
            if self._rewriter.copies_damage:
                _copy_bytes(source, copied_to, source.size_bytes, output)
            output.finish_log()
            became = written.became(output)
            self._rewriter.read_back(
                source, became, KeptBatches(is_written, look.scan.offsets), self._log.location, progress.advance
            )
            self._close(output, source, result)

    def _first_look(self, file: FileSource, source: FileSource | PatchedSource, after_offset: int | None) -> FirstLook:
        log = self._log
        limits = self._rewriter.terms.limits
        is_left_out = self._rewriter.keeps_misplaced
        indexed = IndexedOffsets(log.location, limits)
        made: list[Repair] = []
        while True:
            scan = scan_segment(
                source,
                first_possible=log.first_possible(after_offset),
                next_base_offset=log.next_base_offset,
                base_offset=log.base_offset,
                limits=limits,
                producers=ProducerBatches(self._transactions.open_transactions, limits) if is_left_out else None,
                indexed=indexed,
            )
            others = proven_repairs(source, scan, limits) if is_left_out and isinstance(source, PatchedSource) else []
            known = {(each.position, each.field) for each in made}
            new = [each for each in others if (each.position, each.field) not in known]
            if not (self._rewriter.repairs and new and isinstance(source, PatchedSource)):
                break
            for each in new:
                each.apply(source)
            made += new
        is_live = log.next_base_offset is None and file.current_size_bytes() != file.size_bytes
        return FirstLook(log, source, scan, after_offset, is_live, tuple(made), tuple(others))

    def _kept_chunks(self, look: FirstLook) -> Iterator[tuple[BatchChunk, NDArray[np.bool_], int]]:
        """The chunks, read again, with the mask of their kept batches and the number of their first batch."""
        first = 0
        scan = look.scan
        for chunk in salvage_chunks(look.source, self._rewriter.terms.limits, offsets=look.scan.offsets):
            rows = slice(first, first + len(chunk.table))
            is_kept = scan.is_kept[rows]
            is_same = np.array_equal(scan.position[rows], chunk.table.position)
            if not is_same or (chunk.table.crc_valid[is_kept] != 1).any():
                raise FileChanged(_CHANGED, self._log.location)
            yield chunk, is_kept, first
            first = rows.stop
        if first != len(scan.position):
            raise FileChanged(_CHANGED, self._log.location)

    def _put(
        self,
        chunk: BatchChunk,
        is_kept: NDArray[np.bool_],
        output: SegmentOutput,
        written: Written,
        result: SegmentResult,
    ) -> NDArray[np.bool_]:
        """Put the kept batches of a chunk into the output; returns the mask of those that were written."""
        is_written = is_kept.copy()
        for portion in self._rewriter.portions(chunk, is_kept, self._log.location):
            if portion.error is not None:
                self._rewriter.report_error(portion, chunk, self._log.location, result)
            if portion.batches is not None:
                output.put(portion.batches)
            elif portion.row >= 0:
                is_written[portion.row] = False
            if portion.digest is not None:
                written.digests[len(written.chunks) - 1] = portion.digest
        return is_written

    def _copy_with_gaps(
        self, look: FirstLook, chunk: BatchChunk, is_kept: NDArray[np.bool_], copied_to: int, output: SegmentOutput
    ) -> int:
        """Put the kept batches of a chunk and, unindexed, the bytes between them; returns the position copied up to."""
        table = chunk.table
        rows = np.flatnonzero(is_kept)
        starts, ends = table.position[rows], table.end_position[rows]
        firsts = np.flatnonzero(np.concatenate((np.ones(min(len(rows), 1), bool), starts[1:] != ends[:-1])))
        for run in np.split(rows, firsts[1:]) if len(rows) else ():
            _copy_bytes(look.source, copied_to, int(table.position[run[0]]), output)
            which = np.zeros(len(table), bool)
            which[run] = True
            for portion in self._rewriter.portions(chunk, which, self._log.location):
                if portion.batches is not None:
                    output.put(portion.batches)
            copied_to = int(table.end_position[run[-1]])
        return copied_to

    def _put_apart(
        self, chunk: BatchChunk, which: NDArray[np.bool_], quarantine: NewFile | None, stack: ExitStack
    ) -> NewFile | None:
        """Put batches into a quarantine file beside the partitions, which is made for the first of them."""
        for row in np.flatnonzero(which).tolist():
            if quarantine is None:
                name = f"{self._directory}.{self._log.base_offset:020d}.quarantine"
                quarantine = stack.enter_context(self._publication.create(name))
            quarantine.write(batch_bytes(chunk, row))
        return quarantine

    def _note_written(self, chunk: BatchChunk, is_written: NDArray[np.bool_], result: SegmentResult) -> None:
        table = chunk.table
        which = is_written & transactional_rows(table)
        self._transactions.feed(table.rows(which), first_control_records(chunk, which, self._rewriter.terms.limits))
        rows = np.flatnonzero(is_written)
        if len(rows):
            result.last_offset = table.last_offset_of(int(rows[-1]))
            result.record_count += int(np.maximum(table.record_count[rows], 0).sum())


def _copy_bytes(source: FileSource | PatchedSource, start: int, end: int, output: SegmentOutput) -> None:
    while start < end:
        part = source.read_at(start, min(_COPY_BYTES, end - start))
        output.put_unindexed(part)
        start += len(part)
