"""Tables for people: aligned columns in blocks, long cells folded on a terminal, very long ones cut.

This is the only format that cuts values, and the only one with sizes in KiB and MiB. Times are ISO-8601 in UTC. Rows of
one partition follow a line with its name. rich is imported only when it is needed.
"""

from __future__ import annotations

import io
import os
import shutil
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from format.columns import FINDING, RECORD, Column, RowSchema
from format.timestamps import iso_time
from kafkalog_cli.exit_codes import Summary
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.finding_list import FindingList
from kafkalog_cli.render.records import Highlight, RecordBlocks
from kafkalog_cli.render.text import CELL_WRITERS, escape_bytes, printable

if TYPE_CHECKING:
    from rich.console import Console


class ShownColumns(tuple[str, ...]):
    """Names of columns, in their order. A narrow terminal drops those in ``first_to_go``, and then from the end.

    Columns in ``whole`` are not folded while others can be dropped. A wide terminal shows other columns, too, but not
    those in ``on_request``. With ``as_paragraphs``, a terminal on which a row does not fit shows paragraphs in place of
    a table.
    """

    first_to_go: tuple[str, ...]
    whole: tuple[str, ...]
    on_request: tuple[str, ...]
    as_paragraphs: bool

    def __new__(
        cls,
        names: tuple[str, ...],
        first_to_go: tuple[str, ...] = (),
        whole: tuple[str, ...] = ("topic", "group"),
        *,
        on_request: tuple[str, ...] = (),
        as_paragraphs: bool = False,
    ) -> Self:
        made = super().__new__(cls, names)
        made.first_to_go = first_to_go
        made.whole = whole
        made.on_request = on_request
        made.as_paragraphs = as_paragraphs
        return made


#: The columns of records. The topic and the partition are dropped before keys and values, as they are mostly known.
RECORD_COLUMNS = ShownColumns(
    ("topic", "partition", "offset", "timestamp", "codec", "key", "value", "headers"),
    first_to_go=("codec", "headers", "topic", "partition"),
)


def record_columns(schema: RowSchema) -> ShownColumns:
    """The columns of records, with those that the schema has on request."""
    added = schema.names[len(RECORD.names) :]
    marks = [name for name in added if name != "path"]
    at = RECORD_COLUMNS.index("key")
    names = (*RECORD_COLUMNS[:at], *marks, *RECORD_COLUMNS[at:], *(name for name in added if name == "path"))
    return ShownColumns(names, RECORD_COLUMNS.first_to_go)


_BLOCK_ROWS = 200
_LATEST_BLOCK_S = 0.5
_MAX_CELL = 200
_MIN_FOLDED_WIDTH = 12
#: Sentences and paths in narrower columns are hard to read.
_READABLE_WIDTH = 40
#: Columns of names are not folded below this width while other columns can be left out.
_WHOLE = ("topic", "group")
_WHOLE_WIDTH = 48
_GAP = 2
#: Columns of the place of a row, which are shown only if they are essential.
_PLACES = ("topic", "partition", "path")
_RIGHT = ("int", "timestamp")
_FOLDED = ("string", "bytes", "headers", "any")
_STYLES: Mapping[str, Mapping[str, str]] = {
    "severity": {"fatal": "bold red", "error": "red", "warning": "yellow", "info": "cyan"},
    "crc_valid": {"false": "red"},
}


class TableRenderer:
    """Rows as tables: a header, then blocks of rows; a new header where the schema or a column's width changes.

    ``columns`` has, by row type, the names of the essential columns; without an entry, all columns are. A wide terminal
    shows more. ``chosen``, if given, are names that are shown instead; ``all`` stands for all columns.
    """

    def __init__(
        self,
        output: OutputStream,
        columns: Mapping[str, Sequence[str]],
        chosen: Sequence[str] | None = None,
        highlight: Highlight | None = None,
    ) -> None:
        self._output = output
        self._columns = columns
        self._chosen = chosen
        self._schema: RowSchema | None = None
        self._shown: list[tuple[int, Column, Callable[[Any], str]]] = []
        self._rows: list[list[str]] = []
        self._widths: list[int] = []
        self._first_to_go: tuple[str, ...] = ()
        self._whole: tuple[str, ...] = _WHOLE
        self._has_output = False
        self._left_out: dict[str, tuple[str, ...]] = {}  # by row type
        self._essential_count = 0
        self._place: tuple[int, int] | None = None  # the indexes of the topic and the partition in a row
        self._partitions: list[tuple[Any, Any]] = []  # the topic and the partition of each held row
        self._heading: tuple[Any, Any] | None = None
        self._drawn_at = time.monotonic()
        dumb = os.environ.get("TERM") == "dumb"
        self._is_coloured = output.is_terminal and not dumb and not os.environ.get("NO_COLOR")
        self._terminal_width = shutil.get_terminal_size().columns if output.is_terminal else None
        self._highlight = highlight
        self._findings = FindingList(self._terminal_width, is_coloured=self._is_coloured)

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Draw rows, in blocks; findings as paragraphs."""
        if schema is FINDING and schema.type not in self._columns:
            self._write_findings(rows)
            return
        if schema.type == RECORD.type and self._chosen is None:
            self._write_records(schema, rows)
            return
        if schema is not self._schema:
            self._draw()
            self._begin(schema)
        for row in rows:
            if self._place is not None:
                partition = row[self._place[0]], row[self._place[1]]
                if self._heading is not None and partition != self._heading:
                    self._draw()
                    self._begin(schema)
                self._partitions.append(partition)
            self._rows.append(["-" if row[at] is None else cell(row[at]) for at, _column, cell in self._shown])
            if len(self._rows) >= _BLOCK_ROWS or self._is_waited_for():
                self._draw()

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines as they are."""
        self._draw()
        self._output.write(lines)

    def flush(self) -> None:
        """Draw the rows so far."""
        self._draw()

    def finish(self, summary: Summary, shown: bool) -> None:
        """Draw the remaining rows, the columns that are not shown, and with ``shown`` the summary."""
        self._draw()
        self._name_what_is_left_out()
        closing = self._findings.closing()
        if closing:
            self._output.write_text(("\n" if self._has_output else "") + closing.rstrip("\n") + "\n")
            self._has_output = True
        if shown:
            text = "\n".join(self._wrapped(printable(line)) for line in summary.paragraph().split("\n"))
            self._output.write_text(("\n" if self._has_output else "") + text + "\n")

    def _is_waited_for(self) -> bool:
        """Whether somebody at a terminal has waited long enough for rows. Elsewhere no clock decides the layout."""
        return self._terminal_width is not None and time.monotonic() - self._drawn_at >= _LATEST_BLOCK_S

    def _write_findings(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            text = self._findings.paragraphs(row)
            if text:
                self._draw()
                if self._has_output and self._schema is not None:
                    text = "\n" + text
                self._schema = None
                self._output.write_text(text)

    def _write_records(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        self._draw()
        self._schema = None
        self._left_out[schema.type] = ()
        blocks = RecordBlocks(self._terminal_width, is_coloured=self._is_coloured, highlight=self._highlight)
        for text in blocks.drawn(schema, rows):
            self._output.write_text(text)
            self._has_output = True

    def _wrapped(self, line: str) -> str:
        """A line in as many lines as the terminal needs; elsewhere as it is."""
        if self._terminal_width is None:
            return line
        return textwrap.fill(line, self._terminal_width, break_long_words=False, break_on_hyphens=False)

    def _name_what_is_left_out(self) -> None:
        left_out = {kind: names for kind, names in self._left_out.items() if names}
        for kind, names in left_out.items():
            what = f"Not shown of {kind}" if len(left_out) > 1 else "Not shown"
            words = f"{what}: {', '.join(names)}. For them: --columns all, or --format text."
            lines = textwrap.wrap(words, self._terminal_width or 110, break_long_words=False, break_on_hyphens=False)
            self._output.write_text("\n" + "\n".join(lines) + "\n")

    def _begin(self, schema: RowSchema) -> None:
        essential = self._columns.get(schema.type) or schema.names
        names = list(essential)
        self._first_to_go = essential.first_to_go if isinstance(essential, ShownColumns) else ()
        self._whole = essential.whole if isinstance(essential, ShownColumns) else _WHOLE
        if self._chosen is not None:
            picked = [name for name in self._chosen if name in schema.names]
            names = list(schema.names) if "all" in self._chosen else picked or names
        self._essential_count = len(names)
        if self._chosen is None and self._terminal_width is not None:
            hidden = {*names, *_PLACES, *(essential.on_request if isinstance(essential, ShownColumns) else ())}
            names += [name for name in schema.names if name not in hidden]
        at = {name: place for place, name in enumerate(schema.names)}
        self._schema = schema
        self._shown = [(at[name], schema.columns[at[name]], _cell_maker(schema.columns[at[name]])) for name in names]
        self._widths = []
        self._heading = None
        self._partitions = []
        is_placed = {"topic", "partition"} <= set(names[: self._essential_count]) and self._essential_count > 2
        self._place = (at["topic"], at["partition"]) if is_placed and self._chosen is None else None

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        if not self._rows:
            return
        if not self._widths and self._draw_paragraphs():
            return
        if not self._widths:
            self._choose_heading()
            self._choose_columns()
        columns = [column for _at, column, _cell in self._shown]
        needed = [max(map(_width, cells)) for cells in zip(*self._rows, strict=True)]
        known = self._widths or [_width(column.name) for column in columns]
        widths = self._fitted([max(pair) for pair in zip(known, needed, strict=True)], columns)
        has_header = widths != self._widths
        is_plain = not self._is_coloured and all(map(int.__le__, needed, widths))
        drawn = (self._aligned if is_plain else self._folded)(columns, widths, has_header)
        if self._heading is not None and not self._widths:
            drawn = f"{printable(f'{self._heading[0]}-{self._heading[1]}')}\n{drawn}"
        self._output.write_text("\n" + drawn if has_header and self._has_output else drawn)
        self._has_output = True
        self._widths = widths
        self._rows = []
        self._partitions = []

    def _draw_paragraphs(self) -> bool:
        """Draw the rows as paragraphs where they are too wide for a table, and meant for that."""
        essential = None if self._schema is None else self._columns.get(self._schema.type)
        width = self._terminal_width
        if width is None or self._chosen is not None or not isinstance(essential, ShownColumns):
            return False
        columns = [column for _at, column, _cell in self._shown[: self._essential_count]]
        needed = [max(map(_width, cells)) for cells in zip(*self._rows, strict=True)][: len(columns)]
        full = list(map(max, needed, (len(each.name) for each in columns)))
        folded = self._fitted(full, columns) if essential.as_paragraphs else full
        if all(least >= min(most, _READABLE_WIDTH) for least, most in zip(folded, full, strict=True)):
            return False

        drawn = "".join(paragraph(columns, row[: len(columns)], width) for row in self._rows)
        self._output.write_text("\n" + drawn if self._has_output else drawn)
        self._has_output = True
        self._rows, self._partitions = [], []
        return True

    def _choose_heading(self) -> None:
        """Put the name of the partition above its rows, and not into each, where several rows are of one."""
        if self._place is None or len(self._rows) < 2 or len(set(self._partitions)) > 1:
            self._place = None
            return
        if None in self._partitions[0]:
            return
        self._heading = self._partitions[0]
        names = [column.name for _at, column, _cell in self._shown]
        self._essential_count -= 2
        self._keep([place for place, name in enumerate(names) if name not in ("topic", "partition")])

    def _choose_columns(self) -> None:
        """Drop columns of a table that is too wide even when folded: those in ``first_to_go``, then from the end.

        Columns that are not essential are shown only if they fit without folding.
        """
        columns = [column for _at, column, _cell in self._shown]
        kept = list(range(self._essential_count))
        if self._terminal_width is not None and self._chosen is None:
            full = [
                max(_width(column.name), *(_width(row[at]) for row in self._rows)) for at, column in enumerate(columns)
            ]
            least = {
                at: min(full[at], max(_width(columns[at].name), self._least_folded(columns[at])))
                if columns[at].type in _FOLDED
                else full[at]
                for at in kept
            }
            to_go = [at for name in self._first_to_go for at in kept if columns[at].name == name]
            gone = []
            while len(least) > 1 and _total(least.values()) > self._terminal_width:
                at = to_go.pop(0) if to_go else list(least)[-1]
                gone.append((at, least.pop(at)))
            for at, width in reversed(gone):  # a narrow column may fit, now that wide ones are gone
                if _total([width, *(min(full[each], _WHOLE_WIDTH) for each in least)]) <= self._terminal_width:
                    least[at] = width
            least = dict(sorted(least.items()))
            is_complete = len(least) == len(kept)
            kept = list(least)
            for at in range(self._essential_count, len(columns)) if is_complete else ():
                if _total([full[each] for each in (*kept, at)]) <= self._terminal_width:
                    kept.append(at)
        self._keep(kept)
        if self._schema is not None:
            shown = {column.name for _at, column, _cell in self._shown}
            shown |= {"topic", "partition"}  # in the line above the rows, or in rows of another type
            self._left_out[self._schema.type] = tuple(name for name in self._schema.names if name not in shown)

    def _keep(self, kept: list[int]) -> None:
        """Keep only the columns at these indexes."""
        self._shown = [self._shown[place] for place in kept]
        self._rows = [[row[place] for place in kept] for row in self._rows]

    def _aligned(self, columns: list[Column], widths: list[int], has_header: bool) -> str:
        """Draw rows whose cells all fit and have no colour: what rich would draw, without importing it."""
        is_right = [column.type in _RIGHT for column in columns]
        lines = []
        for row in [[column.name for column in columns], *self._rows] if has_header else self._rows:
            cells = []
            for cell, width, right in zip(row, widths, is_right, strict=True):
                gap = " " * (width - _width(cell))
                cells.append(gap + cell if right else cell + gap)
            lines.append((" " * _GAP).join(cells).rstrip() + "\n")
        return "".join(lines)

    def _folded(self, columns: list[Column], widths: list[int], has_header: bool) -> str:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=has_header, header_style="bold")
        for column, width in zip(columns, widths, strict=True):
            justify: Any = "right" if column.type in _RIGHT else "left"
            table.add_column(column.name, width=width, overflow="fold", justify=justify)
        for row in self._rows:
            pairs = zip(columns, row, strict=True)
            table.add_row(*(Text(cell, style=_STYLES.get(column.name, {}).get(cell, "")) for column, cell in pairs))
        buffer = io.StringIO()
        self._console(buffer, sum(widths) + _GAP * len(widths)).print(table)
        drawn = buffer.getvalue()
        if self._is_coloured:
            return drawn
        return "".join(f"{line.rstrip()}\n" for line in drawn.split("\n")[:-1])

    def _fitted(self, widths: list[int], columns: list[Column]) -> list[int]:
        """The widths, narrowed to fit the terminal: of the columns that may be folded, the widest first."""
        if self._terminal_width is None:
            return widths
        widths = list(widths)
        excess = sum(widths) + _GAP * (len(widths) - 1) - self._terminal_width
        while excess > 0:
            foldable = [
                at
                for at, column in enumerate(columns)
                if column.type in _FOLDED and widths[at] > self._least_folded(column)
            ] or [at for at, column in enumerate(columns) if column.type in _FOLDED and widths[at] > _MIN_FOLDED_WIDTH]
            if not foldable:
                break
            widest = max(foldable, key=lambda at: widths[at])
            widths[widest] -= 1
            excess -= 1
        return widths

    def _least_folded(self, column: Column) -> int:
        """The width to which a column may be folded. Names are folded only if they are very long."""
        return _WHOLE_WIDTH if column.name in self._whole else _MIN_FOLDED_WIDTH

    def _console(self, buffer: io.StringIO, width: int) -> Console:
        from rich.console import Console

        return Console(
            file=buffer,
            width=width,
            force_terminal=self._is_coloured,
            force_interactive=False,
            force_jupyter=False,
            color_system="auto" if self._is_coloured else None,
            no_color=not self._is_coloured,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
        )


def _total(widths: Iterable[int]) -> int:
    """The width of a table with columns of these widths."""
    widths = list(widths)
    return sum(widths) + _GAP * (len(widths) - 1)


def human_size(size_bytes: int) -> str:
    """A size in words, such as 734 B, 112.6 KiB, 3.0 GiB."""
    size = float(abs(size_bytes))
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    number = f"{size:.0f}" if unit == "B" else f"{size:,.1f}"
    return f"{'-' if size_bytes < 0 else ''}{number} {unit}"


def _width(cell: str) -> int:
    """The number of terminal columns of a cell, which has no control characters."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _cell_maker(column: Column) -> Callable[[Any], str]:
    if column.type == "timestamp":
        return lambda value: iso_time(int(value))
    if column.type == "int" and (column.name == "bytes" or column.name.endswith("_bytes")):
        return lambda value: human_size(int(value))
    if column.type == "bytes":
        return _bytes_cell
    write = CELL_WRITERS[column.type]
    if column.type not in _FOLDED:
        return write
    return lambda value: _cut(write(value))


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
