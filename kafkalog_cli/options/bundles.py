"""Bundles in place of log directories: opened for the commands that read them, refused by the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from format.io.session import BUNDLE_MANIFEST, BUNDLE_SUFFIX, Session, is_there
from kafkalog_cli.render.escape import printable

if TYPE_CHECKING:
    from format.io.bundles.bundle import Bundle


def file_of(path: str) -> tuple[str, str] | None:
    """The bundle that a path names or lies in, and the path inside it; None for any other path."""
    end = path.find(BUNDLE_SUFFIX)
    while end >= 0:
        end += len(BUNDLE_SUFFIX)
        if path[end : end + 1] in ("", "/") and _is_bundle(path[:end]):
            return path[:end], path[end:].strip("/")
        end = path.find(BUNDLE_SUFFIX, end)
    return None


def _is_bundle(path: str) -> bool:
    """Whether a file begins as a bundle does: with its manifest."""
    import zstandard

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            return stream.read(512).startswith(BUNDLE_MANIFEST.encode() + b"\0")
    except (OSError, zstandard.ZstdError):
        return False


def are_read_by(command_path: str) -> bool:
    """Whether a command, such as ``kafkalog ls``, reads bundles."""
    from kafkalog_cli.command_table import COMMANDS

    words = command_path.split()
    return len(words) == 2 and any(each.name == words[1] and each.reads_bundles for each in COMMANDS)


def refuse(path: str) -> None:
    """Raise a usage error for a bundle, or a path in one: the command needs bytes that a bundle does not hold."""
    found = file_of(path)
    if found is not None:
        words = "this is a bundle, which holds no keys, values or headers; this command needs the logs"
        if found[1]:
            words += f". Side files are in it as they are: tar --zstd -xf {found[0]}"
        raise typer.BadParameter(printable(f"{path}: {words}"))


def opened_paths(session: Session, path: str) -> Sequence[str]:
    """The paths that were bundled, or the given path inside the bundle, which the session opens; else the path itself.

    Raises a usage error.
    """
    from format.errors import InputError
    from format.io.bundles.unpacking import open_bundle

    found = file_of(path)
    if found is None:
        return (path,)
    own, inner = found
    if own not in session.bundles:
        try:
            session.bundles[own] = open_bundle(own)
        except InputError as error:
            raise typer.BadParameter(printable(f"{own}: {error.message}")) from None
    sources = [f"{own}/{each}" for each in session.bundles[own].sources]
    if not inner:
        return sources
    place = session.path(f"{own}/{inner}")
    if not is_there(place):
        from format.node.foreign_files import absent_words

        words = absent_words(place).replace("there is no such file or directory", "", 1)
        meant = [each for each in (f"{source}/{inner}" for source in sources) if is_there(session.path(each))]
        words = f". Did you mean {' or '.join(meant)}?" if meant else words
        raise typer.BadParameter(printable(f"{path}: the bundle has no such path{words}"))
    return (str(place),)


def bundles_of(session: Session, paths: Sequence[str]) -> tuple[Bundle, ...]:
    """The bundles that the paths are in, each once. Raises a usage error if only some of the paths are in one."""
    found = [session.bundle_of(path) for path in paths]
    if any(each is not None for each in found) and None in found:
        raise typer.BadParameter("give bundles or log directories, not both: their findings are of different times")
    return tuple({each[0].path: each[0] for each in found if each is not None}.values())
