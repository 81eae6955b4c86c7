"""grep on Spark: the records that ``kafkalog grep`` finds, a large log in ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from format.columns import RECORD
from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.io.remote_path import path_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.rows.arrow_columns import record_batches_of
from format.rows.record_rows import Row
from format.scan.read_log import LogChunk
from format.value_class import value_class
from format.verbs.grep.grep import Criteria, FoundRecords, GrepItem, found_in, grep
from spark_jobs.work.parts import changes_of, changes_of_segment, results_of_part, together
from spark_jobs.work.planning import Item, Part, Plan, PlannedSegment, Splits, Unit, UnitKind
from spark_jobs.work.replay import CHUNKS, STATUS, PartStatus
from spark_jobs.work.tasks import Result, merged_frame, results_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@value_class
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


@value_class
class GrepOptions:
    """What a record must be, and the limits."""

    criteria: Criteria = field(default_factory=Criteria)
    limits: Limits = DEFAULT_LIMITS

    @property
    def splits(self) -> Splits:
        """One reader stops where the offsets wanted end, so it reports no damage behind it; parts would."""
        return Splits.RANGES if self.criteria.selection.to_offset is None else Splits.SEGMENTS


def frame(session: SparkSession, plan: Plan[Item], options: GrepOptions) -> DataFrame:
    """Results whose values are ArrowRecords and lists of one finding, in the order of the logs."""

    def search(segment: PlannedSegment, items: Iterable[LogChunk | Finding]) -> Iterator[ArrowRecords | Finding]:
        return _in_arrow(found_in(items, options.criteria, options.limits))

    def search_whole(segment: PlannedSegment) -> Iterator[ArrowRecords | list[Finding]]:
        yield from ([each] for each in changes_of_segment(segment))
        yield from _found(segment.path, Kind.LOG, options)

    def work(item: Item) -> Iterator[Result]:
        if isinstance(item, Part):
            if not _is_excluded(item, options.criteria):
                selection = options.criteria.selection
                yield from results_of_part(item, search, selection, options.limits)
            else:
                status = PartStatus(0, 0, 0, is_plain=True)
                yield Result(item.segment.unit, STATUS, item.segment.number, item.part, 0, status)
            return
        if item.kind is UnitKind.LOG_DIR_FILES:
            return
        found = chain(
            ([each] for each in changes_of(item)), _found(item.path, item.file_kind or Kind.PARTITION, options)
        )
        for step, value in enumerate(found):
            yield Result(item.number, CHUNKS, 0, 0, step, value)

    def merge(unit: Unit, rows: Iterator[Result]) -> Iterator[Result]:
        return together(unit, rows, search_whole)

    return merged_frame(session, results_frame(session, plan, work), plan, merge)


def _is_excluded(item: Part, criteria: Criteria) -> bool:
    segment = item.segment
    base_offset = segment.location.base_offset
    return base_offset is not None and criteria.selection.excludes_segment(base_offset, segment.next_base_offset)


def _in_arrow(found: Iterable[GrepItem]) -> Iterator[ArrowRecords | Finding]:
    for item in found:
        if isinstance(item, Finding):
            yield item
        elif isinstance(item, FoundRecords):
            for batch in record_batches_of(item.records, item.location):
                yield ArrowRecords.of(batch)


def _found(path: str, kind: Kind, options: GrepOptions) -> Iterator[ArrowRecords | list[Finding]]:
    try:
        for item in _in_arrow(grep(path_of(path), options.criteria, kind=kind, limits=options.limits)):
            yield [item] if isinstance(item, Finding) else item
    except KafkaLogError as error:
        yield [finding_of(error, Location(path))]
