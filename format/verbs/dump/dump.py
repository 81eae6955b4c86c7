"""dump: decodes any file of a log directory into rows; for a directory, its logs in order.

For logs dump is a scan (``DumpScan``). Each chunk of batches becomes blocks of rows or of finished lines. No state
crosses chunks, so the fold adds nothing. Side files are read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from format.checks.records import reading_findings
from format.columns import record_schema
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.log.read_records import record_tables
from format.node.target import Target, target_at
from format.rows.internal_record_rows import decode_internal
from format.rows.line_blocks import Block, LineBlock, in_lines
from format.rows.record_rows import RowBlock, batch_block, record_block
from format.rows.row_text import RowText
from format.rows.side_file_rows import side_file_blocks
from format.scan.drivers import scan_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import EVERYTHING, Selection
from format.verbs.txns.partition_transactions import logs_below

#: The size of a chunk, whose rows are yielded together.
DUMP_CHUNK_BYTES = MIB
_BATCH_COST = Cost(batch_s=0.6e-6, byte_s=0.15e-9, compressed_byte_s=0.15e-9)
_RECORD_COST = Cost(batch_s=0.9e-6, byte_s=3e-9, compressed_byte_s=15e-9)


class DumpTerms(msgspec.Struct, frozen=True):
    """The terms of a dump: batches or records, the selected offsets and times, and the limits.

    ``decodes_internal`` decodes keys and values of internal topics and control records. ``last`` is how many of the
    last rows of each partition are shown, None for all rows. ``extra_columns`` are additional columns of records, out
    of EXTRA_RECORD_COLUMNS.
    """

    records: bool = False
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    decodes_internal: bool = False
    last: int | None = None
    extra_columns: frozenset[str] = frozenset()


class DumpScan(msgspec.Struct, frozen=True):
    """dump as a scan: the parts are blocks of rows, or of lines where ``text`` is given, and the fold yields them."""

    terms: DumpTerms
    text: RowText | None = None

    @property
    def needs(self) -> Needs:
        terms = self.terms
        return Needs(
            Depth.RECORDS if terms.records else Depth.CRC,
            terms.selection,
            terms.limits,
            DUMP_CHUNK_BYTES,
            _RECORD_COST if terms.records else _BATCH_COST,
        )

    def parts(self, opened: OpenedRange) -> Iterator[Block]:
        """The blocks of a range, and findings."""
        chunks = selected_chunks(opened, self.needs)
        blocks = decoded(blocks_of_chunks(chunks, opened.log, self.terms), self.terms)
        return blocks if self.text is None else in_lines(blocks, self.text, opened.room)

    def fold(self, log: LogUnit, parts: LogParts[Block]) -> Iterator[Block]:
        """The same blocks."""
        return parts


def dumped_rows(
    path: Path | Target,
    terms: DumpTerms,
    *,
    advance: Advance = no_progress,
    may_stop: bool = False,
) -> Iterator[RowBlock | Finding]:
    """Rows of the file or directory at ``path`` (batches or records of logs, entries of side files), and findings.

    Records of a batch with a wrong CRC are not shown; a finding reports them. ``may_stop`` as in ``scan_logs``. Raises
    InputError for a path that does not belong to Kafka.
    """
    target = target_at(path)
    if target.kind not in LOG_KINDS:
        yield from side_file_blocks(target.path, target.kind, limits=terms.limits)
        return
    logs = logs_below(target, terms.selection, terms.limits)
    for block in scan_logs(DumpScan(terms), logs, advance=advance, may_stop=may_stop):
        if not isinstance(block, LineBlock):
            yield block


def blocks_of_chunks(
    items: Iterable[LogChunk | Finding], log: LogUnit, terms: DumpTerms
) -> Iterator[RowBlock | Finding]:
    """Rows of a log's chunks, and findings."""
    for item in items:
        if isinstance(item, Finding):
            yield item
        elif terms.records:
            yield from _record_blocks(item, log.log_start_offset, terms)
        elif item.selected.any():
            table = item.chunk.table
            yield batch_block(table if item.selected.all() else table.rows(item.selected), log.location)


def _record_blocks(item: LogChunk, log_start_offset: int | None, terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    schema, selection = record_schema(terms.extra_columns), terms.selection
    for table in record_tables(item.chunk, which=item.readable, limits=terms.limits, location=item.location):
        yield from reading_findings(table, item.location)
        kept = table
        if not selection.is_everything:
            kept = table.rows(np.flatnonzero(selection.records(table) & (table.offset >= item.least_offset)))
        if len(kept):
            yield record_block(kept, item.location, schema, log_start_offset)


def decoded(blocks: Iterator[RowBlock | Finding], terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    """The blocks, with the decoding of internal topics and control records that the terms ask for."""
    if not (terms.records and terms.decodes_internal):
        return blocks
    return decode_internal(part for block in blocks for part in _control_apart(block))


def _control_apart(block: RowBlock | Finding) -> Iterator[RowBlock | Finding]:
    """A block of records split into parts with only control records or none, so that only the former are decoded."""
    records = None if isinstance(block, Finding) else block.records
    if isinstance(block, Finding) or records is None or block.location is None or not records.batches.is_control.any():
        yield block
        return
    is_control = records.batches.is_control[records.batch]
    if is_control.all() or not is_control.any():
        yield block
        return
    edges = [0, *(np.flatnonzero(is_control[1:] != is_control[:-1]) + 1).tolist(), len(records)]
    for start, stop in pairwise(edges):
        yield block.of_records(records.rows(slice(start, stop)))
