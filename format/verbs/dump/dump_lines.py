"""dump as lines of JSON or text instead of rows, made where the log is read, by several processes if that pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.node.log_dir import Kind
from format.node.target import kind_of
from format.rows.internal_record_rows import decode_internal
from format.rows.line_blocks import Block, LinesFollow, in_lines, received_lines, send_lines
from format.rows.record_rows import RowBlock, record_block
from format.rows.row_text import LineStyle, RowText
from format.scan.selected_logs import LOG_KINDS, SelectedLog, selected_logs
from format.scan.shared_ranges import RangeTask, RestOfLog, SharedRanges, is_worth_sharing
from format.scan.workers import Outbox
from format.verbs.dump import dump as dump_rows
from format.verbs.dump.dump import DumpTerms, blocks_of_chunks

#: What lines cost in seconds, for batches and for records: a batch, its bytes, its compressed bytes.
_BATCH_S = {False: 0.6e-6, True: 0.9e-6}
_BYTE_S = {False: 0.15e-9, True: 3e-9}
_COMPRESSED_BYTE_S = {False: 0.15e-9, True: 15e-9}


def dump_lines(
    paths: Iterable[Path],
    terms: DumpTerms,
    style: LineStyle | None,
    *,
    kind: Kind | None = None,
    limit: int | None = None,
    jobs: int = 1,
) -> Iterator[Block]:
    """What ``dump`` gives of each path, in the same order: batches and records as lines, other rows, and findings.

    Only rows where ``style`` is None or the kernel is not the compiled one; at most ``limit`` of them. Raises
    InputError for a path that is nothing of Kafka's, and WorkerDied.
    """
    if style is None or not KERNEL_IS_COMPILED:
        yield from _limited(_rows(paths, terms, kind), limit)
        return
    text = RowText(style)
    if limit is not None or jobs == 1:
        yield from in_lines(_limited(_rows(paths, terms, kind), limit), text)
        return
    for path in paths:
        kind_of_path = kind or kind_of(path)
        if not terms.reading.has_end and kind_of_path in LOG_KINDS:
            logs = list(selected_logs(path, kind_of_path, terms.selection))
            if _are_worth_sharing(logs, terms):
                yield from _shared(logs, terms, text, jobs)
                continue
        yield from in_lines(_rows([path], terms, kind), text)


def _rows(paths: Iterable[Path], terms: DumpTerms, kind: Kind | None) -> Iterator[RowBlock | Finding]:
    for path in paths:
        blocks = dump_rows.dump(path, kind=kind, records=terms.records, selection=terms.selection, limits=terms.limits)
        yield from _decoded(blocks, terms)


def _decoded(blocks: Iterator[RowBlock | Finding], terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    if not (terms.records and terms.decodes_internal):
        return blocks
    return decode_internal(part for block in blocks for part in _control_apart(block))


def _control_apart(block: RowBlock | Finding) -> Iterator[RowBlock | Finding]:
    """A block of records in parts with control records only or with none, so that only those are decoded."""
    records = None if isinstance(block, Finding) else block.records
    if isinstance(block, Finding) or records is None or block.location is None:
        yield block
        return
    is_control = records.batches.is_control[records.batch]
    if is_control.all() or not is_control.any():
        yield block
        return
    edges = [0, *(np.flatnonzero(is_control[1:] != is_control[:-1]) + 1).tolist(), len(records)]
    for start, stop in pairwise(edges):
        yield record_block(records.rows(slice(start, stop)), block.location)


def _limited(blocks: Iterator[RowBlock | Finding], limit: int | None) -> Iterator[RowBlock | Finding]:
    """Blocks with at most so many rows together."""
    left = limit
    for block in blocks:
        if left is None or isinstance(block, Finding):
            yield block
            continue
        cut, count = block.first(left)
        left -= count
        yield cut
        if left == 0:
            return


# -- by several processes ------------------------------------------------------------------------------------


def _shared(logs: list[SelectedLog], terms: DumpTerms, text: RowText, jobs: int) -> Iterator[Block]:
    do = partial(_dump_range, terms=terms, text=text)
    reading = terms.reading
    with SharedRanges(logs, jobs, reading.chunk_bytes, do, reading.start_of) as ranges:
        for log in logs:
            try:
                yield from _received(ranges.items(log), log, terms, text)
            except WorkerDied:
                raise
            except KafkaLogError as error:
                yield finding_of(error, log.location)


def _received(items: Iterator[object], log: SelectedLog, terms: DumpTerms, text: RowText) -> Iterator[Block]:
    """What came of one log's ranges, and the rest of it where they end early."""
    for item in items:
        if isinstance(item, LinesFollow):
            yield from received_lines(item, items)
        elif isinstance(item, RestOfLog):
            rest = terms.reading.chunks_of_rest(log, item)
            yield from in_lines(_decoded(blocks_of_chunks(rest, log.location, terms), terms), text)
        elif isinstance(item, (RowBlock, Finding)):
            yield item


def _dump_range(task: RangeTask[SelectedLog], outbox: Outbox, *, terms: DumpTerms, text: RowText) -> None:
    """One range, or one whole log, in a worker."""
    items = terms.reading.chunks_of_task(task, outbox)
    for block in _decoded(blocks_of_chunks(items, task.log.location, terms), terms):
        send_lines(block, text, outbox)


def _are_worth_sharing(logs: list[SelectedLog], terms: DumpTerms) -> bool:
    return bool(logs) and is_worth_sharing(
        [log.path for log in logs],
        byte_s=_BYTE_S[terms.records],
        compressed_byte_s=_COMPRESSED_BYTE_S[terms.records],
        batch_s=_BATCH_S[terms.records],
    )
