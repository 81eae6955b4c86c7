"""Checks where an output may go: not over something, not into a source, not into a log directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from format import layout
from format.errors import OutputError, OutputExists, OutputInsideSource
from format.io.session import is_remote
from format.io.source import os_reason
from format.location import Location

#: A directory with one of these files belongs to a broker, which takes every directory in it for a partition.
_MARKS_OF_A_LOG_DIR = (layout.META_PROPERTIES, *layout.OFFSET_CHECKPOINTS)


def check_target(target: Path, sources: Iterable[Path]) -> Path:
    """The real path of a target that may be written: it does not exist, or is an empty directory.

    Raises OutputInsideSource where it equals, contains or lies inside a source (also through symbolic links)
    or lies inside a log directory; OutputExists where something is there; OutputError where its parent is missing.
    """
    location = Location(str(target))
    real = Path(os.path.realpath(target))
    for source in sources:
        if is_remote(source):
            continue
        relation = _relation(real, Path(os.path.realpath(source)))
        if relation is not None:
            raise OutputInsideSource(f"the output {relation} the source {source}, where nothing is written", location)
    try:
        log_dir = log_dir_around(real)
        if log_dir is not None:
            raise OutputInsideSource(f"the output would lie inside the log directory {log_dir}", location)
        status = os.lstat(real)
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise OutputError(f"cannot access: {os_reason(error)}", location) from error
    if status is not None:
        _check_empty(real, status, location)
    if not real.parent.is_dir():
        raise OutputError(f"there is no directory {real.parent}", location)
    return real


def log_dir_around(real: Path) -> Path | None:
    """The broker's log directory that a real path lies in, at any depth; None for none."""
    return next(
        (each for each in real.parents if any(os.path.lexists(each / name) for name in _MARKS_OF_A_LOG_DIR)), None
    )


def _check_empty(real: Path, status: os.stat_result, location: Location) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise OutputExists("there is a file of that name; the output is a new directory", location)
    try:
        if os.listdir(real):
            raise OutputExists("the directory exists and is not empty", location)
    except OSError as error:
        raise OutputError(f"cannot list: {os_reason(error)}", location) from error
    if os.path.ismount(real):
        raise OutputExists("is a mount point, which cannot be replaced; name a new directory in it", location)


def _relation(target: Path, source: Path) -> str | None:
    """How the target relates to the source, in words, by name or by device and inode; None where they are apart."""
    source_identity, target_identity = _identity(source), _identity(target)
    if target == source or (source_identity is not None and source_identity == target_identity):
        return "is"
    if source in target.parents or (source_identity and source_identity in map(_identity, target.parents)):
        return "lies inside"
    if target in source.parents or (target_identity and target_identity in map(_identity, source.parents)):
        return "contains"
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def partials_of(target: Path) -> list[Path]:
    """The directories that earlier runs left beside a target, by name."""
    prefix = f".{target.name}.partial-"
    try:
        with os.scandir(target.parent) as entries:
            return sorted(
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
            )
    except OSError as error:
        raise OutputError(f"cannot list: {os_reason(error)}", Location(str(target.parent))) from error
