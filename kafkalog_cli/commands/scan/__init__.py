"""kafkalog scan: commands as Spark jobs, over whole directories or on a cluster."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kafkalog_cli.command_table import SCANS
from kafkalog_cli.commands.scan.on_spark import load_scan
from kafkalog_cli.lazy_group import LazyCommands, LazyGroup

EXAMPLES = (
    ("kafkalog scan verify /var/kafka", "the findings of kafkalog verify, on all cores"),
    ("kafkalog scan ls /var/kafka --output report", "every partition and segment, as Parquet tables too"),
    ("kafkalog scan grep order-4711 /var/kafka", "the records that kafkalog grep finds"),
    ("kafkalog scan extract /var/kafka --output out", "every record to Parquet, written by the workers"),
    ("kafkalog scan recompress --estimate /var/kafka --codec zstd", "what zstd would save, measured on all cores"),
    ("kafkalog scan verify s3://bucket/node-1", "a copy in an object store, read by ranges"),
    ("kafkalog scan verify /mnt/store --master spark://head:7077", "on a cluster that sees the same files"),
    ("kafkalog scan --pack env.tar.gz", "the environment of its executors, for --archive env.tar.gz"),
)


class ScanGroup(LazyGroup):
    """The verbs of scan."""

    entries = SCANS

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.commands = LazyCommands(self.entries, load_scan)


COMMAND_CLASS = ScanGroup


def _pack(context: typer.Context, target: str | None) -> None:
    if target is None or context.resilient_parsing:  # while a shell completes the line, nothing is made
        return
    from spark_jobs.submit import pack_environment

    size_bytes = pack_environment(target)
    typer.echo(f"{target}: {size_bytes / 1e6:.0f} MB")
    raise typer.Exit


def scan(
    pack: Annotated[
        str | None,
        typer.Option(
            "--pack",
            metavar="FILE",
            help="Make the environment of a cluster's executors, for --archive FILE: this version, its kernel, and "
            "what they need. Runs pip.",
            is_eager=True,
            callback=_pack,
        ),
    ] = None,
) -> None:
    """Run a command as a Spark job, with the same results.

    Paths may be addresses, such as s3://bucket/node-1. Needs Java 17 and pip install 'kafkalog[spark]'. A start takes
    a few seconds: for one partition, use the command itself.
    """
