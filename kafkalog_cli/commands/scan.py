"""kafkalog scan: the operations of other commands as Spark jobs, over whole directories or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from format.findings import Severity
from format.layout import CODEC_NAMES
from kafkalog_cli.options import (
    LEVELS,
    AsKind,
    FailOn,
    Format,
    FromOffset,
    FromTime,
    MaxDecompressedBytes,
    MaxRecordBytes,
    MaxZstdWindow,
    Quiet,
    ToOffset,
    ToTime,
    check_level,
    check_path,
    limits_of,
    one_of,
    parse_size,
)

if TYPE_CHECKING:
    from kafkalog_cli.runner import Run

JOBS = ("verify", "inventory", "grep", "extract", "recompress-estimate")

EXAMPLES = (
    ("kafkalog scan verify /var/kafka", "the findings of kafkalog verify, on all cores"),
    ("kafkalog scan inventory /var/kafka --output report", "every partition and segment, as Parquet tables too"),
    ("kafkalog scan grep order-4711 /var/kafka", "the records that kafkalog grep finds"),
    ("kafkalog scan extract /var/kafka --output out", "every record to Parquet, written by the workers"),
    ("kafkalog scan recompress-estimate /var/kafka --codec zstd", "what that would save, measured by all cores"),
    ("kafkalog scan verify s3://bucket/node-1", "a copy in an object store, read by ranges"),
    ("kafkalog scan verify /mnt/store --master spark://head:7077", "on a cluster that sees the same files"),
)


def scan(
    job: Annotated[
        str,
        typer.Argument(
            help="One of " + ", ".join(JOBS) + ".", show_default=False, **(one_of(*JOBS) | {"metavar": "JOB"})
        ),
    ],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[PATTERN] PATH...",
            help="Log directories, partition directories or files; for grep, after the text to look for.",
            show_default=False,
        ),
    ],
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Where Spark runs.", show_default="local[*]: this machine"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="DIR", help="A directory for Parquet tables; extract needs it."),
    ] = None,
    broker_id: Annotated[
        int | None,
        typer.Option(
            "--broker-id", metavar="N", help="Who the rows of the tables are from.", show_default="meta.properties"
        ),
    ] = None,
    range_size: Annotated[
        int | None,
        typer.Option(
            "--range-size",
            metavar="SIZE",
            parser=parse_size,
            help="How much of a large log one task reads.",
            show_default="64MiB, more where there are terabytes",
        ),
    ] = None,
    level: Annotated[str, typer.Option("--level", help="For verify: how deep.", **one_of(*LEVELS))] = "full",
    regex: Annotated[bool, typer.Option("--regex", help="For grep: PATTERN is a regular expression.")] = False,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", help="For grep: upper and lower case alike.")] = False,
    batches: Annotated[
        bool, typer.Option("--batches", help="For inventory: a table of all batches too; needs --output.")
    ] = False,
    codec: Annotated[
        str | None,
        typer.Option("--codec", help="For recompress-estimate: this codec, not all of them.", **one_of(*CODEC_NAMES)),
    ] = None,
    codec_level: Annotated[
        int | None, typer.Option("--codec-level", metavar="N", help="Its level.", show_default="Kafka's")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="SIZE",
            parser=parse_size,
            help="For recompress-estimate: log bytes to measure per topic.",
            show_default="16MiB",
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="For recompress-estimate: measure everything.")] = False,
    from_offset: FromOffset = None,
    to_offset: ToOffset = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    as_kind: AsKind = None,
    format_name: Format = None,
    fail_on: FailOn = Severity.ERROR,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_record_bytes: MaxRecordBytes = None,
    max_zstd_window: MaxZstdWindow = None,
    quiet: Quiet = False,
) -> None:
    """Run verify, ls (as inventory), grep, extract or recompress --estimate as a Spark job, with the same results.

    Paths may be addresses, such as s3://bucket/node-1.

    Needs Java 17 and pip install 'kafkalog[spark]'. A start takes a few seconds: for one partition, use the command.
    """
    from format.node.log_dir import Kind
    from format.scan.selection import Selection
    from format.verbs.verify.walk import Level
    from kafkalog_cli.runner import Run
    from spark_jobs.submit import Scan, job_options

    pattern, paths = (words[0], words[1:]) if job == "grep" else (None, words)
    if not paths:
        raise typer.BadParameter("no PATH after the PATTERN")
    from format.io import remote_files
    from format.io.remote_path import is_remote, path_of

    for path in paths:
        if not is_remote(path):
            check_path(str(path_of(path)))
    remote_files.know(paths)
    if output is None and (job == "extract" or batches):
        raise typer.BadParameter(f"{'extract' if job == 'extract' else '--batches'} needs --output DIR")
    if batches and job != "inventory":
        raise typer.BadParameter("--batches is for inventory")
    if job != "recompress-estimate" and (codec or codec_level is not None or sample or whole):
        raise typer.BadParameter("--codec, --codec-level, --sample and --whole are for recompress-estimate")
    check_level(codec, codec_level)
    limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
    selection = Selection(
        from_offset, None if to_offset is None else to_offset + 1, from_time, None if to_time is None else to_time + 1
    )
    if not selection.is_everything and job not in ("grep", "extract"):
        raise typer.BadParameter("ranges of offsets and times are for grep and extract")
    from format.columns import ESTIMATE, FINDING, PARTITION, RECORD
    from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES

    criteria = None if pattern is None else _criteria(pattern, regex, ignore_case, selection)
    schema = {"inventory": PARTITION, "grep": RECORD, "recompress-estimate": ESTIMATE}.get(job, FINDING)
    sample_bytes = None if whole else sample or DEFAULT_SAMPLE_BYTES
    with Run(
        "scan",
        format_name=format_name,
        quiet=quiet,
        paths=[str(path_of(path)) for path in paths],
        main_schema=schema,
        fail_on=fail_on,
        shows_summary=job == "verify",
    ) as run:
        wanted = Scan(
            job,
            [path_of(path) for path in paths],
            job_options(
                job,
                level=Level[level.upper()],
                criteria=criteria,
                selection=selection,
                limits=limits,
                codec=codec,
                codec_level=codec_level,
                sample_bytes=sample_bytes,
                batches=batches,
            ),
            master,
            None if as_kind is None else Kind(as_kind),
            output,
            broker_id,
            range_size,
        )
        _show(run, wanted, level)


def _criteria(pattern: str, regex: bool, ignore_case: bool, selection: Any) -> Any:
    from format.verbs.grep.grep import Criteria
    from format.verbs.grep.pattern import regex_pattern, text_pattern

    make = regex_pattern if regex else text_pattern
    try:
        return Criteria(make(pattern, ignore_case=ignore_case), selection=selection)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _show(run: Run, wanted: Any, level: str) -> None:
    from format.columns import ESTIMATE
    from format.findings import Finding
    from format.verbs.recompress.estimate import not_measured
    from format.verbs.verify.verify import NOT_CHECKED, Coverage
    from format.verbs.verify.walk import Level
    from kafkalog_cli.exit_codes import Condition
    from spark_jobs.submit import run as run_scan

    progress: Any = None
    done_bytes = 0

    def told(so_far_bytes: int, total_bytes: int) -> None:
        nonlocal progress, done_bytes
        if progress is None:
            progress = run.progress(total_bytes)
        progress.advance(max(so_far_bytes - done_bytes, 0))
        done_bytes = max(so_far_bytes, done_bytes)

    coverage = Coverage()
    found = largest_log_bytes = 0
    for item in run_scan(wanted, told):
        if isinstance(item, Finding):
            run.finding(item)
        elif isinstance(item, Coverage):
            coverage.add(item)
        else:
            rows = list(item.rows)
            found += len(rows)
            run.write(item.schema, rows)
            if item.schema is ESTIMATE:
                largest_log_bytes = max([largest_log_bytes, *(row[ESTIMATE.names.index("log_bytes")] for row in rows)])
    if wanted.job == "verify":
        for name in ("partitions", "segments", "side_files", "batches", "records", "bytes"):
            run.count(name, getattr(coverage, name))
        for words in NOT_CHECKED[Level[level.upper()]]:
            run.not_checked(words)
    elif wanted.job == "grep" and not found:
        run.condition(Condition.NOTHING_FOUND)
    elif wanted.job == "recompress-estimate":
        for words in not_measured(largest_log_bytes, wanted.options.sample_bytes):
            run.not_checked(words)
