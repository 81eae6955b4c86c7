"""Findings on a terminal: a paragraph for each of the first of a kind, totals of the others, and then the next steps.

A table of findings would be too wide to read. The other formats have every finding as a row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from format.columns import FINDING
from format.findings import FINDING_CODES
from kafkalog_cli.render.text import printable

_AT = {name: number for number, name in enumerate(FINDING.names)}
_INDENT = " " * 9
_STYLES = {"fatal": "1;31", "error": "31", "warning": "33", "info": "36"}
_LEAST_WIDTH, _MOST_WIDTH = 60, 110
#: The number of findings of each code that are shown in full; the others are gathered by file.
_IN_FULL = 3
_IN_FULL_INFO = 1
_MOST_FILES = 3


class _InFile(msgspec.Struct):
    """The gathered findings of one code in one file."""

    count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    lost_count: int = 0

    def add(self, row: tuple[Any, ...]) -> None:
        self.count += 1
        offset = row[_AT["offset"]]
        if offset is not None:
            self.first_offset = offset if self.first_offset is None else min(self.first_offset, offset)
            self.last_offset = offset if self.last_offset is None else max(self.last_offset, offset)
        self.lost_count += _lost_count(row)

    @property
    def words(self) -> str:
        words = f"{self.count:,}"
        if self.first_offset is not None:
            is_one = self.first_offset == self.last_offset
            words += (
                f", offset {self.first_offset}" if is_one else f", offsets {self.first_offset} to {self.last_offset}"
            )
        if self.lost_count:
            words += f", {self.lost_count:,} lost"
        return words


class _Kind(msgspec.Struct):
    """The findings of one code and severity: those in full, and the others by file."""

    severity: str
    count: int = 0
    paragraphs: list[str] = msgspec.field(default_factory=list)  # held back until the end
    gathered: dict[str, _InFile] = msgspec.field(default_factory=dict)
    next_steps: dict[str, None] = msgspec.field(default_factory=dict)  # in order


class FindingList:
    """Findings as paragraphs while they arrive; ``closing`` is the rest, and the next steps."""

    def __init__(self, terminal_width: int | None, *, is_coloured: bool) -> None:
        self._width = max(_LEAST_WIDTH, min(_MOST_WIDTH, terminal_width or _MOST_WIDTH))
        self._is_coloured = is_coloured
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def paragraphs(self, row: tuple[Any, ...]) -> str:
        """The paragraph of a finding; empty for one that ``closing`` shows, alone or gathered with others."""
        code, severity, path = (printable(str(row[_AT[name]])) for name in ("code", "severity", "path"))
        kind = self._kinds.setdefault((code, severity), _Kind(severity))
        kind.count += 1
        if row[_AT["caused_by"]] is None:
            kind.next_steps[printable(str(row[_AT["next_step"]]))] = None
        is_info = severity == "info"
        if kind.count > (_IN_FULL_INFO if is_info else _IN_FULL):
            kind.gathered.setdefault(path, _InFile()).add(row)
            return ""
        paragraph = self._paragraph(row, code, severity, path)
        if is_info:
            kind.paragraphs.append(paragraph)
            return ""
        return paragraph

    def _paragraph(self, row: tuple[Any, ...], code: str, severity: str, path: str) -> str:
        place = _place(row)
        is_narrow = len(f"{severity:<7}  {code}  {place}") > self._width
        lines = [
            self._head(code, severity) + (f"  {place}" if place and not is_narrow else ""),
            *(self._folded(place, _INDENT) if is_narrow else ()),
            _INDENT + path,
            *self._folded(printable(str(row[_AT["message"]])), _INDENT),
        ]
        cause = row[_AT["caused_by"]]
        if cause is not None:
            lines += self._folded(f"Follows from {_named(cause)}.", _INDENT)
        return "\n".join(lines) + "\n\n"

    def closing(self) -> str:
        """The gathered findings by code, then what each code means for a broker and what to do."""
        return "".join(self._closing())

    def _closing(self) -> Iterator[str]:
        for is_info in (False, True):
            for (code, severity), kind in self._kinds.items():
                if (severity == "info") is is_info:
                    yield from kind.paragraphs
                    if kind.gathered:
                        yield self._gathered(code, kind)
        kinds = sorted(self._kinds.items(), key=lambda item: item[0][1] == "info")  # information last, as above
        shown = [(code, kind) for (code, _severity), kind in kinds if kind.next_steps]
        if not shown:
            return
        yield "What a broker does, and what to do next\n"
        done: set[str] = set()
        for code, _kind in shown:
            entry = FINDING_CODES.get(code)
            if entry is None or code in done:
                continue
            done.add(code)
            yield f"  {code}\n"
            yield "\n".join(self._folded(f"A broker: {entry.broker}", "    ")) + "\n"
            for next_step in dict.fromkeys(step for name, kind in shown if name == code for step in kind.next_steps):
                if next_step:
                    yield "\n".join(self._folded(f"Next: {next_step}", "    ")) + "\n"

    def _gathered(self, code: str, kind: _Kind) -> str:
        count = sum(each.count for each in kind.gathered.values())
        lines = [f"{self._head(code, kind.severity)}  {count:,} more; --format text and jsonl list all"]
        for path, each in list(kind.gathered.items())[:_MOST_FILES]:
            lines.append(f"{_INDENT}{path}: {each.words}")
        rest = list(kind.gathered.values())[_MOST_FILES:]
        if rest:
            others = "another place" if len(rest) == 1 else f"{len(rest):,} other places"
            lines.append(f"{_INDENT}{sum(each.count for each in rest):,} in {others}")
        return "\n".join(lines) + "\n\n"

    def _head(self, code: str, severity: str) -> str:
        return f"{self._styled(f'{severity:<7}', severity)}  {code}"

    def _folded(self, text: str, indent: str) -> list[str]:
        return textwrap.wrap(
            text, self._width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ) or [indent.rstrip()]

    def _styled(self, text: str, severity: str) -> str:
        return f"\x1b[{_STYLES.get(severity, '0')}m{text}\x1b[0m" if self._is_coloured else text


def _named(cause: Any) -> str:
    """The code and the place of the finding that caused another one."""
    if not isinstance(cause, Mapping) or "code" not in cause:
        return printable(str(cause))
    words = str(cause["code"])
    for name in ("offset", "position"):
        if cause.get(name) is not None:
            words += f" at {name} {cause[name]}"
            break
    return printable(words)


def _lost_count(row: tuple[Any, ...]) -> int:
    lost = row[_AT["lost_offsets"]]
    return int(lost[1]) - int(lost[0]) + 1 if isinstance(lost, list) and len(lost) == 2 else 0


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
