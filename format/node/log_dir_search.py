"""Search for log directories below a directory, such as those of several brokers that were collected in one place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format import layout
from format.errors import UnreadableFile
from format.findings import Finding, Judgement, finding, finding_of
from format.location import Location
from format.node.log_dir import LogDir, list_directory, log_dir_of
from format.node.partition import is_partition_file, parse_partition_dir

#: The levels of directories that are searched, and the most directories that are listed.
_DEPTH = 3
_MOST_LISTED = 2000

Names = list[tuple[str, bool]]


class LogDirSearch:
    """One search, with findings for the directories that it could not list or follow.

    A directory named like a partition, such as ``kafka-1``, is a log directory if it contains the files of a log
    directory, or partitions.
    """

    def __init__(self) -> None:
        self._listed_count = 0
        self._unlistable: list[Finding] = []
        self._passed: list[Path] = []  # entries, not followed, of directories above log directories

    def below(self, path: Path, names: Names) -> tuple[LogDir, ...]:
        """The log directory at a path that has these names, or the log directories below it; empty if there is none."""
        self._listed_count = 0
        self._unlistable, self._passed = [], []
        return tuple(self._below(path, names, _DEPTH))

    def link_findings(self) -> Iterator[Finding]:
        """Findings for directories that were not searched: links, and directories that cannot be listed."""
        yield from self._unlistable
        for path in self._passed:
            if path.is_symlink() and path.is_dir():
                message = "is a symbolic link to a directory, which is not followed"
                judgement = Judgement(next_step="Pass the path that it points to as well, if it is a log directory.")
                yield finding("file-unreadable", Location(str(path)), message, judgement=judgement)

    def _below(self, path: Path, names: Names, depth: int) -> Iterator[LogDir]:
        if has_own_files(names):
            yield log_dir_of(path, names)
            return
        if any(layout.SEGMENT_FILE.match(name) for name, _ in names):
            return
        children: dict[str, Names] = {}
        if self._holds_partitions(path, names, children):
            # Partitions that cannot be listed are reported when they are read.
            partitions = {str(path / name) for name in children}
            self._unlistable = [each for each in self._unlistable if each.location.path not in partitions]
            yield log_dir_of(path, names)
            return
        found = False
        for name, is_dir in names if depth else ():
            if not is_dir:
                continue
            known = children.get(name) or self._list(path / name)
            for log_dir in self._below(path / name, known, depth - 1) if known else ():
                found = True
                yield log_dir
        if found:
            self._passed += [path / name for name, is_dir in names if not is_dir]

    def _holds_partitions(self, path: Path, names: Names, children: dict[str, Names]) -> bool:
        """Whether directories named like partitions are partitions: the first that shows it by its content decides."""
        named = [name for name, is_dir in names if is_dir and parse_partition_dir(name) is not None]
        for name in named:
            listed = children[name] = self._list(path / name)
            if any(is_partition_file(each) for each, _ in listed):
                return True
            if has_own_files(listed) or any(is_dir and parse_partition_dir(each) for each, is_dir in listed):
                return False
        # A name alone proves nothing: /etc/dbus-1 is not a partition. An empty directory may be a new partition.
        return any(not children[name] for name in named) and self._listed_count < _MOST_LISTED

    def _list(self, path: Path) -> Names:
        if self._listed_count >= _MOST_LISTED:
            return []
        self._listed_count += 1
        try:
            return list_directory(path)
        except UnreadableFile as error:
            self._unlistable.append(finding_of(error))
            return []


def has_own_files(names: Names) -> bool:
    """Whether one of these names is a file of a log directory itself."""
    return any(name in layout.LOG_DIR_FILES and not is_dir for name, is_dir in names)
