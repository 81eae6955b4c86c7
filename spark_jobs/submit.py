"""The one door to Spark: runs a job over paths and gives back what it tells, in a fixed order.

``run`` is behind both ``kafkalog scan`` and the jobs' own ``main`` for spark-submit.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from format.columns import FINDING, RECORD, RowSchema
from format.errors import InputError, KafkaLogError
from format.findings import Finding
from format.io import remote_files
from format.io.remote_path import path_of
from format.layout import CODEC_NAMES
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.node.log_dir import Kind
from format.scan.selection import EVERYTHING, Selection
from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES
from format.verbs.verify.verify import Coverage
from format.verbs.verify.walk import Level
from spark_jobs.class_archive import want_class_archive
from spark_jobs.planning import Plan, Splits, plan
from spark_jobs.session import close_session, is_session_running, is_submitted, open_session, require_spark

if TYPE_CHECKING:
    from format.verbs.grep.grep import Criteria

JOBS = ("verify", "inventory", "grep", "extract", "recompress-estimate")

#: Results of no more than this are fetched by the driver at once, and not partition by partition.
_MOST_BYTES_AT_ONCE = 16 * MIB

ToldProgress = Callable[[int, int], None]  # bytes done, bytes in all


class JobOptions(Protocol):
    """The options of a job; each job's module has its own class."""

    @property
    def splits(self) -> Splits: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one schema, told by a job."""

    schema: RowSchema
    rows: Iterator[tuple[Any, ...]] | list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Scan:
    """A job over paths: where it runs, and where its report goes.

    ``output`` is a directory of Parquet tables, by table and broker id; ``range_bytes`` how much a task reads at
    once of a large log, None to choose by the total.
    """

    job: str
    paths: Sequence[Path]
    options: JobOptions
    master: str | None = None
    kind: Kind | None = None
    output: str | None = None
    broker_id: int | None = None
    range_bytes: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


Told = Finding | Rows | Coverage


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
        from spark_jobs.jobs.verify import VerifyOptions

        return VerifyOptions(level, limits)
    if job == "grep":
        from format.verbs.grep.grep import Criteria as AnyRecord
        from spark_jobs.jobs.grep import GrepOptions

        return GrepOptions(criteria or AnyRecord(), limits)
    if job == "extract":
        from spark_jobs.jobs.extract import ExtractOptions

        return ExtractOptions(selection, limits)
    if job == "recompress-estimate":
        from spark_jobs.jobs.recompress_estimate import EstimateOptions

        return EstimateOptions(codec, codec_level, sample_bytes, limits)
    from spark_jobs.jobs.inventory import InventoryOptions

    return InventoryOptions(batches=batches, limits=limits)


def run(scan: Scan, told: ToldProgress | None = None) -> Iterator[Told]:
    """What the job tells, unit by unit in the order of the paths; a session that was not there before is closed.

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
    # A path that is wrong is told before the seconds that a session takes.
    first = _planned(scan, 2)
    is_ours = not is_session_running()
    session = open_session(scan.master, scan.conf)
    try:
        parallelism = session.sparkContext.defaultParallelism
        made = first if parallelism == 2 else _planned(scan, parallelism)
        yield from _run(session, scan, made, told)
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
    return importlib.import_module(f"spark_jobs.jobs.{job.replace('-', '_')}")


def _run(session: Any, scan: Scan, made: Plan[Any], told: ToldProgress | None) -> Iterator[Told]:
    from pyspark import StorageLevel

    from spark_jobs.report import write_report
    from spark_jobs.tasks import ORDER, RESULT_DDL, Result
    from spark_jobs.watching import watched

    def share_told(share: float) -> None:
        if told is not None:
            told(int(share * made.total_bytes), made.total_bytes)

    module = _module_of(scan.job)
    if hasattr(module, "told"):
        yield from module.told(session, made, scan, share_told)
        return
    frame = module.frame(session, made, scan.options)
    if list(frame.columns) != [field.split()[0] for field in RESULT_DDL.split(", ")]:
        yield from module.written(session, frame, scan, share_told)
        return
    results = frame.persist(StorageLevel.DISK_ONLY)
    result_bytes = watched(session, f"kafkalog {scan.job}", lambda: _bytes_of(results), share_told)
    if scan.output is not None:
        watched(session, "kafkalog report", lambda: write_report(session, results, scan))
        if hasattr(module, "written_beside"):
            module.written_beside(session, scan, share_told)
    import pickle

    rows: Iterable[Any]
    if result_bytes <= _MOST_BYTES_AT_ONCE:
        rows = sorted(results.collect(), key=lambda row: row[:5])
    else:  # one partition after the other reaches the driver, so that it never holds them all
        rows = results.orderBy(*ORDER).toLocalIterator()
    for row in rows:
        yield from _values(Result(*row[:5], pickle.loads(row[5])))


def _bytes_of(results: Any) -> int:
    """Work out all results, and say how many bytes their payloads have."""
    from pyspark.sql.functions import length, sum

    return results.select(sum(length("payload"))).first()[0] or 0


def _values(result: Any) -> Iterator[Told]:
    from spark_jobs.jobs.grep import ArrowRecords
    from spark_jobs.jobs.inventory import Listed

    values = result.value if isinstance(result.value, list) else [result.value]
    for value in values:
        if isinstance(value, Listed):
            yield Rows(value.schema, [value.row])
        elif isinstance(value, ArrowRecords):
            yield Rows(RECORD, value.rows())
        else:
            yield value


# -- spark-submit --------------------------------------------------------------------------------------------


def main(job: str, arguments: Sequence[str] | None = None) -> int:
    """A job's own entry for spark-submit: rows as JSON lines on standard output, and a summary as the last line.

    The exit status is 1 for findings of severity error and above, 3 where something could not be read, as the
    command line has it.
    """
    import argparse

    parser = argparse.ArgumentParser(prog=f"spark_jobs/jobs/{job.replace('-', '_')}.py")
    if job == "grep":
        parser.add_argument("pattern")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--output", help="a directory for Parquet tables")
    parser.add_argument("--broker-id", type=int)
    parser.add_argument("--master")
    parser.add_argument("--range-bytes", type=int)
    if job == "verify":
        parser.add_argument("--level", choices=("headers", "crc", "records", "full"), default="full")
    if job == "inventory":
        parser.add_argument("--batches", action="store_true")
    if job == "recompress-estimate":
        parser.add_argument("--codec", choices=CODEC_NAMES)
        parser.add_argument("--codec-level", type=int)
        parser.add_argument("--sample-bytes", type=int, default=DEFAULT_SAMPLE_BYTES)
        parser.add_argument("--whole", action="store_true")
    given = parser.parse_args(arguments)
    remote_files.know(given.paths)
    scan = Scan(
        job,
        [path_of(each) for each in given.paths],
        job_options(
            job,
            level=Level[getattr(given, "level", "full").upper()],
            criteria=_criteria(given.pattern) if job == "grep" else None,
            batches=getattr(given, "batches", False),
            codec=getattr(given, "codec", None),
            codec_level=getattr(given, "codec_level", None),
            sample_bytes=None if getattr(given, "whole", False) else getattr(given, "sample_bytes", None),
        ),
        given.master,
        output=given.output,
        broker_id=given.broker_id,
        range_bytes=given.range_bytes,
    )
    return _print_lines(scan)


def _criteria(pattern: str) -> Criteria:
    from format.verbs.grep.grep import Criteria
    from format.verbs.grep.pattern import text_pattern

    return Criteria(text_pattern(pattern))


def _print_lines(scan: Scan) -> int:
    from format.rows.arrow_columns import finding_row

    counts: dict[str, int] = {}
    code = 0
    try:
        for item in run(scan):
            if isinstance(item, Coverage):
                continue
            rows = Rows(FINDING, [finding_row(item)]) if isinstance(item, Finding) else item
            if isinstance(item, Finding):
                code = _worse(code, 3 if item.is_incomplete else 1 if item.severity >= 2 else 0)
            for row in rows.rows:
                _print({"type": rows.schema.type, **dict(zip(rows.schema.names, map(_plain, row), strict=True))})
                counts[rows.schema.type] = counts.get(rows.schema.type, 0) + 1
    except KafkaLogError as error:
        sys.stderr.write(f"kafkalog: {error}\n")
        return 3
    _print({"type": "summary", "command": f"scan {scan.job}", "counts": counts, "exit_code": code})
    return code


def _worse(code: int, other: int) -> int:
    return max(code, other, key=(0, 3, 1).index)


def _print(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values, default=str) + "\n")


def _plain(value: Any) -> Any:
    """Bytes as the command line's JSON has them: text where they are UTF-8, else base64."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            import base64

            return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
