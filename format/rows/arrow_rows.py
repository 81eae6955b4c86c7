"""Arrow data of any schema as rows, for the renderers: the types of Arrow as the types of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from format.columns import Column, RowSchema
from format.rows.arrow_columns import ARROW_TYPES
from format.rows.record_rows import Row

_MS = pa.timestamp("ms")


def row_schema_of(name: str, schema: pa.Schema) -> RowSchema:
    """A row type with the columns of an Arrow schema."""
    return RowSchema(name, tuple(Column(field.name, _column_type(field.type), "") for field in schema))


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of Arrow data; times are epoch milliseconds, headers pairs of bytes."""
    return zip(*map(_values, batch.columns), strict=True)


def _column_type(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(kind):
        return "int"
    if types.is_boolean(kind):
        return "bool"
    if types.is_timestamp(kind):
        return "timestamp"
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


def _values(array: pa.Array) -> list[Any]:
    kind = _column_type(array.type)
    if kind == "timestamp":
        return array.cast(_MS, safe=False).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    values: list[Any] = array.to_pylist()
    if kind == "headers":
        return [None if each is None else [(pair["key"], pair["value"]) for pair in each] for each in values]
    return values
