"""extract on Spark: every record as a Parquet row with the columns of ``kafkalog dump --records``.

Run as ``kafkalog scan extract PATH… --output DIR`` or ``spark-submit spark_jobs/jobs/extract.py PATH… --output DIR``.
Executors write the rows; only findings, at most a hundred alike for each file, come to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from format.arrow_columns import record_batches_of
from format.columns import RECORD
from format.errors import KafkaLogError, OutputError
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log_dir import Kind
from format.operations.dump import dump
from format.operations.selection import EVERYTHING, Selection
from format.operations.verify import limited
from spark_jobs.planning import Item, Part, Plan, Splits, UnitKind
from spark_jobs.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.submit import Scan, Told

_LOG_KINDS = (None, Kind.LOG, Kind.KRAFT_SNAPSHOT, Kind.PARTITION)


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """Which records, and the limits."""

    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    findings: Any = field(default=None, compare=False)

    @property
    def splits(self) -> Splits:
        return Splits.SEGMENTS


class _FindingsByTask(dict[tuple[int, int], list[Finding]]):
    """Findings by unit and segment: a task that was run twice counts once."""


def frame(session: SparkSession, plan: Plan, options: ExtractOptions) -> DataFrame:
    """All records as rows of columns.RECORD; findings gather in an accumulator of the session."""
    from pyspark import AccumulatorParam

    class Together(AccumulatorParam[dict[tuple[int, int], list[Finding]]]):
        def zero(self, value: Any) -> Any:
            return {}

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
            value1.update(value2)
            return value1

    findings = session.sparkContext.accumulator({}, Together())
    shared = session.sparkContext.broadcast(plan.tasks)
    session._kafkalog_findings = findings  # type: ignore[attr-defined]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for item in shared.value[number]:
                    yield from _records(item, options, findings.add)

    return session.range(0, len(plan.tasks), 1, max(len(plan.tasks), 1)).mapInArrow(run, ddl(RECORD))


def _records(item: Item, options: ExtractOptions, told: Callable[[Any], None]) -> Iterator[pa.RecordBatch]:
    if isinstance(item, Part):
        base_offset = item.segment.location.base_offset
        if base_offset is not None and options.selection.excludes_segment(base_offset, item.segment.next_base_offset):
            return
        key, path, kind = (item.segment.unit, item.segment.number), Path(item.segment.path), Kind.LOG
    elif item.kind is UnitKind.LOG_DIR_FILES or item.file_kind not in _LOG_KINDS:
        return
    else:
        key, path, kind = (item.number, 0), Path(item.path), item.file_kind or Kind.PARTITION
    found: list[Finding] = []
    try:
        for block in dump(path, kind=kind, records=True, selection=options.selection, limits=options.limits):
            if isinstance(block, Finding):
                found.append(block)
            elif block.records is not None and block.location is not None:
                for batch in record_batches_of(block.records, block.location):
                    yield batch.replace_schema_metadata(None)
    except KafkaLogError as error:
        found.append(finding_of(error, Location(str(path))))
    if found:
        told({key: list(limited(found))})


def written(session: SparkSession, rows: DataFrame, scan: Scan, told: Callable[[float], None]) -> Iterator[Told]:
    """Write the rows below ``scan.output`` as the table ``records``, then tell the findings in their order."""
    from spark_jobs.watching import watched

    if scan.output is None:
        raise OutputError("extract needs a place to write to: give --output DIR")
    target = f"{scan.output}/records"
    watched(session, "kafkalog extract", lambda: rows.write.mode("errorifexists").parquet(target), told)
    for _, found in sorted(session._kafkalog_findings.value.items()):  # type: ignore[attr-defined]
        yield from found


if __name__ == "__main__":
    import sys

    from spark_jobs.submit import main

    sys.exit(main("extract"))
