"""kafkalog scan verify: the findings of kafkalog verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from format.columns import FINDING
from kafkalog_cli.commands.scan.job import Addresses, Job, Where, run_job, show_rows
from kafkalog_cli.commands.verify import Depth
from kafkalog_cli.options.guards import Guards

if TYPE_CHECKING:
    from kafkalog_cli.runner import Run
    from spark_jobs.submit import ScanResult

EXAMPLES = (
    ("kafkalog scan verify /var/kafka", "everything across files too, on all cores"),
    ("kafkalog scan verify /mnt/store --level crc --master spark://head:7077 --output report", "on a cluster"),
)


def verify(paths: Addresses, depth: Depth, where: Where, guards: Guards) -> None:
    """Check logs and their side files, as kafkalog verify does."""
    from format.verbs.verify.terms import NOT_CHECKED, Coverage
    from format.verbs.verify.walk import Level
    from spark_jobs.submit import job_options

    level = Level[depth.level.upper()]
    coverage = Coverage()

    def show(run: Run, item: ScanResult) -> None:
        if isinstance(item, Coverage):
            coverage.add(item)
        else:
            show_rows(run, item)

    def finish(run: Run) -> None:
        for name in ("partitions", "segments", "side_files", "batches", "records", "bytes"):
            run.count(name, getattr(coverage, name))
        for words in NOT_CHECKED[level]:
            run.not_checked(words)

    options = job_options("verify", level=level, limits=guards.limits)
    run_job(Job("verify", paths, options, FINDING, shows_summary=True), where, show, finish)
