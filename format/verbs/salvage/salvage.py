"""salvage: every intact batch into a new directory, byte for byte, and a list of what is lost.

A batch is intact when its CRC is right. Its base offset lies outside the CRC; one whose offsets cannot be where it lies
goes into a file of its own beside the partitions (``NAME.BASE_OFFSET.quarantine``) and its offsets count as lost.
Indexes are built anew, and so is a producer snapshot for the log's end; the source's may speak of batches that are
lost. The clean-shutdown mark is left out: a broker that starts on the output checks every batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from format import layout
from format.errors import FileChanged, KafkaLogError
from format.findings import Certainty, Finding, Severity, finding, finding_of
from format.io.source import FileSource
from format.io.unreadable_ranges import PatchedSource
from format.limits import DEFAULT_LIMITS, Limits
from format.node.checkpoints import Checkpoints
from format.node.log_dir import directory_around, log_dir_around
from format.node.partition import Partition
from format.node.partition_surroundings import surroundings_findings
from format.node.segment import Segment
from format.rewriting.carried_files import LogRange, carry_log_dir_files, carry_partition_files
from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES, TransactionIndexBuilder, end_markers
from format.rewriting.intact_batches import SegmentScan, salvage_chunks, scan_segment
from format.rewriting.publish import Publication
from format.rewriting.snapshot_builder import rebuild_snapshots
from format.rewriting.sources import WriteSources
from format.rewriting.written_segments import Advance, SegmentWriter, WrittenSegment, no_progress, written_segment
from format.rows.finding_json import finding_as_json, finding_from_json
from format.verbs.salvage.losses import LossTeller, SegmentResult, offset_after, offset_range

#: Topics that brokers compact whatever the checkpoints say, so that offsets between segments may be missing.
_COMPACTED_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


@dataclass(slots=True)
class Salvage:
    """The terms of one run, and what it lost: findings that say so, in order, and the bytes they cover."""

    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    advance: Advance = no_progress
    losses: list[Finding] = field(default_factory=list)
    lost_bytes: int = 0


def salvage(
    sources: WriteSources, publication: Publication, terms: Salvage | None = None
) -> Iterator[Finding | WrittenSegment]:
    """Write what is intact into the open publication and finish it; yields each segment, and findings on the way.

    Raises OutputError; what cannot be read of the sources is a finding.
    """
    run = _Run(sources, publication, terms or Salvage())
    yield from run.everything()
    publication.finish(run.manifest())


class _Run:
    def __init__(self, sources: WriteSources, publication: Publication, terms: Salvage) -> None:
        self.sources = sources
        self.publication = publication
        self.terms = terms
        self.segments: list[WrittenSegment] = []
        self.ranges: dict[tuple[str, int], LogRange] = {}

    def manifest(self) -> dict[str, Any]:
        return {
            "segments": [each.as_json() for each in self.segments],
            "lost_bytes": self.terms.lost_bytes,
            "losses": [finding_as_json(each) for each in self.terms.losses],
        }

    def everything(self) -> Iterator[Finding | WrittenSegment]:
        yield from self.sources.left_out
        known: dict[Path, Checkpoints] = {}
        for name, partition in self.sources.partitions.items():
            around = directory_around(partition.path)
            if around not in known:
                log_dir = self.sources.log_dir or log_dir_around(partition.path)
                known[around] = Checkpoints() if log_dir is None else log_dir.checkpoints(self.terms.limits)
                # What is wrong with those of the log directory itself is reported when they are carried over.
                if self.sources.log_dir is None:
                    yield from known[around].findings
            yield from self._partition(name, partition, known[around])
        if self.sources.log_dir is not None:
            self.publication.redo_step("log directory")
            yield from carry_log_dir_files(
                self.publication, self.sources.log_dir, self.ranges, is_whole=False, limits=self.terms.limits
            )
            self.publication.finish_step("log directory")

    def _partition(
        self, name: str, partition: Partition, checkpoints: Checkpoints
    ) -> Iterator[Finding | WrittenSegment]:
        yield from surroundings_findings(partition)
        self.publication.create_directory(name)
        key = None if partition.topic is None or partition.number is None else (partition.topic, partition.number)
        cleaned = checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, key)
        is_compacted = partition.topic in _COMPACTED_TOPICS or bool(cleaned)
        transactions = TransactionIndexBuilder(self.terms.limits)
        transactions.seed(partition)
        last_offset: int | None = None
        first_segment = len(self.segments)
        for segment in partition.segments:
            for item in self._step(name, partition, segment, last_offset, transactions, is_compacted):
                if isinstance(item, int):
                    last_offset = item
                else:
                    yield item
        if partition.segments:
            yield from self._missing_end(partition, last_offset, checkpoints, key)
            start = partition.segments[0].base_offset
            end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
            if key is not None and partition.mark is None:
                self.ranges[key] = LogRange(start, max(start, end))
        self.publication.redo_step(f"{name} side files")
        yield from carry_partition_files(self.publication, partition, name, limits=self.terms.limits, snapshots=False)
        if not any(each.log in self.sources.paths for each in partition.segments):  # a log by itself may be a part
            written = self.segments[first_segment:]
            end = 0 if last_offset is None else last_offset + 1
            rebuild_snapshots(self.publication, partition, name, written, end, None, limits=self.terms.limits)
        self.publication.finish_step(f"{name} side files")

    def _step(
        self,
        name: str,
        partition: Partition,
        segment: Segment,
        last_offset: int | None,
        transactions: TransactionIndexBuilder,
        is_compacted: bool,
    ) -> Iterator[Finding | WrittenSegment | int]:
        """One segment, done now or by the run that is taken up; yields last the last offset so far."""
        step = f"{name}/{segment.base_offset}"
        if not self.publication.is_step_finished(step):
            done = SegmentResult(last_offset)
            self._segment(name, partition, segment, transactions, done, is_compacted)
            self.publication.finish_step(step, done.as_json(transactions))
        else:
            self.terms.advance(2 * _size_of(segment))
        result = self.publication.step_result(step)
        transactions.open_transactions = {int(producer): first for producer, first in result["open"].items()}
        for each in result["findings"]:
            found = finding_from_json(each["finding"])
            if each["is_loss"]:
                self.terms.losses.append(found)
            yield found
        if result["segment"] is not None:
            written = WrittenSegment(**result["segment"])
            self.terms.lost_bytes += written.lost_bytes
            self.segments.append(written)
            yield written
        if result["last_offset"] is not None:
            yield int(result["last_offset"])

    def _segment(
        self,
        name: str,
        partition: Partition,
        segment: Segment,
        transactions: TransactionIndexBuilder,
        done: SegmentResult,
        is_compacted: bool,
    ) -> None:
        location = partition.location(segment.log, segment.base_offset)
        if segment.log is None:
            return
        try:
            file = FileSource(segment.log)
        except KafkaLogError as error:
            lost = offset_range(offset_after(done.last_offset, segment), partition.next_base_offset(segment))
            found = finding_of(error, location)
            done.add(finding(found.code, location, f"nothing could be read: {found.message}", lost_offsets=lost), True)
            return
        with file:
            source = PatchedSource(file)
            next_base_offset = partition.next_base_offset(segment)
            try:
                scan = scan_segment(
                    source,
                    first_possible=offset_after(done.last_offset, segment),
                    next_base_offset=next_base_offset,
                    base_offset=segment.base_offset,
                    limits=self.terms.limits,
                )
                self.terms.advance(source.size_bytes)
                is_live = next_base_offset is None and file.current_size_bytes() != file.size_bytes
                teller = LossTeller(location, scan, source, next_base_offset, is_live, is_compacted)
                teller.tell(done)
                done.segment = self._write(name, partition, segment, source, scan, transactions)
            except FileChanged as error:
                raise FileChanged(f"{error.message}; salvage needs a source that stands still", location) from error
        done.segment.lost_bytes = teller.lost_bytes

    def _write(
        self,
        name: str,
        partition: Partition,
        segment: Segment,
        source: PatchedSource,
        scan: SegmentScan,
        transactions: TransactionIndexBuilder,
    ) -> WrittenSegment:
        """The second walk: copy the kept batches in runs, the others that are intact into quarantine."""
        location = partition.location(segment.log, segment.base_offset)
        written = written_segment(
            name, partition.topic, partition.number, segment.base_offset, source_bytes=source.size_bytes
        )
        writer = SegmentWriter(self.publication, name, written, self.terms.interval_bytes, mtime_ns=source.mtime_ns)
        quarantine = None
        first = 0
        for chunk in salvage_chunks(source, self.terms.limits):
            table = chunk.table
            rows = slice(first, first + len(table))
            first += len(table)
            if chunk.buffer is None or not np.array_equal(scan.position[rows], table.position):
                raise FileChanged("the file changed while it was read", location)
            is_kept = scan.is_kept[rows]
            if (table.crc_valid[is_kept] != 1).any():
                raise FileChanged("the file changed while it was read", location)
            kept = table.rows(is_kept)
            transactions.feed(kept, end_markers(chunk, is_kept, self.terms.limits))
            new_position = writer.size_bytes
            for start, end in _runs(kept.position, kept.end_position):
                writer.write(chunk.buffer[start - chunk.buffer_position : end - chunk.buffer_position])
            kept.position[:] = new_position + np.cumsum(kept.size_bytes) - kept.size_bytes
            writer.index(kept)
            for row in np.flatnonzero(scan.is_intact[rows] & ~is_kept).tolist():
                if quarantine is None:
                    quarantine = self.publication.create(f"{name}.{segment.base_offset:020d}.quarantine")
                start = int(table.position[row]) - chunk.buffer_position
                quarantine.write(chunk.buffer[start : start + int(table.size_bytes[row])])
            self.terms.advance(chunk.covered_bytes)
        if quarantine is not None:
            quarantine.close()
        written.copied_count = written.batch_count
        return writer.close(transactions.take(segment))

    def _missing_end(
        self, partition: Partition, last_offset: int | None, checkpoints: Checkpoints, key: tuple[str, int] | None
    ) -> Iterator[Finding]:
        """Offsets that the log once had after its end: a checkpoint or a snapshot is past it."""
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        claims = {"a producer snapshot": max(partition.snapshots, default=0)}
        for checkpoint in (layout.REPLICATION_OFFSET_CHECKPOINT, layout.RECOVERY_POINT_CHECKPOINT):
            claims[f"the {checkpoint}"] = checkpoints.offset(checkpoint, key) or 0
        what, offset = max(claims.items(), key=lambda each: each[1])
        if offset > end:
            lost = finding(
                "checkpoint-mismatch",
                partition.location(),
                f"{what} says that the log reached offset {offset}; what is left ends at {end}: offsets {end} to "
                f"{offset - 1} are lost",
                severity=Severity.FATAL,
                certainty=Certainty.LIKELY,
                lost_offsets=(end, offset - 1),
            )
            self.terms.losses.append(lost)
            yield lost


def _runs(starts: Any, ends: Any) -> Iterator[tuple[int, int]]:
    """Neighbouring batches joined: first byte and the byte after the last one of each run."""
    if not len(starts):
        return
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    firsts, lasts = np.concatenate(([0], breaks + 1)), np.concatenate((breaks, [len(starts) - 1]))
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        yield int(starts[first]), int(ends[last])


def _size_of(segment: Segment) -> int:
    try:
        return 0 if segment.log is None else segment.log.lstat().st_size
    except OSError:
        return 0
