"""The views of the data source that read logs and indexes, as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from format.checks.records import check_record_offsets, reading_findings
from format.columns import BATCH, DECODED_NAMES, record_schema
from format.decoding.decoder import Decoding
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange
from format.log.batch_table import BatchTable
from format.log.read_records import known_batches, record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks, header_chunks
from format.rows import arrow_columns
from format.rows.decoded_rows import decoded_tables
from format.rows.record_rows import BoolColumn, RowValues, bounded_parts
from format.scan.header_records import answered_by_headers, records_of_headers
from format.scan.protocol import LogUnit
from format.scan.read_log import (
    IntactElsewhere,
    LogChunk,
    OverlapFindings,
    RepeatFindings,
    crc_findings,
    damage_finding,
)
from format.scan.selection import CommittedView, Selection
from spark_jobs.planning import Item, LogPart, log_part_of
from spark_jobs.schemas import BROKER_ID, DETAILS, times
from spark_jobs.tasks import bounds_of, opened
from spark_jobs.view_options import ReadOptions

#: The columns of the records view that headers answer.
HEADER_COLUMNS = frozenset({"topic", "partition", "offset", "timestampType", "path", BROKER_ID.name})


ReportDamage = Callable[[Finding], None]


class ServedLog(LogUnit, frozen=True):
    """A log, and the offsets to read from it: from ``from_offset`` to before ``to_offset``; None for no bound.

    With ``is_increment``, damage counts only where it begins at one of these offsets: a stream reads the others at
    other times, and may come past their damage on its way.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    is_increment: bool = False

    def narrowed(self, selection: Selection) -> Selection:
        """What is selected of these offsets."""
        return selection.within(self.from_offset, self.to_offset)

    def begins_here(self, table: BatchTable) -> BoolColumn:
        """Which batches begin at one of these offsets, so that logs read one after the other have each batch once."""
        keep: BoolColumn = np.ones(len(table), np.bool_)
        if self.from_offset is not None:
            keep = keep & (table.base_offset >= self.from_offset)
        if self.to_offset is not None:
            keep = keep & (table.base_offset < self.to_offset)
        return keep


def _counts(log: LogUnit, found: Finding) -> bool:
    """Whether damage is to be reported. What the header of a damaged batch says of offsets may be wrong."""
    if not isinstance(log, ServedLog) or not log.is_increment:
        return True
    at = found.lost_offsets[0] if found.lost_offsets else found.location.offset
    at = (log.location.base_offset or 0) if at is None else at
    return (log.from_offset is None or at >= log.from_offset) and (log.to_offset is None or at < log.to_offset)


#: The columns of DETAILS that come from the record, not from its place.
_DETAILS = (frozenset(DETAILS.names) | DECODED_NAMES) - {"path", "raw_headers", BROKER_ID.name}
_RECORD = record_schema(DECODED_NAMES)


# -- logs ----------------------------------------------------------------------------------------------------


def _chunks(
    part: LogPart, selection: Selection, report_damage: ReportDamage, *, reads_bodies: bool = True
) -> Iterator[tuple[BatchChunk, BoolColumn, list[Finding]]]:
    """The chunks of a part of a log, each with: which of its batches begin in the part, and its findings.

    The findings have been passed to ``report_damage``. Reading goes on behind the end of the part where there is
    damage, since the bytes there decide how far the damage reaches. The selected offsets and times are looked up in the
    indexes, so that nothing before or behind them is read.
    """
    log = part.of.log
    source, _ = opened(part.of)
    with source:
        start, end = bounds_of(part.of, source, part.part, DEFAULT_LIMITS)
        start = max(start, log.whole_range(source, selection).start)
        if end is not None and start >= end:
            return
        where, elsewhere = BatchRange(start, read_from=0), IntactElsewhere.of_log(log, DEFAULT_LIMITS)
        repeats, overlaps = RepeatFindings(log.location), OverlapFindings(log.location)
        chunks = batch_chunks(source, where) if reads_bodies else header_chunks(source, where)
        for chunk in (known_batches(headers, source) for headers in chunks):
            position = chunk.table.position
            is_inside = np.ones(len(position), bool) if end is None else position < end
            damage = chunk.damage
            if end is not None and not is_inside.any() and (damage is None or damage.position >= end):
                return
            found = [*repeats.before(chunk.table, chunk.repeated), *repeats.ended()]
            found += [*overlaps.in_chunk(chunk), *crc_findings(chunk, log)]
            if damage is not None:
                found.append(damage_finding(damage, log))
            found = [counted for each in found for counted in elsewhere.counted(each)]
            if end is not None:
                found = [each for each in found if (each.location.position or 0) < end]
            found = [each for each in found if _counts(log, each)]
            for each in found:
                report_damage(each)
            yield chunk, is_inside, found
            if not is_inside.all() or selection.is_past(chunk.table):
                return


def _selection(options: ReadOptions, log: LogUnit) -> Selection:
    selection = options.selection(log.location)
    return log.narrowed(selection) if isinstance(log, ServedLog) else selection


def batches(item: Item, options: ReadOptions, report_damage: ReportDamage) -> Iterator[pa.RecordBatch]:
    """Rows of columns.BATCH with their path. A batch with a wrong CRC has crc_valid false; DROPMALFORMED omits it."""
    part = log_part_of(item)
    location = part.of.log.location
    selection = _selection(options, part.of.log)
    for chunk, is_inside, _ in _chunks(part, selection, report_damage, reads_bodies=options.reads_bodies):
        keep = is_inside & selection.batches(chunk.table)
        if isinstance(part.of.log, ServedLog):
            keep = keep & part.of.log.begins_here(chunk.table)
        if options.mode == "DROPMALFORMED":
            keep = keep & (chunk.table.crc_valid != 0)
        rows = arrow_columns.columns_batch(BATCH, RowValues(chunk.table.rows(keep), location))
        yield rows.append_column("path", arrow_columns.constant(location.path, rows.num_rows, "string"))


def damage(item: Item, options: ReadOptions) -> Iterator[Finding]:
    """The findings of reading a log and its records, as dump has them."""
    part = log_part_of(item)
    log = part.of.log
    selection = _selection(options, log)
    for chunk, is_inside, found in _chunks(part, selection, lambda each: None):
        yield from found
        which = LogChunk(chunk, log.location, is_inside & selection.batches(chunk.table)).readable
        for table in record_tables(chunk, which=which, location=log.location):
            yield from (each for each in reading_findings(table, log.location) if _counts(log, each))


def records(
    item: Item,
    options: ReadOptions,
    schema: pa.Schema,
    report_damage: ReportDamage,
    committed: CommittedView | None = None,
    decoding: Decoding | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of the records view. Damaged batches have none, except those of the column of corrupt records.

    With ``committed``, the rows are what a read_committed consumer gets of the partition. With ``decoding``, keys and
    values are decoded where the schema has a column of it; one that does not decode ends a job in mode FAILFAST.
    """
    if DECODED_NAMES.isdisjoint(schema.names):
        decoding = None
    needs_headers_only = HEADER_COLUMNS.issuperset(schema.names)
    corrupt_column = options.corrupt_column if options.corrupt_column in schema.names else None
    part = log_part_of(item)
    log = part.of.log
    location = log.location
    selection = _selection(options, log)
    if committed is not None:
        selection = selection.within(None, committed.last_stable_offset)
    for chunk, is_inside, found in _chunks(part, selection, report_damage):
        which = LogChunk(chunk, location, is_inside & selection.batches(chunk.table)).readable
        if committed is not None:
            which = which & committed.batches(chunk.table)
        if not options.control:
            which = which & ~chunk.table.is_control
        if needs_headers_only:
            from_headers = which & answered_by_headers(chunk.table, selection)
            for known in records_of_headers(chunk.table.rows(from_headers)):
                yield _kafka_batch(known, location, schema)
            which = which & ~from_headers
        for table in record_tables(chunk, which=which, location=location):
            for problem in table.problems:
                broken = finding_of(problem.error, location)
                if _counts(log, broken):
                    found.append(broken)
                    report_damage(broken)
            kept = table if selection.is_everything else table.rows(np.flatnonzero(selection.records(table)))
            wrong_offsets = check_record_offsets(kept, location) if len(kept) else ()
            for each in chain(wrong_offsets, decoded_tables(kept, location, decoding)):
                if isinstance(each, Finding):  # its records are read
                    found.append(each)
                    if options.mode == "FAILFAST":
                        report_damage(each)
                    continue
                for bounded in bounded_parts(each):
                    yield _kafka_batch(bounded, location, schema)
        if corrupt_column is not None and options.mode == "PERMISSIVE" and found:
            yield _damage_rows(found, corrupt_column, schema)


def _kafka_batch(table: RecordTable, location: Location, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a table. Columns that take time are made only where the schema has them."""
    count = len(table)
    wanted = frozenset(schema.names)
    made: dict[str, pa.Array] = {}
    for name in ("key", "value"):
        if name in wanted:
            starts, lengths = getattr(table, f"{name}_start"), getattr(table, f"{name}_length")
            made[name] = arrow_columns.bytes_array(table.buffer, starts, lengths)
    made["topic"] = arrow_columns.constant(location.topic, count, "string")
    made["partition"] = arrow_columns.constant(location.partition, count, "int").cast(pa.int32())
    made["offset"] = arrow_columns.ints(table.offset)
    made["path"] = arrow_columns.constant(location.path, count, "string")
    if wanted & {"timestamp", "timestampType"}:
        made |= _timestamps(table)
    if "headers" in wanted:
        made["headers"] = _kafka_headers(table, schema.field("headers").type)
    if "raw_headers" in wanted:
        made["raw_headers"] = arrow_columns.headers_array(table)
    details = [name for name in schema.names if name in _DETAILS]
    if details:
        rows = arrow_columns.columns_batch(_RECORD, RowValues.of_records(table, location), details)
        made |= dict(zip(rows.schema.names, rows.columns, strict=True))
    for name in schema.names:
        if name not in made:
            made[name] = pa.nulls(count, schema.field(name).type)
    return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)


def _timestamps(table: RecordTable) -> dict[str, pa.Array]:
    of_batch = BatchTable(table.batches.columns[table.batch])
    # Kafka's ids: 0 CreateTime, 1 LogAppendTime, -1 where the format has none.
    types = np.where(of_batch.magic == 0, -1, of_batch.is_append_time).astype(np.int32)
    return {
        "timestamp": times(arrow_columns.ints(table.timestamp, of_batch.magic == 0)),
        "timestampType": pa.array(types, pa.int32()),
    }


def _kafka_headers(table: RecordTable, kind: pa.DataType) -> pa.Array:
    """Headers as Spark's Kafka source gives them: null when there are none, keys as text."""
    raw = arrow_columns.headers_array(table)
    keys = raw.values.field("key")
    try:
        text = keys.cast(pa.string())
    except pa.ArrowInvalid:  # keys that are not UTF-8
        text = pa.array([each.decode("utf-8", "replace") for each in keys.to_pylist()], pa.string())
    structs = pa.StructArray.from_arrays([text, raw.values.field("value")], fields=list(kind.value_type))
    is_empty = table.header_count <= 0
    mask = pa.array(is_empty) if is_empty.any() else None
    return pa.ListArray.from_arrays(raw.offsets, structs, type=kind, mask=mask)


def _damage_rows(found: list[Finding], column: str, schema: pa.Schema) -> pa.RecordBatch:
    def values(name: str) -> list[Any]:
        if name == column:
            return [arrow_columns.escaped(f"{each.code}: {each.location}: {each.message}") for each in found]
        place = {"topic": "topic", "partition": "partition", "offset": "offset"}.get(name)
        return [None if place is None else getattr(each.location, place) for each in found]

    arrays = [pa.array(values(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
