"""dump --last: reads the logs of each partition backwards, from the last one, until there are enough rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import replace

from format.findings import Finding
from format.node.target import Target
from format.rows.record_rows import RowBlock, batch_block
from format.scan.drivers import scan_logs
from format.scan.protocol import LogUnit
from format.verbs.dump.dump import DumpScan, DumpTerms, decoded
from format.verbs.txns.partition_transactions import logs_below


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
