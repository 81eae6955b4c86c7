"""dump: any file of a log directory, decoded into rows; a directory gives its logs in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log_dir import Kind, kind_of, read_log_dir
from format.operations.dump_side_files import side_file_blocks
from format.operations.read_log import LogChunk, location_of_file, log_chunks
from format.operations.selection import EVERYTHING, Selection
from format.partition import Partition, read_partition
from format.records import record_tables
from format.rows import RowBlock, batch_block, record_block
from format.segment import Segment

LOG_KINDS = (Kind.LOG_DIR, Kind.PARTITION, Kind.LOG, Kind.KRAFT_SNAPSHOT)
#: What is read of a log at once, and given out together.
DUMP_CHUNK_BYTES = MIB


@dataclass(frozen=True, slots=True)
class DumpTerms:
    """What was asked for: batches or records, of which offsets and times, under which limits.

    ``decodes_internal`` is for ``dump_lines``: keys and values of internal topics and control records decoded.
    """

    records: bool = False
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    decodes_internal: bool = False


@dataclass(frozen=True, slots=True)
class LogToDump:
    """A log file, and what its partition tells of it; ``segment`` is None for one that is no segment's."""

    path: Path
    segment: Segment | None
    location: Location
    is_last_segment: bool


def dump(
    path: Path,
    *,
    kind: Kind | None = None,
    records: bool = False,
    selection: Selection = EVERYTHING,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[RowBlock | Finding]:
    """Rows of what lies at ``path`` (batches, or records, of logs; entries of side files), and findings.

    Records of a batch with a wrong CRC are not shown; a finding tells of them. Raises InputError for a path that
    is nothing of Kafka's.
    """
    kind = kind or kind_of(path)
    if kind not in LOG_KINDS:
        yield from side_file_blocks(path, kind, limits=limits)
        return
    terms = DumpTerms(records, selection, limits)
    for log in logs_to_dump(path, kind, selection):
        yield from log_blocks(log, terms)


def logs_to_dump(path: Path, kind: Kind, selection: Selection) -> Iterator[LogToDump]:
    """The log files below a path that may hold what is selected, in order."""
    if kind is Kind.LOG_DIR:
        for directory in read_log_dir(path).partitions:
            yield from _logs_of_partition(read_partition(directory), selection)
    elif kind is Kind.PARTITION:
        yield from _logs_of_partition(read_partition(path), selection)
    else:
        yield _lone_log(path, kind)


def _logs_of_partition(partition: Partition, selection: Selection) -> Iterator[LogToDump]:
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or selection.excludes_segment(segment.base_offset, next_base_offset):
            continue
        location = partition.location(segment.log, segment.base_offset)
        yield LogToDump(segment.log, segment, location, next_base_offset is None)


def _lone_log(path: Path, kind: Kind) -> LogToDump:
    """One log file by itself: its siblings tell its indexes and whether later segments follow."""
    location = location_of_file(path)
    segment = None
    is_last = True
    if kind is Kind.LOG and location.base_offset is not None:
        partition = read_partition(path.parent)
        for each in partition.segments:
            if each.log is not None and each.log.name == path.name:
                segment, is_last = each, partition.next_base_offset(each) is None
    return LogToDump(path, segment, location, is_last)


def log_blocks(log: LogToDump, terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    """Rows of one log, and findings."""
    items = log_chunks(
        log.path,
        log.segment,
        log.location,
        selection=terms.selection,
        is_last_segment=log.is_last_segment,
        limits=terms.limits,
        chunk_bytes=DUMP_CHUNK_BYTES,
    )
    return blocks_of_chunks(items, log.location, terms)


def blocks_of_chunks(
    items: Iterable[LogChunk | Finding], location: Location, terms: DumpTerms
) -> Iterator[RowBlock | Finding]:
    """Rows of a log's chunks, and findings."""
    for item in items:
        if isinstance(item, Finding):
            yield item
        elif terms.records:
            yield from _record_blocks(item, terms.selection, terms.limits)
        elif item.selected.any():
            table = item.chunk.table
            yield batch_block(table if item.selected.all() else table.rows(item.selected), location)


def _record_blocks(item: LogChunk, selection: Selection, limits: Limits) -> Iterator[RowBlock | Finding]:
    which = item.selected & (item.chunk.table.crc_valid != 0)
    for table in record_tables(item.chunk, which=which, limits=limits, location=item.location):
        for problem in table.problems:
            yield finding_of(problem.error, item.location)
        kept = table
        if not selection.is_everything:
            kept = table.rows(np.flatnonzero(selection.records(table)))
        if len(kept):
            yield record_block(kept, item.location)
