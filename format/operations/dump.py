"""dump: any file of a log directory, decoded into rows; a directory gives its logs in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log_dir import Kind, kind_of, read_log_dir
from format.operations.dump_side_files import side_file_blocks
from format.operations.read_log import LogChunk, location_of_file, log_chunks
from format.operations.selection import EVERYTHING, Selection
from format.partition import Partition, read_partition
from format.records import record_tables
from format.rows import RowBlock, batch_block, record_block
from format.segment import Segment

_LOG_KINDS = (Kind.LOG, Kind.KRAFT_SNAPSHOT)


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
    if kind is Kind.LOG_DIR:
        for directory in read_log_dir(path).partitions:
            yield from _partition_blocks(read_partition(directory), records, selection, limits)
    elif kind is Kind.PARTITION:
        yield from _partition_blocks(read_partition(path), records, selection, limits)
    elif kind in _LOG_KINDS:
        yield from _file_blocks(path, kind, records, selection, limits)
    else:
        yield from side_file_blocks(path, kind, limits=limits)


def _partition_blocks(
    partition: Partition, records: bool, selection: Selection, limits: Limits
) -> Iterator[RowBlock | Finding]:
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or selection.excludes_segment(segment.base_offset, next_base_offset):
            continue
        location = partition.location(segment.log, segment.base_offset)
        yield from _log_blocks(segment.log, segment, location, next_base_offset is None, records, selection, limits)


def _file_blocks(
    path: Path, kind: Kind, records: bool, selection: Selection, limits: Limits
) -> Iterator[RowBlock | Finding]:
    """One log file by itself: its siblings tell its indexes and whether later segments follow."""
    location = location_of_file(path)
    segment = None
    is_last = True
    if kind is Kind.LOG and location.base_offset is not None:
        partition = read_partition(path.parent)
        for each in partition.segments:
            if each.log is not None and each.log.name == path.name:
                segment, is_last = each, partition.next_base_offset(each) is None
    yield from _log_blocks(path, segment, location, is_last, records, selection, limits)


def _log_blocks(
    path: Path,
    segment: Segment | None,
    location: Location,
    is_last: bool,
    records: bool,
    selection: Selection,
    limits: Limits,
) -> Iterator[RowBlock | Finding]:
    for item in log_chunks(path, segment, location, selection=selection, is_last_segment=is_last, limits=limits):
        if isinstance(item, Finding):
            yield item
        elif records:
            yield from _record_blocks(item, selection, limits)
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
