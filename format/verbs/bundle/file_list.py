"""Lists the files of the sources, and decides which are kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from format import layout
from format.io.bundles.schemas import (
    DIRECTORY,
    FILE,
    KEPT_HEADERS,
    KEPT_WHOLE,
    LINK,
    LINK_TO_DIRECTORY,
    OTHER,
    WHOLE_TOPICS,
    FileType,
    Kept,
)
from format.io.session import absolute, entries_of
from format.io.source import os_reason
from format.node.log_dir import Kind, kind_of_file
from format.node.partition import is_temporary, parse_partition_dir
from format.node.target import Target
from format.verbs.bundle.names import Names

_BLOCK_BYTES = 512


class SourceFile(msgspec.Struct, frozen=True):
    """A file or directory of a source that was not read yet; ``error`` is why a directory cannot be listed."""

    path: Path
    type: FileType
    status: os.stat_result | None
    kept: Kept | None = None
    error: str | None = None

    @property
    def allocated_bytes(self) -> int:
        """The bytes that it takes up on disk; in an object store this is its size."""
        blocks: int | None = None if self.status is None else self.status.st_blocks
        if blocks is None:
            return 0 if self.status is None else self.status.st_size
        return blocks * _BLOCK_BYTES


class InnerPaths:
    """The paths of files in a bundle: relative as the sources were given, or absolute without the first slash.

    Absolute paths are used where a relative one leads up, or two would be equal. With ``names``, sources and log
    directories get numbers, and the names below them are replaced.
    """

    def __init__(self, targets: Sequence[Target], names: Names | None = None) -> None:
        self._names = names
        self._roots: list[tuple[Path, str]] = []
        if names is not None:
            self._roots = _numbered(targets)
            return
        relative = {_top(target): _as_given(_given_top(target)) for target in targets}
        is_plain = all(relative.values()) and len(set(relative.values())) == len(relative)
        for top, inner in relative.items():
            self._roots.append((top, inner if inner and is_plain else _as_given(top) or ""))
        self._roots.sort(key=lambda root: -len(root[0].parts))

    def of(self, path: Path) -> str:
        """The path of a file at or below a source."""
        place = absolute(path)
        for top, inner in self._roots:
            if place.parts[: len(top.parts)] == top.parts:
                below = place.parts[len(top.parts) :]
                if self._names is not None:
                    below = tuple(self._names.file(name) for name in below)
                return "/".join((inner, *below))
        return _as_given(place) or ""


def _numbered(targets: Sequence[Target]) -> list[tuple[Path, str]]:
    """The sources and the log directories below them with their numbered names, the deepest first."""
    roots: dict[Path, str] = {}
    for number, target in enumerate(targets, 1):
        source = roots.setdefault(_top(target), f"source-{number}")
        for count, log_dir in enumerate(target.log_dirs, 1):
            roots.setdefault(absolute(log_dir.path), f"{source}/log-dir-{count}")
    return sorted(roots.items(), key=lambda root: -len(root[0].parts))


def _top(target: Target) -> Path:
    """The directory with which paths of a source begin: for a partition its log directory."""
    place = absolute(target.path)
    return place if target.kind is Kind.LOG_DIR else place.parent


def _given_top(target: Target) -> Path:
    return target.path if target.kind is Kind.LOG_DIR else target.path.parent


def _as_given(path: Path) -> str | None:
    """A path without leading slashes and colons; None if it is empty or leads up."""
    parts = [part.strip("/").removesuffix(":") for part in path.parts]
    parts = [part for part in parts if part]
    return None if not parts or ".." in parts else "/".join(parts)


def source_files(target: Target) -> Iterator[SourceFile]:
    """All files at and below a target in order; for a partition also the own files of its log directory."""
    if target.kind is not Kind.LOG_DIR:
        yield from _around(absolute(target.path).parent)
    yield from _walk(absolute(target.path))


def _around(directory: Path) -> Iterator[SourceFile]:
    """The files that verbs read around a partition: checkpoints, and the metadata log."""
    for found in _listed(directory, with_directory=True):
        if found.path.name in layout.LOG_DIR_FILES:
            yield found
        elif found.type != DIRECTORY or found.path == directory:
            if found.path == directory:
                yield found
        elif found.path.name == layout.REMOTE_INDEX_CACHE:
            yield found
        elif found.path.name == f"{layout.CLUSTER_METADATA_TOPIC}-0":
            yield from _walk(found.path)


def _walk(top: Path) -> Iterator[SourceFile]:
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        below = []
        for found in _listed(directory, with_directory=True):
            if found.type == DIRECTORY and found.path != directory:
                below.append(found.path)
            else:
                yield found
        waiting += reversed(below)


def _listed(directory: Path, *, with_directory: bool) -> Iterator[SourceFile]:
    """A directory (``with_directory``), and then its entries by name."""
    try:
        status = directory.lstat()
    except OSError:
        return  # a live broker deleted it
    try:
        with entries_of(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield SourceFile(directory, DIRECTORY, status, error=os_reason(error))
        return
    if with_directory:
        yield SourceFile(directory, DIRECTORY, status)
    for entry in found:
        path = directory / entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # a live broker deleted it
        kind = _type_of(path, status)
        yield SourceFile(path, kind, status, kept_of(path) if kind == FILE else None)


def _type_of(path: Path, status: os.stat_result) -> FileType:
    if stat.S_ISREG(status.st_mode):
        return FILE
    if stat.S_ISDIR(status.st_mode):
        return DIRECTORY
    if stat.S_ISLNK(status.st_mode):
        return LINK_TO_DIRECTORY if os.path.isdir(path) else LINK
    return OTHER


def kept_of(path: Path) -> Kept | None:
    """How much of a file is kept, from its name and the directory's."""
    name, parent = path.name, path.parent.name
    parsed = parse_partition_dir(parent)
    is_internal = parsed is not None and parsed[0] in WHOLE_TOPICS
    if is_temporary(name) or name in layout.LOG_DIR_FILES:
        return KEPT_WHOLE
    kind = kind_of_file(name)
    if kind is None:
        return None
    if kind is Kind.KRAFT_SNAPSHOT:
        return KEPT_WHOLE if is_internal and layout.KRAFT_SNAPSHOT_FILE.match(name) else None
    segment = layout.SEGMENT_FILE.match(name)
    if kind is Kind.LOG:
        if segment is None:
            return None
        return KEPT_WHOLE if is_internal else KEPT_HEADERS
    has_suffix = kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT)
    if has_suffix and segment is None and parent != layout.REMOTE_INDEX_CACHE:
        return None
    return KEPT_WHOLE


def kept_without_names(each: SourceFile) -> Kept | None:
    """How much of a file is kept where names are redacted: nothing that may have names in it."""
    parsed = parse_partition_dir(each.path.parent.name)
    is_internal = parsed is not None and parsed[0] in WHOLE_TOPICS
    name = each.path.name
    if each.kept is None or name == layout.BOOTSTRAP_CHECKPOINT or is_temporary(name):
        return None
    if is_internal and kind_of_file(name) is Kind.LOG:
        return KEPT_HEADERS
    return None if is_internal and kind_of_file(name) is Kind.KRAFT_SNAPSHOT else each.kept
