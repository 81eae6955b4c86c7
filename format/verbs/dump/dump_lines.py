"""dump as lines of JSON or text instead of rows, made in the process that reads the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.node.target import Target, target_at
from format.rows.line_blocks import Block, in_lines
from format.rows.record_rows import RowBlock
from format.rows.row_text import LineStyle, RowText
from format.rows.side_file_rows import side_file_blocks
from format.scan.drivers import scan_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import OwnRoom
from format.scan.selected_logs import LOG_KINDS
from format.verbs.dump.dump import DumpScan, DumpTerms, dumped_rows
from format.verbs.dump.last_rows import last_rows
from format.verbs.txns.committed_logs import logs_below


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
