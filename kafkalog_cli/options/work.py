"""Options of processes, and of reading on hosts that run a broker."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from format.io.session import Session
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
