"""Findings for people: a paragraph for each of the first of a kind with the next step, and totals of the others.

A table of findings would be too wide to read. JSON lines, CSV and logfmt have every finding as a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from format.columns import FINDING
from format.findings import FINDING_CODES, Severity
from kafkalog_cli.render.folding import NO_BREAK, folded_line
from kafkalog_cli.render.text import printable

_AT = {name: number for number, name in enumerate(FINDING.names)}
_INDENT = " " * 9
_STYLES = {"fatal": "1;31", "error": "31", "warning": "33", "info": "36"}
_LEAST_WIDTH, _MOST_WIDTH = 60, 110
#: The number of findings of each code that are shown in full; the others are gathered by file.
_IN_FULL = 3
_MOST_FILES = 3
_ALL = "--format logfmt lists all"
#: The code that records on a terminal show themselves: its findings are gathered by schema after them.
_UNDECODABLE = "value-undecodable"
_MOST_SCHEMAS = 3
#: A paragraph of more lines repeats the place at its end, where a terminal still shows it.
_MANY_LINES = 14
#: The commands in a next step, and where one ends and the next begins.
_COMMANDS = re.compile(r"(?<=[Rr]un: )(?=\S)(.+?)(?=\. When |, and start it again\.|$)")
_BETWEEN_COMMANDS = re.compile(r"; (?=kafka-)")


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
        lost = row[_AT["lost_offsets"]]
        if isinstance(lost, list) and len(lost) == 2:
            self.lost_count += int(lost[1]) - int(lost[0]) + 1

    @property
    def words(self) -> str:
        words = f"{self.count:,}"
        if self.first_offset is not None:
            is_one = self.first_offset == self.last_offset
            words += (
                f", offset {self.first_offset}" if is_one else f", offsets {self.first_offset} to {self.last_offset}"
            )
        if self.lost_count:
            words += f", {self.lost_count:,} not readable here"
        return words


class _Kind(msgspec.Struct):
    """The findings of one code and severity: how many are shown in full, and the others by file.

    Of keys and values that do not decode, ``first`` is the first, and ``schemas`` has their number by schema id.
    """

    severity: str
    count: int = 0
    gathered: dict[str, _InFile] = msgspec.field(default_factory=dict)
    first: tuple[Any, ...] | None = None
    schemas: Counter[str | None] = msgspec.field(default_factory=Counter)


class FindingList:
    """Findings as paragraphs while they arrive; ``closing`` is the rest.

    Findings below warning and ``fail_on`` are only counted, except those that say that something was not checked.
    Those below ``fail_on`` that follow from another one are counted under it: ``following``. ``among_records``: keys
    and values that do not decode are marked in the records, and counted once after them.
    """

    def __init__(
        self, width: int | None, *, is_coloured: bool, fail_on: Severity = Severity.ERROR, among_records: bool = False
    ) -> None:
        self._among_records = among_records
        self._width = max(_LEAST_WIDTH, min(_MOST_WIDTH, width or _MOST_WIDTH))
        self._is_coloured = is_coloured
        self._minor = {each.label for each in Severity if each < min(fail_on, Severity.WARNING)}
        self._below = {each.label for each in Severity if each < fail_on}
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._counted: dict[str, dict[str, int]] = {}  # by severity and code
        self._said: set[tuple[str, str]] = set()  # the codes whose next steps are written
        self._causes: set[tuple[Any, ...]] = set()
        self._last: tuple[Any, ...] | None = None  # the cause that was written last, if nothing was written after it
        self._effects: Counter[str] = Counter()  # of that one, by code
        self._other_effects: Counter[str] = Counter()
        self._pending = ""

    def paragraph(self, row: tuple[Any, ...]) -> str:
        """The paragraph of a finding, with the next step at the first of its code; empty for others of many."""
        code, severity, path = (printable(str(row[_AT[name]])) for name in ("code", "severity", "path"))
        entry = FINDING_CODES.get(code)
        is_incomplete = entry is not None and entry.incomplete
        if severity in self._minor and not is_incomplete:
            counts = self._counted.setdefault(severity, {})
            counts[code] = counts.get(code, 0) + 1
            return ""
        cause, own = row[_AT["caused_by"]], _as_cause({name: row[_AT[name]] for name in _CAUSE})
        if severity in self._below and not is_incomplete and isinstance(cause, Mapping):
            of = _as_cause(cause)
            if of in self._causes:
                (self._effects if of == self._last else self._other_effects)[code] += 1
                self._causes.add(own)
                return ""
        self._causes.add(own)
        kind = self._kinds.setdefault((code, severity), _Kind(severity))
        kind.count += 1
        if code == _UNDECODABLE and self._among_records:
            kind.first = kind.first or row
            actual = row[_AT["actual"]]
            schema_id, count = (actual.get("schema_id"), actual.get("count", 1)) if actual else (None, 1)
            kind.schemas[None if schema_id is None else str(schema_id)] += count
            return ""
        if kind.count > _IN_FULL:
            kind.gathered.setdefault(path, _InFile()).add(row)
            return ""
        self._pending, self._last = self._counted_effects(), own
        place, unreadable = _place(row), _unreadable(row)
        head = [each for each in (place, unreadable) if each]
        while head and len(f"{severity:<7}  {code}  {'; '.join(head)}") > self._width:
            head.pop()
        lines = [
            self._head(code, severity) + (f"  {'; '.join(head)}" if head else ""),
            *(line for each in (place, unreadable) if each and each not in head for line in self._folded(each)),
            _INDENT + path,
            *self._folded(printable(str(row[_AT["message"]]))),
        ]
        next_step = printable(str(row[_AT["next_step"]] or ""))
        if cause is not None:
            lines += self._folded(f"Follows from {_named(cause)}.")
        elif entry is not None and (code, next_step) not in self._said:
            if not any(said == code for said, _step in self._said):
                lines += self._folded(f"A broker: {entry.broker}")
            lines += self._step(f"Next: {next_step}") if next_step else []
            self._said.add((code, next_step))
        if len(lines) > _MANY_LINES:
            lines += self._folded("; ".join(filter(None, (f"This was {path}", place, unreadable))))
        return "\n".join(lines) + "\n"

    def following(self, *, is_apart: bool) -> str:
        """The line about what follows from the finding before, or nothing; ``is_apart``: other text comes then."""
        words, self._pending = self._pending or self._counted_effects(), ""
        self._last = None if is_apart else self._last
        return words

    def closing(self) -> str:
        """What is not shown in full: problems by code and file, and the counts of all others in a line."""
        parts = [self._gathered(code, kind) for (code, _severity), kind in self._kinds.items() if kind.gathered]
        parts += [self._by_schema(code, kind, kind.first) for (code, _), kind in self._kinds.items() if kind.first]
        if self._other_effects:
            words = f"{_following(self._other_effects, 'others above')}; {_ALL}"
            parts.append("\n".join(folded_line(words, self._width)) + "\n")
        for severity, counts in self._counted.items():
            most_first = sorted(counts.items(), key=lambda item: -item[1])
            codes = ", ".join(f"{count:,}{NO_BREAK}{code}" for code, count in most_first)
            words = f"{sum(counts.values()):,} {severity} ({codes}); {_ALL}"
            parts.append("\n".join(folded_line(words, self._width)) + "\n")
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

    def _by_schema(self, code: str, kind: _Kind, first: tuple[Any, ...]) -> str:
        named = [
            f"{count:,} without a known schema" if schema_id is None else f"{count:,} of schema {schema_id}"
            for schema_id, count in kind.schemas.most_common(_MOST_SCHEMAS)
        ]
        if len(kind.schemas) > _MOST_SCHEMAS:
            named.append(f"{len(kind.schemas) - _MOST_SCHEMAS:,} more schemas")
        message, path = printable(str(first[_AT["message"]])), printable(str(first[_AT["path"]]))
        is_one = kind.count == 1
        lines = [] if is_one else self._folded(f"{', '.join(named)}; {_ALL}")
        lines += self._folded(message if is_one else f"The first: {message}")
        lines += [_INDENT + path, *self._step(f"Next: {printable(str(first[_AT['next_step']] or ''))}")]
        head = _place(first) if is_one else f"{kind.schemas.total():,} keys and values do not decode"
        return "\n".join([f"{self._head(code, kind.severity)}  {head}", *lines]) + "\n"

    def _head(self, code: str, severity: str) -> str:
        return f"{self._styled(f'{severity:<7}', severity)}  {code}"

    def _counted_effects(self) -> str:
        """The line about what followed from the last cause, which is counted anew then."""
        effects, self._effects = self._effects, Counter()
        return "\n".join(self._folded(_following(effects, "it"))) + "\n" if effects else ""

    def _step(self, text: str) -> list[str]:
        """A next step, folded; each command in it stands on a line of its own, which may be copied."""
        lines: list[str] = []
        for number, part in enumerate(_COMMANDS.split(text)):
            if number % 2:
                for command in _BETWEEN_COMMANDS.split(part):
                    lines.append(_INDENT + command if len(_INDENT + command) <= self._width else command)
            elif part:
                lines += self._folded(part.lstrip(".,; "))
        return lines

    def _folded(self, text: str) -> list[str]:
        return folded_line(text, self._width, _INDENT) if text else [""]

    def _styled(self, text: str, severity: str) -> str:
        return f"\x1b[{_STYLES.get(severity, '0')}m{text}\x1b[0m" if self._is_coloured else text


#: What names a finding as a cause.
_CAUSE = ("code", "path", "position", "offset")


def _as_cause(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(values.get(name) for name in _CAUSE)


def _following(effects: Counter[str], what: str) -> str:
    """As ``2 findings follow from it (sequence-gap)``."""
    codes = ", ".join(code if len(effects) == 1 else f"{count:,} {code}" for code, count in effects.most_common())
    words = "1 finding follows" if effects.total() == 1 else f"{effects.total():,} findings follow"
    return f"{words} from {what} ({codes})"


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


def _place(row: tuple[Any, ...]) -> str:
    parts = []
    if row[_AT["offset"]] is not None:
        parts.append(f"offset {row[_AT['offset']]}")
    if row[_AT["position"]] is not None:
        length = row[_AT["length"]]
        size = "" if length is None else f", {length} byte{'' if length == 1 else 's'}"
        parts.append(f"position {row[_AT['position']]}{size}")
    return "; ".join(parts)


def _unreadable(row: tuple[Any, ...]) -> str:
    """The offsets that this log does not give; another replica may have them."""
    lost = row[_AT["lost_offsets"]]
    if not isinstance(lost, list) or len(lost) != 2:
        return ""
    return f"not readable here: offset{f's {lost[0]} to' if lost[0] != lost[1] else ''} {lost[1]}"
