"""The one door to Spark: runs a scan over paths and returns its results in a fixed order.

``run`` is behind ``kafkalog scan``, also when spark-submit calls it.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from format.columns import RECORD
from format.errors import InputError
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.scan.selection import EVERYTHING, Selection
from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES
from format.verbs.verify.walk import Level
from spark_jobs.class_archive import want_class_archive
from spark_jobs.requests import JobOptions, ReportProgress, Rows, Scan, ScanResult
from spark_jobs.session import close_session, is_session_running, is_submitted, open_session, require_spark
from spark_jobs.work.planning import Plan, plan

if TYPE_CHECKING:
    from format.verbs.grep.grep import Criteria

__all__ = ["JOBS", "JobOptions", "ReportProgress", "Rows", "Scan", "ScanResult", "job_options", "run"]

JOBS = ("verify", "inventory", "grep", "extract", "recompress-estimate")

#: Results of no more than this are fetched by the driver at once, and not partition by partition.
_MOST_BYTES_AT_ONCE = 16 * MIB


def job_options(
    job: str,
    *,
    level: Level = Level.FULL,
    criteria: Criteria | None = None,
    selection: Selection = EVERYTHING,
    limits: Limits = DEFAULT_LIMITS,
    codec: str | None = None,
    codec_level: int | None = None,
    sample_bytes: int | None = DEFAULT_SAMPLE_BYTES,
    batches: bool = False,
) -> JobOptions:
    """The options of a job, from what it takes of these; raises SparkMissing where Spark cannot start."""
    require_spark()  # the jobs need pyarrow as soon as they are imported
    if job == "verify":
        from spark_jobs.scans.verify import VerifyOptions

        return VerifyOptions(level, limits)
    if job == "grep":
        from format.verbs.grep.grep import Criteria as AnyRecord
        from spark_jobs.scans.grep import GrepOptions

        return GrepOptions(criteria or AnyRecord(), limits)
    if job == "extract":
        from spark_jobs.scans.extract import ExtractOptions

        return ExtractOptions(selection, limits)
    if job == "recompress-estimate":
        from spark_jobs.scans.recompress_estimate import EstimateOptions

        return EstimateOptions(codec, codec_level, sample_bytes, limits)
    from spark_jobs.scans.inventory import InventoryOptions

    return InventoryOptions(batches=batches, limits=limits)


def run(scan: Scan, report_progress: ReportProgress | None = None) -> Iterator[ScanResult]:
    """The results of the job, unit by unit in the order of the paths; a session that was not there before is closed.

    Raises SparkMissing where Spark cannot start, InputError for a path that is nothing of Kafka's, and JobFailed.
    """
    require_spark()
    if scan.job not in JOBS:
        raise InputError(f"there is no job {scan.job}; the jobs are {', '.join(JOBS)}")
    from spark_jobs.report import check_output

    if scan.output is not None:
        check_output(scan.output, scan.paths)
    is_elsewhere = is_submitted() if scan.master is None else not scan.master.startswith("local")
    if is_elsewhere:  # executors have another working directory
        scan = replace(scan, paths=[path.absolute() for path in scan.paths])
    # A wrong path is reported before the seconds that a session takes.
    first = _planned(scan, 2)
    is_ours = not is_session_running()
    session = open_session(scan.master, scan.conf)
    try:
        parallelism = session.sparkContext.defaultParallelism
        made = first if parallelism == 2 else _planned(scan, parallelism)
        yield from _run(session, scan, made, report_progress)
        want_class_archive()
    finally:
        if is_ours:
            close_session(session)


def _planned(scan: Scan, parallelism: int) -> Plan[Any]:
    own = getattr(_module_of(scan.job), "planned", None)  # for a job whose tasks are no ranges of logs
    if own is not None:
        made: Plan[Any] = own(scan.paths, scan.options, parallelism)
        return made
    return plan(
        scan.paths,
        kind=scan.kind,
        parallelism=parallelism,
        range_bytes=scan.range_bytes,
        splits=scan.options.splits,
    )


def _module_of(job: str) -> Any:
    return importlib.import_module(f"spark_jobs.scans.{job.replace('-', '_')}")


def _run(session: Any, scan: Scan, made: Plan[Any], report_progress: ReportProgress | None) -> Iterator[ScanResult]:
    from pyspark import StorageLevel

    from spark_jobs.report import write_report
    from spark_jobs.watching import watched
    from spark_jobs.work.tasks import ORDER, RESULT_DDL, Result

    def report_share(share: float) -> None:
        if report_progress is not None:
            report_progress(int(share * made.total_bytes), made.total_bytes)

    module = _module_of(scan.job)
    if hasattr(module, "results"):
        yield from module.results(session, made, scan, report_share)
        return
    frame = module.frame(session, made, scan.options)
    if list(frame.columns) != [field.split()[0] for field in RESULT_DDL.split(", ")]:
        yield from module.written(session, frame, scan, report_share)
        return
    results = frame.persist(StorageLevel.DISK_ONLY)
    result_bytes = watched(session, f"kafkalog {scan.job}", lambda: _bytes_of(results), report_share)
    if scan.output is not None:
        watched(session, "kafkalog report", lambda: write_report(session, results, scan))
        if hasattr(module, "written_beside"):
            module.written_beside(session, scan, report_share)
    rows: Iterable[Any]
    if result_bytes <= _MOST_BYTES_AT_ONCE:
        rows = sorted(results.collect(), key=lambda row: row[:5])
    else:  # one partition after the other reaches the driver, so that it never holds them all
        rows = results.orderBy(*ORDER).toLocalIterator()
    for row in rows:
        unit, phase, segment, part, step, payload = row
        yield from _values(Result(unit, phase, segment, part, step, pickle.loads(payload)))


def _bytes_of(results: Any) -> int:
    """Work out all results, and say how many bytes their payloads have."""
    from pyspark.sql.functions import length, sum

    return results.select(sum(length("payload"))).first()[0] or 0


def _values(result: Any) -> Iterator[ScanResult]:
    from spark_jobs.scans.grep import ArrowRecords
    from spark_jobs.scans.inventory import Listed

    values = result.value if isinstance(result.value, list) else [result.value]
    for value in values:
        if isinstance(value, Listed):
            yield Rows(value.schema, [value.row])
        elif isinstance(value, ArrowRecords):
            yield Rows(RECORD, value.rows())
        else:
            yield value
