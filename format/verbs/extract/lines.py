"""Writes text files of extract without a Python row for each record; the bytes are the same as with rows.

The compiled kernel writes JSON lines, and Arrow, where it is installed, writes CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from format.columns import RowSchema
from format.limits import MIB
from format.log.record_table import RecordTable
from format.rewriting.publishing.new_file import NewFile
from format.rows.record_rows import RowBlock
from format.rows.row_text import LineStyle, RowText
from format.verbs.extract.files import ExtractedFile, RowWriter, TextFile, Writes

if TYPE_CHECKING:
    from format.rows.arrow_csv import CsvLines

_ROOM_BYTES = 4 * MIB


class RecordsOfLog(msgspec.Struct, frozen=True):
    """Some records of one log that are to be written."""

    block: RowBlock

    @property
    def records(self) -> RecordTable:
        if self.block.records is None:
            raise ValueError("the block has rows without columns behind them")
        return self.block.records

    def __len__(self) -> int:
        return len(self.records)

    def part(self, first: int, end: int) -> RecordsOfLog:
        return RecordsOfLog(self.block.of_records(self.records.rows(slice(first, end))))


class _RecordsFormat:
    """The base of formats written from columns; a portion has a block's records, or about ``portion_bytes`` of them."""

    def __init__(
        self, suffix: str, open_writer: Callable[[NewFile], RowWriter], portion_bytes: int | None = None
    ) -> None:
        self.suffix = suffix
        self._open_writer = open_writer
        self._portion_bytes = portion_bytes

    def portions(self, block: RowBlock) -> Iterator[RecordsOfLog]:
        if block.records is None or block.location is None:
            raise ValueError("the block has rows without columns behind them")
        whole = RecordsOfLog(block)
        if self._portion_bytes is None:
            yield whole
            return
        end_bytes = np.cumsum(block.records.size_bytes)
        first = 0
        while first < len(whole):
            before = int(end_bytes[first - 1]) if first else 0
            end = min(int(np.searchsorted(end_bytes, before + self._portion_bytes)) + 1, len(whole))
            yield whole.part(first, end)
            first = end

    def split(self, portion: RecordsOfLog, records: int) -> tuple[RecordsOfLog, RecordsOfLog]:
        return portion.part(0, records), portion.part(records, len(portion))


class _RecordsFile(TextFile):
    """A text file written from columns; the publication reads it back like any other."""

    def write(self, portion: RecordsOfLog) -> None:
        self._write_lines(portion)
        offsets = portion.records.offset
        self.file.count(len(portion), int(offsets[0]), int(offsets[-1]))

    def _write_lines(self, portion: RecordsOfLog) -> None:
        raise NotImplementedError


class LinesFormat(_RecordsFormat):
    """Lines in one style; ``open_writer`` opens the writer of records that are too long for the kernel's buffer."""

    def __init__(
        self,
        suffix: str,
        style: LineStyle,
        open_writer: Callable[[NewFile], RowWriter],
        portion_bytes: int | None = None,
    ) -> None:
        super().__init__(suffix, open_writer, portion_bytes)
        self._text = RowText(style)
        self._style = style
        self._room = memoryview(bytearray(_ROOM_BYTES))

    def __reduce__(self) -> tuple[type[LinesFormat], tuple[object, ...]]:
        """A pickle has the arguments of the format."""
        return LinesFormat, (self.suffix, self._style, self._open_writer, self._portion_bytes)

    def open(self, publication: Writes, file: ExtractedFile) -> LinesFile:
        return LinesFile(publication, file, self._open_writer, self._text, self._room)


class LinesFile(_RecordsFile):
    """A file of lines that the kernel writes."""

    def __init__(
        self,
        publication: Writes,
        file: ExtractedFile,
        open_writer: Callable[[NewFile], RowWriter],
        text: RowText,
        room: memoryview,
    ) -> None:
        super().__init__(publication, file, open_writer)
        self._text = text
        self._room = room

    def _write_lines(self, portion: RecordsOfLog) -> None:
        row, block = 0, portion.block
        if block.location is None:
            raise ValueError("the block has rows without columns behind them")
        for lines in self._text.record_lines(
            portion.records, block.location, lambda: self._room, block.schema, block.log_start_offset
        ):
            if lines.length:
                self.new_file.write(bytes(self._room[: lines.length]))
            else:
                self.writer.write(block.schema, block.of_records(portion.records.rows(slice(row, row + 1))).rows)
            row += lines.row_count


class CsvFormat(_RecordsFormat):
    """CSV; ``open_writer`` opens the writer of the header line, ``writers`` has a cell writer for each column."""

    def __init__(
        self,
        open_writer: Callable[[NewFile], RowWriter],
        writers: Sequence[Callable[[Any], str]],
        schema: RowSchema,
        portion_bytes: int | None = None,
    ) -> None:
        from format.rows.arrow_csv import CsvLines

        super().__init__("csv", open_writer, portion_bytes)
        self._lines = CsvLines(writers, schema)

    def open(self, publication: Writes, file: ExtractedFile) -> CsvFile:
        return CsvFile(publication, file, self._open_writer, self._lines)


class CsvFile(_RecordsFile):
    """A file of CSV."""

    def __init__(
        self,
        publication: Writes,
        file: ExtractedFile,
        open_writer: Callable[[NewFile], RowWriter],
        lines: CsvLines,
    ) -> None:
        super().__init__(publication, file, open_writer)
        self._lines = lines
        self._has_header = False

    def _write_lines(self, portion: RecordsOfLog) -> None:
        if not self._has_header:
            self._has_header = True
            self.writer.write(portion.block.schema, ())
        for lines in self._lines.lines(portion.block):
            self.new_file.write(lines)
