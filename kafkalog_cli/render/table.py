"""Rows for people: aligned columns in blocks on a terminal and in text, where no cell is folded or cut.

A terminal chooses the columns that fit its width. Where columns that were asked for do not fit, each is a line of its
own. Times are ISO-8601 in UTC, sizes in KiB and MiB. Rows of one partition follow a line with its name.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from format.columns import FINDING, RECORD, Column, RowSchema
from format.findings import Severity
from format.timestamps import iso_time
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.finding_list import FindingList
from kafkalog_cli.render.folding import NO_BREAK, folded_line
from kafkalog_cli.render.records import Highlight, RecordBlocks, RecordRows
from kafkalog_cli.render.text import CELL_WRITERS, cell_width, escape_bytes, printable, widest


class ShownColumns(msgspec.Struct, frozen=True):
    """Names of columns, in their order. A narrow terminal drops those in ``first_to_go``, and then from the end.

    ``deciding`` are columns of what is odd: no width drops one that has a value in some row, and one that has none is
    the first to go. A wide terminal shows other columns, too, but not those in ``on_request``. With ``as_paragraphs``,
    a terminal on which a row does not fit shows paragraphs in place of a table.
    """

    names: Sequence[str]
    first_to_go: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()
    as_paragraphs: bool = False

    def odd_first(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The rows with a value in a deciding column, and then the others; the order is else kept."""
        places = [(name, schema.names.index(name)) for name in self.deciding]
        return sorted(rows, key=lambda row: not any(is_telling(name, row[at]) for name, at in places))


#: By row type, the columns of tables.
TableColumns = Mapping[str, ShownColumns | Sequence[str]]


def is_telling(name: str, value: Any) -> bool:
    """Whether a value of a deciding column says that something is odd: not null, false, empty, or a count of 0."""
    return bool(value) or (value is not None and type(value) is int and not name.endswith(_COUNTS))


_BLOCK_ROWS = 200
_BLOCK_CHARACTERS = 1 << 20
_LATEST_BLOCK_S = 0.5
_MAX_CELL = 200
#: A column of words is not narrower than this, nor than its longest word; words of data may break at these widths.
_LEAST_WORDS_WIDTH = 12
_MOST_UNBROKEN = {"bytes": 12, "headers": 12, "any": 24, "json": 24, "string": 24}
#: Words are folded to this width before names are cut.
_FEW_WORDS_WIDTH = 16
#: Sentences and paths in narrower columns are hard to read.
_READABLE_WIDTH = 40
#: Columns of names, which are cut in the middle, and the least that stays of a name.
_NAMES = {
    "topic": 12, "group": 12, "transactional_id": 12, "cluster_id": 12, "name": 12, "resource_name": 12, "subject": 12,
    "path": 24,
}  # fmt: skip
#: Of a longer name no terminal shows all.
_MOST_NAME = 1024
_GAP = 2
_COUNTS = ("_bytes", "_count", "lag")
#: Columns of the place of a row, which are shown only if they are essential.
_PLACES = ("topic", "partition", "path")
_RIGHT = ("int", "timestamp")
_FOLDED = ("string", "bytes", "headers", "any", "json")
_STYLES: Mapping[str, Mapping[str, str]] = {
    "severity": {"fatal": "1;31", "error": "31", "warning": "33", "info": "36"},
    "crc_valid": {"false": "31"},
}
#: Where a line may end: after a space or a slash, and after a comma or semicolon that is in no number.
_BREAK = re.compile(r"(?<=[\s/])(?=\S)|(?<=[,;])(?=[^\s\d])")


class TableRenderer:
    """Rows as tables: a header, then blocks of rows; a new header where the schema or a column's width changes.

    ``columns`` has, by row type, the names of the essential columns; without an entry, all columns are. A wide terminal
    shows more. ``chosen``, if given, are names that are shown instead; ``all`` stands for all columns. With
    ``is_text``, cells are neither coloured nor folded nor cut. ``fail_on`` and ``among_records``: see FindingList.
    """

    def __init__(
        self,
        output: OutputStream,
        columns: TableColumns,
        chosen: Sequence[str] | None = None,
        *,
        is_text: bool = False,
        fail_on: Severity = Severity.ERROR,
        among_records: bool = False,
    ) -> None:
        self._output = output
        self._columns = columns
        self._chosen = chosen
        self._picked: Sequence[str] | None = None  # the chosen columns that the rows have; None for none
        self._is_text = is_text
        self._width = output.width
        self._fold_width = None if is_text else output.width
        self._schema: RowSchema | None = None
        self._essential = ShownColumns(())
        self._candidates: list[tuple[int, Column, Callable[[Any], str]]] = []  # the essential columns, then others
        self._essential_count = 0
        self._rows: list[list[str]] = []
        self._held_characters = 0
        self._shown: list[int] = []  # indexes of candidates, once they are chosen
        self._widths: list[int] = []
        self._needed: set[str] = set()  # deciding columns with a value so far
        self._has_output = False
        self._is_after_sentence = False
        self._has_left_out = False
        self._place: tuple[int, int] | None = None  # the indexes of the topic and the partition in a row
        self._partitions: set[tuple[Any, Any]] = set()  # of the held rows
        self._heading: tuple[Any, Any] | None = None
        self._drawn_at = time.monotonic()
        dumb = os.environ.get("TERM") == "dumb"
        self._highlight: Highlight | None = None
        self._is_coloured = output.is_terminal and not is_text and not dumb and not os.environ.get("NO_COLOR")
        self._findings = FindingList(
            self._width, is_coloured=self._is_coloured, fail_on=fail_on, among_records=among_records
        )

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Draw rows, in blocks; findings as paragraphs."""
        if schema is FINDING and schema.type not in self._columns:
            self._write_findings(rows)
            return
        if schema.type == RECORD.type and self._chosen is None:
            self._write_records(schema, rows)
            return
        if schema != self._schema:
            self._draw()
            self._begin(schema)
        names = self._essential.deciding if self._picked is None else ()
        deciding = [(name, schema.names.index(name)) for name in names]
        for row in rows:
            if self._place is not None:
                partition = row[self._place[0]], row[self._place[1]]
                if self._heading is not None and partition != self._heading:
                    self._draw()
                    self._begin(schema)
                self._partitions.add(partition)
            for name, at in deciding:
                if is_telling(name, row[at]):
                    self._needed.add(name)
            cells = ["-" if row[at] is None else cell(row[at]) for at, _column, cell in self._candidates]
            self._rows.append(cells)
            self._held_characters += sum(map(len, cells))
            is_full = len(self._rows) >= _BLOCK_ROWS or self._held_characters >= _BLOCK_CHARACTERS
            if is_full or self._is_waited_for():
                self._draw()

    def write_raw(self, schema: RowSchema, lines: bytes | memoryview, row_count: int) -> None:
        """Write whole lines as they are, of rows of any schema."""
        self._draw()
        self._output.write(lines)

    def say(self, words: str) -> None:
        """Write sentences, apart from the tables before and after them."""
        self._draw()
        self._schema = None
        self._put(self._wrapped(words), is_sentence=True)

    def highlight(self, matches: Highlight | None) -> None:
        """Mark these parts of the records that follow."""
        self._highlight = matches

    def flush(self) -> None:
        """Draw the rows so far, and what is known to follow from the last finding."""
        self._draw()
        self._output.write_text(self._findings.following(is_apart=False))

    def finish(self, summary: Summary, shown: bool) -> None:
        """Draw the remaining rows, the hint that there are more columns, and with ``shown`` the summary."""
        self._draw()
        self._output.write_text(self._findings.following(is_apart=True))
        closing = self._findings.closing()
        if closing:
            self._put(closing)
        if self._has_left_out:
            self._put(self._styled("more columns: --columns all", "2") + "\n")
        if shown:
            self._put(self._wrapped(summary.paragraph()))

    def _is_waited_for(self) -> bool:
        """Whether somebody at a terminal has waited long enough for rows. Elsewhere no clock decides the layout."""
        return self._width is not None and time.monotonic() - self._drawn_at >= _LATEST_BLOCK_S

    def _write_findings(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            text = self._findings.paragraph(row)
            if text:
                self._draw()
                self._schema = None
                self._put(text, is_finding=True)

    def _write_records(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        self._draw()
        if self._is_text:
            drawn = RecordRows(schema).lines(rows)
        else:
            blocks = RecordBlocks(self._width, is_coloured=self._is_coloured, highlight=self._highlight)
            drawn = blocks.drawn(schema, rows)
        for text in drawn:
            if self._schema is None or self._schema.type != schema.type:  # after a table, a sentence or a finding
                self._put("")
                self._schema = schema
                self._has_left_out = not self._is_text
            self._output.write_text(text)

    def _put(self, text: str, *, is_sentence: bool = False, is_finding: bool = False) -> None:
        """Write text after a blank line, which is left out between sentences."""
        self._output.write_text(self._findings.following(is_apart=not is_finding))
        gap = "\n" if self._has_output and not (is_sentence and self._is_after_sentence) else ""
        self._output.write_text(gap + text)
        self._has_output = True
        self._is_after_sentence = is_sentence

    def _wrapped(self, words: str) -> str:
        """Sentences in as many lines as the terminal needs."""
        lines = [line for each in words.split("\n") for line in folded_line(printable(each), self._width)]
        return "\n".join(lines) + "\n"

    def _begin(self, schema: RowSchema) -> None:
        essential = self._columns.get(schema.type) or schema.names
        self._essential = essential if isinstance(essential, ShownColumns) else ShownColumns(essential)
        chosen = self._chosen or ()
        picked = schema.names if "all" in chosen else [name for name in chosen if name in schema.names]
        self._picked = picked or None
        names = list(picked or self._essential.names)
        self._essential_count = len(names)
        if self._picked is None and self._width is not None:
            hidden = {*names, *_PLACES, *self._essential.on_request}
            names += [name for name in schema.names if name not in hidden]
        at = {name: place for place, name in enumerate(schema.names)}
        self._schema = schema
        is_whole = self._is_text or self._essential.as_paragraphs
        self._candidates = [
            (at[name], schema.columns[at[name]], _cell_maker(schema.columns[at[name]], is_whole=is_whole))
            for name in names
        ]
        self._shown, self._widths, self._needed = [], [], set()
        self._heading, self._partitions = None, set()
        is_placed = {"topic", "partition"} <= set(names[: self._essential_count]) and self._essential_count > 2
        self._place = (at["topic"], at["partition"]) if is_placed and self._picked is None else None

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        rows, self._rows, self._held_characters = self._rows, [], 0
        if not rows:
            return
        partitions, self._partitions = self._partitions, set()
        columns = [column for _at, column, _cell in self._candidates]
        full = [
            max(cell_width(column.name), widest(cells))
            for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
        ]
        has_header = not self._shown
        if has_header and self._is_paragraphs(columns, full):
            count, width = self._essential_count, self._width or 0
            self._put("".join(paragraph(columns[:count], row[:count], width) for row in rows))
            return
        if has_header:
            self._choose_heading(partitions, len(rows))
        least = full
        if self._width is not None:
            whole = set(self._essential.first_to_go) - set(_NAMES) if self._picked is None else ()
            least = [
                full[at] if column.name in whole else _least(column, cells)
                for at, (column, cells) in enumerate(zip(columns, zip(*rows, strict=True), strict=True))
            ]
        named = {columns[at].name for at in self._shown}
        if has_header or not self._needed <= named or self._is_too_wide(least, self._shown):
            self._shown, has_header = self._chosen_columns(columns, full, least), True
            self._widths = []
        known = self._widths or [0] * len(self._shown)
        widths = self._fitted([max(pair) for pair in zip(known, (full[at] for at in self._shown), strict=True)], least)
        has_header |= widths != self._widths
        is_vertical = self._is_too_wide(least, self._shown) and len(self._shown) > 1
        if is_vertical:
            lines = self._vertical(columns, rows)
        else:
            lines = self._aligned(columns, widths, rows, has_header=has_header)
        text = "".join(f"{line.rstrip()}\n" for line in lines)
        if self._heading is not None and not self._widths:
            text = f"{printable(f'{self._heading[0]}-{self._heading[1]}')}\n{text}"
        self._widths = widths
        if is_vertical:
            self._shown = []  # each block is chosen for itself, and stands apart
        if has_header:
            self._put(text)
        else:
            self._output.write_text(text)

    def _is_paragraphs(self, columns: Sequence[Column], full: Sequence[int]) -> bool:
        """Whether the rows are too wide for a table, and are meant to be paragraphs then."""
        if self._width is None or self._picked is not None or not self._essential.as_paragraphs:
            return False
        wanted = list(full[: self._essential_count])
        least = [
            min(width, _READABLE_WIDTH) if column.type in _FOLDED else width
            for column, width in zip(columns, wanted, strict=False)
        ]
        return self._is_too_wide(least, range(len(least)))

    def _choose_heading(self, partitions: set[tuple[Any, Any]], row_count: int) -> None:
        """Put the name of the partition above its rows, and not into each, where several rows are of one."""
        if self._place is None or row_count < 2 or len(partitions) > 1:
            self._place = None
        elif None not in (partition := next(iter(partitions))):
            self._heading = partition

    def _chosen_columns(self, columns: Sequence[Column], full: Sequence[int], least: Sequence[int]) -> list[int]:
        """The columns of a table: without deciding ones that say nothing, and on a terminal as many as fit.

        A table is too wide if it does not fit with cut names and folded words. Then columns in ``first_to_go`` are
        dropped, which are never folded, and then from the end. Columns that are not essential are shown if they fit as
        they are.
        """
        wanted = list(range(self._essential_count))
        if self._picked is not None:
            return wanted
        hidden = {name for name in self._essential.deciding if name not in self._needed}
        if self._heading is not None:
            hidden |= {"topic", "partition"}
        wanted = [at for at in wanted if columns[at].name not in hidden]
        if self._width is None:
            return wanted
        at_of = {columns[at].name: at for at in wanted}
        first_to_go = [at_of[name] for name in self._essential.first_to_go if name in at_of]
        order = [*first_to_go, *(at for at in reversed(wanted) if at not in first_to_go)]
        to_go = [at for at in order if columns[at].name not in self._needed]
        kept, gone = list(wanted), []
        while len(kept) > 1 and to_go and self._is_too_wide(least, kept):
            gone.append(to_go.pop(0))
            kept.remove(gone[-1])
        for at in reversed(gone):  # a narrow column may fit, now that wide ones are gone
            if not self._is_too_wide(least, [*kept, at]):
                kept.append(at)
        kept.sort()
        for at in range(self._essential_count, len(columns)) if len(kept) == len(wanted) else ():
            if not self._is_too_wide(full, [*kept, at]):
                kept.append(at)
        shown = {columns[at].name for at in kept} | hidden | {"topic", "partition"}
        if self._schema is not None and self._chosen is None:
            self._has_left_out |= not shown.issuperset(self._schema.names)
        return kept

    def _is_too_wide(self, widths: Sequence[int], shown: Sequence[int]) -> bool:
        """Whether columns of these widths do not fit the terminal."""
        return self._width is not None and sum(widths[at] for at in shown) + _GAP * (len(shown) - 1) > self._width

    def _fitted(self, widths: list[int], least: Sequence[int]) -> list[int]:
        """The widths of the shown columns, narrowed to fit the terminal: wide ones of words first, then the widest."""
        if self._fold_width is None:
            return [min(width, _MAX_CELL) for width in widths]
        names = [at for at, shown in enumerate(self._shown) if self._candidates[shown][1].name in _NAMES]
        excess = sum(widths) + _GAP * (len(widths) - 1) - self._fold_width
        while excess > 0:
            narrower = [at for at, width in enumerate(widths) if width > least[self._shown[at]]]
            words = [at for at in narrower if widths[at] > _FEW_WORDS_WIDTH and at not in names]
            if not narrower:
                break
            widths[max(words or narrower, key=widths.__getitem__)] -= 1
            excess -= 1
        return widths

    def _aligned(
        self, columns: Sequence[Column], widths: Sequence[int], rows: Sequence[Sequence[str]], *, has_header: bool
    ) -> Iterator[str]:
        """The lines of rows below each other; each cell in as many lines as it needs."""
        shown = [columns[at] for at in self._shown]
        if has_header:
            cells = [_filled(column, [column.name], width)[0] for column, width in zip(shown, widths, strict=True)]
            yield self._styled((" " * _GAP).join(cells).rstrip(), "1")
        lines: Iterable[Sequence[str]] = ([row[at] for at in self._shown] for row in rows)
        if self._fold_width is not None:
            lines = (
                parts
                for row in lines
                for parts in zip_longest(*map(self._cell_lines, shown, row, widths), fillvalue="")
            )
        filled = []
        for column, parts, width in zip(shown, zip(*lines, strict=True), widths, strict=True):
            cells = _filled(column, parts, width)
            if styles := _STYLES.get(column.name):
                cells = [self._styled(cell, styles.get(part, "")) for part, cell in zip(parts, cells, strict=True)]
            filled.append(cells)
        yield from map((" " * _GAP).join, zip(*filled, strict=True))

    def _cell_lines(self, column: Column, cell: str, width: int) -> list[str]:
        """The lines of a cell: a name is cut in the middle, and anything else is folded."""
        if self._fold_width is None or cell_width(cell) <= width:
            return [cell]
        return [cut_in_middle(cell, width)] if column.name in _NAMES else folded(cell, width)

    def _vertical(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """A line for each column of a row, and a blank line between rows."""
        indent = max(len(columns[at].name) for at in self._shown) + _GAP
        for number, row in enumerate(rows):
            if number:
                yield ""
            for at in self._shown:
                cell = row[at]
                lines = (
                    [cell]
                    if self._fold_width is None
                    else folded(cell, max(self._fold_width - indent, _LEAST_WORDS_WIDTH))
                )
                yield self._styled(columns[at].name.ljust(indent), "1") + lines[0]
                yield from (" " * indent + line for line in lines[1:])

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and self._is_coloured else text


def _least(column: Column, cells: Sequence[str]) -> int:
    """The least width of a column: of a cut name, of the longest word, or of all of a number."""
    full = max(cell_width(column.name), widest(cells))
    if column.type not in _FOLDED:
        return full
    if column.name in _NAMES:
        least = _NAMES[column.name]
    else:
        least = max(cell_width(word.rstrip()) for cell in cells for word in _BREAK.split(cell))
        least = min(least, _MOST_UNBROKEN.get(column.type, least))
    return min(full, max(least, _LEAST_WORDS_WIDTH, cell_width(column.name)))


def _filled(column: Column, cells: Sequence[str], width: int) -> list[str]:
    """Cells of a column in its width, numbers to the right."""
    filled = str.rjust if column.type in _RIGHT else str.ljust
    return [filled(cell, width if cell.isascii() else width + len(cell) - cell_width(cell)) for cell in cells]


def cut_in_middle(name: str, width: int) -> str:
    """A name with ``…`` in place of its middle."""
    start, end = name[: width - width // 2 - 1], name[len(name) - width // 2 :]
    while cell_width(start) + cell_width(end) >= width:  # of wide characters fewer fit
        start, end = start[:-1], end[1:]
    return f"{start}…{end}"


def folded(text: str, width: int) -> list[str]:
    """Text in lines of at most a width. Only a word that is longer than a line is broken."""
    lines = [""]
    for word in _BREAK.split(text):
        if lines[-1] and cell_width(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
        while cell_width(lines[-1].rstrip()) > width:
            at = width if lines[-1].isascii() else max(1, width // 2)
            lines[-1:] = [lines[-1][:at], lines[-1][at:]]
    return [line.rstrip() for line in lines]


def human_size(size_bytes: int) -> str:
    """A size in words, such as 734 B, 112.6 KiB, 3.0 GiB."""
    size = float(abs(size_bytes))
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    number = f"{size:.0f}" if unit == "B" else f"{size:,.1f}"
    return f"{'-' if size_bytes < 0 else ''}{number} {unit}"


def _cell_maker(column: Column, *, is_whole: bool) -> Callable[[Any], str]:
    if column.type == "timestamp":
        return lambda value: iso_time(int(value))
    if column.type == "int" and (column.name == "bytes" or column.name.endswith("_bytes")):
        return lambda value: human_size(int(value))
    if column.type == "bytes" and not is_whole:
        return _bytes_cell
    write = _plain_cell if column.type == "any" else CELL_WRITERS[column.type]
    if is_whole or column.type not in _FOLDED:
        return write
    if column.name in _NAMES:
        return lambda value: name if len(name := write(value)) <= _MOST_NAME else cut_in_middle(name, _MOST_NAME)
    return lambda value: _cut(write(value))


def _plain_cell(value: Any) -> str:
    """Names with their values as ``name=value``, and texts of a list, with commas; all else as JSON."""
    write = CELL_WRITERS["any"]
    if isinstance(value, Mapping) and not any(isinstance(each, (Mapping, list)) for each in value.values()):
        return ", ".join(f"{write(name)}={write(each)}" for name, each in value.items()) or write(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(map(write, value)) or write(value)
    return write(value)


def _bytes_cell(value: bytes | Mapping[str, Any]) -> str:
    if isinstance(value, Mapping):
        return _cut(CELL_WRITERS["any"](value))
    if len(value) <= _MAX_CELL:
        return escape_bytes(bytes(value))
    start = bytes(value[:_MAX_CELL])
    text = start.decode("utf-8", "ignore") if _is_utf8(bytes(value[: _MAX_CELL + 4])) else None
    shown = escape_bytes(start) if text is None else escape_bytes(text.encode())
    return f"{shown}…({len(value):,} bytes)"


def _is_utf8(start: bytes) -> bool:
    """Whether bytes are UTF-8; a character that is cut at their end is allowed."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…({len(text):,} characters)"


_INDENT = " " * 9
_LEAST_WIDTH, _MOST_WIDTH = 60, 110


def paragraph(columns: Sequence[Column], cells: Sequence[str], width: int) -> str:
    """A row: its first cell and its path, what is short, and then each sentence in lines of its own."""
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    named = [(column, cell) for column, cell in zip(columns[1:], cells[1:], strict=True) if cell not in ("-", "")]
    path = next((cell for column, cell in named if column.name == "path"), "")
    facts = [
        f"{column.name} {cell}" for column, cell in named if column.name != "path" and not _is_sentence(column, cell)
    ]
    first = cells[0] if columns[0].type == "string" or cells[0] == "-" else f"{columns[0].name} {cells[0]}"
    lines = [f"{first.ljust(len(_INDENT) - 1)} {path}".rstrip()]
    if facts and len(lines[0]) + 2 + len(", ".join(facts)) <= width:
        lines[0] += f"  {', '.join(facts)}"
    elif facts:
        lines += folded_line(", ".join(each.replace(" ", NO_BREAK) for each in facts), width, _INDENT)
    for column, cell in named:
        if column.name != "path" and _is_sentence(column, cell):
            lines += folded_line(cell, width, _INDENT)
    return "\n".join(lines) + "\n"


def _is_sentence(column: Column, cell: str) -> bool:
    return column.type == "string" and " " in cell
