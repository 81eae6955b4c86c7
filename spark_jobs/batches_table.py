"""The table of all batches that ``kafkalog scan ls --batches`` writes, on the executors, not through the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from format.errors import KafkaLogError
from spark_jobs.brokers import Brokers
from spark_jobs.schemas import BATCHES, BROKER_ID, ddl
from spark_jobs.session import parallelism_of
from spark_jobs.watching import watched
from spark_jobs.work.planning import Item, Plan, plan
from spark_jobs.work.tasks import rows_frame

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.spark_cluster import SparkCluster


def write_batches(cluster: SparkCluster, paths: Sequence[Path], output: Path, broker_id: int | None) -> None:
    """Write the table ``batches`` below ``output``, in place of the batches of the same brokers there."""
    session = cluster.session
    made = plan(
        paths,
        parallelism=parallelism_of(session),
        range_bytes=cluster.range_bytes,
    )
    rows = batches_frame(session, made, Brokers.of(paths, broker_id))
    writer = rows.coalesce(parallelism_of(session)).write
    writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(BROKER_ID.name)
    watched(session, "kafkalog batches", lambda: writer.parquet(f"{output}/batches"))


def batches_frame(session: SparkSession, made: Plan, brokers: Brokers) -> DataFrame:
    """A frame of the rows of the view batches, for all segments of a plan. The listing reports damage as findings."""
    from spark_jobs.views.log_views import batches
    from spark_jobs.views.read_options import ReadOptions

    def rows_of(item: Item) -> Iterator[pa.RecordBatch]:
        broker_id = brokers.of_path(item.path)
        with contextlib.suppress(KafkaLogError):  # the listing reports a file that cannot be read
            for batch in batches(item, ReadOptions(()), lambda found: None):
                ids = pa.repeat(pa.scalar(broker_id, pa.int64()), batch.num_rows)
                yield batch.replace_schema_metadata(None).append_column(BROKER_ID.name, ids)

    return rows_frame(session, made.tasks, made.surroundings, rows_of, ddl(BATCHES))
