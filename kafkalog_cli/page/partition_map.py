"""The map of a log directory, as a Vega specification: a rectangle for each partition."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from kafkalog_cli.page.chart_data import Values, shown
from kafkalog_cli.page.vega import FONT, WIDTH, vega_chart
from kafkalog_cli.render.table import human_size

#: States of partitions as the map colours them.
STATES = ("sound", "empty", "marked", "differs", "warning", "error", "fatal")

#: The columns of REPORT_PARTITION that a map is made of.
MAP_COLUMNS = ("path", "topic", "partition", "state", "notes", "record_count", "log_size_bytes")


def map_of(partitions: list[dict[str, Any]], log_dir: str) -> Markup | None:
    """A rectangle for each partition of a log directory: its area by the size of its logs, its colour by state.

    Indexes are left out: those of the active segment are as large as they can become, and mostly empty.
    """
    values: Values = [{"id": "all", "parent": None}]
    for number, row in enumerate(partitions):
        name = f"{shown(row['topic'])}-{row['partition']}" if row["topic"] else shown(row["path"].rpartition("/")[2])
        words = row["state"] if not row["notes"] else f"{row['state']}; {shown(row['notes'])}"
        if row["record_count"] is not None:
            words = f"{row['record_count']:,} records, {words}"
        values.append(
            {"id": str(number), "parent": "all", "size": max(row["log_size_bytes"] or 0, 1), "name": name,
             "fill": f"var(--{row['state']})", "ink": f"var(--on-{row['state']})",
             "tip": f"{name}: {human_size(row['log_size_bytes'] or 0)}, {words}"}
        )  # fmt: skip
    if len(values) == 1:
        return None
    height = 120 if len(values) < 12 else 240 if len(values) < 2_000 else 420
    width, depth = "datum.x1 - datum.x0", "datum.y1 - datum.y0"
    box = {"x": {"field": "x0"}, "y": {"field": "y0"}, "x2": {"field": "x1"}, "y2": {"field": "y1"}}
    spec: dict[str, Any] = {
        "width": WIDTH + 60,
        "height": height,
        "padding": 2,
        "data": [
            {
                "name": "tree",
                "values": values,
                "transform": [
                    {"type": "stratify", "key": "id", "parentKey": "parent"},
                    {"type": "treemap", "field": "size", "method": "squarify", "round": False,
                     "paddingInner": 1 if len(values) < 2_000 else 0.3, "size": [WIDTH + 60, height]},
                    {"type": "filter", "expr": "datum.parent !== null"},
                ],
            },
            {
                "name": "labels",
                "source": "tree",
                "transform": [{"type": "filter", "expr": f"{width} > 44 && {depth} > 12"}],
            },
        ],
        "marks": [
            {"type": "rect", "from": {"data": "tree"},
             "encode": {"enter": {**box, "fill": {"field": "fill"}, "description": {"field": "tip"}}}},
            {"type": "text", "from": {"data": "labels"}, "interactive": False, "aria": False,
             "encode": {"enter": {
                 "x": {"field": "x0", "offset": 4}, "y": {"field": "y0", "offset": 11},
                 "text": {"field": "name"}, "fontSize": {"value": 10}, "fill": {"field": "ink"},
                 "font": {"value": FONT}, "limit": {"signal": f"{width} - 6"},
             }}},
        ],
    }  # fmt: skip
    return vega_chart(spec, f"partitions of {shown(log_dir)} by size and state")
