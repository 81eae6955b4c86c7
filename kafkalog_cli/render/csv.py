"""CSV: a header, and the rows of the command's main type; rows of other types are left out.

Quoting follows RFC 4180; lines end in LF. Null is an empty cell, the empty string is ``""``. Cells are escaped like
text. No cell is a formula: text that starts with = + - @ (or their full-width forms) or with an apostrophe gets an
apostrophe in front; numbers stay numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from format.columns import Column, RowSchema
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.lines import LineMaker
from kafkalog_cli.render.long_values import CELL_PIECES, Pieces
from kafkalog_cli.render.text import line_maker
from kafkalog_cli.render.values import CELL_WRITERS
from kafkalog_cli.summary import Summary, counted

_GUARDED = ("=", "+", "-", "@", "'", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBERS = ("int", "timestamp", "bool")


class CsvRenderer:
    """Rows of one schema as a CSV document. Where findings are not its rows, they go to ``aside`` as text lines."""

    def __init__(self, output: OutputStream, main_schema: RowSchema | None, aside: Callable[[str], None]) -> None:
        self._output = output
        self._schema = main_schema
        self._aside = aside
        self._left_out: dict[str, int] = {}
        self._has_header = False
        self._maker: LineMaker | None = None

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows of the main schema: the one that was named, else the first one written."""
        if self._schema is None:
            self._schema = schema
        if schema.type != self._schema.type:
            self._put_aside(schema, rows)
            return
        self._write_header()
        if self._maker is None:
            self._maker = LineMaker(
                schema,
                cell_writers(schema),
                [_cell_pieces(each) for each in schema.columns],
                start="",
                labels=["", *[","] * (len(schema.columns) - 1)],
                end="\n",
                null="",
            )
        for lines in self._maker.blocks(rows):
            self._output.write(lines.encode())

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines of the main schema that are CSV already."""
        self._write_header()
        self._output.write(lines)

    def flush(self) -> None:
        """No row waits."""

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


def cell_writers(schema: RowSchema) -> list[Callable[[Any], str]]:
    """The functions that make a cell from a value, one for each column. They are not called for null."""
    return [_cell_writer(each) for each in schema.columns]


def _cell_writer(column: Column) -> Callable[[Any], str]:
    write = CELL_WRITERS[column.type]
    if column.type in _NUMBERS:
        return write
    is_mixed = column.type == "any"

    def write_cell(value: Any) -> str:
        cell = write(value)
        if cell.startswith(_GUARDED) and not (is_mixed and isinstance(value, (int, float))):
            cell = "'" + cell
        if not cell or "," in cell or '"' in cell:
            return '"' + cell.replace('"', '""') + '"'
        return cell

    return write_cell


def _cell_pieces(column: Column) -> Pieces | None:
    """The function that makes the pieces of a cell from a long value; None for a column without long values."""
    pieces = CELL_PIECES.get(column.type)
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
