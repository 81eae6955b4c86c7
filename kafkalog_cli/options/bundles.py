"""Bundles in place of log directories: opened for the commands that read them, refused by the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from format.io.bundles import opened
from format.io.bundles.members import MANIFEST, SUFFIX
from format.io.remote_path import path_of
from kafkalog_cli.render.text import printable

if TYPE_CHECKING:
    from format.io.bundles.bundle import Bundle

_bundles: dict[str, Bundle] = {}


def file_of(path: str) -> tuple[str, str] | None:
    """The bundle that a path names or lies in, and the path inside it; None for any other path."""
    end = path.find(SUFFIX)
    while end >= 0:
        end += len(SUFFIX)
        if path[end : end + 1] in ("", "/") and _is_bundle(path[:end]):
            return path[:end], path[end:].strip("/")
        end = path.find(SUFFIX, end)
    return None


def _is_bundle(path: str) -> bool:
    """Whether a file begins as a bundle does: with its manifest."""
    import zstandard

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            return stream.read(512).startswith(MANIFEST.encode() + b"\0")
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


def opened_paths(path: str) -> Sequence[str]:
    """The paths that were bundled, or the given path inside the bundle; any other path unchanged.

    The bundle stays open until ``forget``. Raises a usage error.
    """
    from format.errors import InputError
    from format.io.bundles.unpacking import open_bundle

    found = file_of(path)
    if found is None:
        return (path,)
    own, inner = found
    if own not in _bundles:
        try:
            _bundles[own] = open_bundle(own)
        except InputError as error:
            raise typer.BadParameter(printable(f"{own}: {error.message}")) from None
        opened.add(own, _bundles[own])
    if not inner:
        return [f"{own}/{each}" for each in _bundles[own].sources]
    try:
        _bundles[own].status(inner)
    except FileNotFoundError:
        raise typer.BadParameter(printable(f"{path}: {_absent_words(own, inner)}")) from None
    return (f"{own}/{inner}",)


def _absent_words(own: str, inner: str) -> str:
    """The message about a path that a bundle does not have: similar names, or the places of one with the same end."""
    from format.node.foreign_files import absent_words

    words = absent_words(path_of(f"{own}/{inner}")).replace("there is no such file or directory", "", 1)
    places = [f"{own}/{each}/{inner}" for each in _bundles[own].sources if _has(own, f"{each}/{inner}")]
    return "the bundle has no such path" + (f". Did you mean {' or '.join(places)}?" if places else words)


def _has(own: str, inner: str) -> bool:
    try:
        _bundles[own].status(inner)
    except FileNotFoundError:
        return False
    return True


def of_paths(paths: Sequence[str]) -> list[Bundle]:
    """The bundles among the paths of a command, each once."""
    found = {own[0]: None for own in (opened.bundle_of(path) for path in paths) if own is not None}
    return [_bundles[own] for own in found]


def forget() -> None:
    """Close all bundles."""
    opened.forget()
    _bundles.clear()
