"""recompress: the same records with another codec, in new segments with new indexes, in a new directory.

Every batch keeps its offsets, timestamps, producer and leader epoch; what goes on inside is in ``recompress_plan`` and
``recompress_batches``. Once a segment is written it is read back and compared with its source, record by record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from format import layout
from format.errors import Refused, UnreadableFile
from format.findings import Finding, Severity, finding_of
from format.io.source import FileSource
from format.log.walker import batch_chunks
from format.node.partition import Partition
from format.node.partition_surroundings import surroundings_findings
from format.node.segment import Segment
from format.rewriting.carried_files import LogRange, carry_log_dir_files, carry_partition_files, copy_file
from format.rewriting.index_builder import TransactionIndexBuilder
from format.rewriting.publish import Publication
from format.rewriting.snapshot_builder import rebuild_snapshots
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.rewriting.written_segments import WrittenSegment, written_segment
from format.rows.finding_json import finding_as_json, finding_from_json
from format.verbs.recompress.one_segment import SegmentRecompression
from format.verbs.recompress.sharing import LogToRecompress, SharedRecompression, are_worth_sharing
from format.verbs.recompress.terms import Recompression

_WHAT_TO_RUN = (
    "run 'kafkalog salvage SRC --output DIR' first and recompress its output, or leave out what is damaged with "
    "--skip-damaged"
)


def recompress(
    sources: WriteSources, publication: Publication, terms: Recompression
) -> Iterator[Finding | WrittenSegment]:
    """Write the recompressed sources into the open publication and finish it; yields segments and findings.

    Raises Refused for damage (after a finding that tells it) unless it is to be skipped, and for v0/v1 messages under
    zstd; UnreadableFile; OutputError, also where what was read back differs from the source.
    """
    with contextlib.ExitStack() as stack:
        logs = list(_logs_to_write(sources, publication)) if terms.jobs > 1 else []
        shared = None
        if logs and are_worth_sharing(logs, terms):
            shared = stack.enter_context(SharedRecompression(logs, terms, publication.leave))
        run = _Run(sources, publication, terms, shared)
        yield from run.everything()
    publication.finish(run.manifest())


def _logs_to_write(sources: WriteSources, publication: Publication) -> Iterator[LogToRecompress]:
    """The logs that are not written yet, in the order in which they will be."""
    for name, partition in sources.partitions.items():
        if is_cluster_metadata(partition):
            continue
        for segment in partition.segments:
            if segment.log is not None and not publication.is_step_finished(_step_of(name, segment)):
                location = partition.location(segment.log, segment.base_offset)
                yield LogToRecompress(segment.log, location, segment.base_offset, partition.next_base_offset(segment))


def _step_of(name: str, segment: Segment) -> str:
    return f"{name}/{segment.base_offset}"


@dataclass(slots=True)
class _Run:
    sources: WriteSources
    publication: Publication
    terms: Recompression
    shared: SharedRecompression | None
    segments: list[WrittenSegment] = field(default_factory=list)
    damage: list[Finding] = field(default_factory=list)
    ranges: dict[tuple[str, int], LogRange] = field(default_factory=dict)
    end_offset: int = 0  # of the partition that was written last

    def manifest(self) -> dict[str, Any]:
        return {
            "segments": [each.as_json() for each in self.segments],
            "skipped": [finding_as_json(each) for each in self.damage],
        }

    def everything(self) -> Iterator[Finding | WrittenSegment]:
        yield from self.sources.left_out
        for name, partition in self.sources.partitions.items():
            yield from surroundings_findings(partition)
            self._check_leftovers(partition)
            self.publication.redo_step(f"{name} side files")
            self.publication.create_directory(name)
            first_segment = len(self.segments)
            if is_cluster_metadata(partition):
                yield from self._copied_partition(name, partition)
            else:
                yield from self._partition(name, partition)
            carried = yield from carry_partition_files(
                self.publication, partition, name, limits=self.terms.limits, snapshots=not self.damage
            )
            if not is_cluster_metadata(partition):
                self._rebuild_snapshots(name, partition, self.segments[first_segment:], carried)
            self.publication.finish_step(f"{name} side files")
        if self.sources.log_dir is not None:
            self.publication.redo_step("log directory")
            yield from carry_log_dir_files(
                self.publication,
                self.sources.log_dir,
                self.ranges,
                is_whole=not self.damage,
                limits=self.terms.limits,
            )
            self.publication.finish_step("log directory")

    def _rebuild_snapshots(
        self, name: str, partition: Partition, written: list[WrittenSegment], carried: set[int]
    ) -> None:
        rebuild_snapshots(
            self.publication,
            partition,
            name,
            written,
            self.end_offset,
            None if self.damage else carried,
            limits=self.terms.limits,
        )

    def _check_leftovers(self, partition: Partition) -> None:
        swaps = [each for each in partition.leftovers if each.leftover == "swap"]
        if swaps and not self.terms.skip_damaged:
            raise Refused(
                "a .swap file of an unfinished clean-up lies here, which a broker would put in place of segments: let "
                "a broker start on a copy first, or leave it out with --skip-damaged",
                partition.location(),
            )

    def _copied_partition(self, name: str, partition: Partition) -> Iterator[WrittenSegment]:
        """KRaft's metadata log, byte for byte: it is read before any broker setting, and is never compressed."""
        for segment in partition.segments:
            for path in segment.files.values():
                if path.suffix != layout.PRODUCER_SNAPSHOT_SUFFIX:
                    copy_file(self.publication, path, f"{name}/{path.name}")
            written = written_segment(name, partition.topic, partition.number, segment.base_offset)
            with FileSource(segment.files[layout.LOG_SUFFIX]) as source:
                for chunk in batch_chunks(source, with_bodies=False):
                    written.batch_count += len(chunk.table)
                written.source_bytes = written.size_bytes = source.size_bytes
            written.copied_count = written.batch_count
            self.terms.advance(2 * written.size_bytes)
            self.segments.append(written)
            yield written
        self._note_range(partition, None)

    def _partition(self, name: str, partition: Partition) -> Iterator[Finding | WrittenSegment]:
        transactions = TransactionIndexBuilder(self.terms.limits)
        transactions.seed(partition)
        last_offset: int | None = None
        for segment in partition.segments:
            step = _step_of(name, segment)
            if not self.publication.is_step_finished(step):
                work = SegmentRecompression(
                    self.publication, self.terms, self.shared, name, partition, segment, transactions, last_offset
                )
                yield from self._done(work, step)
            else:
                self.terms.advance(2 * _size_of(segment.log))
            result = self.publication.step_result(step)
            transactions.open_transactions = {int(producer): first for producer, first in result["open"].items()}
            last_offset = result["last_offset"]
            for each in map(finding_from_json, result["findings"]):
                if each.severity >= Severity.ERROR or each.lost_offsets is not None:
                    self.damage.append(each)
                yield each
            for values in result["segments"]:
                written = WrittenSegment(**values)
                self.segments.append(written)
                yield written
        self._note_range(partition, last_offset)

    def _done(self, work: SegmentRecompression, step: str) -> Iterator[Finding]:
        """Do one segment; where it is damaged, tell what is and refuse."""
        try:
            written = work.write()
        except UnreadableFile as error:
            yield finding_of(error)
            raise Refused(f"a segment cannot be read whole: {_WHAT_TO_RUN}", error.location) from error
        if work.damage and not self.terms.skip_damaged:
            yield from work.damage
            raise Refused(f"the source is damaged: {_WHAT_TO_RUN}", work.damage[0].location)
        self.publication.finish_step(
            step,
            {
                "last_offset": work.last_offset,
                "open": work.transactions.open_transactions,
                "findings": [finding_as_json(each) for each in (*work.damage, *work.notes)],
                "segments": [each.as_json() for each in written],
            },
        )

    def _note_range(self, partition: Partition, last_offset: int | None) -> None:
        self.end_offset = 0 if last_offset is None else last_offset + 1
        if partition.topic is None or partition.number is None or partition.mark is not None or not partition.segments:
            return
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        self.ranges[partition.topic, partition.number] = LogRange(partition.segments[0].base_offset, end)


def _size_of(path: Path | None) -> int:
    return 0 if path is None else path.lstat().st_size
