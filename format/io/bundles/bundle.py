"""An unpacked bundle: the tree of its files, with the names and states that they had in the source."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from format.errors import InputError, NotInBundle, UnreadableFile
from format.findings import MOST_ALIKE, Finding
from format.io.bundles.bundled_files import HeadersFile, LogContents, WholeFile, WrongBatches
from format.io.bundles.members import (
    DIRECTORY,
    FILE,
    FILE_LIST,
    FINDINGS,
    KEPT_HEADERS,
    KEPT_WHOLE,
    LINK,
    LINK_TO_DIRECTORY,
)
from format.io.bundles.schemas import Budget, BundledEntry, BundledFinding, Manifest, lines_of, size_of
from format.io.bundles.spooled import Region, Spool
from format.io.file_state import FileState
from format.location import Location

_BLOCK_BYTES = 512
#: The codes of findings about batches with a right CRC whose records cannot be read.
_BAD_RECORDS = (
    "record-invalid",
    "record-count-mismatch",
    "record-trailing-bytes",
    "message-invalid",
    "decompression-failed",
    "codec-unknown",
)
#: The memory of an entry with its places in the tree, and of a finding, apart from their texts.
_ENTRY_BYTES, _FINDING_BYTES = 500, 1000
_MODES = {
    FILE: stat.S_IFREG | 0o444,
    DIRECTORY: stat.S_IFDIR | 0o555,
    LINK: stat.S_IFLNK | 0o777,
    LINK_TO_DIRECTORY: stat.S_IFLNK | 0o777,
}
_OTHER_MODE = stat.S_IFIFO | 0o444

#: A directory above the sources, of which a bundle knows only that it is there.
_UNLISTED = BundledEntry("unlisted", DIRECTORY)


class ListedEntry(msgspec.Struct, frozen=True):
    """One entry of a directory in a bundle, with the methods of os.DirEntry."""

    name: str
    bundle: Bundle
    inner: str

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status that it had in the source."""
        return self.bundle.followed_status(self.inner) if follow_symlinks else self.bundle.status(self.inner)


@dataclass(slots=True)
class Bundle:
    """The tree of a bundle's files. ``manifest`` is its first member; the keys of the dicts are paths in the bundle.

    ``finding_lines`` are the findings of the source when the bundle was made, as lines of JSON. ``budget`` is the
    memory that may still be taken.
    """

    path: str
    spool: Spool
    manifest: Manifest
    entries: dict[str, BundledEntry] = field(default_factory=dict)
    whole: dict[str, Region] = field(default_factory=dict)
    logs: dict[str, LogContents] = field(default_factory=dict)
    finding_lines: Region = field(default_factory=lambda: Region(0, 0))
    budget: Budget = field(default_factory=Budget)
    _children: dict[str, dict[str, None]] = field(default_factory=dict)
    _inodes: dict[str, int] = field(default_factory=dict)
    _wrong: dict[str, WrongBatches] = field(default_factory=dict)

    def add(self, entry: BundledEntry) -> None:
        """Add a file or directory. Raises InputError for one that is there already, and for too many."""
        if entry.path in self.entries:
            raise InputError(f"the file list names {entry.path!r} twice")
        entry.sha256 = None  # nothing reads it
        self.budget.take(FILE_LIST, _ENTRY_BYTES + 2 * size_of(entry.path) + size_of(entry.same_as, entry.error))
        self.entries[entry.path] = entry
        self._inodes[entry.path] = len(self._inodes) + 1
        self._add_to_parent(entry.path)

    def index(self) -> None:
        """Resolve hard links and read the findings; to be called after all entries were added. Raises InputError."""
        for inner, entry in self.entries.items():
            if entry.same_as is not None:
                self._inodes[inner] = self._inodes.get(entry.same_as, 0)
        wrong: dict[str, list[int]] = {}
        bad: dict[str, list[int]] = {}
        for each in self._finding_lines():
            self.budget.take(FINDINGS, _FINDING_BYTES + size_of(each.path, each.message, each.next_step))
            if each.position is not None and each.code in _BAD_RECORDS:
                bad.setdefault(each.path, []).append(each.position)
            elif each.position is not None and each.code == "batch-crc-mismatch":
                wrong.setdefault(each.path, []).append(each.position)
        for path in {**wrong, **bad}:
            self._wrong[path] = _wrong_batches(wrong.get(path, []), bad.get(path, []))

    def findings(self) -> Iterator[Finding]:
        """The findings, with the path of the bundle before theirs."""
        return (each.finding(self.path) for each in self._finding_lines())

    def _finding_lines(self) -> Iterator[BundledFinding]:
        return lines_of(self.spool, self.finding_lines, BundledFinding, FINDINGS)

    def _add_to_parent(self, inner: str) -> None:
        while inner:
            parent, _, name = inner.rpartition("/")
            names = self._children.setdefault(parent, {})
            if name in names:
                return
            names[name] = None
            if inner not in self.entries:
                self.budget.take(FILE_LIST, _ENTRY_BYTES + size_of(inner))
            inner = parent

    @property
    def sources(self) -> Sequence[str]:
        """The paths that were bundled, as they are in the bundle."""
        return [each.path for each in self.manifest.sources]

    def status(self, inner: str) -> os.stat_result:
        """The status of a file or directory in the source; raises FileNotFoundError."""
        entry = self.entries.get(inner)
        if entry is None:
            if inner not in self._children:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            entry = _UNLISTED
        mode = _MODES.get(entry.type, _OTHER_MODE)
        inode = self._inodes.get(inner, 0)
        seconds = entry.mtime_ns // 10**9
        return os.stat_result(
            (mode, inode, 0, entry.link_count, 0, 0, entry.size_bytes, seconds, seconds, seconds),
            {
                **dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), entry.mtime_ns),
                "st_blocks": entry.allocated_bytes // _BLOCK_BYTES,
            },
        )

    def followed_status(self, inner: str) -> os.stat_result:
        """The status after following a link: the target of a link appears as an empty directory or an empty file."""
        status = self.status(inner)
        entry = self.entries.get(inner)
        if entry is None or not stat.S_ISLNK(status.st_mode):
            return status
        mode = _MODES[DIRECTORY if entry.type == LINK_TO_DIRECTORY else FILE]
        return os.stat_result((mode, *status[1:]))

    @contextmanager
    def listing(self, inner: str) -> Iterator[list[ListedEntry]]:
        """The entries of a directory; raises OSError."""
        entry = self.entries.get(inner)
        if entry is not None and entry.error is not None:
            raise PermissionError(errno.EACCES, entry.error)
        if not stat.S_ISDIR(self.status(inner).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        prefix = f"{inner}/" if inner else ""
        yield [ListedEntry(name, self, prefix + name) for name in self._children.get(inner, ())]

    def open(self, inner: str) -> WholeFile | HeadersFile:
        """Open a file; raises OSError, and UnreadableFile for a file whose content is not in the bundle."""
        status = self.status(inner)
        location = Location(f"{self.path}/{inner}")
        if stat.S_ISLNK(status.st_mode):
            raise UnreadableFile("cannot open: is a symbolic link, which is not followed", location)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("cannot read: not a regular file", location)
        entry = self.entries[inner]
        state = FileState(entry.size_bytes, entry.mtime_ns, (0, status.st_ino))
        if entry.error is not None:
            raise UnreadableFile(entry.error, location)
        if entry.kept == KEPT_WHOLE:
            return WholeFile(self.spool, state, self.whole[inner])
        if entry.kept == KEPT_HEADERS:
            contents = self.logs.get(inner, LogContents())
            return HeadersFile(self.spool, state, contents, self._wrong.get(inner, WrongBatches()))
        raise NotInBundle("cannot read: the bundle lists this file, but does not contain it", location)

    def lock_holder(self, inner: str) -> int | None:
        """The id of the process that held a ``.lock``: 0 if it is unknown, None if no process held it."""
        entry = self.entries.get(inner)
        return None if entry is None else entry.lock_holder


def _wrong_batches(positions: list[int], bad_records: list[int]) -> WrongBatches:
    """The wrong CRCs of one log. After MOST_ALIKE findings, verify reports all others with one finding."""
    has_more = len(positions) > MOST_ALIKE
    return WrongBatches(positions, positions[MOST_ALIKE - 1] + 1 if has_more else None, bad_records)
