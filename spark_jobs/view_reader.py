"""The reader of a batch query of the data source: its plan, and the rows of its tasks."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, InputPartition

from format.columns import SEGMENT, TRANSACTION, RowSchema
from format.decoding.decoder import Decoding
from format.decoding.schemas import check_files, schemas_for
from format.errors import InputError, KafkaLogError, NotALogDir, UnreadableFile
from format.findings import Finding, Severity
from format.io.remote_files import FEW_NAMES
from format.io.session import RemotePath, is_there
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import DEFAULT_LIMITS
from format.node.log_dir import Kind
from format.node.offsets import offsets_of
from format.node.partition import read_partition
from format.node.target import Target
from format.rows.arrow_columns import findings_batch, rows_batch
from format.rows.index_entries import index_entries
from format.rows.record_rows import Row
from format.scan.drivers import SerialDriver
from format.scan.protocol import Driver, LogUnit, Walk
from format.scan.selected_logs import every_log_of, log_of_segment, selected_logs
from format.scan.selection import EVERYTHING, CommittedView
from format.state.log_headers import HeaderScan
from format.verbs.groups.replicas import log_end_of
from format.verbs.ls.ls import ListUnit, ls
from format.verbs.ls.partition_listing import PartitionTerms, SegmentListing
from format.verbs.txns.partition_transactions import PartitionTransactions, committed_view, read_partition_transactions
from format.verbs.txns.replicas import TransactionalIds
from format.verbs.txns.txns import Transactions, TransactionTerms, open_transactions, transaction_rows
from format.verbs.verify import verify
from format.wording import did_you_mean
from spark_jobs import log_views, planning
from spark_jobs.log_views import ServedLog
from spark_jobs.schemas import BROKER_ID, OFFSETS, fitted
from spark_jobs.view_options import BadOption, ReadOptions, resolved_paths, rows_without_traceback, without_traceback

_ROWS_IN_A_BATCH = 10_000
_FINDINGS_IN_A_BATCH = 500
_MOST_LINES_ALIKE = 100  # in a worker's log, for one task
#: The views that read single logs; the others read partitions.
_OF_LOGS = ("records", "batches", "index_entries")
#: The views that say something of a side file that is given alone.
_OF_ANY_FILE = ("segments", "findings")

#: What a view reads: a log, or what verify reads at once.
PlaceUnit = verify.LogDirFiles | verify.PartitionDirectory | verify.LoneFile
#: Findings about several units together, as one more unit.
Together = tuple[Finding, ...]
#: The views that judge a partition as a whole, with the walks of their scans over it.
WALKS: dict[str, Walk[Any]] = {"findings": verify.VerifyScan().walk, "transactions": HeaderScan()}


class DamagedData(KafkaLogError):
    """Damaged data, in mode FAILFAST."""


class Query(msgspec.Struct, frozen=True):
    """The context of all tasks of a query: brokers by log directory, compacted topics, state of the planning process.

    ``coordinators`` are the paths of ``__transaction_state``. ``terms`` have the clock of the query.
    """

    brokers: planning.Brokers = msgspec.field(default_factory=planning.Brokers)
    coordinators: tuple[str, ...] = ()
    compacted_topics: Mapping[str, bool] = msgspec.field(default_factory=dict)
    id: str = msgspec.field(default_factory=lambda: uuid4().hex)
    terms: TransactionTerms = msgspec.field(default_factory=lambda: TransactionTerms(now_ms=0))
    surroundings: planning.PlanningState = msgspec.field(default_factory=planning.PlanningState)


class Share(InputPartition):
    """The work of a task: items of a plan, or nothing, and the Query, both packed, as Spark pickles objects slowly."""

    def __init__(self, items: bytes | None, query: bytes) -> None:
        super().__init__(0)
        self._items = items
        self._query = query

    @property
    def query(self) -> Query:
        """The context of the query, which is unpacked each time."""
        found: Query = planning.unpacked(self._query)
        return found

    @property
    def items(self) -> list[planning.Item]:
        """The units and parts of logs, which are unpacked each time."""
        return [] if self._items is None else list(planning.unpacked(self._items))


class PackedPartitions(list[InputPartition]):
    """A list to Spark, which goes through it and writes one partition after the other to the JVM.

    It holds no partitions: each is made from the bytes of a task when it is requested. ``last`` follow them.
    """

    def __init__(
        self,
        tasks: planning.PackedList[Any],
        partition_of: Callable[[bytes], InputPartition],
        last: Sequence[InputPartition] = (),
    ) -> None:
        super().__init__()
        self._tasks = tasks
        self._partition_of = partition_of
        self._last = last

    def __len__(self) -> int:
        return len(self._tasks) + len(self._last)

    def __iter__(self) -> Iterator[InputPartition]:
        yield from map(self._partition_of, self._tasks.contents)
        yield from self._last


# -- on the driver -------------------------------------------------------------------------------------------


def logs_of(unit: PlaceUnit) -> Iterable[LogUnit]:
    """The logs of a partition, in order, or a log that is given alone. The view of findings reports unreadable ones."""
    with contextlib.suppress(KafkaLogError):
        if isinstance(unit, verify.PartitionDirectory):
            return every_log_of(read_partition(unit.path))
        if isinstance(unit, verify.LoneFile) and unit.kind is Kind.LOG:
            return [log for log in selected_logs(Target(unit.path), EVERYTHING) if isinstance(log, LogUnit)]
    return ()


def units_at(path: Path) -> Iterator[PlaceUnit]:
    """What lies at a path, as verify reads it. Raises InputError for a path that is none of Kafka's."""
    return (unit for unit in verify.units_of(Target(path), DEFAULT_LIMITS) if not isinstance(unit, Finding))


def units_listed(paths: Sequence[Path]) -> Iterator[PlaceUnit]:
    """What lies at some paths. In a store, all below a path is listed at once; if that is much, below a log directory.

    Only the listing of what is being read is remembered, as there may be very many names.
    """
    stored = [path for path in paths if isinstance(path, RemotePath)]
    if not stored:
        yield from (unit for path in paths for unit in units_at(path))
        return
    stores = stored[0].session.stores
    with contextlib.closing(stores.listed_in_turn(map(str, stored), FEW_NAMES)) as paths_in_turn:
        for path in paths:
            if not isinstance(path, RemotePath) or next(paths_in_turn):
                yield from units_at(path)
                continue
            target = Target(path)
            log_dirs = (str(log_dir.path) for log_dir in target.log_dirs)
            with contextlib.closing(stores.listed_in_turn(log_dirs)) as log_dirs_in_turn:
                for unit in verify.units_of(target, DEFAULT_LIMITS):
                    if isinstance(unit, verify.LogDirFiles):
                        next(log_dirs_in_turn)
                    if not isinstance(unit, Finding):
                        yield unit


def plan_logs(paths: Iterable[Path], *, parallelism: int = 2, range_bytes: int | None = None) -> planning.TaskPlan:
    """The plan that reads every log at some paths."""
    logs = (log for path in paths for unit in units_at(path) for log in logs_of(unit))
    return planning.plan_view(
        logs, lambda log: log.path, lambda log: (log,), parallelism=parallelism, cut=planning.Cut(range_bytes)
    )


class _Units:
    """The units at some paths that a query reads. ``coordinators`` are the paths of the partitions of their topic."""

    def __init__(self, paths: Sequence[Path], options: ReadOptions) -> None:
        self._paths = paths
        self._options = options
        self.coordinators: list[str] = []

    def __iter__(self) -> Iterator[PlaceUnit]:
        """Raises BadOption for a file that the view does not read, and for a topic that is not at the paths."""
        options = self._options
        topics: set[str] = set()
        numbers = set(options.partitions or ())
        named = {*(options.assigned or ()), *(key for key in (*options.starting, *options.ending) if key[0])}
        for unit in units_listed(self._paths):
            if isinstance(unit, verify.LoneFile) and unit.kind is not Kind.LOG and options.view not in _OF_ANY_FILE:
                what = f"the view {options.view} reads log directories, partitions and logs"
                raise BadOption(f"{unit.path} is not a log: {what}")
            location = verify.location_of_unit(unit)
            if location.topic is not None:
                topics.add(location.topic)
                if options.wants_topic(location.topic):
                    numbers.discard(location.partition or 0)
                named.discard((location.topic, location.partition or 0))
            if location.topic == TRANSACTION_STATE_TOPIC:
                self.coordinators.append(str(unit.path))
            if options.wants_partition(location):
                yield unit
        for missing in sorted((options.topics or frozenset()) - topics):
            meant = did_you_mean(missing, sorted(topics))
            raise BadOption(f"there is no partition of the topic {missing} at the paths.{meant}")
        if options.topic_pattern is not None and not any(map(options.wants_topic, topics)):
            raise BadOption(f"no topic at the paths fits the option subscribePattern, {options.topic_pattern}")
        for number in sorted(numbers):
            raise BadOption(f"no topic at the paths that is read has a partition {number}")
        for topic, number in sorted(named):
            meant = "" if topic in topics else did_you_mean(topic, sorted(topics))
            raise BadOption(f"there is no partition {topic}-{number} at the paths.{meant}")

    def segments(self) -> Iterator[PlaceUnit]:
        """The units, with the segments of a large partition one by one, so that several tasks read it.

        A partition of small segments stays whole, as each segment that is read alone lists its directory. So does one
        whose broker may run: what is wrong there is looked at again.
        """
        range_bytes = self._options.range_bytes or planning.SMALLEST_RANGE_BYTES
        for unit in self:
            logs: list[Path] = []
            if isinstance(unit, verify.PartitionDirectory) and not (
                unit.checkpoints.lock and unit.checkpoints.lock.may_be_held
            ):
                with contextlib.suppress(KafkaLogError):  # listing the unit reports it
                    partition = read_partition(unit.path)
                    if partition.sizes.log_size_bytes > range_bytes * max(partition.segment_count, 2):
                        segments = (*partition.segments, *partition.leftovers)
                        logs = [each.log for each in segments if each.log is not None]
            yield from (verify.LoneFile(log, Kind.LOG) for log in logs)
            if not logs:
                yield unit

    def logs(self) -> Iterator[LogUnit]:
        """The logs of the units that may have something of what the options select."""
        made_of = self._served_logs if self._options.view == "records" else logs_of
        for log in (log for unit in self for log in made_of(unit)):
            base_offset = log.location.base_offset
            selection = self._options.selection(log.location)
            if isinstance(log, ServedLog):
                selection = log.narrowed(selection)
            is_outside = base_offset is not None and selection.excludes_segment(base_offset, log.next_base_offset)
            if self._options.wants(log.location) and not is_outside:
                yield log

    def _served_logs(self, unit: PlaceUnit) -> Iterator[LogUnit]:
        """The logs of a unit, with the offsets that a broker serves of them by its checkpoints.

        There are none of a directory that is deleted or stray, or of a future replica, unless its path is given.
        """
        logs: Iterable[LogUnit]
        offsets = None
        if isinstance(unit, verify.PartitionDirectory):
            try:
                partition = read_partition(unit.path)
            except KafkaLogError:
                return  # the view of findings reports it
            if partition.mark is not None and unit.path not in map(planning.path_of, self._options.paths):
                return
            logs, offsets = every_log_of(partition), offsets_of(partition, unit.checkpoints)
        else:
            logs = logs_of(unit)
            around = Target(unit.path).surroundings
            with contextlib.suppress(KafkaLogError):  # without checkpoints the log has no bounds
                offsets = offsets_of(around.partition(unit.path), around.checkpoints(unit.path.parent))
        first = None if offsets is None or self._options.reads_below_log_start else offsets.log_start_offset
        end = None if offsets is None or self._options.reads_to_log_end else offsets.committed_end
        for log in logs:
            yield log if log.segment is None else served(log, log.segment.base_offset, first, end)


def served(log: LogUnit, base_offset: int, first: int | None, end: int | None) -> ServedLog:
    """The log of a segment with the bounds, of two offsets, that lie in it."""
    next_base_offset = log.next_base_offset
    return ServedLog(
        log.path,
        log.location,
        log.segment,
        next_base_offset,
        from_offset=first if first is not None and first > base_offset else None,
        to_offset=end if end is not None and (next_base_offset is None or end < next_base_offset) else None,
    )


def decoding_of(options: ReadOptions) -> Decoding | None:
    """How keys and values are decoded, with the schemas that are there now; None where they are not.

    Raises BadOption.
    """
    if not options.decodes:
        return None
    try:
        targets = [] if options.schemas is not None else list(map(Target, resolved_paths(options)))
        given = None if options.schemas is None else Target(planning.path_of(options.schemas))
        schemas = schemas_for(targets, given)
        check_files(schemas, options.schema_of)
    except InputError as error:
        raise BadOption(f"the options schemas and schemaOf: {error}") from None
    return Decoding(
        key_as=options.key_as or "auto",
        value_as=options.value_as or "auto",
        schemas=schemas,
        schema_of=options.schema_of,
    )


class KafkaLogReader(DataSourceReader):
    """The reader of a batch query: ``partitions`` plans the tasks on the driver, and ``read`` runs in each task.

    ``names`` are the user's names of the columns of ``schema``, which may differ in case.
    """

    def __init__(self, options: ReadOptions, schema: pa.Schema, names: Sequence[str] = ()) -> None:
        self._options = options
        self._schema = schema
        self._names = list(names or schema.names)
        self._query = Query()
        self._coordinators: TransactionalIds | None = None
        self._dropped: Counter[str] = Counter()
        self._decoding = decoding_of(options)

    @without_traceback
    def partitions(self) -> list[InputPartition]:
        """The tasks. Where there are none, one that does nothing, as Spark gives an empty list another meaning."""
        planned, query = self.planned(os.cpu_count() or 2)
        content = planning.packed(query)
        last = [] if planned.tasks else [Share(None, content)]
        return PackedPartitions(planned.tasks, lambda task: Share(task, content), last)

    def planned(self, parallelism: int, *, folds: bool = False) -> tuple[planning.TaskPlan, Query]:
        """The plan of the view, and the query of its tasks. ``folds``: their parts of a partition are folded."""
        options = self._options
        paths = resolved_paths(options)
        query = Query()
        together: list[Together] = []
        if options.view == "findings":
            found, compacted_topics = findings_together(paths)
            together = [tuple(each for each in found if options.wants(each.location))]
            query = replace(query, compacted_topics=compacted_topics)
        units = _Units(paths, options)
        is_of_logs = options.view in _OF_LOGS
        is_cut = is_of_logs and options.view != "index_entries"
        of_units = units.logs() if is_of_logs else units.segments() if options.view == "segments" else units
        planned = planning.plan_view(
            chain(of_units, filter(None, together)),
            lambda unit: None if isinstance(unit, (verify.LogDirFiles, tuple)) else unit.path,
            partial(logs_to_fold, options.view) if folds else lambda unit: (unit,) if is_cut else (),
            parallelism=parallelism,
            cut=planning.Cut(options.range_bytes, options.least_tasks, options.view == "transactions", folds),
        )
        if BROKER_ID.name in self._schema.names:
            places = {each.parent for each in paths} if options.recursive else paths
            query = replace(query, brokers=planning.Brokers.of(map(str, places), None))
        if options.view == "transactions":
            terms = TransactionTerms(now_ms=time.time_ns() // 1_000_000, at_ms=options.at_ms)
            query = replace(query, coordinators=tuple(units.coordinators), terms=terms)
        return planned, query

    # -- in a task -----------------------------------------------------------------------------------------------

    @rows_without_traceback
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, as Arrow batches of the view's schema."""
        if not isinstance(partition, Share):
            return
        yield from self.rows_of(partition.items, partition.query)

    def rows_of(self, items: Iterable[planning.Item], query: Query) -> Iterator[pa.RecordBatch]:
        """The rows of the items of one task."""
        planning.begin_task(query.surroundings)
        self._dropped.clear()
        self._query = query
        for item in items:
            yield from self._rows_of_item(item, None)
        if self._dropped:
            codes = ", ".join(f"{code} {count}" for code, count in sorted(self._dropped.items()))
            sys.stderr.write(f"kafkalog: dropped in this task: {self._dropped.total()} ({codes})\n")

    def folded(self, unit: Any, query: Query, driver: Driver[Any] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a unit whose logs a driver reads, for the views of WALKS."""
        self._query = query
        yield from self._rows_of_item(planning.Unit(0, unit, None, planning.FileStamp(0, 0)), driver)

    def _rows_of_item(self, item: planning.Item, driver: Driver[Any] | None) -> Iterator[pa.RecordBatch]:
        if isinstance(item.unit, tuple):
            for found in item.unit:
                yield self._fitted(self._with_broker(findings_batch([found]), found.location.path))
            return
        for batch in self._batches(item, driver):
            if batch.num_rows:
                yield self._fitted(self._with_broker(batch, str(item.unit.path)))

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the reader's schema, with the user's names."""
        batch = fitted(batch, self._schema)
        return batch if self._names == self._schema.names else batch.rename_columns(self._names)

    def _with_broker(self, batch: pa.RecordBatch, path: str | None) -> pa.RecordBatch:
        """The rows with their broker's id as the last column, where the view has it."""
        if BROKER_ID.name not in self._schema.names:
            return batch
        ids = pa.repeat(pa.scalar(self._query.brokers.of_path(path), pa.int64()), batch.num_rows)
        if BROKER_ID.name in batch.schema.names:
            return batch.set_column(batch.schema.get_field_index(BROKER_ID.name), BROKER_ID.name, ids)
        return batch.append_column(BROKER_ID.name, ids)

    def _batches(self, item: planning.Item, driver: Driver[Any] | None) -> Iterator[pa.RecordBatch]:
        unit: Any = item.unit
        options = self._options
        try:
            if options.view == "records":
                committed = self._committed_view(unit.path.parent) if options.is_committed else None
                yield from log_views.records(item, options, self._schema, self._damage, committed, self._decoding)
            elif options.view == "batches":
                yield from log_views.batches(item, options, self._damage)
            elif options.view == "index_entries":
                entries = index_entries(item.unit.path, item.unit.location)
                yield from (each for each in entries if not isinstance(each, Finding))
            elif options.view == "segments":
                yield from _in_batches(segments(unit), _ROWS_IN_A_BATCH, SEGMENT)
            elif options.view == "offsets":
                yield from _in_batches(offsets(unit), _ROWS_IN_A_BATCH, OFFSETS)
            elif options.view == "transactions":
                rows = transactions(unit, self._coordinator_records(), self._query.terms, driver)
                yield from _in_batches(rows, _ROWS_IN_A_BATCH, TRANSACTION)
            elif isinstance(unit, LogUnit):  # in a stream
                yield from _in_batches(log_views.damage(item, options), _FINDINGS_IN_A_BATCH)
            else:
                found = findings(unit, self._query.compacted_topics, driver)
                yield from _in_batches(found, _FINDINGS_IN_A_BATCH)
        except UnreadableFile as error:
            is_gone = error.location is not None and not is_there(planning.path_of(error.location.path))
            if not (options.ignore_missing if is_gone else options.ignore_corrupt):
                option = "ignoreMissingFiles" if is_gone else "ignoreCorruptFiles"
                raise UnreadableFile(f"{error.message}; the option {option} leaves it out", error.location) from None

    def _committed_view(self, directory: Path) -> CommittedView:
        """What read_committed consumers see of a partition.

        A process reads the headers of a partition once for all tasks of a query that it runs one after the other.
        """
        key = self._query.id, str(directory)
        if planning.PROCESS.committed is None or planning.PROCESS.committed[0] != key:
            planning.PROCESS.committed = key, committed_view(directory)
        return planning.PROCESS.committed[1]

    def _coordinator_records(self) -> TransactionalIds:
        """The records of all transaction coordinators. Each task reads them once."""
        if self._coordinators is None:
            self._coordinators = coordinators_at(self._query.coordinators, self._query.terms)
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


def _in_batches(rows: Iterator[Any], count: int, schema: RowSchema | None = None) -> Iterator[pa.RecordBatch]:
    """Rows of a schema, or findings, as Arrow batches of so many rows."""
    while held := list(islice(rows, count)):
        yield findings_batch(held) if schema is None else rows_batch(schema, held)


# -- the views that are made by scans ------------------------------------------------------------------------


def segments(unit: PlaceUnit) -> Iterator[Row]:
    """Rows of the segments of a unit, as ls lists them. Unreadable ones are in the view of findings."""
    try:
        if isinstance(unit, verify.LoneFile):
            yield from (item.row() for item in ls(Target(unit.path, unit.kind)) if isinstance(item, SegmentListing))
        elif isinstance(unit, verify.PartitionDirectory):
            found = ListUnit(unit.path, unit.checkpoints).listed(PartitionTerms())
            yield from (each.row() for each in found.segments)
    except NotALogDir:
        raise
    except KafkaLogError:
        return


def findings_together(paths: Sequence[Path]) -> tuple[list[Finding], Mapping[str, bool]]:
    """The findings about several units together at these paths, and which topics are compacted, to verify the units."""
    targets = [Target(path) for path in paths]
    found = [each for target in targets for each in verify.findings_of_place(target)]
    found += verify.verify_nodes(targets)
    return found, verify.compacted_topics_at(targets, DEFAULT_LIMITS)


def logs_to_fold(view: str, unit: PlaceUnit) -> Sequence[LogUnit]:
    """The logs of a large unit that tasks read in parts, in the order in which the fold of the view wants them."""
    if view == "findings":
        return verify.VerifyScan().logs(unit)
    if not isinstance(unit, verify.PartitionDirectory):
        return ()
    try:
        partition = read_partition(unit.path)
    except KafkaLogError:
        return ()
    logs = (log_of_segment(partition, segment) for segment in partition.segments)
    return () if partition.topic == TRANSACTION_STATE_TOPIC else [log for log in logs if log is not None]


def findings(
    unit: PlaceUnit, compacted_topics: Mapping[str, bool], driver: Driver[Any] | None = None
) -> Iterator[Finding]:
    """Findings of a unit, which is verified as a whole."""
    scan = verify.VerifyScan(compacted_topics=compacted_topics)
    return (each for each in scan.results(unit, driver or SerialDriver(scan.walk)) if isinstance(each, Finding))


def offsets(unit: PlaceUnit) -> Iterator[Row]:
    """The row of a partition's offsets, from its checkpoints and the end of its last segment."""
    if not isinstance(unit, verify.PartitionDirectory):
        return
    with contextlib.suppress(KafkaLogError):
        partition = read_partition(unit.path)
        terms = PartitionTerms(scan=False, segments=False)
        found = ListUnit(unit.path, unit.checkpoints).listed(terms, lambda: partition)
        listing = replace(found.listing, log_end_offset=log_end_of(partition))
        yield tuple(getattr(listing, name) for name in OFFSETS.names)


def transactions(
    unit: PlaceUnit, coordinators: TransactionalIds, terms: TransactionTerms, driver: Driver[Any] | None = None
) -> Iterator[Row]:
    """Rows of the transactions of a partition, as txns shows them; ``coordinators`` are those of all coordinators."""
    if not isinstance(unit, verify.PartitionDirectory):
        return
    result = Transactions((Target(unit.path),), coordinators)
    try:
        partition = read_partition(unit.path)
        if partition.topic == TRANSACTION_STATE_TOPIC:
            return
        found = PartitionTransactions.of_partition(partition, unit.checkpoints)
        for _ in read_partition_transactions(found, terms.at_ms, terms.limits, driver):
            pass  # the view of findings reports problems
    except KafkaLogError:
        return
    result.keep(found)
    yield from transaction_rows(result, open_transactions(result, terms), terms)


def coordinators_at(paths: Iterable[str], terms: TransactionTerms) -> TransactionalIds:
    """The transactional ids in the records of the partitions of ``__transaction_state`` at these paths."""
    result = Transactions(tuple(Target(planning.path_of(path)) for path in paths))
    with contextlib.suppress(KafkaLogError):
        for _ in result.read(terms):
            pass  # the view of findings reports problems
    return result.ids
