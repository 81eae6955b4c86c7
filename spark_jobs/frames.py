"""Views as frames: ``read_view`` reads every view in ranges, also those that judge a partition as a whole.

The tasks of a data source exchange nothing. What the views ``findings`` and ``transactions`` say of one place in a
partition depends on all batches before it, such as the last sound one of the same producer, and on those after it, such
as the last stable offset. So a task of a data source that says it must read the whole partition. A frame has two
stages, as the scans of the command line have: tasks that read ranges, and tasks that fold their parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from os import fspath
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from format.findings import Finding
from format.scan.protocol import Driver, LogUnit, Walk
from spark_jobs.data_source import KafkaLogDataSource
from spark_jobs.session import parallelism_of
from spark_jobs.spark_cluster import scan_frame, values_of
from spark_jobs.view_options import parse_options
from spark_jobs.view_reader import WALKS, KafkaLogReader, Query

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def read_view(
    session: SparkSession, view: str, path: str | PathLike[str] | Sequence[str | PathLike[str]], **options: Any
) -> DataFrame:
    """The frame of a view of the data source, with its options. Raises BadOption, and what listing the paths raises.

    The paths are listed now, and for ``findings`` and ``transactions`` cut into tasks: logs that are made later are not
    read. Each action on the frame reads the files again.
    """
    paths = [path] if isinstance(path, str) or not isinstance(path, Sequence) else path
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    given |= {"view": view, "paths": json.dumps([fspath(each) for each in paths])}
    frame = session.read.format(KafkaLogDataSource.name()).options(**given).load()
    parsed = parse_options(given)
    if parsed.view not in WALKS:
        return frame
    reader = KafkaLogDataSource(given).reader(frame.schema)
    planned, query = reader.planned(parallelism_of(session), folds=True)
    results = scan_frame(session, _ViewScan(WALKS[parsed.view], reader, query), planned)

    def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for value in values_of(payload for batch in batches for payload in batch.column("payload").to_pylist()):
            if not isinstance(value, Finding):
                yield value
            elif parsed.view == "findings":  # a file that is not the planned one
                yield from reader.folded((value,), query)

    return results.mapInArrow(rows_of, frame.schema)


class _ViewScan(msgspec.Struct, frozen=True):
    """A view of partitions as a scan of units. Its results are rows, as Arrow batches."""

    walk: Walk[Any]
    reader: KafkaLogReader
    query: Query

    def place(self, unit: Any) -> Path | None:
        """None, as the plan has the places."""
        return None

    def logs(self, unit: Any) -> Sequence[LogUnit]:
        """None of them, as the plan has the logs."""
        return ()

    def results(self, unit: Any, driver: Driver[Any]) -> Iterator[pa.RecordBatch]:
        """The rows of a unit."""
        return self.reader.folded(unit, self.query, driver)
