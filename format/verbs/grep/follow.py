"""grep --follow: searches what is appended to logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from format.kernel.compiled import KERNEL_IS_COMPILED
from format.node.target import Target
from format.rows.row_text import RowText
from format.scan.follow import CaughtUp, FollowDriver, FollowTerms, follow_logs
from format.verbs.grep.grep import GrepScan
from format.verbs.grep.lines import Found, GrepLines, Search


def follow_grep(targets: Sequence[Target], search: Search, follow: FollowTerms) -> Iterator[Found | CaughtUp]:
    """The results of ``found_lines`` for what is appended from now on. Raises InputError as ``Target.kind`` does."""
    text = None if search.style is None or not KERNEL_IS_COMPILED else RowText(search.style)
    scan = GrepLines(GrepScan(search.criteria, search.limits), text, search.extra_columns)
    needs = scan.needs
    follow = replace(follow, selection=needs.selection, limits=search.limits, step_bytes=needs.range_bytes)
    with FollowDriver(targets, follow) as driver:
        yield from driver.begin()
        yield from follow_logs(scan, driver)
