"""Options of processes, and of reading on hosts that run a broker."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Annotated

import msgspec
import typer

from format.io.remote_path import reads_addresses
from kafkalog_cli.options.parsers import parse_positive, parse_rate


class Sharing(msgspec.Struct, frozen=True):
    """The number of processes that share large work."""

    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            parser=parse_positive,
            help="Number of processes that share large work.",
            show_default="the number of processors",
        ),
    ] = None

    @property
    def process_count(self) -> int:
        """The given number, else the number of processors that this process may use; one for addresses.

        The connections of a store's library do not survive a fork.
        """
        if reads_addresses():
            return 1
        if self.jobs is not None:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pacing(msgspec.Struct, frozen=True):
    """The rate of reading, and the use of the page cache."""

    max_rate: Annotated[
        int | None,
        typer.Option(
            "--max-rate",
            metavar="MB/S",
            parser=parse_rate,
            help="Read at most this many megabytes per second, with one process.",
        ),
    ] = None
    cache_friendly: Annotated[
        bool,
        typer.Option("--cache-friendly", help="Leave the page cache as it was: drop pages that were not in it before."),
    ] = False

    def reading(self) -> AbstractContextManager[None]:
        """The context in which files are read this way."""
        from format.io.freed_memory import keep_after_large_reads
        from format.io.read_policy import ReadPolicy, reading_by

        keep_after_large_reads()
        is_plain = self.max_rate is None and not self.cache_friendly
        return reading_by(None if is_plain else ReadPolicy(self.max_rate, spares_cache=self.cache_friendly))


class Work(msgspec.Struct, frozen=True):
    """Work that is shared by processes and paced."""

    sharing: Sharing = msgspec.field(default_factory=Sharing)
    pacing: Pacing = msgspec.field(default_factory=Pacing)

    @property
    def process_count(self) -> int:
        """The number of processes: one if a rate is given."""
        return self.sharing.process_count if self.pacing.max_rate is None else 1

    def reading(self) -> AbstractContextManager[None]:
        """The context in which files are read this way."""
        return self.pacing.reading()
