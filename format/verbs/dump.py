"""dump: decodes any file of a log directory into rows; for a directory, its logs in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from format.checks.records import reading_findings
from format.columns import DECODED_NAMES, RowSchema, record_schema
from format.decoding.decoder import Decoding
from format.errors import KafkaLogError, LimitExceeded
from format.findings import Finding
from format.io.store import map_in_threads, processor_count
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.log.read_records import record_tables
from format.node.log_dir import Kind
from format.node.partition import Partition
from format.node.target import Target, target_at
from format.rows.decoded_rows import DECODING_COST, decoded_tables
from format.rows.internal_record_rows import decode_internal
from format.rows.line_blocks import Block, LineBlock, RowText, in_lines
from format.rows.line_style import LineStyle
from format.rows.record_rows import RowBlock, batch_block, record_block
from format.rows.side_file_rows import side_file_blocks
from format.scan.drivers import scan_logs
from format.scan.follow import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.scan.followed_partition import logs_before
from format.scan.header_records import HEADER_COLUMNS, answered_by_headers, records_of_headers
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogUnit, Needs, OpenedRange, Unfolded, own_room
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import EVERYTHING, Selection
from format.timestamps import iso_time
from format.verbs.find.find import find_max_timestamp
from format.verbs.groups.replicas import log_end_of
from format.verbs.txns.partition_transactions import logs_below

if TYPE_CHECKING:
    import pyarrow as pa

#: The size of a chunk, whose rows are yielded together.
DUMP_CHUNK_BYTES = MIB
_BATCH_COST = Cost(batch_s=0.6e-6, byte_s=0.15e-9, compressed_byte_s=0.15e-9)
_RECORD_COST = Cost(batch_s=0.9e-6, byte_s=3e-9, compressed_byte_s=15e-9)
_Item = TypeVar("_Item", RowBlock | Finding, RowBlock | Finding | CaughtUp)
_MOST_NAMED = 4
#: The bytes of Arrow that a thread makes of a chunk before they are asked for, and those of all chunks above which no
#: more chunks are begun than there are threads.
_AHEAD_BYTES, _HELD_BYTES = 8 * MIB, 32 * MIB
#: The most chunks that are begun; while whoever asks is busy with many small batches, the threads must not wait.
_MOST_AHEAD = 32
#: Of batches that are larger when decompressed, several at once take too much memory.
_LARGE_BYTES = 32 * MIB
#: What makes the blocks of a chunk when it is called, within a limit for the bytes of a decompressed batch.
_Later = Callable[[int], Iterator[RowBlock | Finding]]
_NO_LIMIT = 2**63 - 1


class DumpTerms(msgspec.Struct, frozen=True):
    """The terms of a dump: batches or records, the selected offsets and times, and the limits.

    ``decodes_internal`` decodes keys and values of internal topics and control records. ``last`` is how many of the
    last rows of each partition are shown, None for all rows. ``extra_columns`` are additional columns of records, out
    of EXTRA_RECORD_COLUMNS. With ``decoding`` keys and values are decoded, in DECODED_COLUMNS. ``columns`` are those
    that the caller takes, None for all: records of which it takes only what is in the headers of batches are not
    decoded. Without ``checks_crcs`` only the headers of batches are read.
    """

    records: bool = False
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    decodes_internal: bool = False
    last: int | None = None
    extra_columns: frozenset[str] = frozenset()
    decoding: Decoding | None = None
    columns: frozenset[str] | None = None
    checks_crcs: bool = True

    @property
    def record_schema(self) -> RowSchema:
        return record_schema(self.extra_columns | (frozenset() if self.decoding is None else DECODED_NAMES))

    @property
    def depth(self) -> Depth:
        if not self.checks_crcs:
            return Depth.HEADERS
        return Depth.RECORDS if self.records else Depth.CRC

    def are_in_headers(self, found: LogChunk) -> bool:
        """Whether the headers of the batches to read have all that is taken of their records."""
        if self.columns is None or not self.columns <= HEADER_COLUMNS or found.least_offset:
            return False
        return bool(answered_by_headers(found.chunk.table, self.selection)[found.readable].all())


class DumpScan(msgspec.Struct, Unfolded[Block], frozen=True):
    """dump as a scan: the parts are blocks of rows, or of lines where ``text`` is given."""

    terms: DumpTerms
    text: RowText | None = None

    @property
    def needs(self) -> Needs:
        terms = self.terms
        return Needs(
            terms.depth,
            terms.selection,
            terms.limits,
            DUMP_CHUNK_BYTES if terms.checks_crcs else None,
            _BATCH_COST if not terms.records else _RECORD_COST if terms.decoding is None else DECODING_COST,
        )

    def parts(self, opened: OpenedRange) -> Iterator[Block]:
        """The blocks of a range, and findings."""
        blocks = _decoded(self._blocks(opened), self.terms)
        return in_lines(blocks, self.text, opened.room)

    def _blocks(self, opened: OpenedRange) -> Iterator[RowBlock | Finding]:
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
            else:
                yield from self.blocks_of(item, opened.log)

    def blocks_of(self, item: LogChunk, log: LogUnit) -> Iterator[RowBlock | Finding]:
        """The blocks of a chunk, not decoded, and findings; they depend on nothing but the chunk."""
        terms = self.terms
        schema, selection = record_schema(terms.extra_columns), terms.selection
        if not terms.records:
            if item.selected.any():
                table = item.chunk.table
                yield batch_block(table if item.selected.all() else table.rows(item.selected), log.location)
        elif terms.are_in_headers(item):
            for records in records_of_headers(item.chunk.table.rows(item.readable)):
                yield record_block(records, item.location, schema, log.log_start_offset)
        else:
            for records in record_tables(item.chunk, which=item.readable, limits=terms.limits, location=item.location):
                yield from reading_findings(records, item.location)
                if not selection.is_everything:
                    is_selected = selection.records(records) & (records.offset >= item.least_offset)
                    records = records.rows(np.flatnonzero(is_selected))
                if len(records):
                    yield record_block(records, item.location, schema, log.log_start_offset)


class _LaterScan(msgspec.Struct, Unfolded[_Later | Finding], frozen=True):
    """dump as a scan that reads chunks, whose blocks are made later."""

    terms: DumpTerms

    @property
    def needs(self) -> Needs:
        return DumpScan(self.terms).needs

    def parts(self, opened: OpenedRange) -> Iterator[_Later | Finding]:
        """What makes the blocks of each chunk of a range, and findings."""
        for item in selected_chunks(opened, self.needs):
            yield item if isinstance(item, Finding) else partial(self._blocks, item, opened.log)

    def _blocks(self, item: LogChunk, log: LogUnit, most_bytes: int) -> Iterator[RowBlock | Finding]:
        limits = self.terms.limits
        limits = replace(limits, max_decompressed_bytes=min(limits.max_decompressed_bytes, most_bytes))
        return DumpScan(replace(self.terms, limits=limits)).blocks_of(item, log)


def dumped_rows(
    path: Path | Target, terms: DumpTerms, *, advance: Advance = no_progress, may_stop: bool = False
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


def dumped_batches(
    target: Target,
    terms: DumpTerms,
    make: Callable[[RowBlock], Iterable[pa.RecordBatch]],
    *,
    advance: Advance = no_progress,
) -> Iterator[pa.RecordBatch | Finding]:
    """What ``make`` makes of the blocks of ``dumped_rows`` for logs, and findings, in the same order.

    If records are read and nothing of them is decoded, each processor has a thread, which reads the records of another
    chunk and calls ``make``.
    """
    count = processor_count()
    if count == 1 or not terms.records or terms.decoding is not None or terms.decodes_internal:
        for item in dumped_rows(target, terms, advance=advance):
            yield from _made(item, make)
        return
    parts = scan_logs(_LaterScan(terms), logs_below(target, terms.selection, terms.limits), advance=advance)
    ahead = _Ahead(make, count)
    for first, rest in map_in_threads(ahead.begun, _with_error(parts), count, ahead.most):
        ahead.take(first)
        yield from first
        yield from (each for each in rest if each is not None)


def _made(
    item: RowBlock | Finding, make: Callable[[RowBlock], Iterable[pa.RecordBatch]]
) -> Iterable[pa.RecordBatch | Finding]:
    return (item,) if isinstance(item, Finding) else make(item)


class _Ahead:
    """The making of Arrow in threads, before it is asked for, of one more chunk after each, as a limit may need few.

    Once a batch was large, nothing is begun any more.
    """

    def __init__(self, make: Callable[[RowBlock], Iterable[pa.RecordBatch]], count: int) -> None:
        self._make = make
        self._has_large = False
        self._least = self._most = count
        self._held_bytes = 0
        self._lock = Lock()

    def most(self) -> int:
        """How many chunks may be begun."""
        return self._least if self._held_bytes > _HELD_BYTES else self._most

    def begun(
        self, part: _Later | Finding | KafkaLogError
    ) -> tuple[list[pa.RecordBatch | Finding], Iterator[pa.RecordBatch | Finding | None]]:
        """What is made of a part: the first batches, up to a size, and what makes the others. Raises a part's error."""
        if isinstance(part, KafkaLogError):
            raise part
        made = self._made(part)
        first: list[pa.RecordBatch | Finding] = []
        size_bytes = 0
        while size_bytes < _AHEAD_BYTES and self._held_bytes <= 2 * _HELD_BYTES and not self._has_large:
            each = next(made, None)
            if each is None:
                break
            first.append(each)
            size_bytes += _size_of(each)
            self._hold(_size_of(each))
        return first, made

    def take(self, first: list[pa.RecordBatch | Finding]) -> None:
        """These batches are taken by whoever asks."""
        self._hold(-sum(map(_size_of, first)))
        self._most = min(self._most + 1, _MOST_AHEAD)

    def _hold(self, size_bytes: int) -> None:
        with self._lock:
            self._held_bytes += size_bytes

    def _made(self, part: _Later | Finding) -> Iterator[pa.RecordBatch | Finding | None]:
        """What is made of a part, and None before it goes on with what takes much memory."""
        for item in (part,) if isinstance(part, Finding) else self._blocks(part):
            if item is None:
                yield None
            else:
                yield from _made(item, self._make)

    def _blocks(self, part: _Later) -> Iterator[RowBlock | Finding | None]:
        for number, item in enumerate(part(_LARGE_BYTES)):
            if isinstance(item, Finding) and item.code == LimitExceeded.code:
                self._has_large = True
                yield None
                yield from islice(part(_NO_LIMIT), number, None)  # the same before
                return
            if isinstance(item, RowBlock) and len(item.record_table.buffer) > _LARGE_BYTES:
                self._has_large = True
            yield item


def _size_of(item: pa.RecordBatch | Finding) -> int:
    return 0 if isinstance(item, Finding) else int(item.nbytes)


def _with_error(parts: Iterator[_Later | Finding]) -> Iterator[_Later | Finding | KafkaLogError]:
    """The parts, and the error that ends them, for its place behind what is made of them."""
    try:
        yield from parts
    except KafkaLogError as error:
        yield error


def _decoded(blocks: Iterator[RowBlock | Finding], terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    """The blocks, with the decoding that the terms ask for: of values, and of internal topics and control records."""
    if terms.records and terms.decoding is not None:
        blocks = _with_values(blocks, terms)
    return decode_internal(blocks) if terms.records and terms.decodes_internal else blocks


def _with_values(blocks: Iterator[RowBlock | Finding], terms: DumpTerms) -> Iterator[RowBlock | Finding]:
    for block in blocks:
        if isinstance(block, Finding) or block.location is None:
            yield block
            continue
        for part in decoded_tables(block.record_table, block.location, terms.decoding):
            if isinstance(part, Finding):
                yield part
            elif len(part):
                yield record_block(part, block.location, terms.record_schema, block.log_start_offset)


# -- the last rows -------------------------------------------------------------------------------------------


def _last_rows(target: Target, terms: DumpTerms, count: int) -> Iterator[RowBlock | Finding]:
    """At most ``count`` rows of each partition below a target of logs, in log order, and findings of what was read."""
    logs = logs_below(target, terms.selection, terms.limits)
    for _, group in groupby(logs, key=lambda log: log.path.parent if isinstance(log, LogUnit) else None):
        yield from _last_rows_of(terms, list(group), count)


def _last_rows_of(terms: DumpTerms, logs: list[LogUnit | Finding], count: int) -> Iterator[RowBlock | Finding]:
    """The last rows of the logs of one partition, which are read from the last one on until there are enough."""
    scan = DumpScan(replace(terms, decodes_internal=False, decoding=None))
    parts: list[list[RowBlock | Finding]] = []
    for log in reversed(logs):
        if isinstance(log, Finding):
            parts.append([log])
        elif count:
            findings, blocks, held = _tail(scan, log, count)
            count -= held
            parts.append([*findings, *blocks])
    yield from _decoded((item for part in reversed(parts) for item in part), terms)


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
            held += item.row_count
            while held - blocks[0].row_count >= count:
                held -= blocks.popleft().row_count
    if held > count:
        blocks[0] = blocks[0].part(slice(held - count, None))
    return findings, list(blocks), min(held, count)


# -- the output ----------------------------------------------------------------------------------------------


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
    text = RowText.of(style)
    if limit is not None:
        rows = (block for path in paths for block in dumped_rows(path, terms, advance=advance, may_stop=True))
        yield from in_lines(_limited(rows, limit), text, own_room())
        return
    # Sending rows from another process takes longer than making them.
    jobs = 1 if text is None else jobs
    for are_logs, group in groupby(map(target_at, paths), lambda target: target.kind in LOG_KINDS):
        if not are_logs:
            for target in group:
                yield from side_file_blocks(target.path, target.kind, limits=terms.limits)
        elif terms.last is not None:
            for target in group:
                yield from in_lines(_last_rows(target, terms, terms.last), text, own_room())
        else:
            logs = (log for target in group for log in logs_below(target, terms.selection, terms.limits))
            yield from scan_logs(DumpScan(terms, text), logs, jobs=jobs, advance=advance)


def _limited(items: Iterable[_Item], limit: int | None) -> Iterator[_Item]:
    """The items up to ``limit`` rows in sum."""
    left = limit
    for item in items:
        if left is None or not isinstance(item, RowBlock):
            yield item
            continue
        part = item.part(slice(0, left))
        left -= part.row_count
        yield part
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
    text, room = RowText.of(style), own_room()
    scan = DumpScan(terms)
    follow = replace(follow, selection=terms.selection, limits=terms.limits, step_bytes=scan.needs.range_bytes)
    driver = FollowDriver(targets, follow)
    for item in _limited(_followed(scan, driver), limit):
        yield from (item,) if isinstance(item, CaughtUp) else in_lines((item,), text, room)


def _followed(scan: DumpScan, driver: FollowDriver) -> Iterator[RowBlock | Finding | CaughtUp]:
    """The last rows that are there already, and then the appended rows."""
    yield from driver.begin()
    if scan.terms.last is not None:
        for partition in list(driver.partitions.values()):
            yield from _last_rows_of(scan.terms, list(logs_before(partition)), scan.terms.last)
    for item in follow_logs(scan, driver):
        if not isinstance(item, LineBlock):
            yield item


# -- an empty range ------------------------------------------------------------------------------------------


def empty_range_words(targets: Iterable[Target], selection: Selection, limits: Limits = DEFAULT_LIMITS) -> str:
    """A sentence with the offsets of the first partitions, and their largest timestamps for a range of times.

    Empty where there is no partition at the targets.
    """
    by_time = selection.from_timestamp is not None or selection.to_timestamp is not None
    by_offset = selection.from_offset is not None or selection.to_offset is not None
    what = "No record in the range" if by_time or by_offset else "No record"
    parts: list[str] = []
    directories = (each for each in targets if each.kind in (Kind.LOG_DIR, Kind.PARTITION))
    for partition in (partition for each in directories for partition in each.partitions()):
        if len(parts) == _MOST_NAMED:
            return f"{what}: {'; '.join(parts)}; and so on."
        parts.append(_held(partition, by_time, limits))
    return f"{what}: {'; '.join(parts)}." if parts else ""


def _held(partition: Partition, by_time: bool, limits: Limits) -> str:
    name = partition.name
    end = log_end_of(partition, limits)
    if end is None:
        return f"{name} has no log that can be read"
    start = partition.segments[0].base_offset
    if end <= start:
        return f"{name} is empty, at offset {end}"
    words = f"the log of {name} goes from offset {start} to {end - 1}"
    newest = find_max_timestamp(partition, past_high_watermark=True, limits=limits).match if by_time else None
    if newest is None or newest.timestamp is None:
        return words
    return f"{words}, and its largest timestamp is {iso_time(newest.timestamp)}"
