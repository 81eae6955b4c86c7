"""dump: any file of a log directory, decoded into rows; a directory gives its logs in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.node.log_dir import Kind
from format.node.target import kind_of
from format.rows.record_rows import RowBlock, batch_block, record_block
from format.rows.side_file_rows import side_file_blocks
from format.scan.read_log import LogChunk
from format.scan.selected_logs import LOG_KINDS, Reading, selected_logs
from format.scan.selection import EVERYTHING, Selection

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

    @property
    def reading(self) -> Reading:
        return Reading(self.selection, self.limits, DUMP_CHUNK_BYTES)


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
    for log in selected_logs(path, kind, selection):
        yield from blocks_of_chunks(terms.reading.chunks(log), log.location, terms)


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
