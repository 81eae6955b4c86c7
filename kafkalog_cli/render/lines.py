"""Rows as lines: JSON lines, CSV, and logfmt: name=value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from time import monotonic
from typing import Any

from format.columns import RowSchema
from format.rows.line_style import LineStyle
from kafkalog_cli.exit_codes import Summary, counted
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render import text

_BLOCK_ROWS = 512
_LATEST_BLOCK_S = 0.5


_GUARDED = ("=", "+", "-", "@", "'", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBERS = ("int", "timestamp", "bool")


def _csv_writer(kind: str) -> Callable[[Any], str]:
    """The function that makes a cell of CSV from a value of a column of this type."""
    write = text.CELL_WRITERS[kind]
    if kind in _NUMBERS:
        return write
    is_mixed, is_json = kind == "any", kind == "json"  # of JSON only a number may begin so

    def write_cell(value: Any) -> str:
        cell = write(value)
        if cell.startswith(_GUARDED) and not is_json and not (is_mixed and isinstance(value, (int, float))):
            cell = "'" + cell
        if not cell or "," in cell or '"' in cell:
            return '"' + cell.replace('"', '""') + '"'
        return cell

    return write_cell


def _csv_pieces(pieces: text.Pieces) -> text.Pieces:
    """The function that makes the pieces of a cell of CSV from a long value."""

    def cell_pieces(value: Any) -> Iterator[str]:
        has_to_be_quoted = value == b"" or any("," in piece or '"' in piece for piece in pieces(value))
        quote = '"' if has_to_be_quoted else ""
        yield quote
        for number, piece in enumerate(pieces(value)):
            guard = "'" if number == 0 and piece.startswith(_GUARDED) else ""
            yield guard + (piece.replace('"', '""') if has_to_be_quoted else piece)
        yield quote

    return cell_pieces


LINE_STYLES = {
    "jsonl": LineStyle("jsonl", text.JSON_WRITERS, text.UNSAFE_RANGES),
    "logfmt": LineStyle("logfmt", text.LOGFMT_WRITERS, text.UNSAFE_RANGES),
    "csv": LineStyle("csv", {kind: _csv_writer(kind) for kind in text.CELL_WRITERS}, text.UNSAFE_RANGES),
}
#: The functions that replace writers in rows with long values, by format and type of column.
_PIECES: dict[str, dict[str, text.Pieces]] = {
    "jsonl": text.JSON_PIECES,
    "logfmt": text.LOGFMT_PIECES,
    "csv": {kind: _csv_pieces(pieces) for kind, pieces in text.CELL_PIECES.items()},
}


class LineMaker:
    """The maker of lines in a style from rows of one schema; a long value is written in pieces."""

    def __init__(self, schema: RowSchema, style: LineStyle) -> None:
        self._null = style.null
        kinds = [column.type for column in schema.columns]
        # Names, topics and codecs repeat, so their text is cached.
        self._writers = [
            lru_cache(256)(style.writers[kind]) if kind == "string" else style.writers[kind] for kind in kinds
        ]
        long = _PIECES[style.format_name]
        self._pieces = [long.get(kind) for kind in kinds]
        self._long_columns = [number for number, each in enumerate(self._pieces) if each is not None]
        start, end = style.start(schema), style.end
        labels = [style.label(schema, name) for name in schema.names]
        self._around = (start, labels, end)
        parts = [start, *(part for label in labels for part in (label, "\0")), end]
        self._template = "".join(part.replace("%", "%%") for part in parts).replace("\0", "%s")

    def blocks(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        """Lines, block by block, or pieces of a long line. Raises ValueError for a row that does not fit the schema."""
        null = self._null
        for block, is_last_long in self._gathered(rows):
            long_row = block.pop() if is_last_long else None
            if block:
                columns = [
                    [null if value is None else write(value) for value in values]
                    for write, values in zip(self._writers, zip(*block, strict=True), strict=True)
                ]
                yield "".join(map(self._template.__mod__, zip(*columns, strict=True)))
            if long_row is not None:
                yield from self._line_pieces(long_row)
                del long_row

    def _line_pieces(self, row: tuple[Any, ...]) -> Iterator[str]:
        start, labels, end = self._around
        yield start
        for label, write, pieces, value in zip(labels, self._writers, self._pieces, row, strict=True):
            yield label
            if value is None:
                yield self._null
            elif pieces is None:
                yield write(value)
            else:
                yield from pieces(value)
        yield end

    def _gathered(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[list[tuple[Any, ...]], bool]]:
        """Blocks of rows, and whether the last row of the block is long.

        A block is yielded early when it has many bytes, and when the next row is slow or raises an error.
        """
        block: list[tuple[Any, ...]] = []
        latest = monotonic() + _LATEST_BLOCK_S
        long_columns = self._long_columns
        held_bytes = 0
        try:
            for row in rows:
                block.append(row)
                row_bytes = sum([text.size_of(row[number]) for number in long_columns])
                del row  # frees a long row before the next one is made
                held_bytes += row_bytes
                if len(block) >= _BLOCK_ROWS or held_bytes > text.LONG_BYTES or monotonic() >= latest:
                    yield block, row_bytes > text.LONG_BYTES
                    block, held_bytes = [], 0
                    latest = monotonic() + _LATEST_BLOCK_S
        except Exception:
            if block:
                yield block, False
            raise
        if block:
            yield block, False


class _LinesRenderer:
    """Rows as lines, in the order given; any schema at any time."""

    def __init__(self, output: OutputStream, style: LineStyle, put: Callable[[str], None]) -> None:
        self._output, self._style, self._put = output, style, put
        self._makers: dict[RowSchema, LineMaker] = {}

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        maker = self._makers.get(schema)
        if maker is None:
            maker = self._makers[schema] = LineMaker(schema, self._style)
        for lines in maker.blocks(rows):
            self._put(lines)

    def write_raw(self, schema: RowSchema, lines: bytes | memoryview, row_count: int) -> None:
        """Write whole lines of so many rows that are in this format and UTF-8 already, each with its LF."""
        self._output.write(lines)

    def flush(self) -> None:
        """No row waits."""


class JsonLinesRenderer(_LinesRenderer):
    """Rows as JSON lines, in UTF-8."""

    def __init__(self, output: OutputStream) -> None:
        super().__init__(output, LINE_STYLES["jsonl"], lambda lines: output.write(lines.encode()))

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the summary, always; ``shown`` is for the other formats."""
        self._put(f"{text.json_value(summary.as_row())}\n")


class LogfmtRenderer(_LinesRenderer):
    """Rows as logfmt: lines of words."""

    def __init__(self, output: OutputStream) -> None:
        super().__init__(output, LINE_STYLES["logfmt"], output.write_text)

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the summary as the last line, with ``shown``."""
        if shown:
            row = summary.as_row()
            kind = row.pop("type")
            words = [
                f"{key}={text.logfmt_string(each) if isinstance(each, str) else text.json_value(each)}"
                for key, each in row.items()
            ]
            self._put(f"{kind} {' '.join(words)}\n")


class CsvRenderer(_LinesRenderer):
    """Rows of one schema as a CSV document. Where findings are not its rows, they go to ``aside`` as logfmt."""

    def __init__(self, output: OutputStream, main_schema: RowSchema | None, aside: Callable[[str], None]) -> None:
        super().__init__(output, LINE_STYLES["csv"], lambda lines: output.write(lines.encode()))
        self._schema = main_schema
        self._aside = aside
        self._left_out: dict[str, int] = {}
        self._has_header = False

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows of the main schema: the one that was named, else the first one written that is no finding."""
        if self._is_main(schema):
            super().write(schema, rows)
        elif schema.type == "finding":
            for lines in LineMaker(schema, LINE_STYLES["logfmt"]).blocks(rows):
                self._aside(lines.removesuffix("\n"))
        else:
            self._leave_out(schema, sum(1 for _row in rows))

    def write_raw(self, schema: RowSchema, lines: bytes | memoryview, row_count: int) -> None:
        """Write whole lines that are CSV already, if they are of the main schema."""
        if self._is_main(schema):
            super().write_raw(schema, lines, row_count)
        else:
            self._leave_out(schema, row_count)

    def _is_main(self, schema: RowSchema) -> bool:
        """Whether rows of the schema are those of the document; its header is written before the first of them."""
        if self._schema is None and schema.type != "finding":
            self._schema = schema
        if self._schema is None or schema.type != self._schema.type:
            return False
        self._write_header()
        return True

    def _leave_out(self, schema: RowSchema, row_count: int) -> None:
        self._left_out[schema.type] = self._left_out.get(schema.type, 0) + row_count

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the header if there was no row, and report the rows that were left out."""
        self._write_header()
        if self._left_out and self._schema is not None:
            rows = ", ".join(counted(count, kind) for kind, count in sorted(self._left_out.items()))
            self._aside(f"CSV holds one type of rows, here {self._schema.type}; left out: {rows}. Use jsonl for all.")

    def _write_header(self) -> None:
        if not self._has_header and self._schema is not None:
            self._has_header = True
            self._output.write((",".join(self._schema.names) + "\n").encode())
