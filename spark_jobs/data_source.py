"""The data source ``kafkalog``: records, batches, segments, offsets, transactions and findings as tables.

``spark.read.format("kafkalog").load(path)`` reads a view; Spark finds the source by the module ``pyspark_kafkalog``.
Filters are not pushed down: Spark 4.3.0 keeps an earlier filter when a frame is used again. Options select instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource

from format.errors import KafkaLogError
from spark_jobs.schemas import VIEWS, ddl, plain_arrow_schema, records_view
from spark_jobs.views.batch_reader import KafkaLogReader
from spark_jobs.views.read_options import OPTIONS, BadOption, ReadOptions, parse_options
from spark_jobs.views.stream_reader import KafkaLogStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_READ_ONLY = "kafkalog reads the logs of brokers and never writes them: write to another format, such as parquet"


class KafkaLogDataSource(DataSource):
    """``format("kafkalog")``; its options are in ``read_options.OPTIONS``."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return "kafkalog"

    def schema(self) -> str:
        """The view's columns."""
        return _schemas(parse_options(self.options))[0]

    def reader(self, schema: StructType) -> KafkaLogReader:
        """A reader for the view; a schema that the user gave must be the view's."""
        options = parse_options(self.options)
        if options.starts_at_latest:
            raise BadOption("startingOffsets is latest: that is for readStream")
        return KafkaLogReader(options, _checked(schema, options))

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader:  # noqa: N802 (Spark's name)
        """A reader of a stream of appended records."""
        options = parse_options(self.options)
        return KafkaLogStreamReader(options, _checked(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Raises KafkaLogError: sources are never written to."""
        raise KafkaLogError(_READ_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802 (Spark's name)
        """Raises KafkaLogError: sources are never written to."""
        raise KafkaLogError(_READ_ONLY)


def _checked(schema: StructType, options: ReadOptions) -> pa.Schema:
    text, arrow = _schemas(options)
    if schema.names != arrow.names:
        raise KafkaLogError(f"the schema of this view is {text}; give no other one")
    return arrow


def _schemas(options: ReadOptions) -> tuple[str, pa.Schema]:
    schema = VIEWS[options.view]
    if schema is not None:
        return ddl(schema), plain_arrow_schema(schema)
    text, arrow = records_view(value=options.value, headers=options.headers, details=options.details)
    if options.corrupt_column is not None:
        name = options.corrupt_column.replace("`", "``")
        text, arrow = f"{text}, `{name}` STRING", arrow.append(pa.field(options.corrupt_column, pa.string()))
    return text, arrow.remove_metadata()


__all__ = ["OPTIONS", "KafkaLogDataSource", "KafkaLogReader"]
