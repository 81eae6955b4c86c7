"""dump as lines of JSON or text instead of rows, made where the log is read, by several processes if that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from format.batches import KERNEL_IS_COMPILED, batch_chunks
from format.columns import BATCH, RECORD, RowSchema
from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.log_dir import Kind, kind_of
from format.operations import dump as dump_rows
from format.operations.decode_internal import decode_internal
from format.operations.dump import DumpTerms, LogToDump, blocks_of_chunks, log_blocks, logs_to_dump
from format.operations.read_log import first_position, opened_chunks
from format.operations.shared_ranges import RangeTask, RestOfLog, SharedRanges, Unsound, is_worth_sharing, sound_chunks
from format.row_text import LineStyle, RowText, have_last_offsets
from format.rows import RowBlock, record_block
from format.source import FileSource
from format.workers import SLOT_BYTES, Outbox, SharedBytes

#: What lines cost in seconds, for batches and for records: a batch, its bytes, its compressed bytes.
_BATCH_S = {False: 0.6e-6, True: 0.9e-6}
_BYTE_S = {False: 0.15e-9, True: 3e-9}
_COMPRESSED_BYTE_S = {False: 0.15e-9, True: 15e-9}


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of rows of one schema, in UTF-8; ``lines`` are to be used before the next block is asked for."""

    schema: RowSchema
    lines: memoryview
    row_count: int


@dataclass(frozen=True, slots=True)
class _LinesFollow:
    """What a worker sends before the shared bytes of a LineBlock."""

    row_type: str
    row_count: int


Dumped = LineBlock | RowBlock | Finding


def dump_lines(
    paths: Iterable[Path],
    terms: DumpTerms,
    style: LineStyle | None,
    *,
    kind: Kind | None = None,
    limit: int | None = None,
    jobs: int = 1,
) -> Iterator[Dumped]:
    """What ``dump`` gives of each path, in the same order: batches and records as lines, other rows, and findings.

    Only rows where ``style`` is None or the kernel is not the compiled one; at most ``limit`` of them. Raises
    InputError for a path that is nothing of Kafka's, and WorkerDied.
    """
    if style is None or not KERNEL_IS_COMPILED:
        yield from _limited(_rows(paths, terms, kind), limit)
        return
    text = RowText(style)
    if limit is not None or jobs == 1:
        yield from _lines(_limited(_rows(paths, terms, kind), limit), text)
        return
    is_open_ended = terms.selection.to_offset is None and terms.selection.to_timestamp is None
    for path in paths:
        kind_of_path = kind or kind_of(path)
        if is_open_ended and kind_of_path in dump_rows.LOG_KINDS:
            logs = list(logs_to_dump(path, kind_of_path, terms.selection))
            if _are_worth_sharing(logs, terms):
                yield from _shared(logs, terms, text, jobs)
                continue
        yield from _lines(_rows([path], terms, kind), text)


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


def _lines(blocks: Iterable[RowBlock | Finding], text: RowText) -> Iterator[Dumped]:
    buffer = memoryview(bytearray(SLOT_BYTES))
    for block in blocks:
        yield from _in_lines(block, text, lambda: buffer)


def _in_lines(block: RowBlock | Finding, text: RowText, room: Callable[[], memoryview]) -> Iterator[Dumped]:
    """A block in lines where that can be; ``room`` gives what they are written into."""
    filled = memoryview(b"")

    def next_room() -> memoryview:
        nonlocal filled
        filled = room()
        return filled

    if isinstance(block, Finding) or block.location is None:
        yield block
    elif block.records is not None:
        row = 0
        for lines in text.record_lines(block.records, block.location, next_room):
            if lines.length:
                yield LineBlock(RECORD, filled[: lines.length], lines.row_count)
            else:
                yield record_block(block.records.rows(slice(row, row + 1)), block.location)
            row += lines.row_count
    elif block.batches is not None and have_last_offsets(block.batches):
        for lines in text.batch_lines(block.batches, block.location, next_room):
            yield LineBlock(BATCH, filled[: lines.length], lines.row_count)
    else:
        yield block


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


def _shared(logs: list[LogToDump], terms: DumpTerms, text: RowText, jobs: int) -> Iterator[Dumped]:
    do = partial(_dump_range, terms=terms, text=text)
    start_of = partial(_start_of, terms=terms)
    with SharedRanges(logs, jobs, dump_rows.DUMP_CHUNK_BYTES, do, start_of) as ranges:
        for log in logs:
            try:
                yield from _received(ranges.items(log), log, terms, text)
            except WorkerDied:
                raise
            except KafkaLogError as error:
                yield finding_of(error, log.location)


def _received(items: Iterator[object], log: LogToDump, terms: DumpTerms, text: RowText) -> Iterator[Dumped]:
    """What came of one log's ranges, and the rest of it where they end early."""
    for item in items:
        if isinstance(item, _LinesFollow):
            shared = next(items)
            if not isinstance(shared, SharedBytes):
                raise TypeError(f"{shared!r} came for lines")
            yield LineBlock(RECORD if item.row_type == RECORD.type else BATCH, shared.view, item.row_count)
            shared.view.release()
        elif isinstance(item, RestOfLog):
            yield from _lines(_decoded(_rest(log, item, terms), terms), text)
        elif isinstance(item, (RowBlock, Finding)):
            yield item


def _rest(log: LogToDump, rest: RestOfLog, terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    with rest.open(log.path) as source:
        chunks = batch_chunks(
            source,
            rest.batch_range.start,
            after_offset=rest.batch_range.after_offset,
            limits=terms.limits,
            chunk_bytes=dump_rows.DUMP_CHUNK_BYTES,
        )
        items = opened_chunks(
            source, chunks, log.location, terms.selection, is_last_segment=log.is_last_segment, limits=terms.limits
        )
        yield from blocks_of_chunks(items, log.location, terms)


def _start_of(log: LogToDump, source: FileSource, *, terms: DumpTerms) -> int:
    return first_position(log.segment, source, terms.selection)


def _dump_range(task: RangeTask[LogToDump], outbox: Outbox, *, terms: DumpTerms, text: RowText) -> None:
    """One range, or one whole log, in a worker."""
    log = task.log
    if task.is_whole_log:
        _send_all(_decoded(log_blocks(log, terms), terms), text, outbox)
        return
    with FileSource(log.path, task.state) as source:
        chunks = sound_chunks(source, task.batch_range, terms.limits, dump_rows.DUMP_CHUNK_BYTES)
        if chunks is None:
            outbox.send(Unsound(task.batch_range))
            return
        items = opened_chunks(
            source, chunks, log.location, terms.selection, is_last_segment=log.is_last_segment, limits=terms.limits
        )
        _send_all(_decoded(blocks_of_chunks(items, log.location, terms), terms), text, outbox)


def _send_all(blocks: Iterator[RowBlock | Finding], text: RowText, outbox: Outbox) -> None:
    for block in blocks:
        for item in _in_lines(block, text, outbox.room):
            if isinstance(item, LineBlock):
                outbox.send(_LinesFollow(item.schema.type, item.row_count))
                outbox.send_room(len(item.lines))
            elif isinstance(item, RowBlock):
                outbox.send(RowBlock(item.schema, list(item.rows), item.location))
            else:
                outbox.send(item)


def _are_worth_sharing(logs: list[LogToDump], terms: DumpTerms) -> bool:
    return bool(logs) and is_worth_sharing(
        [log.path for log in logs],
        byte_s=_BYTE_S[terms.records],
        compressed_byte_s=_COMPRESSED_BYTE_S[terms.records],
        batch_s=_BATCH_S[terms.records],
    )
