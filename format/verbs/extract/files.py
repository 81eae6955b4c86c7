"""The files that extract writes: Parquet through Arrow, or lines of text. Each is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import asdict

from format.columns import EXTRACTED_FILE, RECORD, RowSchema
from format.errors import OutputError
from format.limits import MIB
from format.location import Location
from format.rewriting.publication import NewFile
from format.rows.line_blocks import LineBlock, LineStyle, RowText, in_lines
from format.rows.record_rows import PART_BYTES, Row, RowBlock
from format.scan.processes.room import OwnRoom

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns that are not in a Parquet file, because the names of its directories hold them.
PARTITION_COLUMNS = ("topic", "partition")
_ROW_GROUP_BYTES = 32 * MIB
#: Integer columns that are stored as differences, because their values seldom repeat.
_DELTA_COLUMNS = ("offset", "timestamp", "sequence", "batch_base_offset", "position", "size_bytes")
_PLAIN_COLUMNS = (*_DELTA_COLUMNS, "value", "headers")


class ExtractedFile(msgspec.Struct):
    """One row of columns.EXTRACTED_FILE, which documents the fields: a file of the output."""

    path: str
    topic: str | None
    partition: int | None
    record_count: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def count(self, block: RowBlock) -> None:
        """Add records that were written."""
        offsets = block.record_table.offset
        self.record_count += len(offsets)
        self.first_offset = int(offsets[0]) if self.first_offset is None else self.first_offset
        self.last_offset = int(offsets[-1])

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


# -- text ----------------------------------------------------------------------------------------------------


class LineWriter(Protocol):
    """Writes rows, or lines that are formatted already, to the file that it was opened for."""

    def write(self, schema: RowSchema, rows: Iterable[Row], /) -> None: ...

    def write_raw(self, lines: memoryview, /) -> None: ...


class TextFormat(msgspec.Struct, frozen=True):
    """JSON lines or CSV; ``open_writer`` makes the writer of a file. With a style, the kernel makes the lines.

    At most about ``portion_bytes`` of records are written at once, as in Parquet.
    """

    suffix: str
    open_writer: Callable[[NewFile], LineWriter]
    style: LineStyle | None = None
    portion_bytes: int = PART_BYTES

    def open(self, publication: Writes, file: ExtractedFile) -> _TextFile:
        return _TextFile(publication, file, self)


class _TextFile:
    """An open text file. The publication reads it back when it is finished, and compares its SHA-256."""

    def __init__(self, publication: Writes, file: ExtractedFile, terms: TextFormat) -> None:
        self.file = file
        self._new = publication.create(file.path)
        self._writer = terms.open_writer(self._new)
        self._text = None if terms.style is None else RowText(terms.style)
        self._room = OwnRoom()

    def write(self, block: RowBlock) -> None:
        """Write a block of records."""
        for part in in_lines((block,), self._text, self._room):
            if isinstance(part, LineBlock):
                self._writer.write_raw(part.lines)
            elif isinstance(part, RowBlock):
                self._writer.write(part.schema, part.rows)
        self.file.count(block)

    @property
    def size_bytes(self) -> int:
        """The size of the file so far."""
        return self._new.size_bytes

    def close(self) -> None:
        """Finish the file. Raises OutputError."""
        self._new.close()
        self.file.size_bytes = self._new.size_bytes

    def discard(self) -> None:
        self._new.discard()


# -- Parquet -------------------------------------------------------------------------------------------------


class ParquetFormat(msgspec.Struct, frozen=True):
    """Parquet compressed with zstd, in row groups of about ``row_group_bytes`` before compression."""

    suffix: str = "parquet"
    row_group_bytes: int = _ROW_GROUP_BYTES
    schema: RowSchema = RECORD

    @property
    def portion_bytes(self) -> int:
        return min(PART_BYTES, self.row_group_bytes)

    def open(self, publication: Writes, file: ExtractedFile) -> _ParquetFile:
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
        columns = [name for name in terms.schema.names if name not in PARTITION_COLUMNS]
        self._plain_schema = schema_with_times(terms.schema, columns)
        self._schema = self._plain_schema.with_metadata({f"kafkalog.{name}": value for name, value in marks.items()})
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

    def write(self, block: RowBlock) -> None:
        """Write a block of records."""
        from format.rows.arrow_columns import batch_with_times, block_batches

        self.file.count(block)
        for plain in block_batches(block, self._schema.names):
            batch = batch_with_times(plain, self._plain_schema)
            self._digest.update(batch)
            self._pending.append(batch)
            self._pending_bytes += batch.nbytes
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
        """The approximate size of the file so far."""
        return self._new.size_bytes

    def close(self) -> None:
        """Finish the file and read it back. Raises OutputError."""
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
        self._new.discard()


FileFormat = TextFormat | ParquetFormat
RecordFile = _TextFile | _ParquetFile


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
