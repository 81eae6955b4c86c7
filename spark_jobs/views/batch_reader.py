"""The reader of a batch query of the data source."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, InputPartition

from format.columns import SEGMENT, TRANSACTION
from format.errors import KafkaLogError, UnreadableFile
from format.findings import Finding, Severity
from format.io.session import is_there
from format.layout import TRANSACTION_STATE_TOPIC
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import location_of_file
from format.rows.arrow_columns import findings_batch, rows_batch
from format.verbs.txns.replicas import TransactionalIds
from format.verbs.txns.txns import TransactionTerms
from format.wording import did_you_mean
from spark_jobs.brokers import Brokers
from spark_jobs.schemas import BROKER_ID, OFFSETS
from spark_jobs.views import log_views, scan_views
from spark_jobs.views.packed_partitions import PackedPartitions
from spark_jobs.views.paths import resolved_paths
from spark_jobs.views.read_options import BadOption, ReadOptions
from spark_jobs.work.packed import unpacked
from spark_jobs.work.planning import Item, LogPart, Splits, Unit, UnitKind, plan
from spark_jobs.work.workers import PROCESS, path_of

_ROWS_IN_A_BATCH = 10_000
_MOST_LINES_ALIKE = 100  # in a worker's log, for one task
#: How the logs are cut for the views that read them; the others read partitions.
_SPLITS = {"records": Splits.RANGES, "batches": Splits.RANGES, "index_entries": Splits.SEGMENTS}
#: The views that say something of a side file that is given alone.
_OF_ANY_FILE = ("segments", "findings")


class DamagedData(KafkaLogError):
    """Damaged data, in mode FAILFAST."""


class Surroundings(msgspec.Struct, frozen=True):
    """The context of all tasks: brokers by log directory, paths of ``__transaction_state``, compacted topics.

    ``terms`` have the clock of the query.
    """

    brokers: Brokers = msgspec.field(default_factory=Brokers)
    coordinators: tuple[str, ...] = ()
    compacted_topics: frozenset[str] = frozenset()
    terms: TransactionTerms = msgspec.field(default_factory=lambda: TransactionTerms(now_ms=0))


class Share(InputPartition):
    """The work of one task: units and parts of a plan, packed, or nothing.

    ``found`` are findings about several units together, which were made on the driver.
    """

    def __init__(self, items: bytes | None, surroundings: Surroundings, found: Sequence[Finding] = ()) -> None:
        super().__init__(0)
        self._items = items
        self.found = found
        self.surroundings = surroundings
        self.session = PROCESS.session

    @property
    def items(self) -> list[Item]:
        """The units and parts, which are unpacked each time."""
        return [] if self._items is None else list(unpacked(self._items))


class KafkaLogReader(DataSourceReader):
    """The reader of a batch query: ``partitions`` plans the tasks on the driver, and ``read`` runs in each task.

    ``names`` are the user's names of the columns of ``schema``, which may differ in case.
    """

    def __init__(self, options: ReadOptions, schema: pa.Schema, names: Sequence[str] = ()) -> None:
        self._options = options
        self._schema = schema
        self._names = list(names or schema.names)
        self._surroundings = Surroundings()
        self._coordinators: TransactionalIds | None = None
        self._dropped: Counter[str] = Counter()

    def partitions(self) -> list[InputPartition]:
        """The tasks. Where there are none, one that does nothing, as Spark gives an empty list another meaning."""
        options = self._options
        paths = resolved_paths(options)
        splits = _SPLITS.get(options.view, Splits.NEVER)
        planned = plan(
            paths, parallelism=os.cpu_count() or 2, range_bytes=options.range_bytes, splits=splits, wants=self._wants
        )
        for each in planned.units:
            if each.kind is UnitKind.FILE and each.file_kind is not Kind.LOG and options.view not in _OF_ANY_FILE:
                what = f"the view {options.view} reads log directories, partitions and logs"
                raise BadOption(f"{each.path} is not a log: {what}")
        _check_topics(planned.units, options)
        surroundings = Surroundings()
        found: list[Finding] = []
        if BROKER_ID.name in self._schema.names:
            places = {each.parent for each in paths} if options.recursive else paths
            brokers = Brokers.of(map(str, places), None)
            coordinators = (each.path for each in planned.units if _location_of(each).topic == TRANSACTION_STATE_TOPIC)
            surroundings = Surroundings(brokers, tuple(coordinators) if options.view == "transactions" else ())
        if options.view == "transactions":
            terms = TransactionTerms(now_ms=time.time_ns() // 1_000_000, at_ms=options.at_ms)
            surroundings = replace(surroundings, terms=terms)
        if options.view == "findings":
            found, compacted_topics = scan_views.findings_together(paths)
            found = [each for each in found if options.wants(each.location)]
            surroundings = replace(surroundings, compacted_topics=compacted_topics)
        last = [Share(None, surroundings, found)] if found or not planned.tasks else []
        return PackedPartitions(planned.tasks, lambda task: Share(task, surroundings), last)

    def _wants(self, item: Item) -> bool:
        options = self._options
        if isinstance(item, LogPart):
            location = item.segment.location
            return options.wants(location) and not _lies_outside(item, options)
        if options.view in ("records", "batches"):
            return item.file_kind is not None and options.wants(Location(item.path))
        if options.topics is None and options.partitions is None:
            return True
        return options.wants_partition(_location_of(item))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, as Arrow batches of the view's schema."""
        if not isinstance(partition, Share):
            return
        PROCESS.session = partition.session
        yield from self.rows_of(((item, self._options) for item in partition.items), partition.surroundings)
        for found in partition.found:
            broker_id = partition.surroundings.brokers.of_path(found.location.path)
            yield self._fitted(findings_batch([found]).append_column(BROKER_ID.name, pa.array([broker_id], pa.int64())))

    def rows_of(
        self, items: Iterable[tuple[Item, ReadOptions]], surroundings: Surroundings
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the items of one task, each under its own options."""
        self._dropped.clear()
        self._surroundings = surroundings
        for item, options in items:
            for batch in self._batches(item, options):
                if batch.num_rows:
                    yield self._fitted(self._with_broker(batch, item))
        if self._dropped:
            codes = ", ".join(f"{code} {count}" for code, count in sorted(self._dropped.items()))
            sys.stderr.write(f"kafkalog: dropped in this task: {self._dropped.total()} ({codes})\n")

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the reader's schema: Spark checks only the first batch."""
        batch = batch.replace_schema_metadata(None)
        if batch.schema.names != self._schema.names:
            batch = batch.select(self._schema.names)
        if batch.schema != self._schema:
            batch = batch.cast(self._schema)
        return batch if self._names == self._schema.names else batch.rename_columns(self._names)

    def _with_broker(self, batch: pa.RecordBatch, item: Item) -> pa.RecordBatch:
        """The rows with their broker's id as the last column, where the view has it."""
        if BROKER_ID.name not in self._schema.names:
            return batch
        broker_id = self._surroundings.brokers.of_path(item.path)
        ids = pa.repeat(pa.scalar(broker_id, pa.int64()), batch.num_rows)
        if BROKER_ID.name in batch.schema.names:
            return batch.set_column(batch.schema.get_field_index(BROKER_ID.name), BROKER_ID.name, ids)
        return batch.append_column(BROKER_ID.name, ids)

    def _batches(self, item: Item, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        try:
            if options.view == "records":
                yield from log_views.records(item, options, self._schema, self._damage)
            elif options.view == "batches":
                yield from log_views.batches(item, options, self._damage)
            elif options.view == "index_entries":
                yield from log_views.index_entries(item)
            elif isinstance(item, Unit) and options.view == "segments":
                yield from _of_rows(SEGMENT, scan_views.segments(item))
            elif isinstance(item, Unit) and options.view == "offsets":
                yield from _of_rows(OFFSETS, scan_views.offsets(item))
            elif isinstance(item, Unit) and options.view == "transactions":
                yield from _of_rows(
                    TRANSACTION, scan_views.transactions(item, self._coordinator_records(), self._surroundings.terms)
                )
            elif isinstance(item, Unit):
                yield from scan_views.findings(item, self._surroundings.compacted_topics)
        except UnreadableFile as error:
            is_gone = error.location is not None and not is_there(path_of(error.location.path))
            if not (options.ignore_missing if is_gone else options.ignore_corrupt):
                option = "ignoreMissingFiles" if is_gone else "ignoreCorruptFiles"
                raise UnreadableFile(f"{error.message}; the option {option} leaves it out", error.location) from None

    def _coordinator_records(self) -> TransactionalIds:
        """The records of all transaction coordinators. Each task reads them once."""
        if self._coordinators is None:
            self._coordinators = scan_views.coordinators_at(self._surroundings.coordinators, self._surroundings.terms)
        return self._coordinators

    def _damage(self, found: Finding) -> None:
        """Act on damage by the mode: FAILFAST raises DamagedData, DROPMALFORMED writes to the worker's log."""
        if found.severity < Severity.WARNING:
            return
        if self._options.mode == "FAILFAST":
            raise DamagedData(f"{found.location}: {found.message}")
        if self._options.mode == "DROPMALFORMED":
            self._dropped[found.code] += 1
            if self._dropped[found.code] <= _MOST_LINES_ALIKE:
                sys.stderr.write(f"kafkalog: dropped, {found.code}: {found.location}: {found.message}\n")


def _lies_outside(part: LogPart, options: ReadOptions) -> bool:
    location = part.segment.location
    selection = options.selection(location)
    if location.base_offset is None or selection.is_everything:
        return False
    return selection.excludes_segment(location.base_offset, part.segment.next_base_offset)


def _of_rows(schema: Any, rows: Iterator[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    held: list[tuple[Any, ...]] = []
    for row in rows:
        held.append(row)
        if len(held) >= _ROWS_IN_A_BATCH:
            yield rows_batch(schema, held)
            held = []
    if held:
        yield rows_batch(schema, held)


def _check_topics(units: Iterable[Unit], options: ReadOptions) -> None:
    """Raise BadOption where a topic of the options has no partition among the units, as a misspelt one has none."""
    if options.topics is None:
        return
    topics = {topic for unit in units if (topic := _location_of(unit).topic) is not None}
    for missing in sorted(options.topics - topics):
        meant = did_you_mean(missing, sorted(topics))
        raise BadOption(f"there is no partition of the topic {missing} at the paths.{meant}")


def _location_of(unit: Unit) -> Location:
    """The topic and the partition of a unit, from the name of its directory."""
    if unit.kind is UnitKind.LOG_DIR_FILES:
        return Location(unit.path)
    path = path_of(unit.path)
    return location_of_file(path if unit.kind is UnitKind.FILE else path / "0")
