"""The paths of a read: those of the options, with patterns replaced by what fits, and the partitions below them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from format import layout
from format.errors import UnreadableFile
from format.io.session import entries_of, is_remote, is_there
from format.io.source import os_reason
from format.location import Location
from format.node.partition import looks_like_partition
from spark_jobs.views.read_options import BadOption, ReadOptions
from spark_jobs.work.workers import path_of

_PATTERN = re.compile(r"[*?\[{]")
_PATTERN_OF_ADDRESS = re.compile(r"[*\[{]")  # the query of an address begins with a question mark
_BRACES = re.compile(r"\{([^{}]*)\}")


def resolved_paths(options: ReadOptions) -> list[Path]:
    """The paths of the options; with recursiveFileLookup the partitions below them.

    Raises UnreadableFile where a directory cannot be listed, and BadOption where nothing fits a pattern.
    """
    places = [found for each in options.paths for found in _fitting(path_of(each))]
    if not options.recursive:
        return places
    return [found for place in places for found in (_partitions_below(place) if place.is_dir() else (place,))]


def _fitting(place: Path) -> list[Path]:
    """The directories and logs that fit a path with ``*``, ``?``, ``[ab]`` or ``{a,b}``, as Spark's own sources have.

    A path that exists as it is written is no pattern.
    """
    pattern = _PATTERN_OF_ADDRESS if is_remote(place) else _PATTERN
    if pattern.search(str(place)) is None or (not is_remote(place) and is_there(place)):
        return [place]
    found: dict[Path, None] = {}
    for written in _without_braces(str(place)):
        whole = path_of(written)
        steps: list[str] = []
        while pattern.search(str(whole)) and whole != whole.parent:
            steps.insert(0, whole.name)
            whole = whole.parent
        found |= dict.fromkeys(_below(whole, steps))
    if not found:
        raise BadOption(f"no directory and no log fits the path {place}")
    return list(found)


def _without_braces(text: str) -> Iterator[str]:
    """The texts that a text with alternatives, as ``node-{1,2}``, stands for."""
    pieces = _BRACES.split(text)  # every second one is the inside of braces
    choices = [piece.split(",") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    return map("".join, product(*choices))


def _below(place: Path, steps: list[str]) -> Iterator[Path]:
    """The paths below a directory whose names fit the steps, each a name or a pattern."""
    if not steps:
        if layout.SEGMENT_FILE.match(place.name) or place.is_dir():
            yield place
        return
    if _PATTERN.search(steps[0]) is None:
        if is_there(place / steps[0]):
            yield from _below(place / steps[0], steps[1:])
        return
    for name in _names(place, only_directories=len(steps) > 1):
        if fnmatch.fnmatchcase(name, steps[0]) and not name.startswith("."):
            yield from _below(place / name, steps[1:])


def _partitions_below(place: Path) -> Iterator[Path]:
    if looks_like_partition(place):
        yield place
        return
    for name in _names(place, only_directories=True):
        yield from _partitions_below(place / name)


def _names(place: Path, *, only_directories: bool) -> list[str]:
    try:
        with entries_of(place) as entries:
            found = [each.name for each in entries if not only_directories or each.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(place))) from error
    return sorted(found)
