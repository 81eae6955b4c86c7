"""Where a Spark job runs, and where its tables go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from kafkalog_cli.options.parsers import parse_size


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a Spark job runs, how it cuts its work, and where its tables go."""

    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Where Spark runs.", show_default="local[*]: this machine"),
    ] = None
    tables: Annotated[
        str | None,
        typer.Option("--output", metavar="DIR", help="A directory for Parquet tables; extract needs it."),
    ] = None
    broker_id: Annotated[
        int | None,
        typer.Option(
            "--broker-id", metavar="N", help="Who the rows of the tables are from.", show_default="meta.properties"
        ),
    ] = None
    range_size: Annotated[
        int | None,
        typer.Option(
            "--range-size",
            metavar="SIZE",
            parser=parse_size,
            help="How much of a large log one task reads.",
            show_default="64MiB, more where there are terabytes",
        ),
    ] = None
