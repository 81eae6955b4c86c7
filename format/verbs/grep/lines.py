"""grep where the logs are read, by several processes if that pays: lines or rows of what was found, or how many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind
from format.rows.line_blocks import LineBlock, LinesFollow, in_lines, received_lines, send_lines
from format.rows.record_rows import Row, RowBlock, record_block
from format.rows.row_text import LineStyle, RowText
from format.scan.selected_logs import Reading, SelectedLog
from format.scan.shared_ranges import RangeTask, RestOfLog, SharedRanges, is_worth_sharing
from format.scan.workers import Outbox
from format.verbs.grep.grep import Criteria, FoundRecords, LogSearched, found_in, logs_to_search, reading_of
from format.verbs.grep.record_search import Hits

#: What a search costs in seconds: a batch, its bytes, its compressed bytes.
_BATCH_S = 0.6e-6
_BYTE_S = 1.5e-9
_COMPRESSED_BYTE_S = 7e-9


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows of records found, to be read once; ``hits`` has the match of each, None where no pattern found them."""

    rows: Iterable[Row]
    row_count: int
    hits: Hits | None


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for, and under which limits; ``style`` None for rows instead of lines."""

    criteria: Criteria
    style: LineStyle | None = None
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1

    @property
    def reading(self) -> Reading:
        return reading_of(self.criteria, self.limits)

    def found_in(self, log: SelectedLog) -> Iterator[FoundRecords | Finding]:
        return found_in(self.reading.chunks(log), self.criteria, self.limits)


Found = LineBlock | FoundRows | Finding


def found_lines(paths: Iterable[Path], search: Search, *, kind: Kind | None = None) -> Iterator[Found]:
    """What ``grep`` finds at each path, in the same order: records as lines or rows, and findings.

    Rows where the search has no style or the kernel is not the compiled one, and of records that may be too long for
    a line. Raises InputError for a path that is nothing of Kafka's or holds no records, and WorkerDied.
    """
    text = None if search.style is None or not KERNEL_IS_COMPILED else RowText(search.style)
    do = partial(_send_lines, search=search, text=text)
    for path in paths:
        shared = _logs_to_share(path, search, kind)
        if not shared:
            for log in logs_to_search(path, search.criteria, kind):
                yield from _shown(search.found_in(log), text)
            continue
        with SharedRanges(shared, search.jobs, search.reading.chunk_bytes, do, search.reading.start_of) as ranges:
            for log in shared:
                yield from _received(ranges, log, search, text)


def searched_logs(
    paths: Iterable[Path], search: Search, *, kind: Kind | None = None, first_only: bool = False
) -> Iterator[LogSearched | Finding]:
    """How many records ``grep`` finds in each log, in the same order, and findings; ``first_only`` as there."""
    do = partial(_send_counts, search=search, first_only=first_only)
    for path in paths:
        shared = _logs_to_share(path, search, kind)
        if not shared:
            for log in logs_to_search(path, search.criteria, kind):
                yield from _totalled(log, _counts(search.found_in(log), first_only), first_only)
            continue
        with SharedRanges(shared, search.jobs, search.reading.chunk_bytes, do, search.reading.start_of) as ranges:
            for log in shared:
                yield from _totalled(log, _received_counts(ranges, log, search, first_only), first_only)
                ranges.leave(log)


def _logs_to_share(path: Path, search: Search, kind: Kind | None) -> list[SelectedLog]:
    """The logs below a path, if several processes are sooner done with them than one."""
    if search.jobs == 1 or search.reading.has_end:
        return []
    logs = list(logs_to_search(path, search.criteria, kind))
    is_worth_it = bool(logs) and is_worth_sharing(
        [log.path for log in logs], byte_s=_BYTE_S, compressed_byte_s=_COMPRESSED_BYTE_S, batch_s=_BATCH_S
    )
    return logs if is_worth_it else []


# -- records -----------------------------------------------------------------------------------------------------


def _shown(found: Iterable[FoundRecords | Finding], text: RowText | None) -> Iterator[Found]:
    """In the process that asks: lines in one buffer that is filled again and again, or rows."""
    if text is None:
        for item in found:
            yield item if isinstance(item, Finding) else _rows(item)
        return
    blocks = (item if isinstance(item, Finding) else record_block(item.records, item.location) for item in found)
    for block in in_lines(blocks, text):
        yield _as_rows(block) if isinstance(block, RowBlock) else block


def _rows(found: FoundRecords) -> FoundRows:
    return FoundRows(record_block(found.records, found.location).rows, len(found.records), found.hits)


def _as_rows(block: RowBlock) -> FoundRows:
    rows = list(block.rows)
    return FoundRows(rows, len(rows), None)


def _send_lines(task: RangeTask[SelectedLog], outbox: Outbox, *, search: Search, text: RowText | None) -> None:
    """One range, or one whole log, in a worker."""
    for item in found_in(search.reading.chunks_of_task(task, outbox), search.criteria, search.limits):
        if isinstance(item, Finding):
            outbox.send(item)
        elif text is not None:
            send_lines(record_block(item.records, item.location), text, outbox)
        else:
            block = record_block(item.records, item.location)
            outbox.send(FoundRows(list(block.rows), len(item.records), item.hits))


def _received(
    ranges: SharedRanges[SelectedLog], log: SelectedLog, search: Search, text: RowText | None
) -> Iterator[Found]:
    """What came of one log's ranges, and the rest of it where they end early."""
    items = ranges.items(log)
    try:
        for item in items:
            if isinstance(item, LinesFollow):
                yield from received_lines(item, items)
            elif isinstance(item, RestOfLog):
                rest = search.reading.chunks_of_rest(log, item)
                yield from _shown(found_in(rest, search.criteria, search.limits), text)
            elif isinstance(item, RowBlock):
                yield _as_rows(item)
            elif isinstance(item, (FoundRows, Finding)):
                yield item
    except WorkerDied:
        raise
    except KafkaLogError as error:
        yield finding_of(error, log.location)


# -- how many ----------------------------------------------------------------------------------------------------


def _counts(found: Iterable[FoundRecords | Finding], first_only: bool) -> Iterator[int | Finding]:
    for item in found:
        if isinstance(item, Finding):
            yield item
            continue
        yield len(item.records)
        if first_only:
            return


def _send_counts(task: RangeTask[SelectedLog], outbox: Outbox, *, search: Search, first_only: bool) -> None:
    """One range, or one whole log, in a worker."""
    found = found_in(search.reading.chunks_of_task(task, outbox), search.criteria, search.limits)
    for item in _counts(found, first_only):
        outbox.send(item)


def _received_counts(
    ranges: SharedRanges[SelectedLog], log: SelectedLog, search: Search, first_only: bool
) -> Iterator[int | Finding]:
    try:
        for item in ranges.items(log):
            if isinstance(item, RestOfLog):
                rest = search.reading.chunks_of_rest(log, item)
                yield from _counts(found_in(rest, search.criteria, search.limits), first_only)
            elif isinstance(item, (int, Finding)):
                yield item
    except WorkerDied:
        raise
    except KafkaLogError as error:
        yield finding_of(error, log.location)


def _totalled(log: SelectedLog, counts: Iterable[int | Finding], first_only: bool) -> Iterator[LogSearched | Finding]:
    total = 0
    for item in counts:
        if isinstance(item, Finding):
            yield item
            continue
        total += item
        if first_only:
            break
    yield LogSearched(log.path, log.location, total)
