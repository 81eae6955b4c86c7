"""Rows as lines: JSON lines, CSV, and logfmt: name=value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any

from format.columns import Column, RowSchema
from kafkalog_cli.exit_codes import Summary, counted
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render import text

_BLOCK_ROWS = 512
_LATEST_BLOCK_S = 0.5


class LineMaker:
    """The maker of lines from rows of one schema.

    ``writers`` has a function for each column; it is not called for a null, which is written as ``null``. A line is
    ``start``, then for each column its ``label`` and its value, then ``end``. ``pieces`` are the functions that
    replace writers in rows with long values.
    """

    def __init__(
        self,
        schema: RowSchema,
        writers: Sequence[Callable[[Any], str]],
        pieces: Sequence[text.Pieces | None],
        *,
        start: str,
        labels: Sequence[str],
        end: str,
        null: str,
    ) -> None:
        self._null = null
        # Names, topics and codecs repeat, so their text is cached.
        kinds = [column.type for column in schema.columns]
        self._writers = [
            lru_cache(256)(write) if kind == "string" else write for kind, write in zip(kinds, writers, strict=True)
        ]
        self._pieces = pieces
        self._long_columns = [number for number, each in enumerate(pieces) if each is not None]
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
        """One line in pieces."""
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

    def __init__(
        self, output: OutputStream, make: Callable[[RowSchema], LineMaker], put: Callable[[str], None]
    ) -> None:
        self._output, self._make, self._put = output, make, put
        self._makers: dict[RowSchema, LineMaker] = {}

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write the rows."""
        maker = self._makers.get(schema)
        if maker is None:
            maker = self._makers[schema] = self._make(schema)
        for lines in maker.blocks(rows):
            self._put(lines)

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines that are in this format and UTF-8 already, each with its LF."""
        self._output.write(lines)

    def flush(self) -> None:
        """No row waits."""


class JsonLinesRenderer(_LinesRenderer):
    """Rows as JSON lines, in UTF-8."""

    def __init__(self, output: OutputStream) -> None:
        super().__init__(output, _json_line_maker, lambda lines: output.write(lines.encode()))

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the summary, always; ``shown`` is for the other formats."""
        self._put(f"{text.json_value(summary.as_row())}\n")


class LogfmtRenderer(_LinesRenderer):
    """Rows as logfmt: lines of words."""

    def __init__(self, output: OutputStream) -> None:
        super().__init__(output, line_maker, output.write_text)

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


def _json_line_maker(schema: RowSchema) -> LineMaker:
    return LineMaker(
        schema,
        [text.JSON_WRITERS[column.type] for column in schema.columns],
        [text.JSON_PIECES.get(column.type) for column in schema.columns],
        start=f'{{"type":{text.json_string(schema.type)}',
        labels=[f",{text.json_string(name)}:" for name in schema.names],
        end="}\n",
        null="null",
    )


def line_maker(schema: RowSchema) -> LineMaker:
    """The maker of lines of logfmt."""
    return LineMaker(
        schema,
        [text.LOGFMT_WRITERS[column.type] for column in schema.columns],
        [text.LOGFMT_PIECES.get(column.type) for column in schema.columns],
        start=schema.type,
        labels=[f" {name}=" for name in schema.names],
        end="\n",
        null="-",
    )


_GUARDED = ("=", "+", "-", "@", "'", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBERS = ("int", "timestamp", "bool")


class CsvRenderer(_LinesRenderer):
    """Rows of one schema as a CSV document. Where findings are not its rows, they go to ``aside`` as logfmt."""

    def __init__(self, output: OutputStream, main_schema: RowSchema | None, aside: Callable[[str], None]) -> None:
        super().__init__(output, _csv_line_maker, lambda lines: output.write(lines.encode()))
        self._schema = main_schema
        self._aside = aside
        self._left_out: dict[str, int] = {}
        self._has_header = False

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows of the main schema: the one that was named, else the first one written."""
        if self._schema is None:
            self._schema = schema
        if schema.type != self._schema.type:
            self._put_aside(schema, rows)
            return
        self._write_header()
        super().write(schema, rows)

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines of the main schema that are CSV already."""
        self._write_header()
        super().write_raw(lines)

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

    def _put_aside(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        if schema.type == "finding":
            for lines in line_maker(schema).blocks(rows):
                self._aside(lines.removesuffix("\n"))
        else:
            self._left_out[schema.type] = self._left_out.get(schema.type, 0) + sum(1 for _row in rows)


def _csv_line_maker(schema: RowSchema) -> LineMaker:
    return LineMaker(
        schema,
        cell_writers(schema),
        [_cell_pieces(each) for each in schema.columns],
        start="",
        labels=["", *[","] * (len(schema.columns) - 1)],
        end="\n",
        null="",
    )


def cell_writers(schema: RowSchema) -> list[Callable[[Any], str]]:
    """The functions that make a cell from a value, one for each column. They are not called for null."""
    return [_cell_writer(each) for each in schema.columns]


def _cell_writer(column: Column) -> Callable[[Any], str]:
    write = text.CELL_WRITERS[column.type]
    if column.type in _NUMBERS:
        return write
    is_mixed, is_json = column.type == "any", column.type == "json"  # of JSON only a number may begin so

    def write_cell(value: Any) -> str:
        cell = write(value)
        if cell.startswith(_GUARDED) and not is_json and not (is_mixed and isinstance(value, (int, float))):
            cell = "'" + cell
        if not cell or "," in cell or '"' in cell:
            return '"' + cell.replace('"', '""') + '"'
        return cell

    return write_cell


def _cell_pieces(column: Column) -> text.Pieces | None:
    """The function that makes the pieces of a cell from a long value; None for a column without long values."""
    pieces = text.CELL_PIECES.get(column.type)
    if pieces is None:
        return None

    def cell_pieces(value: Any) -> Iterator[str]:
        has_to_be_quoted = value == b"" or any("," in piece or '"' in piece for piece in pieces(value))
        quote = '"' if has_to_be_quoted else ""
        yield quote
        for number, piece in enumerate(pieces(value)):
            guard = "'" if number == 0 and piece.startswith(_GUARDED) else ""
            yield guard + (piece.replace('"', '""') if has_to_be_quoted else piece)
        yield quote

    return cell_pieces
