"""Options of Spark jobs: where they run, and where their tables are written."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from kafkalog_cli.options.parsers import parse_size, shown


def check_conf(settings: list[str] | None) -> list[str] | None:
    """The settings. Raises a usage error if one is not KEY=VALUE."""
    for each in settings or ():
        key, equals, _value = each.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{shown(each)} is not a setting: give KEY=VALUE")
    return settings


class Cluster(msgspec.Struct, frozen=True):
    """Where a command runs on Spark, and how its work is cut."""

    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Where Spark runs.", show_default="local[*]: this machine"),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.", callback=check_conf),
    ] = None
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive",
            metavar="FILE",
            help="The environment that executors run in, made by kafkalog scan --pack FILE.",
        ),
    ] = None
    range_size: Annotated[
        int | None,
        typer.Option(
            "--range-size",
            metavar="SIZE",
            parser=parse_size,
            help="The part of a large log that one task reads.",
            show_default="64MiB, more where there are terabytes",
        ),
    ] = None

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark by key; of a key that is given twice, the last value."""
        return dict(each.split("=", 1) for each in self.conf or ())


class Tables(msgspec.Struct, frozen=True):
    """The directory of Parquet tables that a run writes beside its output."""

    tables: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="DIR", help="A directory for Parquet tables of the rows, the findings and the runs."
        ),
    ] = None
    broker_id: Annotated[
        int | None,
        typer.Option(
            "--broker-id", metavar="N", help="The broker id in the rows of the tables.", show_default="meta.properties"
        ),
    ] = None


class BatchesTable(msgspec.Struct, frozen=True):
    """Whether there is also a table of batches."""

    batches: Annotated[bool, typer.Option("--batches", help="Also write a table of all batches; needs --output.")] = (
        False
    )
