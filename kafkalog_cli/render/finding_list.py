"""Findings for people: a paragraph for each of the first of a kind with the next step, and totals of the others.

A table of findings would be too wide to read. JSON lines, CSV and logfmt have every finding as a row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import msgspec

from format.columns import FINDING
from format.findings import FINDING_CODES, Severity
from kafkalog_cli.render.folding import folded_line
from kafkalog_cli.render.text import printable

_AT = {name: number for number, name in enumerate(FINDING.names)}
_INDENT = " " * 9
_STYLES = {"fatal": "1;31", "error": "31", "warning": "33", "info": "36"}
_LEAST_WIDTH, _MOST_WIDTH = 60, 110
#: The number of findings of each code that are shown in full; the others are gathered by file.
_IN_FULL = 3
_MOST_FILES = 3
_ALL = "--format logfmt lists all"


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
    """The findings of one code and severity: how many are shown in full, and the others by file."""

    severity: str
    count: int = 0
    gathered: dict[str, _InFile] = msgspec.field(default_factory=dict)


class FindingList:
    """Findings as paragraphs while they arrive; ``closing`` is the rest.

    Findings below ``least`` are only counted, except those that say that something was not checked.
    """

    def __init__(self, width: int | None, *, is_coloured: bool, least: Severity = Severity.WARNING) -> None:
        self._width = max(_LEAST_WIDTH, min(_MOST_WIDTH, width or _MOST_WIDTH))
        self._is_coloured = is_coloured
        self._minor = {each.label for each in Severity if each < least}
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._counted: dict[str, dict[str, int]] = {}  # by severity and code
        self._said: set[tuple[str, str]] = set()  # the codes whose next steps are written

    def paragraph(self, row: tuple[Any, ...]) -> str:
        """The paragraph of a finding, with the next step at the first of its code; empty for others of many."""
        code, severity, path = (printable(str(row[_AT[name]])) for name in ("code", "severity", "path"))
        entry = FINDING_CODES.get(code)
        if severity in self._minor and not (entry is not None and entry.incomplete):
            counts = self._counted.setdefault(severity, {})
            counts[code] = counts.get(code, 0) + 1
            return ""
        kind = self._kinds.setdefault((code, severity), _Kind(severity))
        kind.count += 1
        if kind.count > _IN_FULL:
            kind.gathered.setdefault(path, _InFile()).add(row)
            return ""
        place = _place(row)
        is_narrow = len(f"{severity:<7}  {code}  {place}") > self._width
        lines = [
            self._head(code, severity) + (f"  {place}" if place and not is_narrow else ""),
            *(self._folded(place) if is_narrow else ()),
            _INDENT + path,
            *self._folded(printable(str(row[_AT["message"]]))),
        ]
        cause, next_step = row[_AT["caused_by"]], printable(str(row[_AT["next_step"]] or ""))
        if cause is not None:
            lines += self._folded(f"Follows from {_named(cause)}.")
        elif entry is not None and (code, next_step) not in self._said:
            if not any(said == code for said, _step in self._said):
                lines += self._folded(f"A broker: {entry.broker}")
            lines += self._folded(f"Next: {next_step}") if next_step else []
            self._said.add((code, next_step))
        return "\n".join(lines) + "\n"

    def closing(self) -> str:
        """What is not shown in full: problems by code and file, and the counts of all others in a line."""
        parts = [self._gathered(code, kind) for (code, _severity), kind in self._kinds.items() if kind.gathered]
        for severity, counts in self._counted.items():
            most_first = sorted(counts.items(), key=lambda item: -item[1])
            codes = ", ".join(f"{count:,}\0{code}" for code, count in most_first)
            words = f"{sum(counts.values()):,} {severity} ({codes}); {_ALL}"
            lines = textwrap.wrap(words, self._width, break_on_hyphens=False)  # a count stays with its code
            parts.append("\n".join(lines).replace("\0", " ") + "\n")
        return "\n".join(parts)

    def _gathered(self, code: str, kind: _Kind) -> str:
        count = sum(each.count for each in kind.gathered.values())
        lines = [f"{self._head(code, kind.severity)}  {count:,} more; {_ALL}"]
        for path, each in list(kind.gathered.items())[:_MOST_FILES]:
            lines.append(f"{_INDENT}{path}: {each.words}")
        rest = list(kind.gathered.values())[_MOST_FILES:]
        if rest:
            others = "another place" if len(rest) == 1 else f"{len(rest):,} other places"
            lines.append(f"{_INDENT}{sum(each.count for each in rest):,} in {others}")
        return "\n".join(lines) + "\n"

    def _head(self, code: str, severity: str) -> str:
        return f"{self._styled(f'{severity:<7}', severity)}  {code}"

    def _folded(self, text: str) -> list[str]:
        return folded_line(text, self._width, _INDENT) if text else [""]

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
