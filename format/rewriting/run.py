"""The run of a writing verb: partition after partition into an open publication, then the log directory's own files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import asdict

from format import layout
from format.errors import Refused
from format.files import producer_snapshot
from format.findings import Finding
from format.io.source import FileSource
from format.limits import Limits
from format.log.control_records import first_control_records
from format.log.walker import batch_chunks, header_chunks
from format.node.partition import Partition, segment_file_name
from format.rewriting.carried_files import CarryTerms, LogRange, carry_log_dir_files, carry_partition_files, copy_file
from format.rewriting.index_builder import TransactionIndexBuilder
from format.rewriting.publication import Publication
from format.rewriting.rewriter import (
    Rewriter,
    RewritingResult,
    SegmentResult,
    SourceLog,
    WriteTerms,
    WrittenSegment,
    written_segment,
)
from format.rewriting.segment_rewriting import SegmentRewriting, SharedRewriting
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.scan.drivers import is_worth_sharing
from format.state.producers import ProducerState

_LOG_DIR_STEP = "log directory"
#: Verifies the complete output; takes the publication, the sources, the terms and the findings reported so far.
VerifyOutput = Callable[[Publication, WriteSources, WriteTerms, Iterable[Finding]], Iterator[Finding]]


def rebuild_snapshots(
    publication: Publication,
    partition: Partition,
    name: str,
    written: Sequence[WrittenSegment],
    end_offset: int,
    carried: set[int] | None,
    *,
    limits: Limits,
) -> None:
    """Write the snapshots that the ``written`` logs lack into the partition directory ``name`` of the output.

    ``carried`` are the offsets of the source's snapshots that were copied: then the snapshots of rolled segments are
    built, and those in place of unsound ones. It is None where none was copied because the log has lost batches: then
    only a snapshot at the log's end is built, if the log has producers. Raises OutputError.
    """
    base_offsets = [each.segment_base_offset for each in written]
    if not base_offsets or (carried is not None and not partition.snapshots):
        return
    wanted = {end_offset}
    if carried is not None:
        rolled = set(base_offsets) - {each.base_offset for each in partition.segments} - carried
        unsound = set(partition.snapshots) - carried
        wanted = rolled | (unsound & {*base_offsets, end_offset}) if carried else {*rolled, end_offset}
    if not wanted:
        return
    start = max((each for each in carried or () if each in base_offsets and each <= min(wanted)), default=None)
    state = (
        ProducerState()
        if start is None
        else ProducerState.of_snapshot(producer_snapshot.read(partition.snapshots[start], limits))
    )
    for each in written:
        if start is not None and each.segment_base_offset < start:
            continue
        if each.segment_base_offset in wanted and carried is not None:
            _write(publication, name, each.segment_base_offset, state)
            wanted.remove(each.segment_base_offset)
        if wanted:
            _feed(state, publication.place_of(each.path), limits)
    if end_offset in wanted and (carried is not None or state.entries):
        _write(publication, name, end_offset, state)


def _feed(state: ProducerState, log: Path, limits: Limits) -> None:
    with FileSource(log) as source:
        for chunk in batch_chunks(source, check_crc=False, limits=limits):
            if (chunk.table.producer_id < 0).all():
                continue
            markers = first_control_records(chunk, np.ones(len(chunk.table), bool), limits)
            state.feed(chunk.table, markers)  # what is odd about the producers is reported by verify


def _write(publication: Publication, name: str, offset: int, state: ProducerState) -> None:
    file_name = segment_file_name(offset, layout.PRODUCER_SNAPSHOT_SUFFIX)
    publication.write_file(f"{name}/{file_name}", producer_snapshot.write(state.snapshot_columns()))


def rewrite(
    sources: WriteSources,
    publication: Publication,
    rewriter: Rewriter,
    verify_output: VerifyOutput,
    result: RewritingResult,
) -> Iterator[Finding | WrittenSegment]:
    """Write what a verb makes of the sources into the open publication, finish it, and fill in the result.

    Yields each segment that was written, and findings, among them those of the verification of the output at the end.
    Raises OutputError (ReadBackMismatch where what was read back differs), FileChanged, and Refused.
    """
    with contextlib.ExitStack() as stack:
        shared = None
        if rewriter.terms.jobs > 1:
            logs = [
                log
                for name, partition in sources.partitions.items()
                if not rewriter.is_copied_whole(partition)
                for log in source_logs(partition)
                if not publication.is_step_finished(_step_of(name, log))
            ]
            if logs and is_worth_sharing([log.path for log in logs], rewriter.cost):
                shared = SharedRewriting(logs, rewriter, publication.leave)
                stack.callback(shared.close)
        terms, given = rewriter.carry_terms(sources), frozenset(sources.paths)
        yield from _Run(sources, publication, rewriter, shared, result, terms, given).everything()
    if rewriter.writes_log:
        for found in verify_output(publication, sources, rewriter.terms, (*sources.findings, *result.findings)):
            result.findings.append(found)
            yield found
    publication.finish({"segments": [asdict(each) for each in result.segments], **rewriter.manifest(result)})


def source_logs(partition: Partition) -> Iterator[SourceLog]:
    """The logs of a partition, in order."""
    for each in partition.segments:
        if each.log is not None:
            location = partition.location(each.log, each.base_offset)
            yield SourceLog(each.log, location, each, partition.next_base_offset(each))


def _step_of(name: str, log: SourceLog) -> str:
    return f"{name}/{log.base_offset}"


class _Run(msgspec.Struct):
    """One run over all partitions: ``everything`` writes them and fills in the result."""

    sources: WriteSources
    publication: Publication
    rewriter: Rewriter
    shared: SharedRewriting | None
    result: RewritingResult
    carry_terms: CarryTerms
    given: frozenset[Path]
    ranges: dict[tuple[str, int], LogRange] = msgspec.field(default_factory=dict)
    last_offset: int | None = None  # of the partition so far

    def everything(self) -> Iterator[Finding | WrittenSegment]:
        rewriter = self.rewriter
        yield from self.sources.findings
        for name, partition in self.sources.partitions.items():
            yield from self._partition(name, partition)
        if self.sources.log_dir is not None and rewriter.writes_log:
            self.publication.redo_step(_LOG_DIR_STEP)
            is_whole = self.sources.is_whole and rewriter.is_whole(self.result)
            yield from self._noted(
                carry_log_dir_files(
                    self.publication, self.sources.log_dir, self.ranges, self.carry_terms, is_whole=is_whole
                )
            )
            self.publication.finish_step(_LOG_DIR_STEP)

    def _partition(self, name: str, partition: Partition) -> Iterator[Finding | WrittenSegment]:
        publication, rewriter, result = self.publication, self.rewriter, self.result
        yield from self._noted(rewriter.begin_partition(partition))
        side_files = f"{name} side files"
        publication.redo_step(side_files)
        publication.create_directory(name)
        first_segment, lost_before = len(result.segments), result.lost_bytes
        self.last_offset = None
        if rewriter.is_copied_whole(partition):
            yield from self._copied(name, partition)
        else:
            yield from self._segments(name, partition)
            for found in rewriter.end_partition(partition, self.last_offset):
                result.losses.append(found)
                yield from self._noted((found,))
        self._note_range(partition)
        if rewriter.writes_log:
            keeps_snapshots = rewriter.keeps_snapshots(result, result.lost_bytes - lost_before)
            carried = carry_partition_files(publication, partition, name, self.carry_terms, snapshots=keeps_snapshots)
            yield from self._noted(carried.findings)
            # A log file by itself may be only a part of its partition; the metadata log has no producers.
            is_part = not self.given.isdisjoint(each.log for each in partition.segments)
            if rewriter.makes_snapshots and not is_part and not is_cluster_metadata(partition):
                rebuild_snapshots(
                    publication,
                    partition,
                    name,
                    result.segments[first_segment:],
                    0 if self.last_offset is None else self.last_offset + 1,
                    carried.snapshots if keeps_snapshots else None,
                    limits=rewriter.terms.limits,
                )
        publication.finish_step(side_files)

    def _noted(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        for found in findings:
            self.result.findings.append(found)
            yield found

    def _segments(self, name: str, partition: Partition) -> Iterator[Finding | WrittenSegment]:
        """Write the segments that no earlier run has written."""
        transactions = TransactionIndexBuilder(self.rewriter.terms.limits)
        transactions.seed(partition)
        for log in source_logs(partition):
            step = _step_of(name, log)
            if self.publication.is_step_finished(step):
                self.rewriter.terms.advance(self.rewriter.passes * log.size_bytes())
                done = SegmentResult.from_json(self.publication.step_result(step))
            else:
                done = SegmentResult(self.last_offset, transactions.open_transactions)
                work = SegmentRewriting(self.publication, self.rewriter, self.shared, name, log, transactions)
                try:
                    work.do(done)
                except Refused:
                    yield from (found for found, _ in done.findings)
                    raise
                self.publication.finish_step(step, done.as_json())
            transactions.open_transactions = done.open_transactions
            self.last_offset = done.last_offset
            self.result.add(done)
            yield from (found for found, _ in done.findings)
            yield from done.segments

    def _copied(self, name: str, partition: Partition) -> Iterator[WrittenSegment]:
        """Copy the segments with their indexes, byte for byte."""
        for segment in partition.segments:
            if segment.log is None:
                continue
            for suffix, path in segment.files.items():
                if suffix != layout.PRODUCER_SNAPSHOT_SUFFIX:
                    copy_file(self.publication, path, f"{name}/{segment_file_name(segment.base_offset, suffix)}")
            written = written_segment(name, partition.topic, partition.number, segment.base_offset)
            with FileSource(segment.log) as source:
                for chunk in header_chunks(source):
                    written.batch_count += len(chunk.headers)
                written.source_bytes = written.size_bytes = source.size_bytes
            written.copied_count = written.batch_count
            self.rewriter.terms.advance(self.rewriter.passes * written.size_bytes)
            self.result.segments.append(written)
            yield written

    def _note_range(self, partition: Partition) -> None:
        if partition.topic is None or partition.number is None or partition.mark is not None or not partition.segments:
            return
        end = partition.segments[-1].base_offset if self.last_offset is None else self.last_offset + 1
        self.ranges[partition.topic, partition.number] = LogRange(partition.segments[0].base_offset, end)
