"""The data source ``kafkalog``: records, batches, segments, index entries and findings as tables.

``spark.dataSource.register(KafkaLogDataSource)``, then ``spark.read.format("kafkalog").load(path)``. Filters are not
pushed down, on purpose: Spark 4.3.0 keeps an earlier filter when a frame is used again. Options narrow instead.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from format.columns import SEGMENT
from format.errors import KafkaLogError, UnreadableFile
from format.findings import Finding, Severity
from format.io import remote_files
from format.io.remote_path import is_there, path_of
from format.location import Location
from spark_jobs.schemas import VIEWS, ddl, plain_arrow_schema, records_view
from spark_jobs.views.read_options import OPTIONS, ReadOptions, parse_options, resolved_paths
from spark_jobs.work.planning import Item, Part, Splits, Unit, plan

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ROWS_IN_A_BATCH = 10_000
_MOST_LINES_ALIKE = 100  # in a worker's log, for one task


class DamagedData(KafkaLogError):
    """Damage under mode FAILFAST."""


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
        text, arrow = _schemas(parse_options(self.options))
        if schema.names != arrow.names:
            raise KafkaLogError(f"the schema of this view is {text}; give no other one")
        return KafkaLogReader(parse_options(self.options), arrow)


def _schemas(options: ReadOptions) -> tuple[str, pa.Schema]:
    schema = VIEWS[options.view]
    if schema is not None:
        return ddl(schema), plain_arrow_schema(schema)
    text, arrow = records_view(value=options.value, headers=options.headers, details=options.details)
    if options.corrupt_column is not None:
        name = options.corrupt_column.replace("`", "``")
        text, arrow = f"{text}, `{name}` STRING", arrow.append(pa.field(options.corrupt_column, pa.string()))
    return text, arrow.remove_metadata()


class Share(InputPartition):
    """The work of one task: units and parts of a plan; nothing at all where there is nothing to read."""

    def __init__(self, items: list[Item]) -> None:
        super().__init__(0)
        self.items = items
        self.addresses = remote_files.known()


class KafkaLogReader(DataSourceReader):
    """Plans the tasks on the driver, and reads in each."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._dropped: Counter[str] = Counter()

    def partitions(self) -> list[InputPartition]:
        """The tasks; one that does nothing where there are none, for an empty list would mean something else."""
        options = self._options
        by_parts = options.view in ("records", "batches", "index_entries")
        planned = plan(
            resolved_paths(options),
            parallelism=os.cpu_count() or 2,
            range_bytes=options.range_bytes,
            splits=(Splits.RANGES if options.view in ("records", "batches") else Splits.SEGMENTS)
            if by_parts
            else Splits.NEVER,
            splits_small=by_parts,
        )
        tasks = [[item for item in task if self._wants(item)] for task in planned.tasks]
        return [Share(task) for task in tasks if task] or [Share([])]

    def _wants(self, item: Item) -> bool:
        options = self._options
        if isinstance(item, Part):
            location = item.segment.location
            return options.wants(location) and not _lies_outside(item, options)
        if options.view in ("records", "batches"):
            return item.file_kind is not None and options.wants(Location(item.path))
        if options.topics is None and options.partitions is None:
            return True
        from format.node.file_location import location_of_file

        return replace(options, glob=None).wants(location_of_file(path_of(item.path) / "0"))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches, every one of the view's schema."""
        if not isinstance(partition, Share):
            return
        remote_files.know(partition.addresses)
        self._dropped.clear()
        for item in partition.items:
            for batch in self._batches(item):
                if batch.num_rows:
                    batch = batch.replace_schema_metadata(None)
                    if batch.schema != self._schema:  # Spark looks at the first one only
                        batch = batch.cast(self._schema)
                    yield batch
        if self._dropped:
            codes = ", ".join(f"{code} {count}" for code, count in sorted(self._dropped.items()))
            sys.stderr.write(f"kafkalog: dropped in this task: {self._dropped.total()} ({codes})\n")

    def _batches(self, item: Item) -> Iterator[pa.RecordBatch]:
        from spark_jobs.views import log_views, scan_views

        options = self._options
        try:
            if options.view == "records":
                yield from log_views.records(item, options, self._schema, self._damage)
            elif options.view == "batches":
                yield from log_views.batches(item, options, self._damage)
            elif options.view == "index_entries":
                yield from log_views.index_entries(item)
            elif isinstance(item, Unit) and options.view == "segments":
                yield from _of_rows(SEGMENT, scan_views.segments(item))
            elif isinstance(item, Unit):
                yield from scan_views.findings(item)
        except UnreadableFile as error:
            is_gone = error.location is not None and not is_there(error.location.path)
            if not (options.ignore_missing if is_gone else options.ignore_corrupt):
                option = "ignoreMissingFiles" if is_gone else "ignoreCorruptFiles"
                raise UnreadableFile(f"{error}; the option {option} leaves it out") from None

    def _damage(self, found: Finding) -> None:
        """What damage means under the mode: an end, a line in the worker's log, or nothing more."""
        if found.severity < Severity.WARNING:
            return
        if self._options.mode == "FAILFAST":
            raise DamagedData(f"{found.location}: {found.message}")
        if self._options.mode == "DROPMALFORMED":
            self._dropped[found.code] += 1
            if self._dropped[found.code] <= _MOST_LINES_ALIKE:
                sys.stderr.write(f"kafkalog: dropped, {found.code}: {found.location}: {found.message}\n")


def _lies_outside(part: Part, options: ReadOptions) -> bool:
    location = part.segment.location
    selection = options.selection(location)
    if location.base_offset is None or selection.is_everything:
        return False
    return selection.excludes_segment(location.base_offset, part.segment.next_base_offset)


def _of_rows(schema: Any, rows: Iterator[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    from format.rows.arrow_columns import rows_batch

    held: list[tuple[Any, ...]] = []
    for row in rows:
        held.append(row)
        if len(held) >= _ROWS_IN_A_BATCH:
            yield rows_batch(schema, held)
            held = []
    if held:
        yield rows_batch(schema, held)


__all__ = ["OPTIONS", "KafkaLogDataSource"]
