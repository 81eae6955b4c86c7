"""extract on Spark: every record as a Parquet row with the columns of ``kafkalog dump --records``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from format.columns import RECORD
from format.errors import KafkaLogError, OutputError
from format.findings import Finding, finding_of
from format.io.remote_path import path_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.walker import batch_chunks
from format.node.log_dir import Kind
from format.rows.arrow_columns import record_batches_of
from format.rows.record_rows import RowBlock
from format.scan.read_log import first_position, opened_chunks
from format.scan.selection import EVERYTHING, Selection
from format.value_class import value_class
from format.verbs.dump.dump import DUMP_CHUNK_BYTES, DumpTerms, blocks_of_chunks, dump
from format.verbs.verify.verify import MOST_ALIKE, more_like_it
from spark_jobs.schemas import ddl
from spark_jobs.watching import watched
from spark_jobs.work.part_bounds import bounds_of, opened
from spark_jobs.work.parts import changes_of, tasks_that_fit
from spark_jobs.work.planning import Item, Part, Plan, Splits, UnitKind, segment_of_file
from spark_jobs.work.tasks import rows_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.requests import Scan, ScanResult

_LOG_KINDS = (None, Kind.LOG, Kind.KRAFT_SNAPSHOT, Kind.PARTITION)


@value_class
class ExtractOptions:
    """Which records, and the limits."""

    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    findings: Any = field(default=None, compare=False)

    @property
    def splits(self) -> Splits:
        """One reader stops where the offsets wanted end, so it reports no damage behind it; parts would."""
        return Splits.RANGES if self.selection.to_offset is None else Splits.SEGMENTS


@dataclass(slots=True)
class FindingsOfPart:
    """Findings in order: those reported one by one, and by code and file how many more and the last of them."""

    reported: list[Finding] = field(default_factory=list)
    more: dict[tuple[str, str], tuple[int, Finding]] = field(default_factory=dict)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, found: Finding, count: int = 1) -> None:
        """One more, or the last of several that are not reported one by one."""
        key = (found.code, found.location.path)
        self._counts[key] += count
        if self._counts[key] <= MOST_ALIKE:
            self.reported.append(found)
        else:
            self.more[key] = (self.more.get(key, (0, found))[0] + count, found)

    def all(self) -> Iterator[Finding]:
        """As ``verify`` reports findings that are alike."""
        yield from self.reported
        yield from (more_like_it(last, count) for count, last in self.more.values())


#: Findings by unit, segment and part, so that a task that was run twice counts once.
_Found = dict[tuple[int, int, int], FindingsOfPart]


def frame(session: SparkSession, plan: Plan[Item], options: ExtractOptions) -> DataFrame:
    """All records as rows of columns.RECORD; findings gather in an accumulator of the session.

    Logs that are cut into parts are walked over first, to see that the parts are sound and fit: what was written
    cannot be taken back.
    """
    from pyspark import AccumulatorParam

    class Together(AccumulatorParam[_Found]):
        def zero(self, value: Any) -> Any:
            return {}

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
            value1.update(value2)
            return value1

    findings = session.sparkContext.accumulator({}, Together())
    session._kafkalog_findings = findings

    def rows_of(item: Item) -> Iterator[pa.RecordBatch]:
        return _records(item, options, findings.add)

    return rows_frame(session, tasks_that_fit(session, plan, options.limits), plan.addresses, rows_of, ddl(RECORD))


def _records(item: Item, options: ExtractOptions, report_findings: Callable[[Any], None]) -> Iterator[pa.RecordBatch]:
    found = FindingsOfPart()
    if isinstance(item, Part):
        segment = item.segment
        base_offset = segment.location.base_offset
        if base_offset is not None and options.selection.excludes_segment(base_offset, segment.next_base_offset):
            return
        key, path = (segment.unit, segment.number, item.part), segment.path
        blocks = _blocks(path_of(path), Kind.LOG, options) if segment.part_count == 1 else _part(item, options)
    elif item.kind is UnitKind.LOG_DIR_FILES or item.file_kind not in _LOG_KINDS:
        return
    else:
        key, path = (item.number, 0, 0), item.path
        blocks = _blocks(path_of(path), item.file_kind or Kind.PARTITION, options)
    if not isinstance(item, Part) or item.part == 0:
        for each in changes_of(item):
            found.add(each)
    try:
        for block in blocks:
            if isinstance(block, Finding):
                found.add(block)
            elif block.records is not None and block.location is not None:
                for batch in record_batches_of(block.records, block.location):
                    yield batch.replace_schema_metadata(None)
    except KafkaLogError as error:
        found.add(finding_of(error, Location(path)))
    if found.reported:
        report_findings({key: found})


def _blocks(path: Path, kind: Kind, options: ExtractOptions) -> Iterator[RowBlock | Finding]:
    return dump(path, kind=kind, records=True, selection=options.selection, limits=options.limits)


def _part(item: Part, options: ExtractOptions) -> Iterator[RowBlock | Finding]:
    """The blocks of one part of a log, as in a dump of the whole log."""
    segment = item.segment
    source, _ = opened(segment)
    with source:
        start, end = bounds_of(segment, source, item.part, options.limits)
        if not options.selection.is_everything:
            start = max(start, first_position(segment_of_file(path_of(segment.path)), source, options.selection))
            if end is not None and start >= end:
                return
        chunks = batch_chunks(source, start, end, limits=options.limits, chunk_bytes=DUMP_CHUNK_BYTES)
        items = opened_chunks(
            source,
            chunks,
            segment.location,
            options.selection,
            is_last_segment=segment.is_last and end is None,
            limits=options.limits,
        )
        terms = DumpTerms(records=True, selection=options.selection, limits=options.limits)
        yield from blocks_of_chunks(items, segment.location, terms)


def _of_segments(found: _Found) -> Iterator[Finding]:
    """The findings of all parts in their order, as many alike for each segment as for one that was read as a whole."""
    for _, keys in groupby(sorted(found), key=lambda key: key[:2]):
        together = FindingsOfPart()
        for key in keys:
            for each in found[key].reported:
                together.add(each)
            for count, last in found[key].more.values():
                together.add(last, count)
        yield from together.all()


def written(
    session: SparkSession, rows: DataFrame, scan: Scan, report_share: Callable[[float], None]
) -> Iterator[ScanResult]:
    """Write the rows below ``scan.output`` as the table ``records``, then yield the findings in their order."""
    if scan.output is None:
        raise OutputError("extract needs a place to write to: give --output DIR")
    target = f"{scan.output}/records"
    watched(session, "kafkalog extract", lambda: rows.write.mode("errorifexists").parquet(target), report_share)
    yield from _of_segments(session._kafkalog_findings.value)
