"""Rows as Arrow: records, batches, findings and listings as ``pyarrow.RecordBatch``, by ``format.columns``; and back.

Keys, values and headers are copied column by column out of the buffer that they lie in, so that no Python object is
made for a record. Needs pyarrow.

A caller with a block uses ``block_batches`` (bounded batches); one with a RecordTable that is known to be small uses
``columns_batch``. Columns can be narrowed by name, and what is not asked for is not built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from format.columns import DECODED, FINDING, Column, Fill, RowSchema
from format.findings import Finding
from format.kernel.encode import join_fields
from format.kernel.records import index_record_headers
from format.log.batch_table import Int64Column
from format.log.record_table import RecordTable
from format.rows.finding_rows import finding_row
from format.rows.record_rows import (
    BYTES,
    CONSTANT,
    HEADERS,
    NUMBERS,
    PART_BYTES,
    TRUTHS,
    WORDS,
    BoolColumn,
    Row,
    RowBlock,
    RowValues,
    bounded_parts,
    filled,
    length_column,
)

#: Arrow's plain binary type has 32-bit offsets.
_MOST_BINARY_BYTES = 2**31 - 1
_HEADER = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
#: The Arrow type of times in Parquet files of records, and in the Python API.
TIME = pa.timestamp("ms", "UTC")
_MS = pa.timestamp("ms")
#: The Arrow type for each column type of ``format.columns``; ``any`` and ``json`` are JSON text, a timestamp is epoch
#: milliseconds.
ARROW_TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "timestamp": pa.int64(),
    "bytes": pa.binary(),
    "headers": pa.list_(_HEADER),
    "any": pa.string(),
    "json": pa.string(),
}


def arrow_schema(schema: RowSchema, columns: Sequence[str] | None = None) -> pa.Schema:
    """The Arrow schema of a row schema, or of some of its columns in the order given; KeyError for an unknown one."""
    return _arrow_schema(schema, schema.names if columns is None else tuple(columns))


@lru_cache(256)
def _arrow_schema(schema: RowSchema, columns: tuple[str, ...]) -> pa.Schema:
    fields = {column.name: _field(column) for column in schema.columns}
    return pa.schema([fields[name] for name in columns])


def schema_with_times(schema: RowSchema, columns: Sequence[str] | None = None) -> pa.Schema:
    """The schema of ``arrow_schema``, but with timestamps as times; KeyError for an unknown column."""
    times = {column.name for column in schema.columns if column.type == "timestamp"}
    fields = arrow_schema(schema, columns)
    return pa.schema([field.with_type(TIME) if field.name in times else field for field in fields])


def batch_with_times(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The record batch with the types of a schema that ``schema_with_times`` made; no value is copied."""
    if not len(schema):
        return batch
    arrays = [array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _field(column: Column) -> pa.Field:
    return pa.field(column.name, ARROW_TYPES[column.type], metadata={"meaning": column.meaning})


# -- bytes ---------------------------------------------------------------------------------------------------


def bytes_array(buffer: memoryview | bytes, start: Int64Column, length: Int64Column) -> pa.Array:
    """A binary array of ``buffer[start : start + length]`` for each row; a negative length is null.

    Raises ValueError where a range is outside the buffer, or where they come to 2 GiB or more (use fewer rows).
    """
    count, length = len(start), np.ascontiguousarray(length)
    is_null = length < 0
    total = int(np.maximum(length, 0).sum())
    if total > _MOST_BINARY_BYTES:
        raise ValueError("more bytes than one binary array can hold")
    joined, offsets = np.empty(total, np.uint8), np.zeros(count + 1, np.uint32)
    if total and join_fields(joined.data, offsets[1:].data, memoryview(buffer), start.data, length.data) < 0:
        raise ValueError("a range is outside the buffer")
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
    return pa.Array.from_buffers(pa.binary(), count, [valid, pa.py_buffer(offsets), pa.py_buffer(joined)])


def headers_array(table: RecordTable) -> pa.Array:
    """``list<struct<key: binary, value: binary>>`` for each record; null where the format has no headers."""
    counts = table.header_count
    has_none = counts < 0
    total = int(np.maximum(counts, 0).sum())
    spans = np.empty((total, 4), np.int64)
    if total:
        rows = np.ascontiguousarray(table.columns[counts > 0])
        index_record_headers(table.buffer, memoryview(rows), memoryview(spans))
    fields = [
        bytes_array(table.buffer, spans[:, 0], spans[:, 1]),
        bytes_array(table.buffer, spans[:, 2], spans[:, 3]),
    ]
    offsets = np.zeros(len(table) + 1, np.int32)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    structs = pa.StructArray.from_arrays(fields, fields=list(_HEADER))
    mask = pa.array(has_none) if has_none.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=ARROW_TYPES["headers"], mask=mask)


# -- small columns -------------------------------------------------------------------------------------------


def ints(values: NDArray[Any], is_null: BoolColumn | None = None) -> pa.Array:
    """An int64 array, null where ``is_null``."""
    return pa.array(np.ascontiguousarray(values, np.int64), mask=_mask(is_null))


def names(numbers: NDArray[Any], words: Sequence[str]) -> pa.Array:
    """A string array of ``words[number]``."""
    if len(numbers) and (numbers == numbers[0]).all():
        return constant(words[int(numbers[0])], len(numbers), "string")
    indices = pa.array(np.ascontiguousarray(numbers, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string())).cast(pa.string())


def escaped(text: str) -> str:
    """A text whose bytes that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def constant(value: Any, count: int, column_type: str) -> pa.Array:
    """The same value in every row, or nulls. Text that is not UTF-8 is escaped."""
    kind = ARROW_TYPES[column_type]
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(_cell(value, column_type), kind), count)


def _mask(is_null: BoolColumn | None) -> BoolColumn | None:
    return is_null if is_null is not None and is_null.any() else None


def column_array(fill: Fill, rows: RowValues) -> pa.Array:
    """The values of one column of batches or records, the same that ``column_values.python_values`` gives."""
    kind, source = fill.kind, fill.source
    if kind == CONSTANT:
        return constant(
            getattr(rows.location, str(source)), len(rows), "string" if source in ("topic", "path") else "int"
        )
    if kind in NUMBERS:
        return ints(*NUMBERS[kind](rows, source))
    if kind in TRUTHS:
        truths, is_null = TRUTHS[kind](rows, source)
        return pa.array(np.ascontiguousarray(truths), mask=_mask(is_null))
    if kind in WORDS:
        return names(*WORDS[kind](rows))
    if kind == BYTES:
        starts, lengths = rows.of_record(source), rows.of_record(length_column(source))
        return bytes_array(rows.records.buffer, starts, lengths)
    if kind == HEADERS:
        return headers_array(rows.records)
    if kind == DECODED:
        return pa.array([None if each is None else str(each) for each in rows.of_decoded(source)], pa.string())
    raise ValueError(f"no expression of the kind {kind} exists")


# -- records -------------------------------------------------------------------------------------------------


def columns_batch(schema: RowSchema, rows: RowValues, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """Batches or records as columns of their schema, or some of them; the values are those of ``rows_of``.

    Without any column the batch still has its number of rows.

    Raises ValueError for records with 2 GiB or more in one column: ``block_batches`` gives bounded ones.
    """
    arrow = arrow_schema(schema, columns)
    if not len(arrow):
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), len(rows), [None]))
    return pa.RecordBatch.from_arrays([column_array(filled(schema, name), rows) for name in arrow.names], schema=arrow)


def block_batches(
    block: RowBlock, columns: Sequence[str] | None = None, *, batch_bytes: int = PART_BYTES
) -> Iterator[pa.RecordBatch]:
    """A block of records or batches, or some of its columns, in order; records in parts of about ``batch_bytes``."""
    if block.location is None:
        raise ValueError("the block has rows without columns behind them")
    if block.batches is not None:
        yield columns_batch(block.schema, RowValues(block.batches, block.location), columns)
        return
    for part in bounded_parts(block.record_table, batch_bytes):
        values = RowValues.of_records(part, block.location, block.log_start_offset)
        yield columns_batch(block.schema, values, columns)


# -- findings and other rows ---------------------------------------------------------------------------------


def findings_batch(findings: Iterable[Finding]) -> pa.RecordBatch:
    """Findings as columns.FINDING; ``expected``, ``actual``, ``lost_offsets`` and ``caused_by`` are JSON text."""
    return rows_batch(FINDING, [finding_row(each) for each in findings])


def rows_batch(schema: RowSchema, rows: Iterable[Row]) -> pa.RecordBatch:
    """Any rows as Arrow; for listings and side files, of which there are few. Text that is not UTF-8 is escaped."""
    listed = list(rows)
    arrays = []
    for number, column in enumerate(schema.columns):
        values = [row[number] for row in listed]
        arrays.append(pa.array([_cell(value, column.type) for value in values], ARROW_TYPES[column.type]))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _cell(value: Any, column_type: str) -> Any:
    if value is None:
        return None
    if column_type == "any":
        return json.dumps(value, default=str)
    if column_type == "string":  # the name of a file may have bytes that are not UTF-8
        return escaped(str(value))
    if column_type == "headers":
        return [{"key": key, "value": header_value} for key, header_value in value]
    return value


class ColumnsDigest:
    """The digest, fed batch by batch; two digests are equal if their columns have the same values."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """The next rows. Raises ValueError for a column of a type that no row schema has."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self._feed(name, column)
        self.rows += batch.num_rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnsDigest) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> dict[str, bytes]:
        return {name: digest.digest() for name, digest in self._digests.items()}

    def _take(self, name: str, content: Any) -> None:
        digest = self._digests.get(name)
        if digest is None:
            digest = self._digests[name] = blake2b()
        digest.update(content)

    def _feed(self, name: str, array: pa.Array) -> None:
        kind = array.type
        if pa.types.is_list(kind):
            self._take(name, _numbers(pc.list_value_length(array), -1))
            values = array.flatten()
            for number, each in enumerate(values.type):
                self._feed(f"{name}.{each.name}", values.field(number))
        elif pa.types.is_binary(kind) or pa.types.is_string(kind):
            self._take(f"{name} length", _numbers(pc.binary_length(array), -1))
            self._take(name, _content(array))
        elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
            self._take(f"{name} valid", np.ascontiguousarray(array.is_valid().to_numpy(zero_copy_only=False)))
            self._take(name, _numbers(array, 0))
        else:
            raise ValueError(f"column {name} has the type {kind}")


def _numbers(array: pa.Array, null: int) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array.cast(pa.int64()).fill_null(null).to_numpy(zero_copy_only=False))


def _content(array: pa.Array) -> memoryview:
    """The bytes of all values in a row; Arrow keeps none for a null."""
    _, offsets, content = array.buffers()
    if content is None or not len(array):
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(content)[int(ends[0]) : int(ends[-1])]


# -- Arrow as rows -------------------------------------------------------------------------------------------


def row_schema_of(name: str, schema: pa.Schema) -> RowSchema:
    """A row type with the columns of an Arrow schema."""
    return RowSchema(name, tuple(Column(field.name, _column_type(field.type), "") for field in schema))


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of Arrow data; times are epoch milliseconds, headers pairs of bytes."""
    return zip(*map(_values, batch.columns), strict=True)


def _column_type(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp"
    kind = _plain(kind)
    if types.is_integer(kind):
        return "int"
    if types.is_boolean(kind):
        return "bool"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if _is_bytes(kind):
        return "bytes"
    return "headers" if _are_headers(kind) else "any"


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    is_plain = types.is_binary(kind) or types.is_large_binary(kind)
    return bool(is_plain or types.is_binary_view(kind) or types.is_fixed_size_binary(kind))


def _are_headers(kind: pa.DataType) -> bool:
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    mine, theirs = kind.value_type, ARROW_TYPES["headers"].value_type
    return [(each.name, each.type) for each in mine] == [(each.name, each.type) for each in theirs]


def _in_ms(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return _MS
    return pa.duration("ms") if pa.types.is_duration(kind) else kind


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in which values are written: numbers of milliseconds, and text for what JSON has no form for."""
    types = pa.types
    if types.is_timestamp(kind) or types.is_duration(kind):
        return pa.int64()
    return pa.string() if types.is_date(kind) or types.is_time(kind) or types.is_decimal(kind) else kind


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type in which ``leaf`` replaced all types, also those in lists and structs."""
    if pa.types.is_list(kind):
        return pa.list_(_with_leaves(kind.value_type, leaf))
    if pa.types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, leaf), _with_leaves(kind.item_type, leaf))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_with_leaves(each.type, leaf)) for each in kind])
    return leaf(kind)


def _values(array: pa.Array) -> list[Any]:
    for leaf in (_in_ms, _plain):
        array = array.cast(_with_leaves(array.type, leaf), safe=False)
    values: list[Any] = array.to_pylist()
    if _are_headers(array.type):
        return [None if each is None else [(pair["key"], pair["value"]) for pair in each] for each in values]
    return values
