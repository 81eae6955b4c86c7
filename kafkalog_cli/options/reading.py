"""Input: paths, the kind of file to read them as, and whether they are followed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.io.bundles.members import SUFFIX
from format.io.remote_path import is_on_disk, is_remote, path_of
from format.node.log_dir import Kind
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.render.escape import printable

if TYPE_CHECKING:
    from format.limits import Limits
    from format.node.target import Target
    from format.state.tiered_logs import TieredLogs
    from kafkalog_cli.runner import Run


#: Whether paths are made absolute: for commands that run on a cluster.
_are_absolute: ContextVar[bool] = ContextVar("are_absolute", default=False)


@contextmanager
def read_elsewhere(is_elsewhere: bool) -> Iterator[None]:
    """The context in which the paths may be read by other hosts."""
    token = _are_absolute.set(is_elsewhere)
    try:
        yield
    finally:
        _are_absolute.reset(token)


def place_of(path: str) -> Path:
    """The path of an argument, made absolute in a command that runs on other hosts."""
    place = path_of(path)
    return place.absolute() if _are_absolute.get() else place


def check_paths(context: typer.Context, paths: list[str] | None) -> list[str] | None:
    """The paths. Raises a usage error, before any work begins, if one of them does not exist.

    For a command that reads bundles, a bundle is replaced by the paths that were bundled.
    """
    return paths and [each for path in paths for each in _paths_at(context, path)]


def _paths_at(context: typer.Context, path: str) -> Sequence[str]:
    from kafkalog_cli.options import bundles

    if bundles.file_of(path) is not None and bundles.are_read_by(context.command_path):
        return bundles.opened_paths(path)
    return (check_path(path),)


def check_path(path: str) -> str:
    """The path. Raises a usage error if it does not exist; the verb reports a path that cannot be read.

    An address is not checked here, as only its store knows what exists. It is returned without its options and keys,
    which must not be shown.
    """
    if is_remote(path):
        from format.io import remote_files

        remote_files.give([path])
        return str(path_of(path))
    if SUFFIX in path:
        from kafkalog_cli.options import bundles

        bundles.refuse(path)
    try:
        os.lstat(path_of(path))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            from format.node.foreign_files import absent_words

            words = os.strerror(error.errno) if error.errno == errno.ENAMETOOLONG else absent_words(path_of(path))
            raise typer.BadParameter(printable(f"{path}: {words}")) from None
    return path


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="A log directory, a partition directory (TOPIC-PARTITION), or one file of any kind; also an address, "
        "such as s3://bucket/node-1.",
        callback=check_paths,
        show_default=False,
    ),
]


class AsKind(msgspec.Struct, frozen=True):
    """The kind of file or directory to read a path as."""

    as_kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            help=f"Read the path as this kind, whatever its name: {', '.join(kind.value for kind in Kind)}.",
            **(one_of(*(kind.value for kind in Kind)) | {"metavar": "KIND"}),
        ),
    ] = None

    @property
    def kind(self) -> Kind | None:
        return None if self.as_kind is None else Kind(self.as_kind)


class Reading(msgspec.Struct, frozen=True):
    """The paths to read, and the kind to read them as."""

    paths: Paths
    as_kind: AsKind = msgspec.field(default_factory=AsKind)

    @property
    def files(self) -> list[Path]:
        return [place_of(each) for each in self.paths]

    @property
    def kind(self) -> Kind | None:
        return self.as_kind.kind

    def targets(self) -> list[Target]:
        """The targets at the paths. Each is read once, at its first use."""
        from format.node.target import targets_at

        return targets_at(self.files, self.kind)


class Following(msgspec.Struct, frozen=True):
    """Whether the logs are followed as they grow."""

    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Follow the logs until Ctrl-C: read what is appended, from the end of each log on unless another "
            "option sets the start. Partitions that appear later are read from their start.",
        ),
    ] = False

    def check(self, excluded: Mapping[str, Any]) -> None:
        """Raise a usage error for options that exclude --follow: values in ``excluded`` other than None and False."""
        if self.follow:
            for name, value in excluded.items():
                if value is not None and value is not False:
                    raise typer.BadParameter(f"{name} and --follow exclude each other")


def check_followable(targets: Sequence[Target]) -> None:
    """Raise a usage error for a target that cannot be followed: an address, a file, a directory without logs."""
    from format.errors import InputError
    from kafkalog_cli.render.escape import printable

    for target in targets:
        if not is_on_disk(target.path):
            raise typer.BadParameter(printable(f"{target.path}: --follow takes log directories of this host"))
        try:
            kind = target.kind
        except InputError as error:
            raise typer.BadParameter(printable(f"{target.path}: {error.message}")) from None
        if kind not in (Kind.LOG_DIR, Kind.PARTITION):
            raise typer.BadParameter(
                printable(f"{target.path}: --follow takes log directories and partition directories, not single files")
            )


def _check_if_given(path: str | None) -> str | None:
    return None if path is None else check_path(path)


class Tiering(msgspec.Struct, frozen=True):
    """The place of the objects of remote storage."""

    remote: Annotated[
        str | None,
        typer.Option(
            "--remote",
            metavar="PATH",
            callback=_check_if_given,
            help="Read tiered logs from their start, with the objects of remote storage at this path or address.",
            show_default=False,
        ),
    ] = None

    @contextmanager
    def joined(self, run: Run, targets: Sequence[Target], limits: Limits) -> Iterator[TieredLogs | None]:
        """The context in which partitions include their remote segments. Findings about these are written first."""
        if self.remote is None:
            yield None
            return
        from format.node.remote_tier import joined_with
        from format.state.tiered_logs import tiered_logs

        found = tiered_logs(targets, place_of(self.remote), limits)
        run.findings(found.findings)
        for words in found.not_checked:
            run.not_checked(words)
        with joined_with(found.tier):
            yield found
