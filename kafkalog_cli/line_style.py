"""The style of the lines for ``Run.write_raw``, which code in ``format`` makes."""

from __future__ import annotations

from format.rows.line_blocks import LineStyle
from kafkalog_cli.render.text import JSON_WRITERS, LOGFMT_WRITERS, UNSAFE_RANGES


def line_style(format_name: str) -> LineStyle:
    """The style of ``jsonl`` or ``logfmt``."""
    is_json = format_name == "jsonl"
    return LineStyle(is_json, JSON_WRITERS if is_json else LOGFMT_WRITERS, UNSAFE_RANGES)


def style_of(raw_format: str | None) -> LineStyle | None:
    """The style for ``Run.raw_format``; None if rows go through a renderer."""
    return None if raw_format is None else line_style(raw_format)
