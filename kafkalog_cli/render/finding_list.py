"""Findings on a terminal: one paragraph each, informational ones grouped, what to do at the end.

A table of them would be too wide to read. The other formats have every finding as a row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from format.columns import FINDING
from format.findings import FINDING_CODES
from kafkalog_cli.render.escape import printable

_AT = {name: number for number, name in enumerate(FINDING.names)}
_INDENT = " " * 9
_STYLES = {"fatal": "1;31", "error": "31", "warning": "33", "info": "36"}
_LEAST_WIDTH, _MOST_WIDTH = 60, 110


@dataclass(slots=True)
class _Group:
    """Informational findings of one code: how many, and the first of them."""

    count: int
    path: str
    message: str


class FindingList:
    """Paragraphs for findings as they come; ``closing`` gives the grouped ones and the next steps."""

    def __init__(self, terminal_width: int | None, *, is_coloured: bool) -> None:
        self._width = max(_LEAST_WIDTH, min(_MOST_WIDTH, terminal_width or _MOST_WIDTH))
        self._is_coloured = is_coloured
        self._groups: dict[str, _Group] = {}
        self._next_steps: dict[str, dict[str, None]] = {}  # the next steps of each code, in order

    def paragraphs(self, row: tuple[Any, ...]) -> str:
        """The paragraph of one finding; empty for an informational one, which is grouped."""
        code, severity, path, message = (
            printable(str(row[_AT[name]])) for name in ("code", "severity", "path", "message")
        )
        if severity == "info":
            group = self._groups.setdefault(code, _Group(0, path, message))
            group.count += 1
            return ""
        self._next_steps.setdefault(code, {})[printable(str(row[_AT["next_step"]]))] = None
        head = f"{self._styled(f'{severity:<7}', severity)}  {code}"
        place = _place(row)
        lines = [head + (f"  {place}" if place else ""), _INDENT + path, *self._folded(message, _INDENT)]
        return "\n".join(lines) + "\n\n"

    def closing(self) -> str:
        """The informational findings by code, then what each shown code means for a broker and what to do."""
        return "".join(self._closing())

    def _closing(self) -> Iterator[str]:
        for code, group in self._groups.items():
            head = f"{self._styled('info   ', 'info')}  {code}"
            if group.count == 1:
                lines = [head, _INDENT + group.path, *self._folded(group.message, _INDENT)]
            else:
                lines = [
                    f"{head}  {group.count} times, the first:",
                    _INDENT + group.path,
                    *self._folded(group.message, _INDENT),
                ]
            yield "\n".join(lines) + "\n\n"
        if not self._next_steps:
            return
        yield "What a broker does, and what to do next\n"
        for code, next_steps in self._next_steps.items():
            entry = FINDING_CODES.get(code)
            if entry is None:
                continue
            yield f"  {code}\n"
            yield "\n".join(self._folded(f"A broker: {entry.broker}", "    ")) + "\n"
            for next_step in filter(None, next_steps):
                yield "\n".join(self._folded(f"Next: {next_step}", "    ")) + "\n"

    def _folded(self, text: str, indent: str) -> list[str]:
        return textwrap.wrap(
            text, self._width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ) or [indent.rstrip()]

    def _styled(self, text: str, severity: str) -> str:
        return f"\x1b[{_STYLES.get(severity, '0')}m{text}\x1b[0m" if self._is_coloured else text


def _place(row: tuple[Any, ...]) -> str:
    parts = []
    if row[_AT["offset"]] is not None:
        parts.append(f"offset {row[_AT['offset']]}")
    if row[_AT["position"]] is not None:
        length = row[_AT["length"]]
        parts.append(f"position {row[_AT['position']]}" + ("" if length is None else f", {length} bytes"))
    lost = row[_AT["lost_offsets"]]
    if isinstance(lost, list) and len(lost) == 2:
        parts.append(f"lost offsets {lost[0]} to {lost[1]}" if lost[0] != lost[1] else f"lost offset {lost[0]}")
    return "; ".join(parts)
