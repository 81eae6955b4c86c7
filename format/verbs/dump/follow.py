"""dump --follow: rows of what is appended to logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.node.target import Target
from format.rows.line_blocks import Block, LineBlock, in_lines
from format.rows.record_rows import RowBlock
from format.rows.row_text import LineStyle, RowText
from format.scan.follow import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.scan.followed_partition import logs_before
from format.scan.protocol import OwnRoom
from format.verbs.dump.dump import DumpScan, DumpTerms, decoded
from format.verbs.dump.last_rows import last_rows_of


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
