"""The values of charts, from the rows of a report: times in bins, small parts joined as "others", stacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from format.timestamps import iso_time
from kafkalog_cli.render.escape import escape_text
from kafkalog_cli.render.table import human_size

_MOST_BINS = 120
_MOST_SERIES = 8
#: The part of the bytes at each end of the times that may be left out. It is where the range of all times is many times
#: longer than the rest, so that a few records with impossible timestamps do not squeeze the others into a line.
_TAIL = 0.005
_MUCH_LONGER = 4
OTHERS = "others"

Values = list[dict[str, Any]]


class Span(msgspec.Struct, frozen=True):
    """A range of times that a chart shows, and the width of its bins."""

    start: int
    end: int
    width: int

    def bin_of(self, timestamp: int) -> int:
        """The start of the bin of a time."""
        return self.start + (timestamp - self.start) // self.width * self.width

    def holds(self, timestamp: int) -> bool:
        return self.start <= timestamp < self.end


def span_of(rows: Sequence[dict[str, Any]]) -> Span | None:
    """The range of times to show for rows of bytes_by_time; None for no rows."""
    if not rows:
        return None
    width = max(row["duration_ms"] for row in rows)
    by_time: dict[int, int] = {}
    for row in rows:
        by_time[row["timestamp"]] = by_time.get(row["timestamp"], 0) + row["size_bytes"]
    times = sorted(by_time)
    total = sum(by_time.values())
    low, high = _quantile(times, by_time, total * _TAIL), _quantile(times[::-1], by_time, total * _TAIL)
    first, last = times[0], times[-1]
    if last - first > _MUCH_LONGER * max(high - low, width):
        first, last = low, high
    count = (last - first) // width + 1
    joined = -(-count // _MOST_BINS)
    return Span(first, last + width, width * joined)


def _quantile(times: Sequence[int], by_time: dict[int, int], rest: float) -> int:
    """The first time at which the sum passes ``rest``."""
    passed = 0
    for time in times:
        passed += by_time[time]
        if passed > rest:
            return time
    return times[-1]


def largest(sums: dict[str, int], most: int = _MOST_SERIES) -> list[str]:
    """The names with the largest sums; where there are more, the last is for all others."""
    names = sorted(sums, key=lambda name: (-sums[name], name))
    return names if len(names) <= most else [*names[: most - 1], OTHERS]


def stacked_times(rows: Iterable[dict[str, Any]], span: Span) -> tuple[Values, list[str], int]:
    """Stacked bytes by bin and topic; the topics; and the bytes outside the span."""
    sums: dict[str, int] = {}
    cells: dict[tuple[int, str], list[int]] = {}
    outside = 0
    rows = list(rows)
    for row in rows:
        sums[row["topic"]] = sums.get(row["topic"], 0) + row["size_bytes"]
    names = largest(sums)
    for row in rows:
        if not span.holds(row["timestamp"]):
            outside += row["size_bytes"]
            continue
        name = row["topic"] if row["topic"] in names else OTHERS
        cell = cells.setdefault((span.bin_of(row["timestamp"]), name), [0, 0])
        cell[0] += row["size_bytes"]
        cell[1] += row["record_count"]
    values: Values = []
    heights: dict[int, int] = {}
    for (start, name), (size_bytes, records) in sorted(cells.items(), key=lambda item: names.index(item[0][1])):
        bottom = heights.get(start, 0)
        heights[start] = bottom + size_bytes
        tip = f"{iso_time(start)}: {shown(name)}, {human_size(size_bytes)}, {records:,} records"
        values.append(
            {"start": start, "end": start + span.width, "low": bottom, "high": bottom + size_bytes,
             "series": shown(name), "tip": tip}
        )  # fmt: skip
    return values, [shown(name) for name in names], outside


def stacked(cells: Sequence[tuple[str, str, int, str]]) -> Values:
    """The values of stacked bars, from (bar, series, size, tip) in this order."""
    heights: dict[str, int] = {}
    values: Values = []
    for name, series, size, tip in cells:
        low = heights.get(name, 0)
        heights[name] = low + size
        values.append({"name": shown(name), "series": series, "low": low, "high": low + size, "tip": tip})
    return values


def shown(text: str | None) -> str:
    """A name with unsafe characters as escapes, cut to the width of a chart's label."""
    escaped = escape_text(text or "")
    return escaped if len(escaped) <= 60 else f"{escaped[:59]}…"
