"""Records as people read them: a heading with place, time and key, and the value below it; or one line for each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from time import monotonic
from typing import Any

import msgspec

from format.columns import RECORD, Column, RowSchema
from format.timestamps import iso_time
from kafkalog_cli.render.text import cell_width, escape_bytes, escape_json, escape_text, json_value

#: What stands in the heading after the key, in words.
MARKS = Column("marks", "any", "who can see the record, and which replicas have it")
BELOW_START = "below the log start"
#: The start and the end of each match in a field, whose name is ``key``, ``value``, or ``header`` and its own name.
Highlight = Callable[[str, bytes], Iterable[tuple[int, int]]]
Spans = Sequence[tuple[int, int]]

_AT = {name: number for number, name in enumerate(RECORD.names)}
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP, _KEY, _VALUE, _HEADERS, _IS_CONTROL = (
    _AT[name] for name in ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "is_control")
)
_INDENT = "    "
_MOST_TEXT = 1 << 16
_LATEST_S = 0.5
#: Of a longer key, header or value, the part around the first match is shown, or else its start.
_MOST_KEY_BYTES = 200
_MOST_VALUE_BYTES = 1000
_BEFORE_MATCH_BYTES = 60
_MOST_JSON_BYTES = 64 * 1024
_UNFOLDED = 1 << 30  # a width in which any JSON is one line
_MOST_LINES = 30
_WIDTH_OF_FILES = 120
_BOLD, _DIM, _YELLOW, _MATCH = "1", "2", "33", "1;31"


class DecodedText(msgspec.Struct, frozen=True):
    """A key or value as the JSON text that is shown in its place."""

    text: str


#: Formats whose text is that of the bytes themselves.
_AS_THEY_ARE = ("raw", "string", "json")


class RecordRows:
    """Reads rows of records: those of ``columns.RECORD``, with any columns behind these."""

    def __init__(self, schema: RowSchema) -> None:
        added = {name: number for number, name in enumerate(schema.names) if number >= len(RECORD.names)}
        self._marks = added.get(MARKS.name)
        self._path = added.get("path")
        self._is_match = added.get("is_match")
        self._is_below_start = added.get("is_below_log_start")
        self._decoded = {
            field: tuple(added[f"{field}_{name}"] for name in ("decoded", "schema_id", "format"))
            for field in ("key", "value")
            if f"{field}_format" in added
        }

    def _shown(self, row: Sequence[Any], at: int, field: str, marks: list[str]) -> Any:
        """A key or value as it is shown; a mark says what it was decoded as."""
        if field not in self._decoded:
            return row[at]
        text, schema_id, kind = (row[each] for each in self._decoded[field])
        schema = "" if schema_id is None else f", schema {escape_text(str(schema_id))}"
        if text is None:
            if schema:
                marks.append(f"{field} not decoded{schema}")
            return row[at]
        if kind in _AS_THEY_ARE and schema_id is None:
            return row[at]
        marks.append(f"{field} {kind}{schema}")
        return DecodedText(text)

    def shown(self, row: Sequence[Any]) -> tuple[Any, Any, list[str]]:
        """The key, for a control record its type, the value, and the marks of the heading."""
        marks: list[str] = []
        key = self._shown(row, _KEY, "key", marks)
        value = self._shown(row, _VALUE, "value", marks)
        if row[_IS_CONTROL]:
            marks.append("control")
            key = str(key["type"]).encode() if isinstance(key, Mapping) else key
        elif row[_VALUE] is None:
            marks.append("null value" if key is None else "tombstone")
        if self._is_match is not None and not row[self._is_match]:
            marks.append("context")
        if self._marks is not None:
            marks += row[self._marks]
        if self._is_below_start is not None and row[self._is_below_start] and BELOW_START not in marks:
            marks.append(BELOW_START)
        if self._path is not None:
            marks.append(escape_text(str(row[self._path])))
        return key, value, marks

    def lines(self, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
        """Each record in one line, whole; the lines of several records at a time, as far as the rows come quickly."""
        lines: list[str] = []
        size, latest = 0, monotonic() + _LATEST_S
        try:
            for row in rows:
                line = self._line(row)
                del row  # frees a long row before the next one is made
                lines.append(line)
                size += len(line)
                if size > _MOST_TEXT or monotonic() >= latest:
                    yield "".join(lines)
                    lines, size, latest = [], 0, monotonic() + _LATEST_S
        except Exception:
            yield "".join(lines)
            raise
        yield "".join(lines)

    def _line(self, row: Sequence[Any]) -> str:
        key, value, marks = self.shown(row)
        headers = row[_HEADERS]
        line = f"{_place(row)}  {_time(row)}  {whole(key)}"
        if marks:
            line += _in_brackets(marks)
        if value is not None:
            line += f"  {whole(value)}"
        if headers:
            line += "  headers " + " ".join([f"{_name(name)}={whole(each)}" for name, each in headers])
        return line + "\n"


def _place(row: Sequence[Any]) -> str:
    return f"{_before_offset(row[_TOPIC], row[_PARTITION])} {row[_OFFSET]}"


@lru_cache(256)
def _before_offset(topic: str | None, partition: int | None) -> str:
    return "offset" if topic is None else f"{escape_text(topic)}-{partition} @"


def _time(row: Sequence[Any]) -> str:
    return "-" if row[_TIMESTAMP] is None else iso_time(row[_TIMESTAMP])


class RecordBlocks:
    """Draws each record in lines no wider than a terminal; ``width`` None is for a file, where no line is folded."""

    def __init__(self, width: int | None, *, is_coloured: bool, highlight: Highlight | None = None) -> None:
        self._width = width
        self._is_coloured = is_coloured
        self._highlight = highlight

    def drawn(self, schema: RowSchema, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
        """The lines of each record."""
        records = RecordRows(schema)
        for row in rows:
            yield self._block(row, *records.shown(row))

    def _block(self, row: Sequence[Any], key: Any, value: Any, marks: list[str]) -> str:
        heading = [_Painted(f"{_place(row)}  ", style=_BOLD), _Painted(f"{_time(row)}  ")]
        heading += [self._field("key", key), _Painted(_in_brackets(marks), style=_YELLOW)]
        lines = self._folded(heading, "", _INDENT)
        if row[_HEADERS]:
            words = [_Painted("headers", style=_DIM)]
            for name, content in row[_HEADERS]:
                words += [_Painted(f"  {_name(name)}="), self._field(f"header {_name(name)}", content)]
            lines += self._folded(words, _INDENT, _INDENT * 2)
        if value is not None:
            lines += self._value_lines(value)
        return "".join(f"{line}\n" for line in lines)

    def _field(self, name: str, value: Any) -> _Painted:
        """A key, or the value of a header, in one line."""
        if value is None or isinstance(value, Mapping):
            return _Painted(whole(value))
        if isinstance(value, DecodedText):
            return self._decoded(name, value.text, _MOST_KEY_BYTES, _UNFOLDED)
        text, spans, left_out = _excerpt(value, self._spans(name, value), _MOST_KEY_BYTES)
        return _Painted(text + left_out, spans)

    def _spans(self, name: str, value: bytes) -> Spans:
        return () if self._highlight is None else sorted(self._highlight(name, value))

    def _decoded(self, name: str, text: str, most: int, width: int) -> _Painted:
        """Decoded text, pretty-printed; of a longer one its start."""
        if len(text) > most:
            return _Painted(f"{escape_json(text[: min(most, _MOST_VALUE_BYTES)])}…({len(text):,} characters)")
        content = text.encode()
        return pretty(text, _in_characters(content, self._spans(name, content)), width)

    def _value_lines(self, value: Any) -> list[str]:
        shown: _Painted | None
        if isinstance(value, Mapping):
            shown = pretty(json_value(value), (), self._room)
        elif isinstance(value, DecodedText):
            shown = self._decoded("value", value.text, _MOST_JSON_BYTES, self._room)
        else:
            found = self._spans("value", value)
            shown = pretty_bytes(value, found, self._room)
        if shown is None:
            text, spans, left_out = _excerpt(value, found, _MOST_VALUE_BYTES)
            return self._folded([_Painted(text + left_out, spans)], _INDENT, _INDENT)
        lines = self._folded([shown], _INDENT, _INDENT)
        if len(lines) <= _MOST_LINES:
            return lines
        before = shown.text[: shown.spans[0][0]] if shown.spans else ""
        start = min(max(0, len(self._folded([_Painted(before)], _INDENT, _INDENT)) - 3), len(lines) - _MOST_LINES)
        count = len(lines) - _MOST_LINES
        note = f"{_INDENT}…({count:,} more lines; --format text shows all)"
        return [*([f"{_INDENT}…"] if start else []), *lines[start : start + _MOST_LINES], note]

    @property
    def _room(self) -> int:
        return (self._width or _WIDTH_OF_FILES) - len(_INDENT)

    def _folded(self, parts: Sequence[_Painted], indent: str, next_indent: str) -> list[str]:
        """Parts of one line, in as many lines as the terminal needs; a part may have line ends itself."""
        text = "".join(part.text for part in parts)
        lines: list[str] = []
        for first, last in _line_bounds(text, self._width, len(indent), len(next_indent)):
            at, line = 0, next_indent if lines else indent
            for part in parts:
                line += part.cut(first - at, last - at, is_coloured=self._is_coloured)
                at += len(part.text)
            lines.append(line.rstrip() if not self._is_coloured else line)
        return lines


class _Painted(msgspec.Struct, frozen=True):
    """Text that is safe for a screen, with a style, and with the matches in it."""

    text: str
    spans: Spans = ()
    style: str | None = None

    def cut(self, first: int, last: int, *, is_coloured: bool) -> str:
        """The characters from ``first`` to before ``last``, with the codes for a terminal."""
        first, last = max(first, 0), min(last, len(self.text))
        if first >= last:
            return ""
        if not is_coloured:
            return self.text[first:last]
        if self.style is not None:
            return f"\x1b[{self.style}m{self.text[first:last]}\x1b[0m"
        pieces, at = [], first
        for start, end in self.spans:
            start, end = max(start, at), min(end, last)
            if start < end:
                pieces.append(f"{self.text[at:start]}\x1b[{_MATCH}m{self.text[start:end]}\x1b[0m")
                at = end
        return "".join(pieces) + self.text[at:last]


def whole(value: Any) -> str:
    """A key or a value in one line: ``-`` for null, a decoded object as JSON."""
    if isinstance(value, DecodedText):
        return escape_json(value.text)
    if type(value) is bytes:
        text = value.decode("utf-8", "surrogateescape")
        is_plain = text.isascii() and text.isprintable() and "\\" not in text  # the usual case, quickly
        return (text if is_plain else escape_text(text)) or '""'
    return "-" if value is None else json_value(value)


def _in_brackets(marks: Sequence[str]) -> str:
    return f"  [{'; '.join(marks)}]" if marks else ""


@lru_cache(1024)
def _name(name: bytes) -> str:
    """The name of a header, which repeats from record to record."""
    return escape_bytes(name)


def _excerpt(value: bytes, spans: Spans, most: int) -> tuple[str, list[tuple[int, int]], str]:
    """The text of at most ``most`` bytes around the first match, the matches in it, and what was left out in words."""
    if not value:
        return '""', [], ""
    first, last, left_out = 0, len(value), ""
    if len(value) > most:
        first = _character_start(
            value, max(0, spans[0][0] - _BEFORE_MATCH_BYTES) if spans and spans[0][1] > most else 0
        )
        last = _character_start(value, min(len(value), first + most))
        left_out = f"…({len(value):,} bytes)"
    text, shown = "…" if first else "", []
    at = first
    for start, end in spans:
        start, end = max(start, at), min(end, last)
        if start < end:
            text += escape_bytes(value[at:start])
            match = escape_bytes(value[start:end])
            shown.append((len(text), len(text) + len(match)))
            text += match
            at = end
    return text + escape_bytes(value[at:last]), shown, left_out


def _character_start(field: bytes, at: int) -> int:
    """The start of the UTF-8 character at a position."""
    for back in range(4):
        if at - back <= 0 or at >= len(field) or field[at - back] & 0xC0 != 0x80:
            return at - back
    return at


# -- JSON ------------------------------------------------------------------------------------------------------

#: Deeper JSON is more indentation than content.
_MOST_JSON_DEPTH = 100
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def pretty_bytes(value: bytes, spans: Spans, width: int) -> _Painted | None:
    """A JSON object or array, pretty-printed from its own tokens; None for what is none, or too long or deep."""
    if value.lstrip()[:1] not in (b"{", b"[") or len(value) > _MOST_JSON_BYTES:
        return None
    try:
        text = value.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    if max(accumulate(_STEPS.get(match[0], 0) for match in _TOKEN.finditer(text))) > _MOST_JSON_DEPTH:
        return None
    return pretty(text, _in_characters(value, spans), width)


def _in_characters(content: bytes, spans: Spans) -> Spans:
    """Positions in bytes as positions in their text."""
    if content.isascii():
        return spans
    return [(_characters(content[:start]), _characters(content[:end])) for start, end in spans]


def _characters(start: bytes) -> int:
    return len(start.decode("utf-8", "ignore"))


def pretty(text: str, spans: Spans, width: int) -> _Painted:
    """Valid JSON, pretty-printed: what fits into the width stays in one line. No token is changed.

    ``spans`` are matches in the text.
    """
    tokens = [(match.start(), escape_json(match[0])) for match in _TOKEN.finditer(text)]
    closing, sizes = _flat_sizes(tokens)
    pieces: list[str] = []
    shown: list[tuple[int, int]] = []
    length = column = depth = number = 0
    flat_until = -1
    highlights = iter(spans)
    span = next(highlights, None)

    def put(piece: str) -> None:
        nonlocal length, column
        pieces.append(piece)
        length += len(piece)
        column = len(piece) - 1 if piece.startswith("\n") else column + len(piece)

    for number, (start, token) in enumerate(tokens):
        is_flat = number <= flat_until
        if not is_flat and token in ("}", "]"):
            depth -= 1
            put("\n" + "  " * depth)
        while span is not None and span[0] < start + len(token):
            if span[1] > start:
                shown.append((length + max(span[0] - start, 0), length + min(span[1] - start, len(token))))
            if span[1] > start + len(token):
                break  # it goes on in the next token
            span = next(highlights, None)
        put(token)
        if token in ("{", "[") and not is_flat:
            if column + sizes[closing[number] + 1] - sizes[number + 1] < width:
                flat_until = closing[number]
            else:
                depth += 1
                put("\n" + "  " * depth)
        elif token == ":":
            put(" ")
        elif token == ",":
            put(" " if is_flat else "\n" + "  " * depth)
    return _Painted("".join(pieces), shown)


def _flat_sizes(tokens: Sequence[tuple[int, str]]) -> tuple[dict[int, int], list[int]]:
    """The closing bracket of each opening one, and the length in one line of the tokens before each."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    sizes = [0]
    for number, (_start, token) in enumerate(tokens):
        sizes.append(sizes[-1] + len(token) + (token in (":", ",")))
        if token in ("{", "["):
            opened.append(number)
        elif token in ("}", "]"):
            closing[opened.pop()] = number
    return closing, sizes


# -- lines -----------------------------------------------------------------------------------------------------


def _line_bounds(text: str, width: int | None, indent: int, next_indent: int) -> Iterator[tuple[int, int]]:
    """The start and the end of each line of a text; lines end between words where that is possible."""
    at, is_first = 0, True
    for line in text.split("\n"):
        end = at + len(line)
        while True:
            room = None if width is None else max(width - (indent if is_first else next_indent), 12)
            last = end if room is None else _fitting(text, at, end, room)
            yield at, last
            is_first = False
            if last >= end:
                break
            at = last + (text[last] == " ")
        at = end + 1


def _fitting(text: str, first: int, end: int, room: int) -> int:
    """The end of the characters that fit into a line: at a space, unless the word is longer than half a line."""
    if cell_width(text[first:end]) <= room:
        return end
    last = first + room
    while cell_width(text[first:last]) > room:
        last -= 1
    space = text.rfind(" ", first + room // 2, last + 1)
    return space if space > 0 else last
