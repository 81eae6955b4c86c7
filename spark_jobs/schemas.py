"""Schemas for Spark, from the row schemas of ``format.columns``. A timestamp is a BIGINT of epoch milliseconds."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from format.columns import (
    BATCH,
    FINDING,
    LOG_DIR,
    PARTITION,
    RECORD,
    SEGMENT,
    TRANSACTION,
    Column,
    RowSchema,
)
from format.rows.arrow_columns import arrow_schema
from format.rows.index_entries import INDEX_ENTRY
from format.rows.table_set import WRITTEN_RUN

#: The broker of a row, as reports of several brokers can be in one directory.
BROKER_ID = Column("broker_id", "int", "node or broker id of the log directory that the row is from")

#: The type in Spark of each type of columns.
SQL_TYPES = {
    "int": "BIGINT",
    "bool": "BOOLEAN",
    "string": "STRING",
    "timestamp": "BIGINT",
    "bytes": "BINARY",
    "headers": "ARRAY<STRUCT<key: BINARY NOT NULL, value: BINARY>>",
    "any": "STRING",
    "json": "STRING",
}


def ddl(schema: RowSchema) -> str:
    """The columns as Spark's DDL, such as ``topic STRING, partition BIGINT``."""
    return ", ".join(f"`{column.name}` {SQL_TYPES[column.type]}" for column in schema.columns)


# -- the views of the data source ----------------------------------------------------------------------------

#: The records view begins with the columns of Spark's own Kafka source, in its order and with its types.
KAFKA_COLUMNS = (
    ("key", "BINARY", pa.binary(), "the key"),
    ("value", "BINARY", pa.binary(), "the value; absent with includeValue=false"),
    ("topic", "STRING", pa.string(), "topic, from the directory's name"),
    ("partition", "INT", pa.int32(), "partition, from the directory's name"),
    ("offset", "BIGINT", pa.int64(), "the record's offset"),
    ("timestamp", "TIMESTAMP", pa.timestamp("us", "UTC"), "the record's timestamp; null where the format has none"),
    ("timestampType", "INT", pa.int32(), "0 CreateTime, 1 LogAppendTime; null where the format has none"),
)
_KAFKA_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
KAFKA_HEADERS = (
    "headers",
    "ARRAY<STRUCT<key: STRING, value: BINARY>>",
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
#: The tables of a report set that the documentation describes, by name. Every other row type has its table, too.
REPORT_TABLES: dict[str, RowSchema] = {
    "log_dirs": LOG_DIR,
    "partitions": PARTITION,
    "segments": SEGMENT,
    "batches": BATCHES,
    "findings": FINDING,
    "runs": WRITTEN_RUN,
}


#: The type of each column in Spark, by name, and its Arrow field.
ViewColumns = dict[str, tuple[str, pa.Field]]


def columns_of_view(view: str, corrupt_column: str | None = None) -> ViewColumns:
    """All columns that a view can have, in their order."""
    schema = VIEWS[view]
    if schema is not None:
        return _plain_columns(schema)
    found: ViewColumns = {name: (sql, pa.field(name, kind)) for name, sql, kind, _ in (*KAFKA_COLUMNS, KAFKA_HEADERS)}
    found |= _plain_columns(DETAILS)
    if corrupt_column is not None:
        found[corrupt_column] = "STRING", pa.field(corrupt_column, pa.string())
    return found


def _plain_columns(schema: RowSchema) -> ViewColumns:
    fields = plain_arrow_schema(schema)
    return {column.name: (SQL_TYPES[column.type], fields.field(column.name)) for column in schema.columns}


def usual_records_columns(*, value: bool, headers: bool, details: bool) -> list[str]:
    """The names of the columns that the records view has under these options."""
    names = [name for name, *_ in KAFKA_COLUMNS if value or name != "value"]
    return [*names, *(["headers"] if headers else []), *(DETAILS.names if details else ())]


def view_schema(columns: ViewColumns, names: Iterable[str]) -> tuple[str, pa.Schema]:
    """The DDL and the Arrow schema of some columns of a view."""
    chosen = {name: columns[name] for name in names}
    text = ", ".join(f"`{name.replace('`', '``')}` {sql}" for name, (sql, _) in chosen.items())
    return text, pa.schema([field for _, field in chosen.values()])


def plain_arrow_schema(schema: RowSchema) -> pa.Schema:
    """The Arrow schema without metadata, as Spark compares it."""
    return arrow_schema(schema).remove_metadata()
