"""The files that extract writes: Parquet through Arrow, or lines of text. Each is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from msgspec.structs import asdict

from format.columns import EXTRACTED_FILE, RECORD, RowSchema
from format.errors import OutputError
from format.limits import MIB
from format.location import Location
from format.log.record_table import RecordTable
from format.rewriting.publication import NewFile
from format.rows.line_blocks import LineStyle, RowText
from format.rows.record_rows import Row, RowBlock

if TYPE_CHECKING:
    import pyarrow as pa

    from format.rows.arrow_csv import CsvLines


#: Columns that are not in a Parquet file, because the names of its directories hold them.
PARTITION_COLUMNS = ("topic", "partition")
_ROW_GROUP_BYTES = 32 * MIB
_PORTION_ROWS = 512
_PORTION_BYTES = MIB // 4
#: Integer columns that are stored as differences, because their values seldom repeat.
_DELTA_COLUMNS = ("offset", "timestamp", "sequence", "batch_base_offset", "position", "size_bytes")
_PLAIN_COLUMNS = (*_DELTA_COLUMNS, "value", "headers")
_OFFSET, _SIZE = RECORD.names.index("offset"), RECORD.names.index("size_bytes")


class ExtractedFile(msgspec.Struct):
    """One row of columns.EXTRACTED_FILE, which documents the fields: a file of the output."""

    path: str
    topic: str | None
    partition: int | None
    record_count: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def count(self, records: int, first_offset: int, last_offset: int) -> None:
        """Add records that were written."""
        self.record_count += records
        self.first_offset = first_offset if self.first_offset is None else self.first_offset
        self.last_offset = last_offset

    def row(self) -> Row:
        """The row of EXTRACTED_FILE."""
        return tuple(getattr(self, name) for name in EXTRACTED_FILE.names)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Writes(Protocol):
    """The place of new files: a publication, or the directory of one task."""

    def create(self, relative_path: str) -> NewFile:
        """A new file. Raises OutputError."""
        ...

    def place_of(self, relative_path: str) -> Path:
        """Where a file is now."""
        ...


#: Some records to be written: rows, or an Arrow record batch.
Portion = Any


class RecordFile(Protocol):
    """One open file of the output."""

    file: ExtractedFile

    def write(self, portion: Portion) -> None: ...

    @property
    def size_bytes(self) -> int:
        """The approximate size of the file so far."""
        ...

    def close(self) -> None:
        """Finish the file and read it back. Raises OutputError."""
        ...

    def discard(self) -> None:
        """Close and remove the file, after an error."""
        ...


class FileFormat(Protocol):
    """A format of files: cuts records into portions, and opens files for them."""

    @property
    def suffix(self) -> str: ...

    def portions(self, block: RowBlock) -> Iterator[Portion]: ...

    def split(self, portion: Portion, records: int) -> tuple[Portion, Portion]:
        """The first ``records`` records, and the rest."""
        ...

    def open(self, publication: Writes, file: ExtractedFile) -> RecordFile: ...


def _parquet_columns(schema: RowSchema) -> tuple[str, ...]:
    return tuple(name for name in schema.names if name not in PARTITION_COLUMNS)


# -- text ----------------------------------------------------------------------------------------------------


class RowWriter(Protocol):
    """Formats rows as text and writes it to the file that it was opened for."""

    def write(self, schema: RowSchema, rows: Iterable[Row], /) -> None: ...


class TextFormat(msgspec.Struct, frozen=True):
    """JSON lines or CSV; ``open_writer`` makes the writer of a file. A portion has about ``portion_bytes``."""

    suffix: str
    open_writer: Callable[[NewFile], RowWriter]
    portion_bytes: int = _PORTION_BYTES
    schema: RowSchema = RECORD

    def portions(self, block: RowBlock) -> Iterator[Sequence[Row]]:
        part: list[Row] = []
        left_bytes = self.portion_bytes
        for row in block.rows:
            part.append(row)
            left_bytes -= row[_SIZE]
            if left_bytes <= 0 or len(part) == _PORTION_ROWS:
                yield part
                part, left_bytes = [], self.portion_bytes
        if part:
            yield part

    def split(self, portion: Sequence[Row], records: int) -> tuple[Sequence[Row], Sequence[Row]]:
        return portion[:records], portion[records:]

    def open(self, publication: Writes, file: ExtractedFile) -> RecordFile:
        return TextFile(publication, file, self.open_writer, self.schema)


class TextFile:
    """A text file. The publication reads it back when it is finished, and compares its SHA-256."""

    def __init__(
        self,
        publication: Writes,
        file: ExtractedFile,
        open_writer: Callable[[NewFile], RowWriter],
        schema: RowSchema = RECORD,
    ) -> None:
        self.file = file
        self.schema = schema
        self.new_file = publication.create(file.path)
        self.writer = open_writer(self.new_file)

    def write(self, portion: Portion) -> None:
        self.writer.write(self.schema, portion)
        self.file.count(len(portion), portion[0][_OFFSET], portion[-1][_OFFSET])

    @property
    def size_bytes(self) -> int:
        return self.new_file.size_bytes

    def close(self) -> None:
        self.new_file.close()
        self.file.size_bytes = self.new_file.size_bytes

    def discard(self) -> None:
        self.new_file.__exit__(OutputError, OutputError(""), None)


# -- Parquet -------------------------------------------------------------------------------------------------


class ParquetFormat(msgspec.Struct, frozen=True):
    """Parquet compressed with zstd, in row groups of about ``row_group_bytes`` before compression."""

    suffix: str = "parquet"
    row_group_bytes: int = _ROW_GROUP_BYTES
    schema: RowSchema = RECORD

    def portions(self, block: RowBlock) -> Iterator[pa.RecordBatch]:
        from format.rows.arrow_columns import BATCH_BYTES, batch_with_times, block_batches, schema_with_times

        columns = _parquet_columns(self.schema)
        schema = schema_with_times(self.schema, columns)
        for batch in block_batches(block, columns, batch_bytes=min(BATCH_BYTES, self.row_group_bytes)):
            yield batch_with_times(batch, schema)

    def split(self, portion: pa.RecordBatch, records: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return portion.slice(0, records), portion.slice(records)

    def open(self, publication: Writes, file: ExtractedFile) -> RecordFile:
        return _ParquetFile(publication, file, self)


class _ParquetFile:
    """An open Parquet file, with a digest of its columns for the read-back."""

    def __init__(self, publication: Writes, file: ExtractedFile, terms: ParquetFormat) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from format.rows.arrow_columns import ColumnsDigest, schema_with_times

        self.file = file
        self._place = publication.place_of(file.path)
        self._new = publication.create(file.path)
        marks = {name: str(getattr(file, name)) for name in PARTITION_COLUMNS if getattr(file, name) is not None}
        metadata = {f"kafkalog.{name}": value for name, value in marks.items()}
        columns = _parquet_columns(terms.schema)
        self._schema = schema_with_times(terms.schema, columns).with_metadata(metadata)
        self._sink = _Sink(self._new)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            self._schema,
            compression="zstd",
            use_dictionary=[name for name in columns if name not in _PLAIN_COLUMNS],
            column_encoding=dict.fromkeys(_DELTA_COLUMNS, "DELTA_BINARY_PACKED"),
        )
        self._digest = ColumnsDigest()
        self._row_group_bytes = terms.row_group_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0

    def write(self, portion: pa.RecordBatch) -> None:
        offsets = portion.column("offset")
        self.file.count(portion.num_rows, offsets[0].as_py(), offsets[-1].as_py())
        self._digest.update(portion)
        self._pending.append(portion)
        self._pending_bytes += portion.nbytes
        if self._pending_bytes >= self._row_group_bytes:
            self._write_row_group()

    def _write_row_group(self) -> None:
        import pyarrow as pa

        if self._pending:
            table = pa.Table.from_batches([each.replace_schema_metadata(None) for each in self._pending])
            self._writer.write_table(table.cast(self._schema), row_group_size=len(table))
            self._pending, self._pending_bytes = [], 0

    @property
    def size_bytes(self) -> int:
        return self._new.size_bytes

    def close(self) -> None:
        self._write_row_group()
        self._writer.close()
        self._new.close()
        self.file.size_bytes = self._new.size_bytes
        self._read_back()

    def _read_back(self) -> None:
        """Compare every value in every column with what was written; the publication compares the bytes."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from format.rows.arrow_columns import ColumnsDigest

        found = ColumnsDigest()
        location = Location(str(self._place))
        try:
            with pq.ParquetFile(self._place) as parquet:
                for group in range(parquet.num_row_groups):
                    for batch in parquet.iter_batches(row_groups=[group]):
                        found.update(batch)
        except (pa.ArrowException, OSError) as error:
            raise OutputError(f"what was written cannot be read back: {error}", location) from error
        if found != self._digest:
            raise OutputError("what was read back is not what was written", location)

    def discard(self) -> None:
        self._sink.is_discarded = True
        self._writer.close()
        self._new.__exit__(OutputError, OutputError(""), None)


class _Sink:
    """A NewFile with the methods that Arrow needs of a Python file."""

    closed = False
    is_discarded = False  # if so, ignore what Arrow writes when it closes the file

    def __init__(self, new: NewFile) -> None:
        self._new = new

    def write(self, content: Any) -> int:
        if self.is_discarded:
            return len(bytes(content))
        return self._new.write(bytes(content))  # Arrow may reuse its buffer

    def tell(self) -> int:
        return self._new.size_bytes

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


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
