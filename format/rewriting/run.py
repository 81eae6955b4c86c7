"""The run of a writing verb: partition after partition into an open publication, then the log directory's own files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial

from format import layout
from format.files.meta_properties import KnownIds
from format.findings import Finding
from format.io.source import FileSource
from format.log.walker import batch_chunks
from format.node.partition import Partition, Segment, segment_file_name
from format.rewriting.carried_files import CarryTerms, LogRange, carry_log_dir_files, carry_partition_files, copy_file
from format.rewriting.index_builder import TransactionIndexBuilder
from format.rewriting.publishing.publication import Publication
from format.rewriting.rewriter import Rewriter, SourceLog, WriteTerms
from format.rewriting.segment_rewriting import SegmentRewriting
from format.rewriting.sharing import SharedRewriting
from format.rewriting.snapshot_builder import rebuild_snapshots
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.rewriting.written_segments import RewritingResult, SegmentResult, WrittenSegment, written_segment
from format.scan.cost import is_worth_sharing

_LOG_DIR_STEP = "log directory"

#: Verifies the complete output; takes the publication, the sources, the terms and the findings reported so far.
VerifyOutput = Callable[[Publication, WriteSources, WriteTerms, Iterable[Finding]], Iterator[Finding]]


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
            logs = [log for _, log in _logs_to_write(sources, publication, rewriter)]
            if logs and is_worth_sharing([log.path for log in logs], rewriter.cost):
                shared = stack.enter_context(SharedRewriting(logs, rewriter, publication.leave))
        yield from _Run(sources, publication, rewriter, shared, result).everything()
    if rewriter.writes_log:
        for found in verify_output(publication, sources, rewriter.terms, (*sources.findings, *result.findings)):
            result.findings.append(found)
            yield found
    publication.finish(rewriter.manifest(result))


def source_logs(partition: Partition) -> Iterator[tuple[Segment, SourceLog]]:
    """The segments of a partition that have a log, in order."""
    segments = partition.segments
    for number, segment in enumerate(segments):
        if segment.log is not None:
            location = partition.location(segment.log, segment.base_offset)
            next_base_offset = segments[number + 1].base_offset if number + 1 < len(segments) else None
            yield segment, SourceLog(segment.log, location, segment.base_offset, next_base_offset)


def _logs_to_write(
    sources: WriteSources, publication: Publication, rewriter: Rewriter
) -> Iterator[tuple[Segment, SourceLog]]:
    """The logs that are not written yet, in the order in which they will be."""
    for name, partition in sources.partitions.items():
        if not (rewriter.is_left_out(partition) or rewriter.is_copied_whole(partition)):
            for segment, log in source_logs(partition):
                if not publication.is_step_finished(_step_of(name, segment)):
                    yield segment, log


def _step_of(name: str, segment: Segment) -> str:
    return f"{name}/{segment.base_offset}"


class _Run:
    """One run over all partitions: ``everything`` writes them and fills in the result."""

    def __init__(
        self,
        sources: WriteSources,
        publication: Publication,
        rewriter: Rewriter,
        shared: SharedRewriting | None,
        result: RewritingResult,
    ) -> None:
        self._sources = sources
        self._publication = publication
        self._rewriter = rewriter
        self._shared = shared
        self._result = result
        self._limits = rewriter.terms.limits
        self._carry_terms = CarryTerms(
            self._limits,
            rewriter.knows_all,
            rewriter.topic_ids(sources),
            KnownIds(partial(rewriter.node_id, sources), partial(rewriter.directory_id, sources)),
        )
        self._ranges: dict[tuple[str, int], LogRange] = {}

    def everything(self) -> Iterator[Finding | WrittenSegment]:
        yield from self._sources.findings
        for name, partition in self._sources.partitions.items():
            if self._rewriter.is_left_out(partition):
                self._result.left_out.append(f"{name}: a topic that is left out")
                continue
            yield from self._partition(name, partition)
        log_dir = self._sources.log_dir
        if log_dir is not None and self._rewriter.writes_side_files:
            self._publication.redo_step(_LOG_DIR_STEP)
            carrying = carry_log_dir_files(
                self._publication,
                self._rewriter.log_dir(log_dir, self._result),
                self._ranges,
                self._carry_terms,
                is_whole=self._sources.is_whole and self._rewriter.is_whole(self._result),
            )
            yield from self._noted(carrying)
            self._publication.finish_step(_LOG_DIR_STEP)

    def _partition(self, name: str, partition: Partition) -> Iterator[Finding | WrittenSegment]:
        yield from self._noted(self._rewriter.begin_partition(partition))
        side_files = f"{name} side files"
        self._publication.redo_step(side_files)
        self._publication.create_directory(name)
        first_segment, lost_before = len(self._result.segments), self._result.lost_bytes
        if self._rewriter.is_copied_whole(partition):
            last_offset = yield from self._copied(name, partition)
        else:
            last_offset = yield from self._segments(name, partition)
            for found in self._rewriter.end_partition(partition, last_offset):
                self._result.losses.append(found)
                self._result.findings.append(found)
                yield found
        self._note_range(partition, last_offset)
        if self._rewriter.writes_side_files:
            keeps_snapshots = self._rewriter.keeps_snapshots(self._result, self._result.lost_bytes - lost_before)
            carried = yield from self._carried(name, partition, keeps_snapshots)
            # A log file by itself may be only a part of its partition; the metadata log has no producers.
            is_part = self._is_by_itself(partition) or not self._rewriter.makes_snapshots
            if not is_cluster_metadata(partition) and not is_part:
                rebuild_snapshots(
                    self._publication,
                    partition,
                    name,
                    self._result.segments[first_segment:],
                    0 if last_offset is None else last_offset + 1,
                    carried if keeps_snapshots else None,
                    limits=self._limits,
                )
        self._publication.finish_step(side_files)

    def _noted(self, findings: Iterator[Finding]) -> Iterator[Finding]:
        for found in findings:
            self._result.findings.append(found)
            yield found

    def _carried(self, name: str, partition: Partition, keeps_snapshots: bool) -> Generator[Finding, None, set[int]]:
        terms = self._carry_terms
        carrying = carry_partition_files(self._publication, partition, name, terms, snapshots=keeps_snapshots)
        while True:
            try:
                found = next(carrying)
            except StopIteration as done:
                carried: set[int] = done.value
                return carried
            self._result.findings.append(found)
            yield found

    def _is_by_itself(self, partition: Partition) -> bool:
        return any(each.log in self._sources.paths for each in partition.segments)

    def _segments(self, name: str, partition: Partition) -> Generator[Finding | WrittenSegment, None, int | None]:
        """Write the segments that no earlier run has written; returns the last offset of the partition."""
        transactions = TransactionIndexBuilder(self._limits)
        transactions.seed(partition)
        last_offset: int | None = None
        for segment, log in source_logs(partition):
            step = _step_of(name, segment)
            if self._publication.is_step_finished(step):
                self._rewriter.terms.advance(self._rewriter.passes * log.size_bytes())
                result = SegmentResult.from_json(self._publication.step_result(step))
            else:
                work = SegmentRewriting(
                    self._publication, self._rewriter, self._shared, name, segment, log, transactions
                )
                result = work.do(last_offset)
                refusal = self._rewriter.refusal(result)
                if refusal is not None:
                    yield from (found for found, _ in result.findings)
                    raise refusal
                self._publication.finish_step(step, result.as_json())
            transactions.open_transactions = result.open_transactions
            last_offset = result.last_offset
            self._result.add(result)
            yield from (found for found, _ in result.findings)
            yield from result.segments
        return last_offset

    def _copied(self, name: str, partition: Partition) -> Generator[Finding | WrittenSegment, None, int | None]:
        """Copy the segments with their indexes, byte for byte."""
        for segment, log in source_logs(partition):
            for suffix, path in segment.files.items():
                if suffix != layout.PRODUCER_SNAPSHOT_SUFFIX:
                    copy_file(self._publication, path, f"{name}/{segment_file_name(segment.base_offset, suffix)}")
            written = written_segment(name, partition.topic, partition.number, segment.base_offset)
            with FileSource(log.path) as source:
                for chunk in batch_chunks(source, with_bodies=False):
                    written.batch_count += len(chunk.table)
                written.source_bytes = written.size_bytes = source.size_bytes
            written.copied_count = written.batch_count
            self._rewriter.terms.advance(self._rewriter.passes * written.size_bytes)
            self._result.segments.append(written)
            yield written
        return None

    def _note_range(self, partition: Partition, last_offset: int | None) -> None:
        if partition.topic is None or partition.number is None or partition.mark is not None or not partition.segments:
            return
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        self._ranges[partition.topic, partition.number] = LogRange(partition.segments[0].base_offset, end)
