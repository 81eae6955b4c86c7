"""rebuild-index: fresh .index, .timeindex and .txnindex from the log, in a new directory, with or without the log.

They are what a broker of 4.x builds when it recovers the segment. Around damage the intact batches on both sides are
indexed, where a broker would cut the log off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from format.errors import FileChanged, InputError
from format.findings import Finding, Severity, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import Partition
from format.node.partition_surroundings import surroundings_findings
from format.node.segment import Segment
from format.rewriting.carried_files import LogRange, carry_log_dir_files, carry_partition_files, copy_file
from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES, TransactionIndexBuilder, end_markers
from format.rewriting.intact_batches import salvage_chunks, scan_segment
from format.rewriting.publish import Publication
from format.rewriting.snapshot_builder import rebuild_snapshots
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.rewriting.written_segments import Advance, SegmentWriter, WrittenSegment, no_progress, written_segment
from format.rows.finding_json import finding_as_json, finding_from_json


@dataclass(slots=True)
class IndexRebuilding:
    """The terms of one run; ``with_log`` copies everything else too, so that a broker can start on the output."""

    with_log: bool = False
    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    advance: Advance = no_progress


def rebuild_index(
    sources: WriteSources, publication: Publication, terms: IndexRebuilding | None = None
) -> Iterator[Finding | WrittenSegment]:
    """Write the indexes into the open publication and finish it; yields each segment, and findings on the way.

    Raises OutputError; what cannot be read of the sources is a finding.
    """
    terms = terms or IndexRebuilding()
    segments: list[WrittenSegment] = []
    findings: list[Finding] = []
    ranges: dict[tuple[str, int], LogRange] = {}
    yield from sources.left_out
    for name, partition in sources.partitions.items():
        for item in _partition(name, partition, publication, terms, ranges):
            if isinstance(item, WrittenSegment):
                segments.append(item)
            else:
                findings.append(item)
            yield item
    if terms.with_log and sources.log_dir is not None:
        publication.redo_step("log directory")
        is_whole = not any(each.severity >= Severity.ERROR for each in findings)
        yield from carry_log_dir_files(publication, sources.log_dir, ranges, is_whole=is_whole, limits=terms.limits)
        publication.finish_step("log directory")
    publication.finish(
        {
            "segments": [each.as_json() for each in segments],
            "findings": [finding_as_json(each) for each in findings],
        }
    )


def _partition(
    name: str,
    partition: Partition,
    publication: Publication,
    terms: IndexRebuilding,
    ranges: dict[tuple[str, int], LogRange],
) -> Iterator[Finding | WrittenSegment]:
    yield from surroundings_findings(partition)
    publication.create_directory(name)
    transactions = TransactionIndexBuilder(terms.limits)
    transactions.seed(partition)
    last_offset: int | None = None
    written: list[WrittenSegment] = []
    for segment in partition.segments:
        step = f"{name}/{segment.base_offset}"
        if not publication.is_step_finished(step):
            result = _segment(name, partition, segment, publication, terms, transactions, last_offset)
            publication.finish_step(step, result)
        result = publication.step_result(step)
        transactions.open_transactions = {int(producer): first for producer, first in result["open"].items()}
        last_offset = result["last_offset"]
        yield from map(finding_from_json, result["findings"])
        if result["segment"] is not None:
            written.append(WrittenSegment(**result["segment"]))
            yield written[-1]
    if partition.segments and partition.topic is not None and partition.number is not None and partition.mark is None:
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        ranges[partition.topic, partition.number] = LogRange(partition.segments[0].base_offset, end)
    if terms.with_log:
        publication.redo_step(f"{name} side files")
        carried = yield from carry_partition_files(publication, partition, name, limits=terms.limits, snapshots=True)
        end = 0 if last_offset is None else last_offset + 1
        if not is_cluster_metadata(partition):
            rebuild_snapshots(publication, partition, name, written, end, carried, limits=terms.limits)
        publication.finish_step(f"{name} side files")


@dataclass(slots=True)
class _Outcome:
    last_offset: int | None
    written: WrittenSegment | None = None
    findings: list[Finding] = field(default_factory=list)


def _segment(
    name: str,
    partition: Partition,
    segment: Segment,
    publication: Publication,
    terms: IndexRebuilding,
    transactions: TransactionIndexBuilder,
    last_offset: int | None,
) -> dict[str, Any]:
    outcome = _Outcome(last_offset)
    if segment.log is not None:
        location = partition.location(segment.log, segment.base_offset)
        try:
            if terms.with_log:
                copy_file(publication, segment.log, f"{name}/{segment.log.name}", terms.advance)
            _index(name, partition, segment, segment.log, publication, terms, transactions, outcome)
        except InputError as error:
            outcome.findings.append(finding_of(error, location))
    return {
        "last_offset": outcome.last_offset,
        "segment": None if outcome.written is None else outcome.written.as_json(),
        "findings": [finding_as_json(each) for each in outcome.findings],
        "open": transactions.open_transactions,
    }


def _index(
    name: str,
    partition: Partition,
    segment: Segment,
    log: Path,
    publication: Publication,
    terms: IndexRebuilding,
    transactions: TransactionIndexBuilder,
    outcome: _Outcome,
) -> None:
    location = partition.location(log, segment.base_offset)
    next_base_offset = partition.next_base_offset(segment)
    with FileSource(log) as source:
        first_possible = segment.base_offset
        if outcome.last_offset is not None:
            first_possible = max(first_possible, outcome.last_offset + 1)
        scan = scan_segment(
            source,
            first_possible=first_possible,
            next_base_offset=next_base_offset,
            base_offset=segment.base_offset,
            limits=terms.limits,
        )
        for bad in scan.bad:
            is_live = bad.reaches_end and next_base_offset is None and source.current_size_bytes() != source.size_bytes
            place = location.at(bad.position, bad.length)
            message = "the end is being written" if is_live else f"{bad.length} bytes are not indexed: {bad.reason}"
            outcome.findings.append(finding("live-tail" if is_live else bad.code, place, message))
        written = written_segment(
            name, partition.topic, partition.number, segment.base_offset, source_bytes=source.size_bytes
        )
        written.lost_bytes = int(source.size_bytes - (scan.end_position - scan.position)[scan.is_kept].sum())
        writer = SegmentWriter(publication, name, written, terms.interval_bytes, writes_log=False)
        first = 0
        for chunk in salvage_chunks(source, terms.limits):
            rows = slice(first, first + len(chunk.table))
            first += len(chunk.table)
            if not np.array_equal(scan.position[rows], chunk.table.position):
                raise FileChanged("the file changed while it was read", location)
            is_kept = scan.is_kept[rows]
            kept = chunk.table.rows(is_kept)
            transactions.feed(kept, end_markers(chunk, is_kept, terms.limits))
            writer.index(kept)
            terms.advance(chunk.covered_bytes)
        outcome.written = writer.close(transactions.take(segment))
    if terms.with_log:
        outcome.written.size_bytes = source.size_bytes
        outcome.written.copied_count = outcome.written.batch_count
    if scan.is_kept.any():
        outcome.last_offset = int(scan.last_offset[scan.is_kept][-1])
