"""dump: decodes any file of a log directory into rows; for a directory, its logs in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format.checks.record_contents import reading_findings
from format.columns import record_schema
from format.errors import KafkaLogError
from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.log.read_records import record_tables
from format.node.log_dir import Kind
from format.node.partition import Partition
from format.node.target import Target, target_at
from format.rows.internal_record_rows import decode_internal
from format.rows.line_blocks import Block, LineBlock, LineStyle, RowText, in_lines
from format.rows.record_rows import RowBlock, batch_block, record_block
from format.rows.side_file_rows import side_file_blocks
from format.scan.drivers import scan_logs
from format.scan.following.driver import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.scan.following.followed_partition import logs_before
from format.scan.processes.room import OwnRoom
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import EVERYTHING, Selection
from format.timestamps import iso_time
from format.verbs.find.find import find_max_timestamp
from format.verbs.find.trace import Match
from format.verbs.groups.log_ends import log_end_of
from format.verbs.txns.committed_logs import logs_below

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


def last_rows(target: Target, terms: DumpTerms, count: int) -> Iterator[RowBlock | Finding]:
    """At most ``count`` rows of each partition below a target of logs, in log order, and findings of what was read."""
    scan = DumpScan(replace(terms, decodes_internal=False))
    logs = logs_below(target, terms.selection, terms.limits)
    for _, group in groupby(logs, key=lambda log: log.path.parent if isinstance(log, LogUnit) else None):
        yield from decoded(last_rows_of(scan, list(group), count), terms)


def last_rows_of(scan: DumpScan, logs: list[LogUnit | Finding], count: int) -> Iterator[RowBlock | Finding]:
    """The last rows of the logs of one partition."""
    parts: list[list[RowBlock | Finding]] = []
    for log in reversed(logs):
        if isinstance(log, Finding):
            parts.append([log])
        elif count:
            findings, blocks, held = _tail(scan, log, count)
            count -= held
            parts.append([*findings, *blocks])
    for part in reversed(parts):
        yield from part


def _tail(scan: DumpScan, log: LogUnit, count: int) -> tuple[list[Finding], list[RowBlock], int]:
    """The findings of one log, its last rows, and their number."""
    findings: list[Finding] = []
    blocks: deque[RowBlock] = deque()
    held = 0
    for item in scan_logs(scan, [log]):
        if isinstance(item, Finding):
            findings.append(item)
        elif isinstance(item, RowBlock):
            blocks.append(item)
            held += _length(item)
            while held - _length(blocks[0]) >= count:
                held -= _length(blocks.popleft())
    if held > count:
        blocks[0] = _without_first(blocks[0], held - count)
    return findings, list(blocks), min(held, count)


def _length(block: RowBlock) -> int:
    columns = block.records if block.records is not None else block.batches
    return 0 if columns is None else len(columns)


def _without_first(block: RowBlock, count: int) -> RowBlock:
    location = block.location
    if location is not None and block.records is not None:
        return block.of_records(block.records.rows(slice(count, None)))
    if location is not None and block.batches is not None:
        return batch_block(block.batches.rows(slice(count, None)), location)
    return block


def dump_lines(
    paths: Iterable[Path | Target],
    terms: DumpTerms,
    style: LineStyle | None,
    *,
    limit: int | None = None,
    jobs: int = 1,
    advance: Advance = no_progress,
) -> Iterator[Block]:
    """The output of ``dump`` for each path in order: batches and records as lines, other rows, and findings.

    All are rows where ``style`` is None or the kernel is not compiled. There are at most ``limit`` rows and lines.
    Raises InputError for a path that is none of Kafka's, and WorkerDied.
    """
    text = None if style is None or not KERNEL_IS_COMPILED else RowText(style)
    if limit is not None:
        rows = _limited(
            (block for path in paths for block in dumped_rows(path, terms, advance=advance, may_stop=True)),
            limit,
        )
        yield from rows if text is None else in_lines(rows, text, OwnRoom())
        return
    # Sending rows from another process takes longer than making them.
    jobs = 1 if text is None else jobs
    scan = DumpScan(terms, text)
    for are_logs, group in groupby(map(target_at, paths), lambda target: target.kind in LOG_KINDS):
        if not are_logs:
            for target in group:
                yield from side_file_blocks(target.path, target.kind, limits=terms.limits)
        elif terms.last is not None:
            for target in group:
                rows = last_rows(target, terms, terms.last)
                yield from rows if text is None else in_lines(rows, text, OwnRoom())
        else:
            logs = (log for target in group for log in logs_below(target, terms.selection, terms.limits))
            yield from scan_logs(scan, logs, jobs=jobs, advance=advance)


def _limited(blocks: Iterator[RowBlock | Finding], limit: int) -> Iterator[RowBlock | Finding]:
    """The blocks up to ``limit`` rows in sum."""
    left = limit
    for block in blocks:
        if isinstance(block, Finding):
            yield block
            continue
        cut, count = block.first(left)
        left -= count
        yield cut
        if left == 0:
            return


def follow_dump(
    targets: Sequence[Target],
    terms: DumpTerms,
    style: LineStyle | None,
    follow: FollowTerms,
    *,
    limit: int | None = None,
) -> Iterator[Block | CaughtUp]:
    """The rows of ``dump`` for what is appended from now on, as lines or rows; at most ``limit`` of them.

    With ``terms.last`` the last rows of each partition come first. Raises InputError for a path that is none of
    Kafka's.
    """
    text = None if style is None or not KERNEL_IS_COMPILED else RowText(style)
    scan = DumpScan(terms)
    follow = replace(follow, selection=terms.selection, limits=terms.limits, step_bytes=scan.needs.range_bytes)
    room = OwnRoom()
    left = limit
    with FollowDriver(targets, follow) as driver:
        for item in _items(scan, driver):
            if isinstance(item, (CaughtUp, Finding)):
                yield item
                continue
            count = 0
            if left is not None:
                item, count = item.first(left)
            yield from (item,) if text is None else in_lines((item,), text, room)
            if left is not None:
                left -= count
                if left == 0:
                    return


def _items(scan: DumpScan, driver: FollowDriver) -> Iterator[RowBlock | Finding | CaughtUp]:
    """The last rows that are there already, and then the appended rows."""
    yield from driver.begin()
    if scan.terms.last is not None:
        plain = DumpScan(replace(scan.terms, decodes_internal=False))
        for partition in list(driver.partitions.values()):
            rows = last_rows_of(plain, list(logs_before(partition)), scan.terms.last)
            yield from decoded(rows, scan.terms)
    for item in follow_logs(scan, driver):
        if not isinstance(item, LineBlock):
            yield item


_MOST_NAMED = 4


def empty_range_words(targets: Iterable[Target], selection: Selection, limits: Limits = DEFAULT_LIMITS) -> str:
    """A sentence with the offsets of the first partitions, and their largest timestamps for a range of times.

    Empty where no range was selected, and where there is no log at the targets.
    """
    by_time = selection.from_timestamp is not None or selection.to_timestamp is not None
    by_offset = selection.from_offset is not None or selection.to_offset is not None
    if not (by_time or by_offset):
        return ""
    parts: list[str] = []
    for partition in _partitions(targets):
        if len(parts) == _MOST_NAMED:
            return f"The range is empty: {'; '.join(parts)}; and so on."
        parts.append(_held(partition, by_time, limits))
    return f"The range is empty: {'; '.join(parts)}." if parts else ""


def _partitions(targets: Iterable[Target]) -> Iterator[Partition]:
    for target in targets:
        if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
            yield from target.partitions()


def _held(partition: Partition, by_time: bool, limits: Limits) -> str:
    name = partition.name
    end = log_end_of(partition, limits)
    if end is None:
        return f"{name} has no log that can be read"
    start = partition.segments[0].base_offset
    if end <= start:
        return f"{name} is empty, at offset {end}"
    words = f"{name} has offsets {start} to {end - 1}"
    largest = _largest_timestamp(partition, limits) if by_time else None
    return words if largest is None else f"{words}, and its largest timestamp is {iso_time(largest)}"


def _largest_timestamp(partition: Partition, limits: Limits) -> int | None:
    try:
        for item in find_max_timestamp(partition, past_high_watermark=True, limits=limits):
            if isinstance(item, Match):
                return item.timestamp
    except KafkaLogError:
        return None
    return None
