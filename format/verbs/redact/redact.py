"""redact: a copy of logs in which keys, values and headers are replaced, and everything else is as it was.

Offsets, timestamps, sizes of records, nulls, producers, sequences, leader epochs and batch boundaries stay. What cannot
be read to the last byte cannot be redacted: it is left out, with a finding. Control batches and the records of the
coordinators' topics keep their structure; the metadata log and the topic of tiered storage are left out whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from format import layout
from format.errors import FileChanged, KafkaLogError, OutputError
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.io.unreadable_ranges import PatchedSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
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
from format.verbs.redact.batches import redact_chunk
from format.verbs.redact.internal_records import coordinator_redaction
from format.verbs.redact.read_back import ContentDigest, read_back
from format.verbs.redact.records import RecordRedaction
from format.verbs.redact.replacements import Redactor

#: Topics whose records name hosts, users and settings all through; nothing of a use would be left of them.
LEFT_OUT_TOPICS = (layout.CLUSTER_METADATA_TOPIC, "__remote_log_metadata")
_MOST_LOG_BYTES = 2**31 - 1  # positions in an index are int32
#: Damage at a log's end that takes no record away.
_HARMLESS = ("tail-zeros",)


@dataclass(slots=True)
class Redaction:
    """The terms of one run, and what it came to.

    ``left_out`` says what of the sources is on purpose not in the output; ``left_out_bytes`` counts what could not be.
    """

    redactor: Redactor
    with_header_names: bool = False
    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    advance: Advance = no_progress
    left_out: list[str] = field(default_factory=list)
    left_out_bytes: int = 0
    records: int = 0

    def options(self) -> dict[str, Any]:
        """What the manifest tells of the terms."""
        return {
            "mode": self.redactor.mode.value,
            "header_names": self.with_header_names,
            "key_fingerprint": self.redactor.key_fingerprint,
            "index_interval_bytes": self.interval_bytes,
        }


def redact(sources: WriteSources, publication: Publication, terms: Redaction) -> Iterator[Finding | WrittenSegment]:
    """Write the redacted copy into the open publication and finish it; yields segments, and findings on the way.

    Raises OutputError, and FileChanged where a log changes meanwhile; other damage of the sources is a finding.
    """
    run = _Run(sources, publication, terms)
    yield from run.everything()
    publication.finish({"segments": [each.as_json() for each in run.segments], "left_out_bytes": terms.left_out_bytes})


class _Run:
    def __init__(self, sources: WriteSources, publication: Publication, terms: Redaction) -> None:
        self.sources = sources
        self.publication = publication
        self.terms = terms
        self.segments: list[WrittenSegment] = []
        self.ranges: dict[tuple[str, int], LogRange] = {}
        self.is_whole = True

    def everything(self) -> Iterator[Finding | WrittenSegment]:
        yield from self.sources.left_out
        for name, partition in self.sources.partitions.items():
            if partition.topic in LEFT_OUT_TOPICS:
                self.terms.left_out.append(f"{name}: a topic that is left out")
            else:
                yield from self._partition(name, partition)
        log_dir = self.sources.log_dir
        if log_dir is not None:
            if log_dir.bootstrap_checkpoint is not None:
                self.terms.left_out.append(f"{layout.BOOTSTRAP_CHECKPOINT}: holds metadata")
            log_dir = replace(log_dir, bootstrap_checkpoint=None)
            self.publication.redo_step("log directory")
            yield from carry_log_dir_files(
                self.publication, log_dir, self.ranges, is_whole=self.is_whole, limits=self.terms.limits
            )
            self.publication.finish_step("log directory")

    def _partition(self, name: str, partition: Partition) -> Iterator[Finding | WrittenSegment]:
        yield from surroundings_findings(partition)
        self.publication.create_directory(name)
        transactions = TransactionIndexBuilder(self.terms.limits)
        transactions.seed(partition)
        redactor = self.terms.redactor
        redaction = RecordRedaction(
            redactor, self.terms.with_header_names, coordinator_redaction(partition.topic, redactor)
        )
        last_offset: int | None = None
        left_out_before = self.terms.left_out_bytes
        first_segment = len(self.segments)
        for segment in partition.segments:
            step = f"{name}/{segment.base_offset}"
            if self.publication.is_step_finished(step):
                self.terms.advance(2 * _size_of(segment))
            else:
                done = _SegmentWork(self, name, partition, segment, transactions, redaction, last_offset).do()
                self.publication.finish_step(step, done)
            result = self.publication.step_result(step)
            transactions.open_transactions = {int(producer): first for producer, first in result["open"].items()}
            last_offset = result["last_offset"]
            yield from (finding_from_json(each) for each in result["findings"])
            self.terms.left_out_bytes += result["left_out_bytes"]
            self.terms.records += result["records"]
            if result["segment"] is not None:
                self.segments.append(WrittenSegment(**result["segment"]))
                yield self.segments[-1]
        is_whole = self.terms.left_out_bytes == left_out_before
        self.is_whole &= is_whole
        if partition.segments and partition.topic is not None and partition.number is not None and not partition.mark:
            start = partition.segments[0].base_offset
            end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
            self.ranges[(partition.topic, partition.number)] = LogRange(start, max(start, end))
        self.publication.redo_step(f"{name} side files")
        carried = yield from carry_partition_files(
            self.publication, partition, name, limits=self.terms.limits, snapshots=is_whole
        )
        rebuild_snapshots(
            self.publication,
            partition,
            name,
            self.segments[first_segment:],
            0 if last_offset is None else last_offset + 1,
            carried if is_whole else None,
            limits=self.terms.limits,
        )
        self.publication.finish_step(f"{name} side files")


class _SegmentWork:
    """One segment: a first look that finds the batches that are intact, then the copy, then the reading back."""

    def __init__(
        self,
        run: _Run,
        name: str,
        partition: Partition,
        segment: Segment,
        transactions: TransactionIndexBuilder,
        redaction: RecordRedaction,
        last_offset: int | None,
    ) -> None:
        self._publication = run.publication
        self._terms = run.terms
        self._name = name
        self._partition = partition
        self._segment = segment
        self._transactions = transactions
        self._redaction = redaction
        self._location = partition.location(segment.log, segment.base_offset)
        self._next_base_offset = partition.next_base_offset(segment)
        self._last_offset = last_offset
        self._findings: list[Finding] = []
        self._left_out_bytes = 0
        self._records = 0

    def do(self) -> dict[str, Any]:
        """Everything; what came of it as JSON values, for the journal."""
        written = None
        if self._segment.log is not None:
            try:
                file = FileSource(self._segment.log)
            except KafkaLogError as error:
                self._findings.append(finding_of(error, self._location))
                self._left_out_bytes += max(_size_of(self._segment), 1)
            else:
                with file:
                    written = self._copy(file)
        return {
            "segment": None if written is None else written.as_json(),
            "findings": [finding_as_json(each) for each in self._findings],
            "last_offset": self._last_offset,
            "left_out_bytes": self._left_out_bytes,
            "records": self._records,
            "open": self._transactions.open_transactions,
        }

    def _copy(self, file: FileSource) -> WrittenSegment:
        source = PatchedSource(file)
        base_offset = self._segment.base_offset
        scan = scan_segment(
            source,
            first_possible=base_offset if self._last_offset is None else max(base_offset, self._last_offset + 1),
            next_base_offset=self._next_base_offset,
            base_offset=base_offset,
            limits=self._terms.limits,
        )
        self._terms.advance(source.size_bytes)
        is_grown = self._next_base_offset is None and file.current_size_bytes() != file.size_bytes
        self._tell(scan, source, is_grown)
        written = written_segment(
            self._name, self._partition.topic, self._partition.number, base_offset, source_bytes=source.size_bytes
        )
        writer = SegmentWriter(
            self._publication, self._name, written, self._terms.interval_bytes, mtime_ns=source.mtime_ns
        )
        digest = self._write(source, scan, writer)
        written.lost_bytes = self._left_out_bytes
        writer.close(self._transactions.take(self._segment))
        read_back(self._publication.place_of(writer.log_path), digest, limits=self._terms.limits)
        return written

    def _tell(self, scan: SegmentScan, source: PatchedSource, is_grown: bool) -> None:
        """A finding for all bytes that belong to no intact batch."""
        for each in scan.bad:
            code = each.code
            if each.reaches_end and is_grown:
                place = self._location.at(each.position, each.length)
                self._findings.append(finding("live-tail", place, "the end is being written, and is left out"))
                continue
            if each.reaches_end and self._next_base_offset is not None and code == "tail-torn":
                code = "log-truncated"
            place = self._location.at(each.position, each.length)
            self._findings.append(finding(code, place, f"{each.length} bytes are left out: {each.reason}"))
            if code not in _HARMLESS:
                self._left_out_bytes += each.length
        for block in sorted(source.unreadable):
            self._findings.append(finding("file-unreadable", self._location.at(block), "an I/O error at this block"))

    def _write(self, source: PatchedSource, scan: SegmentScan, writer: SegmentWriter) -> ContentDigest:
        digest = ContentDigest()
        first = 0
        for chunk in salvage_chunks(source, self._terms.limits):
            rows = slice(first, first + len(chunk.table))
            first += len(chunk.table)
            is_kept = scan.is_kept[rows]
            if (
                not np.array_equal(scan.position[rows], chunk.table.position)
                or (chunk.table.crc_valid[is_kept] != 1).any()
            ):
                raise FileChanged("the file changed while it was read", self._location)
            made = redact_chunk(chunk, is_kept, self._redaction, limits=self._terms.limits, location=self._location)
            for problem in made.problems:
                self._leave_out(problem.error, chunk.table.size_bytes[problem.batch], self._location)
            is_kept = np.zeros(len(chunk.table), bool)
            is_kept[made.rows] = True
            self._transactions.feed(made.table, end_markers(chunk, is_kept, self._terms.limits))
            table = made.table
            table.position[:] = writer.size_bytes + np.cumsum(table.size_bytes) - table.size_bytes
            for content in made.batches:
                writer.write(content)
            if writer.size_bytes > _MOST_LOG_BYTES:
                raise OutputError(
                    "with what replaces them the segment's records take over 2 GiB when compressed; fillers take less",
                    self._location,
                )
            writer.index(table)
            digest.update(table, made.payloads)
            is_control = table.is_control
            writer.written.copied_count += int(is_control.sum())
            writer.written.rebuilt_count += int((~is_control).sum())
            self._records += int(np.maximum(table.record_count, 0).sum())
            if len(table):
                self._last_offset = int(table.last_offset[-1])
            if chunk.buffer is not None:
                self._terms.advance(chunk.covered_bytes)
        return digest

    def _leave_out(self, error: KafkaLogError, size_bytes: int, location: Location) -> None:
        found = finding_of(error, location)
        place = error.location or location
        self._findings.append(
            finding(found.code, place, f"the batch is left out, since it cannot be redacted: {found.message}")
        )
        self._left_out_bytes += int(size_bytes)


def _size_of(segment: Segment) -> int:
    try:
        return 0 if segment.log is None else segment.log.lstat().st_size
    except OSError:
        return 0
