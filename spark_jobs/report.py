"""A report: Parquet tables of findings, segments and batches, one directory each, by broker id.

``OUTPUT/findings/broker_id=1/…``: reports of several brokers are merged by copying them into one directory, and a
broker's own part is replaced when it reports again.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from format import layout
from format.columns import FINDING, RowSchema
from format.errors import KafkaLogError, OutputInsideSource
from format.files import meta_properties
from format.findings import Finding
from format.io.remote_path import is_remote, path_of
from format.location import Location
from format.rows.arrow_columns import finding_row, rows_batch
from spark_jobs.schemas import BROKER_ID, REPORT_TABLES, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.requests import Scan

#: Which tables a job's report has.
TABLES_OF_JOB = {"verify": ("findings",), "inventory": ("log_dirs", "partitions", "segments", "findings"), "grep": ()}
_ROWS_IN_A_BATCH = 1000


def check_output(output: str, sources: Sequence[Path]) -> None:
    """Raise OutputInsideSource where a report would lie in, be, or contain what is read."""
    if is_remote(output):
        place = path_of(output)
        for source in filter(is_remote, sources):
            if _key(place) == _key(source) or _key(place) in _around(source) or _key(source) in _around(place):
                raise OutputInsideSource(
                    f"the report would lie in or around the source {source}, where nothing is written", Location(output)
                )
        return
    real = Path(os.path.realpath(path_of(output)))
    for source in (Path(os.path.realpath(each)) for each in sources if not is_remote(each)):
        if real == source or source in real.parents or real in source.parents:
            raise OutputInsideSource(
                f"the report would lie in or around the source {source}, where nothing is written", Location(output)
            )
    for ancestor in (real, *real.parents):
        if os.path.lexists(ancestor / layout.META_PROPERTIES):
            raise OutputInsideSource(f"the report would lie inside the log directory {ancestor}", Location(output))


def _key(path: Path) -> tuple[str, ...]:
    """A remote path without what is the same by another name: s3 and s3a."""
    return (path.parts[0].lower().replace("s3a:", "s3:").replace("s3n:", "s3:"), *path.parts[1:])


def _around(path: Path) -> list[tuple[str, ...]]:
    key = _key(path)
    return [key[:length] for length in range(1, len(key))]


def broker_id_of(paths: Sequence[Path]) -> int | None:
    """The node id of the first log directory among the paths or around them, None where none says."""
    for path in paths:
        for place in (path, path.parent, path.parent.parent):
            try:
                return meta_properties.read(place / layout.META_PROPERTIES).node_id
            except (KafkaLogError, OSError):
                continue
    return None


def write_report(session: SparkSession, results: DataFrame, scan: Scan) -> None:
    """Write the job's tables below ``scan.output``."""
    broker_id = scan.broker_id if scan.broker_id is not None else broker_id_of(scan.paths)
    for name in TABLES_OF_JOB.get(scan.job, ()):
        schema = REPORT_TABLES[name]
        rows = results.mapInArrow(_rows_of(schema), ddl(schema))
        write_table(session, rows, f"{scan.output}/{name}", broker_id)


def write_table(session: SparkSession, rows: DataFrame, target: str, broker_id: int | None) -> None:
    """One table of a report, in place of what this broker wrote before."""
    from pyspark.sql.functions import lit

    with_broker = rows.withColumn(BROKER_ID.name, lit(broker_id).cast("bigint"))
    writer = with_broker.coalesce(max(session.sparkContext.defaultParallelism, 1)).write
    writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(BROKER_ID.name).parquet(target)


def _rows_of(schema: RowSchema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def convert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column("payload"):
                rows = list(_rows(pickle.loads(payload.as_buffer()), schema))
                for first in range(0, len(rows), _ROWS_IN_A_BATCH):
                    made = rows_batch(schema, rows[first : first + _ROWS_IN_A_BATCH])
                    yield made.replace_schema_metadata(None)

    return convert


def _rows(values: Any, schema: RowSchema) -> Iterator[tuple[Any, ...]]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, Finding):
            if schema is FINDING or schema.type == FINDING.type:
                yield finding_row(value)
        elif value.schema.type == schema.type:
            yield value.row
