"""Rows as paragraphs, for a terminal that is too narrow for a table of them: paths and sentences would be folded to
columns of a few letters.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from format.columns import Column

_INDENT = " " * 9
_LEAST_WIDTH, _MOST_WIDTH = 60, 110


def paragraph(columns: Sequence[Column], cells: Sequence[str], width: int) -> str:
    """A row: its first cell and its path, what is short, and then each sentence in lines of its own."""
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    named = [(column, cell) for column, cell in zip(columns, cells, strict=True) if cell != "-"]
    path = next((cell for column, cell in named if column.name == "path"), "")
    facts = ", ".join(f"{column.name} {cell}" for column, cell in named[1:] if column.type != "string")
    head = cells[0].ljust(len(_INDENT) - 1)
    lines = [f"{head} {path}".rstrip()]
    if facts and len(lines[0]) + 2 + len(facts) <= width:
        lines[0] += f"  {facts}"
    elif facts:
        lines += _wrapped(facts, width)
    for column, cell in named[1:]:
        if column.type == "string" and column.name != "path":
            lines += _wrapped(cell, width)
    return "\n".join(lines) + "\n"


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(
        words,
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
