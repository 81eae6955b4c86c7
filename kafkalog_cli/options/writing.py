"""Options of the commands that write a new directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.io.remote_path import is_remote, path_of
from format.layout import MANIFEST
from kafkalog_cli.options.parsers import parse_size, shown
from kafkalog_cli.options.reading import check_paths, place_of

if TYPE_CHECKING:
    from format.rewriting.publication import Publication


def local_directory(output: str | None) -> str | None:
    """The directory to write, None where none was given. Raises a usage error for an address."""
    if output is None:
        return None
    if is_remote(output):
        raise typer.BadParameter(
            f"{shown(output)} is an address; a new directory can only be written to a file system of this host"
        )
    return str(path_of(output)) if output.startswith("file:") else output


OutputDirectory = Annotated[
    str,
    typer.Option(
        "--output",
        metavar="DIR",
        help="A new directory for the result, outside the sources; it appears only when it is complete.",
        callback=local_directory,
        show_default=False,
    ),
]


class Sources(msgspec.Struct, frozen=True):
    """The partitions to copy."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="A log directory, or one or more partition directories (TOPIC-PARTITION). Never written to.",
            callback=check_paths,
            show_default=False,
        ),
    ]

    @property
    def paths(self) -> list[Path]:
        return [place_of(each) for each in self.sources]


class Resumption(msgspec.Struct, frozen=True):
    """Whether a run continues an interrupted one, and can be continued itself."""

    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run of the same command, after a check of the files that it finished.",
        ),
    ] = False
    keep_partial: Annotated[
        bool, typer.Option("--keep-partial", help="Keep what was written when the run fails, for --resume.")
    ] = False

    def publication(
        self, output: str, sources: Sequence[Path], job: Mapping[str, Any], *, manifest: str = MANIFEST
    ) -> Publication:
        """The publication of a new directory, not opened yet. The arguments are those of ``Publication``."""
        from format.rewriting.publication import Publication

        return Publication(
            output, sources, job=job, manifest=manifest, resume=self.resume, keep_partial=self.keep_partial
        )


class Indexing(msgspec.Struct, frozen=True):
    """The density of new indexes."""

    index_interval: Annotated[
        int | None,
        typer.Option(
            "--index-interval-bytes",
            metavar="SIZE",
            parser=parse_size,
            help="Log bytes between index entries, like the topic's index.interval.bytes.",
            show_default="4096",
        ),
    ] = None

    @property
    def interval_bytes(self) -> int:
        from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES

        return self.index_interval or DEFAULT_INTERVAL_BYTES
