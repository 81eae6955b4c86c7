"""The tables of sql: their columns, and how each is read from the paths, as far as a query asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from format.columns import (
    BATCH,
    CONFIG,
    DECODED_NAMES,
    EXTRA_RECORD_COLUMNS,
    FINDING,
    GROUP,
    GROUP_OFFSET,
    PARTITION,
    PRODUCER,
    SEGMENT,
    TOPIC,
    TRANSACTION,
    RowSchema,
    record_schema,
)
from format.decoding.decoder import Decoding
from format.errors import InputError, KafkaLogError, NotALogDir
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import location_of_directory, location_of_file
from format.node.target import Target
from format.rows.finding_rows import finding_row
from format.rows.index_entries import INDEX_ENTRY, index_entries
from format.rows.record_rows import Row, RowBlock, in_lists
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogUnit
from format.scan.selected_logs import LOG_KINDS, selected_logs
from format.scan.selection import EVERYTHING, Selection
from format.verbs.dump import DumpTerms, dumped_batches
from format.verbs.sql.narrowing import EVERY_VALUE, Narrowing, ValueRange

_PATH = EXTRA_RECORD_COLUMNS[0]
BATCHES = RowSchema(BATCH.type, (*BATCH.columns, _PATH))
_EXTRA = frozenset(column.name for column in EXTRA_RECORD_COLUMNS)
RECORDS = record_schema(_EXTRA | DECODED_NAMES)
#: The columns of partitions and segments that are known without reading a log or an index.
_LISTED = frozenset(
    {
        *("path", "topic", "partition", "mark", "segment_count", "size_bytes", "log_size_bytes"),
        *("segment_base_offset", "leftover", "high_watermark", "recovery_point", "cleaner_offset"),
    }
)


class TableSources(msgspec.Struct, frozen=True):
    """What the tables are read from, and the time at which they are.

    ``decoding`` returns how keys and values are decoded; it is called where a query asks for the decoded columns.
    """

    targets: tuple[Target, ...]
    now_ms: int
    decoding: Callable[[], Decoding]
    limits: Limits = DEFAULT_LIMITS
    advance: Advance = no_progress


class TableScan(msgspec.Struct, frozen=True):
    """One reading of a table: the columns that are asked for or compared, and the rows that its filter can select.

    ``note`` is called with what was not checked, ``judge`` with findings that are rows, ``make`` with blocks, in any
    thread, for their columns as Arrow.
    """

    sources: TableSources
    columns: frozenset[str]
    narrowing: Narrowing
    note: Callable[[str], None]
    judge: Callable[[Finding], None]
    make: Callable[[RowBlock], Iterable[pa.RecordBatch]]

    def targets(self) -> Iterator[Target | Finding]:
        """The targets, or those of their partitions whose topic and number the filter can select, and findings."""
        if not self.narrowing.columns & {"topic", "partition"}:
            yield from self.sources.targets
            return
        for target in self.sources.targets:
            if target.kind is Kind.LOG_DIR:
                yield from target.link_findings()
                for log_dir in target.log_dirs:
                    yield from log_dir.unread_findings()
                    for path in self._allowed([(each, location_of_directory(each)) for each in log_dir.partitions]):
                        yield Target(path, Kind.PARTITION, target.surroundings)
            elif self._allowed([(target.path, _location(target))]):
                yield target

    def topics(self) -> frozenset[str] | None:
        """The topics that the filter can select of those at the paths; None for all."""
        if "topic" not in self.narrowing.columns:
            return None
        found = {location.topic for target in self.sources.targets for location in _locations(target) if location.topic}
        names = sorted(found)
        return frozenset(names[number] for number in self.narrowing.allowed([{"topic": name} for name in names]))

    def _allowed(self, places: Sequence[tuple[Path, Location]]) -> list[Path]:
        topics = list(dict.fromkeys(location.topic for _, location in places))
        allowed = {topics[number] for number in self.narrowing.allowed([{"topic": topic} for topic in topics])}
        left = [each for each in places if each[1].topic in allowed]
        values = [{"topic": location.topic, "partition": location.partition} for _, location in left]
        return [left[number][0] for number in self.narrowing.allowed(values)]


#: What a table gives: rows as a list or Arrow, and findings.
Item: TypeAlias = "list[Row] | pa.RecordBatch | Finding"


class Table(msgspec.Struct, frozen=True):
    """A table: its columns, what it is in words, and how it is read."""

    schema: RowSchema
    meaning: str
    read: Callable[[TableScan], Iterator[Item]]


def _location(target: Target) -> Location:
    return location_of_directory(target.path) if target.kind is Kind.PARTITION else location_of_file(target.path)


def _locations(target: Target) -> Iterator[Location]:
    if target.kind is not Kind.LOG_DIR:
        yield _location(target)
    for log_dir in target.log_dirs:
        yield from map(location_of_directory, log_dir.partitions)


# -- logs ----------------------------------------------------------------------------------------------------


def _selection(offsets: ValueRange, times: ValueRange) -> Selection:
    """The selection of two ranges, in which the ends of what a column can have are no bounds."""
    return Selection(
        None if offsets.first <= 0 else offsets.first,
        None if offsets.last == EVERY_VALUE.last else offsets.last + 1,
        None if times.first == EVERY_VALUE.first else times.first,
        None if times.last == EVERY_VALUE.last else times.last + 1,
    )


def _dumped(scan: TableScan, terms: DumpTerms, selections: Sequence[Selection]) -> Iterator[pa.RecordBatch | Finding]:
    """The rows of the targets in log order, and findings; several ranges of a log can meet the same damage."""
    for target in scan.targets():
        if isinstance(target, Finding):
            yield target
            continue
        if target.kind not in LOG_KINDS:
            raise NotALogDir(f"a file of the kind {target.kind.value} holds no batches", Location(str(target.path)))
        parts: Iterable[Target] = (target,)
        if len(selections) > 1 and target.kind is Kind.LOG_DIR:
            parts = (Target(each.path, Kind.PARTITION, target.surroundings) for each in target.partitions())
        for part in parts:
            for selection in selections:
                selected = replace(terms, selection=selection)
                yield from dumped_batches(part, selected, scan.make, advance=scan.sources.advance)


def _records(scan: TableScan) -> Iterator[Item]:
    times = scan.narrowing.hull(["timestamp"])
    offsets = [each for each in scan.narrowing.ranges("offset") if each.last >= 0]
    if times is None or not offsets:
        return
    terms = DumpTerms(records=True, limits=scan.sources.limits, extra_columns=_EXTRA, columns=scan.columns)
    if scan.columns & DECODED_NAMES:
        terms = replace(terms, decoding=scan.sources.decoding())
        yield from terms.decoding.schemas.findings if terms.decoding is not None else ()
    yield from _dumped(scan, terms, [_selection(each, times) for each in offsets])


def _batches(scan: TableScan) -> Iterator[Item]:
    offsets = scan.narrowing.hull(["base_offset", "last_offset"])
    times = scan.narrowing.hull(["max_timestamp"])
    if offsets is None or offsets.last < 0 or times is None:
        return
    checks_crcs = "crc_valid" in scan.columns
    if not checks_crcs:
        scan.note("the CRCs of batches: select crc_valid")
    terms = DumpTerms(limits=scan.sources.limits, checks_crcs=checks_crcs)
    with_path = replace(scan, make=lambda block: scan.make(replace(block, schema=BATCHES)))
    yield from _dumped(with_path, terms, [_selection(offsets, times)])


def _index_entries(scan: TableScan) -> Iterator[Item]:
    for target in scan.targets():
        for log in (target,) if isinstance(target, Finding) else selected_logs(target, EVERYTHING):
            if not isinstance(log, LogUnit):
                yield log
                continue
            try:
                yield from index_entries(log.path, log.location)
            except KafkaLogError as error:
                yield finding_of(error, log.location)


# -- listings ------------------------------------------------------------------------------------------------


def _listed(scan: TableScan, schema: RowSchema) -> Iterator[Item]:
    """The rows of ls with this schema; the logs are read where a column needs them."""
    from format.state.cluster_context import ContextTerms, read_context
    from format.verbs.ls.ls import ListTerms, ls
    from format.verbs.ls.partition_listing import PartitionListing, SegmentListing

    kind = PartitionListing if schema is PARTITION else SegmentListing
    sources = scan.sources
    terms = ListTerms(
        scan=not scan.columns <= _LISTED, segments=schema is SEGMENT, limits=sources.limits, advance=sources.advance
    )
    if terms.scan and schema is PARTITION:
        with suppress(InputError):  # listing the path reports it
            context = read_context(sources.targets, ContextTerms(limits=sources.limits))
            terms = replace(terms, context=context)
    for target in scan.targets():
        if isinstance(target, Finding):
            yield target
            continue
        for item in ls(target, terms):
            if isinstance(item, Finding):
                yield item
            elif isinstance(item, kind):
                yield [item.row()]


# -- answers of verbs ----------------------------------------------------------------------------------------


def _findings(scan: TableScan) -> Iterator[Item]:
    from format.verbs.verify.verify import Level, VerifyTerms, compacted_topics_at, not_checked, verify_all

    sources = scan.sources  # whole nodes, as there are findings about partitions that are not there
    compacted_topics = compacted_topics_at(sources.targets, sources.limits)
    terms = VerifyTerms(limits=sources.limits, compacted_topics=compacted_topics, advance=sources.advance)
    verified = verify_all(sources.targets, terms)
    for found in verified:
        yield [finding_row(found)]
        scan.judge(found)
    for words in not_checked(Level.FULL, verified.coverage):
        scan.note(words)


def _transactions(scan: TableScan) -> Iterator[Item]:
    from format.verbs.txns.txns import (
        Transactions,
        TransactionTerms,
        hanging_findings,
        open_transactions,
        transaction_rows,
    )

    topics = scan.topics()
    if topics is not None and not topics:
        return
    sources = scan.sources
    terms = TransactionTerms(now_ms=sources.now_ms, topics=topics or frozenset(), limits=sources.limits)
    result = Transactions(sources.targets)
    yield from result.read(terms, advance=sources.advance)
    opened = open_transactions(result, terms)
    yield from hanging_findings(opened, terms)
    yield from in_lists(transaction_rows(result, opened, terms))
    for words in result.not_checked(opened):
        scan.note(words)


def _groups_of(scan: TableScan, schema: RowSchema) -> Iterator[Item]:
    from format.verbs.groups.group_list import GroupTerms
    from format.verbs.groups.groups import GroupsReading

    sources = scan.sources
    reading = GroupsReading(list(sources.targets), GroupTerms(limits=sources.limits))
    for item in reading.read(advance=sources.advance):
        if isinstance(item, Finding):
            yield item
    found = reading.groups()
    yield from reading.replicas.unread_ends
    yield from in_lists(found.group_rows() if schema is GROUP else found.offset_rows())
    for words in reading.not_checked(found):
        scan.note(words)


def _producers(scan: TableScan) -> Iterator[Item]:
    from format.verbs.producers import Producers, ProducerTerms, producer_rows

    topics = scan.topics()
    if topics is not None and not topics:
        return
    sources = scan.sources
    terms = ProducerTerms(topics=topics or frozenset(), limits=sources.limits)
    result = Producers(sources.targets)
    yield from result.read(terms, advance=sources.advance)
    yield from in_lists(producer_rows(result, terms))
    if not result.ids.partitions:
        scan.note("transactional ids: no __transaction_state was read")


def _metadata(scan: TableScan, schema: RowSchema) -> Iterator[Item]:
    from format.verbs.metadata.metadata import MetadataTerms, metadata

    result = metadata(list(scan.sources.targets), MetadataTerms(limits=scan.sources.limits))
    yield from result.state.findings
    for kind, rows in result.rows():
        if kind is schema:
            yield from in_lists(rows)
    for words in result.not_checked():
        scan.note(words)


#: The types in SQL of the types of columns.
SQL_TYPES = {
    "int": "BIGINT",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "bytes": "BYTEA",
    "headers": "STRUCT(key BYTEA, value BYTEA)[]",
    "any": "VARCHAR, JSON",
    "json": "VARCHAR, JSON",
}


TABLES: dict[str, Table] = {
    "records": Table(RECORDS, "the records, as dump --records --raw shows them, and decoded", _records),
    "batches": Table(BATCHES, "the batches, as dump shows them", _batches),
    "segments": Table(SEGMENT, "the segments, as ls shows them", lambda scan: _listed(scan, SEGMENT)),
    "partitions": Table(PARTITION, "the partitions, as ls shows them", lambda scan: _listed(scan, PARTITION)),
    "index_entries": Table(INDEX_ENTRY, "the entries of offset and time indexes", _index_entries),
    "findings": Table(FINDING, "the findings of verify", _findings),
    "transactions": Table(TRANSACTION, "the transactions, as txns shows them", _transactions),
    "groups": Table(GROUP, "the groups, as groups shows them", lambda scan: _groups_of(scan, GROUP)),
    "group_offsets": Table(GROUP_OFFSET, "their committed offsets", lambda scan: _groups_of(scan, GROUP_OFFSET)),
    "producers": Table(PRODUCER, "the producers of each partition, as producers shows them", _producers),
    "topics": Table(TOPIC, "the topics of the metadata log", lambda scan: _metadata(scan, TOPIC)),
    "configs": Table(CONFIG, "the configs that are set in the metadata log", lambda scan: _metadata(scan, CONFIG)),
}
