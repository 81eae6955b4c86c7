"""grep on Spark: the records that ``kafkalog grep`` finds, a task for each segment of a large partition.

Run as ``kafkalog scan grep PATTERN PATH…`` or ``spark-submit spark_jobs/jobs/grep.py PATTERN PATH…``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from format.arrow_columns import record_batches_of
from format.columns import RECORD
from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log_dir import Kind
from format.operations.grep import Criteria, FoundRecords, grep
from format.rows import Row
from spark_jobs.planning import Item, Part, Plan, Splits, UnitKind
from spark_jobs.tasks import Result, results_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ArrowRecords:
    """Rows of columns.RECORD as an Arrow stream."""

    stream: bytes

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> ArrowRecords:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return cls(sink.getvalue().to_pybytes())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The record batches."""
        yield from pa.ipc.open_stream(self.stream)

    def rows(self) -> Iterator[Row]:
        """Rows as ``rows.record_rows`` makes them."""
        headers_at = RECORD.names.index("headers")
        for batch in self.batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                headers = row[headers_at]
                pairs = None if headers is None else [(each["key"], each["value"]) for each in headers]
                yield (*row[:headers_at], pairs, *row[headers_at + 1 :])


@dataclass(frozen=True, slots=True)
class GrepOptions:
    """What a record must be, and the limits."""

    criteria: Criteria = field(default_factory=Criteria)
    limits: Limits = DEFAULT_LIMITS

    @property
    def splits(self) -> Splits:
        return Splits.SEGMENTS


def frame(session: SparkSession, plan: Plan, options: GrepOptions) -> DataFrame:
    """Results whose values are ArrowRecords and lists of one finding, in the order of the logs."""

    def work(item: Item) -> Iterator[Result]:
        unit, segment, path, kind = _place(item)
        if path is None or (isinstance(item, Part) and _is_excluded(item, options.criteria)):
            return
        for step, value in enumerate(_found(path, kind, options)):
            yield Result(unit, 0, segment, 0, step, value)

    return results_frame(session, plan, work)


def _place(item: Item) -> tuple[int, int, Path | None, Kind]:
    if isinstance(item, Part):
        return item.segment.unit, item.segment.number, Path(item.segment.path), Kind.LOG
    if item.kind is UnitKind.LOG_DIR_FILES:
        return item.number, 0, None, Kind.LOG_DIR
    return item.number, 0, Path(item.path), item.file_kind or Kind.PARTITION


def _is_excluded(item: Part, criteria: Criteria) -> bool:
    segment = item.segment
    base_offset = segment.location.base_offset
    return base_offset is not None and criteria.selection.excludes_segment(base_offset, segment.next_base_offset)


def _found(path: Path, kind: Kind, options: GrepOptions) -> Iterator[ArrowRecords | list[Finding]]:
    try:
        for told in grep(path, options.criteria, kind=kind, limits=options.limits):
            if isinstance(told, Finding):
                yield [told]
            elif isinstance(told, FoundRecords):
                for batch in record_batches_of(told.records, told.location):
                    yield ArrowRecords.of(batch)
    except KafkaLogError as error:
        yield [finding_of(error, Location(str(path)))]


if __name__ == "__main__":
    import sys

    from spark_jobs.submit import main

    sys.exit(main("grep"))
