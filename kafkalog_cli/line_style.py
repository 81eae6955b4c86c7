"""The style of the lines for ``Run.write_raw``, which code in ``format`` makes."""

from __future__ import annotations

from format.rows.line_blocks import LineStyle
from kafkalog_cli.render.text import UNSAFE_RANGES, json_string, logfmt_string


def line_style(format_name: str) -> LineStyle:
    """The style of ``jsonl`` or ``logfmt``."""
    is_json = format_name == "jsonl"
    return LineStyle(is_json, json_string if is_json else logfmt_string, UNSAFE_RANGES)


def style_of(raw_format: str | None) -> LineStyle | None:
    """The style for ``Run.raw_format``; None if rows go through a renderer."""
    return None if raw_format is None else line_style(raw_format)
