"""Schemas for Spark, from the row schemas of ``format.columns``.

The views of the data source have Spark's own types. The tables of report sets have those of ``arrow_columns``, which
the report reads: a timestamp is a BIGINT of epoch milliseconds, and a list is text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from format.columns import BATCH, DECODED_COLUMNS, FINDING, PARTITION, RECORD, SEGMENT, TRANSACTION, Column, RowSchema
from format.rows.arrow_columns import arrow_schema, escaped
from format.rows.index_entries import INDEX_ENTRY

#: The broker of a row, as reports of several brokers can be in one directory.
BROKER_ID = Column("broker_id", "int", "node or broker id of the log directory that the row is from")

_TIME = pa.timestamp("us", "UTC")
_SQL_TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    _TIME: "TIMESTAMP",
}


def sql_type(kind: pa.DataType) -> str:
    """A type of Arrow in Spark's words, such as ``ARRAY<INT>``."""
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = [f"{each.name}: {sql_type(each.type)}{'' if each.nullable else ' NOT NULL'}" for each in kind]
        return f"STRUCT<{', '.join(fields)}>"
    return _SQL_TYPES[kind]


def ddl(schema: pa.Schema) -> str:
    """The columns as Spark's DDL, such as ``topic STRING, partition BIGINT``."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {sql_type(field.type)}" for field in schema)


# -- the views of the data source ----------------------------------------------------------------------------

#: The records view begins with the columns of Spark's own Kafka source, in its order and with its types.
KAFKA_COLUMNS = (
    ("key", pa.binary(), "the key"),
    ("value", pa.binary(), "the value; absent with includeValue=false"),
    ("topic", pa.string(), "topic, from the directory's name"),
    ("partition", pa.int32(), "partition, from the directory's name"),
    ("offset", pa.int64(), "the record's offset"),
    ("timestamp", _TIME, "the record's timestamp; null where the format has none, or past the year 294246"),
    ("timestampType", pa.int32(), "0 CreateTime, 1 LogAppendTime; null where the format has none"),
)
_KAFKA_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
KAFKA_HEADERS = (
    "headers",
    pa.list_(_KAFKA_HEADER),
    "the headers, with includeHeaders=true; null when there are none; U+FFFD in keys that are not UTF-8",
)
#: The columns of a record that Spark's own Kafka source has, too; all others are details.
_OF_KAFKA_SOURCE = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
#: The columns that includeDetails=true adds, named as on the command line.
DETAILS = RowSchema(
    "record_details",
    (
        Column("path", "string", "the file"),
        *(column for column in RECORD.columns if column.name not in _OF_KAFKA_SOURCE),
        Column("raw_headers", "headers", "the headers with their keys as bytes"),
        BROKER_ID,
    ),
)
#: A partition and its offsets, from its checkpoints and its log.
OFFSETS = RowSchema(
    "offsets",
    tuple(
        column
        for name in (
            *("topic", "partition", "log_start_offset", "log_end_offset", "high_watermark"),
            *("recovery_point", "cleaner_offset", "leader_epoch", "topic_id", "mark", "path"),
        )
        for column in PARTITION.columns
        if column.name == name
    ),
)


def _of_broker(schema: RowSchema, *more: Column) -> RowSchema:
    return RowSchema(schema.type, (*schema.columns, *more, BROKER_ID))


BATCHES = _of_broker(BATCH, Column("path", "string", "the file"))
#: The row schemas of the views of the data source; the schema of the view records depends on options.
VIEWS: dict[str, RowSchema | None] = {
    "records": None,
    "batches": BATCHES,
    "segments": _of_broker(SEGMENT),
    "index_entries": _of_broker(INDEX_ENTRY),
    "offsets": _of_broker(OFFSETS),
    "transactions": _of_broker(TRANSACTION),
    "findings": _of_broker(FINDING),
}


def _codecs(text: str) -> list[dict[str, Any]]:
    """``none:5,zstd:1`` as structs."""
    pairs = (each.rpartition(":") for each in text.split(","))
    return [{"codec": codec, "batch_count": int(count)} for codec, _, count in pairs]


def _range(text: str) -> dict[str, int]:
    first, last = json.loads(text)
    return {"first": first, "last": last}


def _cause(text: str) -> dict[str, Any]:
    cause: dict[str, Any] = json.loads(text)
    return {**cause, "path": cause["path"] and escaped(cause["path"])}


_CODEC = pa.struct([pa.field("codec", pa.string()), pa.field("batch_count", pa.int64())])
_RANGE = pa.struct([pa.field("first", pa.int64()), pa.field("last", pa.int64())])
_CAUSE = pa.struct(
    [
        *(pa.field(name, pa.string()) for name in ("code", "path")),
        *(pa.field(name, pa.int64()) for name in ("position", "offset")),
    ]
)
#: The types that the views have in place of those of tables, by the name of a column or its type in ``format.columns``,
#: and the value of a text.
_VIEW_TYPES: dict[str, tuple[pa.DataType, Callable[[str], Any] | None]] = {
    "partition": (pa.int32(), None),
    "timestamp": (_TIME, None),
    "magics": (pa.list_(pa.int32()), lambda text: list(map(int, text.split(",")))),
    "codecs": (pa.list_(_CODEC), _codecs),
    "notes": (pa.list_(pa.string()), lambda text: text.split("; ")),
    "lost_offsets": (_RANGE, _range),
    "caused_by": (_CAUSE, _cause),
}
#: The Arrow field of each column, by name.
ViewColumns = dict[str, pa.Field]


def columns_of_view(view: str, corrupt_column: str | None = None, *, decodes: bool = False) -> ViewColumns:
    """All columns that a view can have, in their order; those of decoded keys and values where these are."""
    schema = VIEWS[view]
    if schema is not None:
        return _plain_columns(schema)
    found: ViewColumns = {name: pa.field(name, kind) for name, kind, _ in (*KAFKA_COLUMNS, KAFKA_HEADERS)}
    found |= _plain_columns(DETAILS)
    if decodes:
        found |= _plain_columns(RowSchema("decoded", DECODED_COLUMNS))
    if corrupt_column is not None:
        found[corrupt_column] = pa.field(corrupt_column, pa.string())
    return found


def _plain_columns(schema: RowSchema) -> ViewColumns:
    fields = arrow_schema(schema).remove_metadata()  # as Spark compares it
    found: ViewColumns = {}
    for column in schema.columns:
        of_view = _VIEW_TYPES.get(column.name) or _VIEW_TYPES.get(column.type)
        field = fields.field(column.name)
        found[column.name] = field if of_view is None else field.with_type(of_view[0])
    return found


def usual_records_columns(*, value: bool, headers: bool, details: bool, decodes: bool) -> list[str]:
    """The names of the columns that the records view has under these options."""
    names = [name for name, *_ in KAFKA_COLUMNS if value or name != "value"]
    decoded = [column.name for column in DECODED_COLUMNS if decodes]
    return [*names, *(["headers"] if headers else []), *(DETAILS.names if details else ()), *decoded]


def view_schema(columns: ViewColumns, names: Iterable[str]) -> tuple[str, pa.Schema]:
    """The DDL and the Arrow schema of some columns of a view."""
    schema = pa.schema([columns[name] for name in names])
    return ddl(schema), schema


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a view's schema, with its types. Spark checks only the first batch of a task."""
    arrays = []
    for field in schema:
        array = batch.column(field.name)
        if array.type != field.type:
            value_of = _VIEW_TYPES[field.name][1] if field.name in _VIEW_TYPES else None
            if pa.types.is_timestamp(field.type):
                array = times(array)
            elif value_of is not None:
                texts = array.to_pylist()
                array = pa.array([None if text is None else value_of(text) for text in texts], field.type)
            else:
                array = array.cast(field.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_LARGEST_MS = (2**63 - 1) // 1000


def times(milliseconds: pa.Array) -> pa.Array:
    """Epoch milliseconds as Spark's timestamps; null where they are beyond these."""
    is_beyond = pc.or_(pc.greater(milliseconds, _LARGEST_MS), pc.less(milliseconds, -_LARGEST_MS))
    if pc.any(is_beyond).as_py():
        milliseconds = pc.if_else(is_beyond, pa.scalar(None, pa.int64()), milliseconds)
    return milliseconds.cast(pa.timestamp("ms")).cast(pa.timestamp("us")).cast(_TIME)
