"""kafkalog scan ls: every partition and segment; its earlier name is inventory."""

from __future__ import annotations

from typing import Annotated

import typer

from format.columns import PARTITION
from format.value_class import value_class
from kafkalog_cli.commands.scan.job import Addresses, Job, Where, nothing_more, run_job, show_rows
from kafkalog_cli.options.guards import Guards

EXAMPLES = (
    ("kafkalog scan ls /var/kafka", "every partition and segment"),
    ("kafkalog scan ls /var/kafka --output report --batches", "Parquet tables of them, and of all batches"),
)


@value_class
class Tables:
    """Which tables are written beside those of partitions and segments."""

    batches: Annotated[bool, typer.Option("--batches", help="A table of all batches too; needs --output.")] = False


def ls(paths: Addresses, tables: Tables, where: Where, guards: Guards) -> None:
    """List partitions and segments, as kafkalog ls --segments does."""
    from spark_jobs.submit import job_options

    if tables.batches:
        where.need_tables("--batches")
    options = job_options("inventory", batches=tables.batches, limits=guards.limits)
    run_job(Job("inventory", paths, options, PARTITION), where, show_rows, nothing_more)


inventory = ls
