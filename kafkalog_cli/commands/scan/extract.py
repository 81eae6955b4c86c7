"""kafkalog scan extract: every record to Parquet, written by the workers."""

from __future__ import annotations

from format.columns import FINDING
from kafkalog_cli.commands.scan.job import Addresses, Job, Where, nothing_more, run_job, show_rows
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.selection import Range

EXAMPLES = (
    ("kafkalog scan extract /var/kafka --output out", "every record"),
    ("kafkalog scan extract /var/kafka --output out --from-time -2h", "those of the last two hours"),
)


def extract(paths: Addresses, range: Range, where: Where, guards: Guards) -> None:
    """Write records to Parquet in the directory of --output; what cannot be read is a finding."""
    from spark_jobs.submit import job_options

    where.need_tables("extract")
    options = job_options("extract", selection=range.selection, limits=guards.limits)
    run_job(Job("extract", paths, options, FINDING), where, show_rows, nothing_more)
