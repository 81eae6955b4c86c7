"""The data source ``kafkalog``: records, batches, segments, offsets, transactions and findings as tables.

``spark.read.format("kafkalog").load(path)`` reads a view; Spark finds the source by the module ``pyspark_kafkalog``.
Filters are not pushed down: Spark 4.3.0 keeps an earlier filter when a frame is used again. Options select instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSource
except ModuleNotFoundError:
    from spark_jobs.session import WITHOUT_SPARK_4, spark_version

    why = "needs Spark 4.0 or later, which has data sources in Python"
    raise ImportError(f"the data source kafkalog {why}; this is {spark_version()}: {WITHOUT_SPARK_4}") from None

from format.errors import KafkaLogError
from spark_jobs.schemas import columns_of_view, sql_type, usual_records_columns, view_schema
from spark_jobs.stream_reader import KafkaLogStreamReader, RefusedStream
from spark_jobs.view_options import (
    LATEST,
    OPTIONS,
    VIEW_NAMES,
    BadOption,
    ReadOptions,
    parse_options,
    without_traceback,
)
from spark_jobs.view_reader import KafkaLogReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_READ_ONLY = "kafkalog reads the logs of brokers and never writes them: write to another format, such as parquet"


class KafkaLogDataSource(DataSource):
    """``format("kafkalog")``; its options are in ``view_options.OPTIONS``."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return "kafkalog"

    @without_traceback
    def schema(self) -> str:
        """The view's columns."""
        return _schemas(parse_options(self.options))[0]

    @without_traceback
    def reader(self, schema: StructType) -> KafkaLogReader:
        """A reader for the view; a schema that the user gave must be the view's."""
        options = parse_options(self.options)
        if LATEST in options.starting.values():
            raise BadOption("startingOffsets is latest: that is for readStream")
        if options.max_offsets is not None:
            raise BadOption("maxOffsetsPerTrigger is for readStream: use startingOffsets and endingOffsets")
        if not options.fails_on_loss:
            raise BadOption("failOnDataLoss is for readStream: use ignoreMissingFiles")
        if options.view != "records" and (options.reads_below_log_start or options.reads_to_log_end):
            raise BadOption(f"the view {options.view} has all that is there: leave out includeBelowLogStart and upTo")
        if options.view == "findings" and options.starting:
            raise BadOption(
                "the view findings has all that is there: leave out startingOffsets, which a stream may have"
            )
        return KafkaLogReader(options, _checked(schema, options), schema.names)

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader | RefusedStream:  # noqa: N802 (Spark's name)
        """A reader of a stream of appended records."""
        try:
            options = parse_options(self.options)
            return KafkaLogStreamReader(options, _checked(schema, options), schema.names)
        except KafkaLogError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Raises KafkaLogError: sources are never written to."""
        raise KafkaLogError(_READ_ONLY)

    streamWriter = writer  # noqa: N815 (Spark's name)


def _checked(schema: StructType, options: ReadOptions) -> pa.Schema:
    """The Arrow schema of a read, with the view's names of the columns.

    A schema that the user gave may have some of the view's columns, in any order, with their names in any case.
    """
    text, arrow = _schemas(options)
    if schema.names == arrow.names:
        return arrow
    if options.columns:
        raise BadOption(f"the option columns and the schema name other columns ({text}): give one of the two")
    columns = columns_of_view(options.view, options.corrupt_column, decodes=options.decodes)
    given = {field.name: field.dataType.simpleString() for field in schema.fields}
    names = _spelled(columns, given)
    for (name, kind), column in zip(given.items(), names, strict=True):
        if column not in columns or kind != _simple(columns[column].type):
            others = [each for each in VIEW_NAMES if _fits(given, each)]
            advice = f"it fits the option view={' or '.join(others)}" if others else "give some of its columns"
            raise KafkaLogError(f"the schema has {name} {kind}; that of the view {options.view} is {text}: {advice}")
    return view_schema(columns, names)[1]


def _fits(given: Mapping[str, str], view: str) -> bool:
    """Whether a view has these columns, with these types."""
    columns = columns_of_view(view, None)
    names = _spelled(columns, given)
    return all(
        name in columns and kind == _simple(columns[name].type)
        for name, kind in zip(names, given.values(), strict=True)
    )


def _spelled(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names as the columns have them: as in Spark, case does not count. Unknown names are as they were given."""
    spelled = {name.lower(): name for name in columns}
    return [spelled.get(name.lower(), name) for name in names]


def _simple(kind: pa.DataType) -> str:
    """A type as Spark writes it in one word."""
    return sql_type(kind).lower().replace(" not null", "").replace(": ", ":").replace(", ", ",")


def _schemas(options: ReadOptions) -> tuple[str, pa.Schema]:
    columns = columns_of_view(options.view, options.corrupt_column, decodes=options.decodes)
    others = columns_of_view(options.view, decodes=options.decodes)
    if options.corrupt_column is not None and _spelled(others, [options.corrupt_column])[0] in others:
        raise BadOption(f"the option columnNameOfCorruptRecord is {options.corrupt_column}, which is another column")
    named = _spelled(columns, options.columns)
    unknown = [name for name in named if name not in columns]
    if unknown or len(set(named)) < len(named):
        wrong = f"names {unknown[0]}, which is not a column" if unknown else "names one twice"
        raise BadOption(f"the option columns {wrong}; the columns of the view {options.view} are {', '.join(columns)}")
    if options.columns or options.view != "records":
        return view_schema(columns, named or columns)
    names = usual_records_columns(
        value=options.value, headers=options.headers, details=options.details, decodes=options.decodes
    )
    return view_schema(columns, [*names, *([] if options.corrupt_column is None else [options.corrupt_column])])


__all__ = ["OPTIONS", "KafkaLogDataSource", "KafkaLogReader"]
