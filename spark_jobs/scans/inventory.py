"""inventory on Spark: the rows of ``kafkalog ls --segments``, a task for each few partitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from format.columns import BATCH, LOG_DIR, PARTITION, SEGMENT, RowSchema
from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding, finding_of
from format.io.remote_path import path_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind
from format.rows.record_rows import Row
from format.value_class import value_class
from format.verbs.ls.ls import Listing, LogDirListing, ls
from format.verbs.ls.partition_listing import PartitionListing, list_partition
from spark_jobs.schemas import ddl
from spark_jobs.watching import watched
from spark_jobs.work.parts import tasks_that_fit
from spark_jobs.work.planning import Item, Plan, Splits, Unit, UnitKind
from spark_jobs.work.planning import plan as plan_paths
from spark_jobs.work.tasks import Result, results_frame, rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.requests import Scan


@value_class
class Listed:
    """One row of a listing and its schema."""

    schema: RowSchema
    row: Row


@value_class
class InventoryOptions:
    """Whether the logs' headers are read, or names and sizes are enough; and whether all batches become a table."""

    scan: bool = True
    batches: bool = False
    limits: Limits = DEFAULT_LIMITS

    @property
    def splits(self) -> Splits:
        return Splits.NEVER


def frame(session: SparkSession, plan: Plan[Item], options: InventoryOptions) -> DataFrame:
    """Results whose values are lists of Listed rows and findings, in the order of ls."""

    def work(item: Item) -> Iterator[Result]:
        if isinstance(item, Unit):
            yield Result(item.number, 0, 0, 0, 0, list(items(item, options)))

    return results_frame(session, plan, work)


def written_beside(session: SparkSession, scan: Scan, report_share: Callable[[float], None]) -> None:
    """Where batches were asked for, write them below ``scan.output``, read in ranges and never through the driver."""
    from spark_jobs.report import broker_id_of, write_table

    options = scan.options
    if not isinstance(options, InventoryOptions) or not options.batches:
        return
    made = plan_paths(
        scan.paths,
        kind=scan.kind,
        parallelism=session.sparkContext.defaultParallelism,
        range_bytes=scan.range_bytes,
        splits_small=True,
    )
    rows = batches_frame(session, made)
    broker_id = scan.broker_id if scan.broker_id is not None else broker_id_of(scan.paths)
    target = f"{scan.output}/batches"
    watched(session, "kafkalog batches", lambda: write_table(session, rows, target, broker_id), report_share)


def batches_frame(session: SparkSession, plan: Plan[Item]) -> DataFrame:
    """Rows of columns.BATCH, of the segments that the plan has; findings report what is damaged."""
    from spark_jobs.views.log_views import batches
    from spark_jobs.views.read_options import ReadOptions

    def rows_of(item: Item) -> Iterator[pa.RecordBatch]:
        with contextlib.suppress(KafkaLogError):  # the job itself reports a file that cannot be read
            for made in batches(item, ReadOptions(()), lambda found: None):
                yield made.replace_schema_metadata(None)

    return rows_frame(session, tasks_that_fit(session, plan, DEFAULT_LIMITS), plan.addresses, rows_of, ddl(BATCH))


def items(unit: Unit, options: InventoryOptions) -> Iterator[Listed | Finding]:
    """The rows and findings about one unit, in the order of ls."""
    path = path_of(unit.path)
    try:
        for item in _listings(unit, path, options):
            yield item if isinstance(item, Finding) else Listed(_schema(item), item.row())
    except NotALogDir:
        raise
    except KafkaLogError as error:
        yield finding_of(error, Location(unit.path))


def _schema(listing: Listing) -> RowSchema:
    if isinstance(listing, LogDirListing):
        return LOG_DIR
    return PARTITION if isinstance(listing, PartitionListing) else SEGMENT


def _listings(unit: Unit, path: Path, options: InventoryOptions) -> Iterator[Listing | Finding]:
    if unit.kind is UnitKind.LOG_DIR_FILES:
        for item in ls(path, kind=Kind.LOG_DIR, scan=False, limits=options.limits):
            yield item
            if isinstance(item, LogDirListing):
                return  # the partitions are units of their own
    elif unit.is_in_log_dir:
        checkpoints = unit.checkpoints or Checkpoints()
        listed = yield from list_partition(path, checkpoints, scan=options.scan, segments=True, limits=options.limits)
        yield listed.listing
        yield from listed.segments
    else:
        kind = unit.file_kind or Kind.PARTITION
        yield from ls(path, kind=kind, scan=options.scan, segments=True, limits=options.limits)
