"""A report set: what runs of commands found, as Parquet tables, one directory for each table and broker.

``SET/findings/broker_id=1/verify.parquet``: the table, the broker, the command. ``runs`` has a row for each run.
Reading the tables needs pyarrow, saying whether they are there does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from format.columns import RUN, Column, RowSchema
from format.errors import KafkaLogError, UnreadableFile
from format.io.session import RemotePath, entries_of, path_of
from format.io.source import os_reason
from format.location import Location
from format.rows.record_rows import Row

if TYPE_CHECKING:
    import pyarrow as pa

#: The name that Hive gives the partition of rows without a value.
_NO_BROKER = "__HIVE_DEFAULT_PARTITION__"
_BROKER = "broker_id="
_SUFFIX = ".parquet"
_ROWS_AT_ONCE = 20_000
#: A run as it is written: its broker is the name of the directory.
WRITTEN_RUN = RowSchema(RUN.type, RUN.columns[:-1])


def table_name(schema: RowSchema) -> str:
    """The table that rows of a schema are in: the plural of their type."""
    if schema.type.endswith("y"):
        return f"{schema.type[:-1]}ies"
    return schema.type + ("es" if schema.type.endswith(("s", "x", "ch")) else "s")


def directory_of(broker_id: int | None) -> str:
    """The directory of a broker's rows in a table."""
    return f"{_BROKER}{_NO_BROKER if broker_id is None else broker_id}"


def store_of_tables(place: str | Path) -> tuple[Any, str]:
    """pyarrow's file system of a path or an address, and the path in it. Raises OSError and InputError."""
    from pyarrow import fs

    path = path_of(place)
    if isinstance(path, RemotePath):
        return path.session.stores.writable_store(str(path))
    return fs.LocalFileSystem(), str(path)


def files_below(store: Any, root: str) -> list[str]:
    """The paths of all files below a directory, which need not be there. Raises OSError."""
    from pyarrow import fs

    selector = fs.FileSelector(root, allow_not_found=True, recursive=True)
    return sorted(each.path for each in store.get_file_info(selector) if each.type == fs.FileType.File)


def is_table_set(place: Path) -> bool:
    """Whether a report set is at a path or an address."""
    try:
        with entries_of(place / table_name(RUN)) as entries:
            return any(each.name.startswith(_BROKER) for each in entries)
    except (OSError, KafkaLogError):
        return False


class TableFile(msgspec.Struct, frozen=True):
    """A file of a table: the rows of one broker that one command wrote."""

    table: str
    broker_id: int | None
    command: str
    path: str


class TableSet(msgspec.Struct):
    """The tables of a report set. All methods raise UnreadableFile."""

    place: str | Path
    files: list[TableFile] = msgspec.field(default_factory=list)
    _store: Any = None

    def __post_init__(self) -> None:
        try:
            self._store, root = store_of_tables(self.place)
            paths = files_below(self._store, root)
        except OSError as error:
            raise UnreadableFile(f"cannot be read: {os_reason(error)}", Location(str(self.place))) from error
        for path in paths:
            table, directory, name = ("", "", *path[len(root) :].strip("/").split("/"))[-3:]
            broker = directory.removeprefix(_BROKER)
            if (
                directory.startswith(_BROKER)
                and name.endswith(_SUFFIX)
                and (broker.isdecimal() or broker == _NO_BROKER)
            ):
                broker_id = int(broker) if broker.isdecimal() else None
                self.files.append(TableFile(table, broker_id, name.removesuffix(_SUFFIX), path))

    def of_table(self, schema: RowSchema) -> list[TableFile]:
        """The files of the table that rows of a schema are in."""
        name = table_name(schema)
        return [each for each in self.files if each.table == name]

    def batches(self, file: TableFile, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        """The rows of a file in batches, with those of these columns that it has."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from format.rows.arrow_columns import ARROW_TYPES

        try:
            with self._store.open_input_file(file.path) as opened:
                parquet = pq.ParquetFile(opened)
                schema = parquet.schema_arrow
                known = [column for column in columns if column.name in schema.names]
                for column in known:
                    if schema.field(column.name).type != ARROW_TYPES[column.type]:
                        kind = schema.field(column.name).type
                        raise UnreadableFile(f"the column {column.name} is of the type {kind}", Location(file.path))
                yield from parquet.iter_batches(_ROWS_AT_ONCE, columns=[column.name for column in known])
        except (OSError, pa.ArrowException) as error:
            words = os_reason(error) if isinstance(error, OSError) else str(error)
            raise UnreadableFile(f"cannot be read as Parquet: {words}", Location(file.path)) from error

    def rows(self, file: TableFile, schema: RowSchema) -> Iterator[Row]:
        """The rows of a file; a column that it does not have is null."""
        for batch in self.batches(file, schema.columns):
            try:
                columns = [_values(batch, column) for column in schema.columns]
            except ValueError as error:
                raise UnreadableFile(f"a value is no JSON: {error}", Location(file.path)) from error
            yield from zip(*columns, strict=True)


def _values(batch: pa.RecordBatch, column: Column) -> list[Any]:
    if column.name not in batch.schema.names:
        return [None] * batch.num_rows
    values: list[Any] = batch.column(column.name).to_pylist()
    if column.type == "any":
        return [None if value is None else json.loads(value) for value in values]
    return values
