"""What all verbs of scan have in common: their options, and how the results of a job are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from format.value_class import value_class
from kafkalog_cli.options.cluster import Cluster
from kafkalog_cli.options.judging import Judging
from kafkalog_cli.options.output import RowOutput
from kafkalog_cli.options.reading import AsKind, check_path
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.columns import RowSchema
    from kafkalog_cli.progress import Progress
    from spark_jobs.submit import JobOptions, ScanResult


def check_addresses(paths: list[str] | None) -> list[str] | None:
    """The paths and addresses; of paths on this machine all must exist."""
    from format.io.remote_path import is_remote, path_of

    for path in paths or ():
        if not is_remote(path):
            check_path(str(path_of(path)))
    return paths


Addresses = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Log directories, partition directories or files; or addresses of them, such as s3://bucket/node-1.",
        callback=check_addresses,
        show_default=False,
    ),
]


@value_class
class Where:
    """Where a job runs, how it reads its paths, and how its results come out."""

    cluster: Cluster = field(default_factory=Cluster)
    as_kind: AsKind = field(default_factory=AsKind)
    output: RowOutput = field(default_factory=RowOutput)
    judging: Judging = field(default_factory=Judging)

    def need_tables(self, what: str) -> None:
        """Refuse a run without --output."""
        if self.cluster.tables is None:
            raise typer.BadParameter(f"{what} needs --output DIR")


@value_class
class Job:
    """A job of ``spark_jobs`` over paths, and how its results are shown: see ``Run``."""

    name: str
    paths: list[str]
    options: JobOptions
    schema: RowSchema
    shows_summary: bool = False


def run_job(job: Job, where: Where, show: Callable[[Run, ScanResult], None], finish: Callable[[Run], None]) -> None:
    """Run the job, show each of its results, and finish the run when all of them are there."""
    from format.io import remote_files
    from format.io.remote_path import path_of
    from spark_jobs.submit import Scan
    from spark_jobs.submit import run as run_scan

    remote_files.know(job.paths)
    paths = [path_of(path) for path in job.paths]
    cluster = where.cluster
    with Run(
        "scan",
        where.output,
        where.judging,
        paths=[str(path) for path in paths],
        main_schema=job.schema,
        shows_summary=job.shows_summary,
    ) as run:
        scan = Scan(
            job.name,
            paths,
            job.options,
            cluster.master,
            where.as_kind.kind,
            cluster.tables,
            cluster.broker_id,
            cluster.range_size,
            cluster.settings,
        )
        for item in run_scan(scan, _ProgressOf(run).take):
            show(run, item)
        finish(run)


class _ProgressOf:
    """The progress of a run, from the sums that a job reports."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._progress: Progress | None = None
        self._done_bytes = 0

    def take(self, so_far_bytes: int, total_bytes: int) -> None:
        if self._progress is None:
            self._progress = self._run.progress(total_bytes)
        self._progress.advance(max(so_far_bytes - self._done_bytes, 0))
        self._done_bytes = max(so_far_bytes, self._done_bytes)


def show_rows(run: Run, item: ScanResult) -> None:
    """A finding, or rows."""
    from format.findings import Finding
    from spark_jobs.submit import Rows

    if isinstance(item, Finding):
        run.finding(item)
    elif isinstance(item, Rows):
        run.write(item.schema, item.rows)


def nothing_more(run: Run) -> None:
    """For jobs whose rows are all that there is."""
