"""Options of processes, and of reading on hosts that run a broker."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.io.session import Session
from format.io.store import processor_count
from format.limits import DEFAULT_LIMITS, MIB, Limits
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.parsers import POSITIVE, SIZE, parse_rate, shown


def _mebibytes(size_bytes: int) -> str:
    return f"{size_bytes // MIB}MiB"


class DecompressionGuard(msgspec.Struct, frozen=True):
    """The largest size of one batch when decompressed."""

    max_decompressed_bytes: Annotated[
        int | None,
        option(
            "Largest size of one batch when decompressed, such as 512MiB.",
            show_default=_mebibytes(DEFAULT_LIMITS.max_decompressed_bytes),
            **SIZE,
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        return _limits(max_decompressed_bytes=self.max_decompressed_bytes)


class Guards(msgspec.Struct, frozen=True):
    """The largest sizes of one batch, one record and one zstd window."""

    decompression: DecompressionGuard = msgspec.field(default_factory=DecompressionGuard)
    max_record_bytes: Annotated[
        int | None,
        option("Largest size of one record.", show_default=_mebibytes(DEFAULT_LIMITS.max_record_bytes), **SIZE),
    ] = None
    max_zstd_window: Annotated[
        int | None,
        option(
            "Largest window that a zstd frame may request.",
            show_default=_mebibytes(DEFAULT_LIMITS.max_zstd_window_bytes),
            **SIZE,
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        return _limits(
            max_decompressed_bytes=self.decompression.max_decompressed_bytes,
            max_record_bytes=self.max_record_bytes,
            max_zstd_window_bytes=self.max_zstd_window,
        )


def _limits(**given: int | None) -> Limits:
    """The default limits, replaced where values were given."""
    return replace(DEFAULT_LIMITS, **{name: value for name, value in given.items() if value is not None})


class Sharing(msgspec.Struct, frozen=True):
    """The number of processes that share large work."""

    jobs: Annotated[
        int | None,
        option("Number of processes that share large work.", show_default="the number of processors", **POSITIVE),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    @property
    def process_count(self) -> int:
        """The given number, else the number of processors that this process may use; one for addresses.

        The connections of a store's library do not survive a fork.
        """
        if self.session.reads_addresses:
            return 1
        if self.jobs is not None:
            return self.jobs
        return processor_count()


class Pacing(msgspec.Struct, frozen=True):
    """The rate of reading, and the use of the page cache."""

    max_rate: Annotated[
        int | None,
        option("Read at most this many megabytes per second, with one process.", metavar="MB/S", parser=parse_rate),
    ] = None
    cache_friendly: Annotated[
        bool, option("Leave the page cache as it was: drop pages that were not in it before.")
    ] = False
    session: Session = msgspec.field(default_factory=Session)


class Work(msgspec.Struct, frozen=True):
    """Work that is shared by processes and paced."""

    sharing: Sharing = msgspec.field(default_factory=Sharing)
    pacing: Pacing = msgspec.field(default_factory=Pacing)

    @property
    def process_count(self) -> int:
        """The number of processes: one if a rate is given."""
        return self.sharing.process_count if self.pacing.max_rate is None else 1

    @property
    def session(self) -> Session:
        """What the run has."""
        return self.sharing.session


def check_conf(settings: list[str] | None) -> list[str] | None:
    """The settings. Raises a usage error if one is not KEY=VALUE."""
    for each in settings or ():
        key, equals, _value = each.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{shown(each)} is not a setting: give KEY=VALUE")
    return settings


class ClusterOptions(msgspec.Struct, frozen=True):
    """Where a command runs on Spark, and how its work is cut."""

    master: Annotated[str | None, option("Where Spark runs.", metavar="URL", show_default="local[*]: this machine")] = (
        None
    )
    conf: Annotated[
        list[str] | None, option("A setting of Spark; may be repeated.", metavar="KEY=VALUE", callback=check_conf)
    ] = None
    archive: Annotated[
        str | None, option("The environment that executors run in, made by kafkalog scan --pack FILE.", metavar="FILE")
    ] = None
    range_size: Annotated[
        int | None,
        option(
            "The part of a large log that one task reads.", show_default="64MiB, more where there are terabytes", **SIZE
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
        option("A directory for Parquet tables of the rows, the findings and the runs.", "--output", metavar="DIR"),
    ] = None
    broker_id: Annotated[
        int | None, option("The broker id in the rows of the tables.", metavar="N", show_default="meta.properties")
    ] = None


class BatchesTable(msgspec.Struct, frozen=True):
    """Whether there is also a table of batches."""

    batches: Annotated[bool, option("Also write a table of all batches; needs --output.")] = False
