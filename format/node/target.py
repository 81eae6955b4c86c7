"""The paths of a command: the kind of each, and its log directories or its partition, each listed once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from format import layout
from format.errors import InputError, KafkaLogError, NotALogDir, UnreadableFile
from format.findings import Finding, finding
from format.io.session import absolute, is_there, path_of
from format.io.source import os_reason
from format.io.store import WrongAddress, has_listings
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.file_location import location_of_directory
from format.node.foreign_files import absent_words, foreign_segments, refuse_foreign_file
from format.node.log_dir import (
    Kind,
    LogDir,
    directory_around,
    kind_of_file,
    list_directory,
    log_dir_around,
    log_dir_of,
)
from format.node.log_dir_search import LogDirSearch
from format.node.partition import Partition, is_partition_file, parse_partition_dir, read_partition


class Surroundings:
    """The parent directories of the paths of one command, each listed once for all paths in it."""

    def __init__(self) -> None:
        self._log_dirs: dict[Path, LogDir | None] = {}
        self._partitions: dict[Path, Partition] = {}

    def log_dir(self, partition: Path) -> LogDir | None:
        """The log directory of a partition directory, None if it cannot be listed."""
        directory = directory_around(partition)
        if directory not in self._log_dirs:
            self._log_dirs[directory] = log_dir_around(partition)
        return self._log_dirs[directory]

    def checkpoints(self, partition: Path, limits: Limits = DEFAULT_LIMITS) -> Checkpoints:
        """The checkpoints of the log directory of a partition; empty if it cannot be listed."""
        log_dir = self.log_dir(partition)
        return Checkpoints() if log_dir is None else log_dir.checkpoints(limits)

    def partition(self, file: Path) -> Partition:
        """The partition directory of a file. Raises UnreadableFile and FileChanged."""
        if file.parent not in self._partitions:
            self._partitions[file.parent] = read_partition(file.parent)
        return self._partitions[file.parent]


class Target:
    """A path of a command. Its properties are read when they are first used, and once.

    ``kind`` overrides the kind by name and content. ``surroundings`` are shared by all paths of a command.
    """

    def __init__(
        self, path: str | os.PathLike[str], kind: Kind | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.path = path_of(path)
        self.surroundings = surroundings or Surroundings()
        self._given_kind = kind
        self._search = LogDirSearch()

    @cached_property
    def kind(self) -> Kind:
        """The kind of the path: a log directory (or a directory with some below it), a partition, or a kind of file.

        Raises InputError for a path that does not exist, and for a compressed file or a text; NotALogDir for a
        directory without files of Kafka, or a file with an unknown name.
        """
        if self._given_kind is Kind.LOG:
            refuse_foreign_file(self.path)
        return self._given_kind or self._found_kind()

    def require_partitions(self, why: str) -> None:
        """Raise InputError unless the path is a log directory or a partition directory; ``why`` ends the message."""
        if self.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            message = f"pass a log directory or a partition directory: {why}"
            raise InputError(message, Location(str(self.path)))

    @cached_property
    def log_dirs(self) -> tuple[LogDir, ...]:
        """The log directory at the path, or those below it; empty for a partition or a file.

        Raises the errors of ``kind``.
        """
        if self.kind is not Kind.LOG_DIR:
            return ()
        return self._search.below(self.path, self._names) or (log_dir_of(self.path, self._names),)

    @cached_property
    def partition(self) -> Partition:
        """The partition at the path, with any name. Raises UnreadableFile and FileChanged."""
        return read_partition(self.path)

    def partitions(self) -> Iterator[Partition]:
        """The partitions at or below the path in order, without those that cannot be listed. Raises like ``kind``."""
        if self.kind is Kind.PARTITION:
            try:
                yield self.partition
            except KafkaLogError:
                return
        for log_dir in self.log_dirs:
            for path in log_dir.partitions:
                try:
                    partition = log_dir.partition(path)
                except KafkaLogError:
                    continue
                yield partition

    def checkpoints_around(self, limits: Limits = DEFAULT_LIMITS) -> Checkpoints:
        """The checkpoints of the log directory of this partition; empty if it cannot be listed."""
        return self.surroundings.checkpoints(self.path, limits)

    def link_findings(self) -> Iterator[Finding]:
        """Findings for symbolic links between this path and the log directories below it, which are not followed."""
        if self.kind is Kind.LOG_DIR and self.log_dirs:
            yield from self._search.link_findings()

    @cached_property
    def _names(self) -> list[tuple[str, bool]]:
        return list_directory(self.path)

    def _found_kind(self) -> Kind:
        location = Location(str(self.path))
        try:
            is_dir = self.path.is_dir()
            exists = is_dir or is_there(self.path)
        except WrongAddress as error:
            raise InputError(str(error), location) from error
        except OSError as error:
            raise UnreadableFile(f"cannot access: {os_reason(error)}", location) from error
        if not exists:
            raise InputError(absent_words(self.path), location)
        if is_dir:
            return self._kind_of_directory(location)
        kind = kind_of_file(self.path.name)
        if kind is None or (kind is Kind.LOG and not layout.SEGMENT_FILE.match(self.path.name)):
            refuse_foreign_file(self.path)
        if kind is None and not has_listings(self.path):
            raise NotALogDir("not the name of a Kafka file; a web server has no listings: give single files", location)
        if kind is None:
            raise NotALogDir("not the name of a Kafka file; pass its kind with --as, such as --as log", location)
        return kind

    def _kind_of_directory(self, location: Location) -> Kind:
        resolved = self.path if self.path.name not in ("", "..") else absolute(self.path)
        names = self._names
        has_partition_dir = any(parse_partition_dir(name) and is_dir for name, is_dir in names)
        has_segment = any(layout.SEGMENT_FILE.match(name) for name, _ in names)
        if has_partition_dir and not has_segment and self._search.below(self.path, names):
            return Kind.LOG_DIR
        has_partition_file = any(is_partition_file(name) for name, _ in names)
        if has_segment or (parse_partition_dir(resolved.name) and (not names or has_partition_file)):
            return Kind.PARTITION
        if has_partition_file or any(name in layout.LOG_DIR_FILES for name, _ in names):
            return Kind.LOG_DIR
        if self._search.below(self.path, names):
            return Kind.LOG_DIR
        foreign = foreign_segments(name for name, _ in names)
        if foreign:
            raise InputError(foreign, location)
        raise NotALogDir("this directory contains no TOPIC-PARTITION directory and no segment file", location)


def targets_at(paths: Iterable[str | os.PathLike[str]], kind: Kind | None = None) -> list[Target]:
    """The targets for the paths of one command."""
    surroundings = Surroundings()
    return [Target(path, kind, surroundings) for path in paths]


def nothing_to_read(target: Target) -> Finding:
    """The finding for a directory below which no segment was found."""
    location = Location(str(target.path)) if target.kind is Kind.LOG_DIR else location_of_directory(target.path)
    return finding("nothing-to-read", location, "no segment of any log was found here or below")


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """The kind of a path; raises the errors of ``Target.kind``."""
    return Target(path).kind


def target_at(path: str | os.PathLike[str] | Target) -> Target:
    """The target for a path; a Target is returned as it is."""
    return path if isinstance(path, Target) else Target(path)
