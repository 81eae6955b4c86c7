"""kafkalog scan: the operations of other commands as Spark jobs, over whole directories or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from format.layout import CODEC_NAMES
from kafkalog_cli.options.cluster import Cluster
from kafkalog_cli.options.compression import check_level
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.judging import LEVELS, Judging
from kafkalog_cli.options.output import RowOutput
from kafkalog_cli.options.parsers import one_of, parse_size
from kafkalog_cli.options.reading import AsKind, check_path
from kafkalog_cli.options.selection import Range

if TYPE_CHECKING:
    from format.scan.selection import Selection
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


@dataclass(frozen=True, slots=True)
class Choices:
    """What one of the jobs takes, each for itself."""

    level: Annotated[str, typer.Option("--level", help="For verify: how deep.", **one_of(*LEVELS))] = "full"
    regex: Annotated[bool, typer.Option("--regex", help="For grep: PATTERN is a regular expression.")] = False
    ignore_case: Annotated[bool, typer.Option("--ignore-case", help="For grep: upper and lower case alike.")] = False
    batches: Annotated[
        bool, typer.Option("--batches", help="For inventory: a table of all batches too; needs --output.")
    ] = False
    codec: Annotated[
        str | None,
        typer.Option("--codec", help="For recompress-estimate: this codec, not all of them.", **one_of(*CODEC_NAMES)),
    ] = None
    codec_level: Annotated[
        int | None, typer.Option("--codec-level", metavar="N", help="Its level.", show_default="Kafka's")
    ] = None
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="SIZE",
            parser=parse_size,
            help="For recompress-estimate: log bytes to measure per topic.",
            show_default="16MiB",
        ),
    ] = None
    whole: Annotated[bool, typer.Option("--whole", help="For recompress-estimate: measure everything.")] = False
    range: Range = field(default_factory=Range)


@dataclass(frozen=True, slots=True)
class Scanned:
    """The job, what it reads, and where it runs."""

    job: Annotated[
        str,
        typer.Argument(
            help="One of " + ", ".join(JOBS) + ".", show_default=False, **(one_of(*JOBS) | {"metavar": "JOB"})
        ),
    ]
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[PATTERN] PATH...",
            help="Log directories, partition directories or files; for grep, after the text to look for.",
            show_default=False,
        ),
    ]
    cluster: Cluster = field(default_factory=Cluster)
    choices: Choices = field(default_factory=Choices)


def scan(scanned: Scanned, as_kind: AsKind, output: RowOutput, judging: Judging, guards: Guards) -> None:
    """Run verify, ls (as inventory), grep, extract or recompress --estimate as a Spark job, with the same results.

    Paths may be addresses, such as s3://bucket/node-1.

    Needs Java 17 and pip install 'kafkalog[spark]'. A start takes a few seconds: for one partition, use the command.
    """
    from format.io import remote_files
    from format.io.remote_path import is_remote, path_of
    from format.verbs.verify.walk import Level
    from kafkalog_cli.runner import Run
    from spark_jobs.submit import Scan, job_options

    job, choices, cluster = scanned.job, scanned.choices, scanned.cluster
    pattern, words = (scanned.words[0], scanned.words[1:]) if job == "grep" else (None, scanned.words)
    if not words:
        raise typer.BadParameter("no PATH after the PATTERN")
    for word in words:
        if not is_remote(word):
            check_path(str(path_of(word)))
    remote_files.know(words)
    selection = choices.range.selection
    _check_choices(job, choices, cluster, selection)
    from format.columns import ESTIMATE, FINDING, PARTITION, RECORD
    from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES

    criteria = None if pattern is None else _criteria(pattern, choices, selection)
    schema = {"inventory": PARTITION, "grep": RECORD, "recompress-estimate": ESTIMATE}.get(job, FINDING)
    paths = [path_of(word) for word in words]
    with Run(
        "scan",
        output,
        judging,
        paths=[str(path) for path in paths],
        main_schema=schema,
        shows_summary=job == "verify",
    ) as run:
        wanted = Scan(
            job,
            paths,
            job_options(
                job,
                level=Level[choices.level.upper()],
                criteria=criteria,
                selection=selection,
                limits=guards.limits,
                codec=choices.codec,
                codec_level=choices.codec_level,
                sample_bytes=None if choices.whole else choices.sample or DEFAULT_SAMPLE_BYTES,
                batches=choices.batches,
            ),
            cluster.master,
            as_kind.kind,
            cluster.tables,
            cluster.broker_id,
            cluster.range_size,
        )
        _show(run, wanted, choices.level)


def _check_choices(job: str, choices: Choices, cluster: Cluster, selection: Selection) -> None:
    if cluster.tables is None and (job == "extract" or choices.batches):
        raise typer.BadParameter(f"{'extract' if job == 'extract' else '--batches'} needs --output DIR")
    if choices.batches and job != "inventory":
        raise typer.BadParameter("--batches is for inventory")
    is_estimating = choices.codec or choices.codec_level is not None or choices.sample or choices.whole
    if job != "recompress-estimate" and is_estimating:
        raise typer.BadParameter("--codec, --codec-level, --sample and --whole are for recompress-estimate")
    check_level(choices.codec, choices.codec_level)
    if not selection.is_everything and job not in ("grep", "extract"):
        raise typer.BadParameter("ranges of offsets and times are for grep and extract")


def _criteria(pattern: str, choices: Choices, selection: Selection) -> Any:
    from format.verbs.grep.grep import Criteria
    from format.verbs.grep.pattern import regex_pattern, text_pattern

    make = regex_pattern if choices.regex else text_pattern
    try:
        return Criteria(make(pattern, ignore_case=choices.ignore_case), selection=selection)
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
