"""An unpacked bundle: the tree of its files, with the names and states that they had in the source."""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import InputError, NotInBundle, UnreadableFile
from format.findings import MOST_ALIKE, Finding, FindingValues
from format.io.bundles.schemas import (
    DIRECTORY,
    FILE,
    FILE_LIST,
    FINDINGS,
    KEPT_HEADERS,
    KEPT_WHOLE,
    LINK,
    LINK_TO_DIRECTORY,
    Budget,
    BundledEntry,
    BundleManifest,
    RecordedDamage,
    Spool,
    SpooledRange,
    lines_of,
    size_of,
)
from format.io.source import FileState
from format.location import Location

#: The offsets, and then the timestamps, of the records of some batches (int64), by the position of the batch.
Outlines = Mapping[int, SpooledRange]


class Fragment(msgspec.Struct, frozen=True):
    """Consecutive headers of a log: their positions in the log, and their bytes.

    ``positions`` and ``lengths``, of the whole batches, hold ``count`` int64; ``starts`` holds one more int64: where
    each header starts in ``content``, and the end of the last. ``inner`` holds two for each header, if there are
    compressed v0/v1 messages: the offset of the first record, and the number of records; -1 for unknown.
    """

    first_position: int
    count: int
    positions: SpooledRange
    lengths: SpooledRange
    starts: SpooledRange
    content: SpooledRange
    inner: SpooledRange | None = None


class LogContents(msgspec.Struct, frozen=True):
    """The parts of a log that a bundle contains; the keys of ``damage`` and ``outlines`` are positions in the log."""

    fragments: Sequence[Fragment] = ()
    damage: Mapping[int, RecordedDamage] = msgspec.field(default_factory=dict)
    outlines: Outlines = msgspec.field(default_factory=dict)


class WrongBatches(msgspec.Struct, frozen=True):
    """The positions of the batches of a log whose CRC is wrong: all of them, or all before position ``known_to``.

    ``bad_records`` are those of batches with a right CRC whose records cannot be read.
    """

    positions: Sequence[int] = ()
    known_to: int | None = None
    bad_records: Sequence[int] = ()


class _BundledFile:
    """A file of a bundle, opened for reading; it holds no resources, and does not change."""

    def __init__(self, spool: Spool, state: FileState) -> None:
        self.size_bytes, self.mtime_ns, self.device_inode = state.size_bytes, state.mtime_ns, state.device_inode
        self._spool = spool

    def current_size_bytes(self) -> int:
        return self.size_bytes

    def close(self) -> None:
        """Do nothing."""


class WholeFile(_BundledFile):
    """A file that the bundle contains whole; zeros at its end are not stored."""

    headers_only = None

    def __init__(self, spool: Spool, state: FileState, stored: SpooledRange) -> None:
        super().__init__(spool, state)
        self._stored = stored

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes read from the spool."""
        length = max(min(length, self.size_bytes - position), 0)
        stored = max(min(length, self._stored.size_bytes - position), 0)
        content = self._spool.read(self._stored.start + position, stored) if stored else b""
        return content.ljust(length, b"\0"), stored


class HeadersFile(_BundledFile):
    """A log of which the bundle has the batch headers, and whole control batches; all other bytes are read as zeros."""

    def __init__(self, spool: Spool, state: FileState, contents: LogContents, wrong: WrongBatches) -> None:
        super().__init__(spool, state)
        self.damage = contents.damage
        self._fragments = contents.fragments
        self._outlines = contents.outlines
        self._wrong = wrong
        self._loaded: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def headers_only(self) -> HeadersFile:
        """The file itself."""
        return self

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes read from the spool."""
        length = max(min(length, self.size_bytes - position), 0)
        found = np.zeros(length, np.uint8)
        read_bytes = 0
        for number in self._from(position):
            if self._fragments[number].first_position >= position + length:
                break
            read_bytes += self._put(number, found, position)
        return found.tobytes(), read_bytes

    def _from(self, position: int) -> range:
        """The numbers of the fragments from the one that a position lies in."""
        first = bisect_right(self._fragments, position, key=lambda each: each.first_position) - 1
        return range(max(first, 0), len(self._fragments))

    def _put(self, number: int, found: NDArray[np.uint8], position: int) -> int:
        """Copy the headers of a fragment that are in the range to their places in ``found``; return the bytes read."""
        positions, starts = self._load(number)
        low = max(int(np.searchsorted(positions, position, "right")) - 1, 0)
        high = int(np.searchsorted(positions, position + len(found), "left"))
        if low >= high:
            return 0
        start, end = int(starts[low]), int(starts[high])
        content = np.frombuffer(self._spool.read(self._fragments[number].content.start + start, end - start), np.uint8)
        lengths = starts[low + 1 : high + 1] - starts[low:high]
        places = np.repeat(positions[low:high] - position - (starts[low:high] - start), lengths) + np.arange(
            end - start
        )
        inside = (places >= 0) & (places < len(found))
        found[places[inside]] = content[inside]
        return end - start

    def _load(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self._loaded is None or self._loaded[0] != number:
            fragment = self._fragments[number]
            positions, starts = (
                np.frombuffer(self._spool.read(each.start, each.size_bytes), np.int64)
                for each in (fragment.positions, fragment.starts)
            )
            self._loaded = number, positions, starts
        return self._loaded[1:]

    def outline(self, position: int) -> tuple[list[int], list[int]] | None:
        """The offsets and timestamps of the records of the batch at a position, None if the bundle has none."""
        region = self._outlines.get(position)
        if region is None:
            return None
        numbers: list[int] = np.frombuffer(self._spool.read(region.start, region.size_bytes), np.int64).tolist()
        return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]

    def outlined_offset(self, timestamp: int) -> int | None:
        """The offset of the first record with a timestamp, None if no outline has one."""
        for position in sorted(self._outlines):
            offsets, timestamps = self.outline(position) or ([], [])
            if timestamp in timestamps:
                return offsets[timestamps.index(timestamp)]
        return None

    def inner_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """First offset and number of records of the compressed v0/v1 messages at rising positions; -1 for unknown."""
        found = np.full((len(positions), 2), -1, np.int64)
        if not len(positions):
            return found
        for number in self._from(int(positions[0])):
            fragment = self._fragments[number]
            if fragment.first_position > positions[-1]:
                break
            if fragment.inner is None:
                continue
            known, _ = self._load(number)
            rows = np.searchsorted(known, positions)
            rows[rows == len(known)] = 0
            is_here = known[rows] == positions
            if is_here.any():
                inner = np.frombuffer(self._spool.read(fragment.inner.start, fragment.inner.size_bytes), np.int64)
                found[is_here] = inner.reshape(-1, 2)[rows[is_here]]
        return found

    def stored_bytes(self, position: int) -> int:
        """The number of stored bytes of the batch that starts at a position; 0 if none does."""
        for number in self._from(position)[:1]:
            positions, starts = self._load(number)
            row = int(np.searchsorted(positions, position))
            if row < len(positions) and positions[row] == position:
                return int(starts[row + 1] - starts[row])
        return 0

    def next_header(self, position: int) -> int:
        """The position of the first header after a position; the end of the log if there is none."""
        for number in self._from(position):
            positions, _ = self._load(number)
            at = int(np.searchsorted(positions, position, "right"))
            if at < len(positions):
                return int(positions[at])
        return self.size_bytes

    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]:
        """Whether the CRCs of the batches at some positions were valid when the bundle was made.

        int8 for each position: 1 valid, 0 wrong, -1 unknown.
        """
        valid = 1 - np.isin(positions, self._wrong.positions).astype(np.int8)
        if self._wrong.known_to is not None:
            valid[positions >= self._wrong.known_to] = -1
        return valid

    def has_bad_records(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the records of batches with a right CRC could not be read when the bundle was made."""
        return np.isin(positions, self._wrong.bad_records)


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
    manifest: BundleManifest
    entries: dict[str, BundledEntry] = field(default_factory=dict)
    whole: dict[str, SpooledRange] = field(default_factory=dict)
    logs: dict[str, LogContents] = field(default_factory=dict)
    finding_lines: SpooledRange = field(default_factory=lambda: SpooledRange(0, 0))
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
        return (each.finding(f"{self.path}/") for each in self._finding_lines())

    def _finding_lines(self) -> Iterator[FindingValues]:
        return lines_of(self.spool, self.finding_lines, FindingValues, FINDINGS)

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
