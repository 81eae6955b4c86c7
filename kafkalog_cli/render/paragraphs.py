"""Rows as paragraphs, for a terminal that is too narrow for a table of them: paths and sentences would be folded to
columns of a few letters.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from format.columns import Column

_INDENT = " " * 9
_LEAST_WIDTH, _MOST_WIDTH = 60, 110
_NO_BREAK = "\x00"  # a space at which no line ends; cells have no control characters


def paragraph(columns: Sequence[Column], cells: Sequence[str], width: int) -> str:
    """A row: its first cell and its path, what is short, and then each sentence in lines of its own."""
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    named = [(column, cell) for column, cell in zip(columns[1:], cells[1:], strict=True) if cell != "-"]
    path = next((cell for column, cell in named if column.name == "path"), "")
    facts = [
        f"{column.name} {cell}" for column, cell in named if column.name != "path" and not _is_sentence(column, cell)
    ]
    first = cells[0] if columns[0].type == "string" or cells[0] == "-" else f"{columns[0].name} {cells[0]}"
    lines = [f"{first.ljust(len(_INDENT) - 1)} {path}".rstrip()]
    if facts and len(lines[0]) + 2 + len(", ".join(facts)) <= width:
        lines[0] += f"  {', '.join(facts)}"
    elif facts:
        lines += _wrapped(", ".join(each.replace(" ", _NO_BREAK) for each in facts), width)
    for column, cell in named:
        if column.name != "path" and _is_sentence(column, cell):
            lines += _wrapped(cell, width)
    return "\n".join(lines).replace(_NO_BREAK, " ") + "\n"


def _is_sentence(column: Column, cell: str) -> bool:
    return column.type == "string" and " " in cell


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(
        words,
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
