"""Read-only sources of bytes: a size frozen at opening, bounded positioned reads, nothing else.

Local files are read with ``pread``, never mapped: a mapped file that shrinks kills the process.
"""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Protocol

from format.errors import FileChanged, UnreadableFile
from format.io import read_policy
from format.io.bundles import opened
from format.io.bundles.opened import BundledFile, OpenedBundle, StoredFile
from format.io.remote_path import is_remote
from format.location import Location
from format.value_class import value_class

_O_NOATIME = getattr(os, "O_NOATIME", 0)  # of Linux only
_SEEK_DATA: int | None = getattr(os, "SEEK_DATA", None)
_SEEK_HOLE: int | None = getattr(os, "SEEK_HOLE", None)


class Source(Protocol):
    """A source of bytes, as all readers of this package expect it."""

    path: str
    size_bytes: int
    bytes_read: int  # bytes actually read, for the tests and for --explain

    def read_at(self, position: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``position``; fewer only at the frozen end.

        Raises FileChanged where the file ends before its frozen size, UnreadableFile on an I/O error.
        """
        ...

    def data_range(self, position: int) -> tuple[int, int]:
        """The next bytes from ``position`` on that are stored, from where to where; what lies before them is zeros.

        They begin at the frozen end where nothing but a hole follows.
        """
        ...

    def close(self) -> None: ...


@value_class
class FileState:
    """A file as it was when it was opened: which one, how long, and when it was last written."""

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]


class FileSource:
    """A regular file, opened O_RDONLY and never through a final symlink; or one on another file system, or in a bundle.

    ``bundled`` is the file in a bundle, None for any other.
    """

    __slots__ = ("_fd", "_stored", "bundled", "bytes_read", "device_inode", "mtime_ns", "path", "size_bytes")
    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    def __init__(self, path: str | os.PathLike[str], state: FileState | None = None) -> None:
        """Open; raises UnreadableFile if this is not a readable regular file, FileChanged if it no longer exists.

        ``state`` comes from another source of this file; its size is the frozen size. Raises FileChanged if the file
        was replaced or truncated since.
        """
        self.path = os.fspath(path)
        self.bytes_read = 0
        self._fd = -1
        self._stored: StoredFile | None = None
        self.bundled: BundledFile | None = None
        if "://" in self.path and is_remote(self.path):
            self._open_remote()
        elif opened.are_opened() and (found := opened.bundle_of(self.path)) is not None:
            self._open_bundled(found[1], found[2])
        else:
            self._open_local()
        if state is not None:
            if state.device_inode != self.device_inode:
                self.close()
                raise FileChanged("another file has taken its place while it was read", Location(self.path))
            if self.size_bytes < state.size_bytes:
                now = self.size_bytes
                self.close()
                raise FileChanged(cut_words(now, state), Location(self.path))
            self.size_bytes, self.mtime_ns = state.size_bytes, state.mtime_ns

    def _open_local(self) -> None:
        try:
            self._fd = _open_to_read(self.path)
        except FileNotFoundError as error:
            raise FileChanged("cannot open: the file is not there, or not any more", Location(self.path)) from error
        except OSError as error:
            reason = "is a symbolic link, which is not followed" if error.errno == errno.ELOOP else os_reason(error)
            raise UnreadableFile(f"cannot open: {reason}", Location(self.path)) from error
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            self._fd = -1
            raise UnreadableFile("cannot read: not a regular file", Location(self.path))
        self.size_bytes = status.st_size
        self.mtime_ns = status.st_mtime_ns
        self.device_inode = (status.st_dev, status.st_ino)
        if read_policy.current is not None:
            read_policy.current.opened(self._fd)

    def _open_remote(self) -> None:
        from format.io.remote_file import RemoteFile

        self._take(RemoteFile(self.path))

    def _open_bundled(self, bundle: OpenedBundle, inner: str) -> None:
        try:
            self.bundled = bundle.open(inner)
        except FileNotFoundError as error:
            raise FileChanged("cannot open: the file is not there, or not any more", Location(self.path)) from error
        self._take(self.bundled)

    def _take(self, stored: StoredFile) -> None:
        self._stored = stored
        self.size_bytes = stored.size_bytes
        self.mtime_ns = stored.mtime_ns
        self.device_inode = stored.device_inode

    @property
    def state(self) -> FileState:
        """The state that another process needs to read the same file up to the same end."""
        return FileState(self.size_bytes, self.mtime_ns, self.device_inode)

    def read_at(self, position: int, length: int) -> bytes:
        length = min(length, self.size_bytes - position)
        if length <= 0:
            return b""
        got = self._pread(position, length)
        if len(got) == length:
            return got
        parts = [got]  # a short read: go on until the frozen end
        have = len(got)
        while have < length:
            got = self._pread(position + have, length - have)
            if not got:
                raise FileChanged(
                    f"the file ended at byte {position + have}, before its size of {self.size_bytes} at opening",
                    Location(self.path, position=position + have),
                )
            parts.append(got)
            have += len(got)
        return b"".join(parts)

    def _pread(self, position: int, length: int) -> bytes:
        if self._stored is not None:
            got, fetched_bytes = self._stored.read(length, position)
            self.bytes_read += fetched_bytes
            return got
        try:
            policy = read_policy.current
            if policy is None:
                got = os.pread(self._fd, length, position)
            else:
                got = policy.read(self._fd, length, position)
        except OSError as error:
            raise UnreadableFile(
                f"read failed: {os_reason(error)}", Location(self.path, position=position, length=length)
            ) from error
        self.bytes_read += len(got)
        return got

    def data_range(self, position: int) -> tuple[int, int]:
        """The next stored bytes; all that is left, where the file system does not tell holes from data."""
        if self._fd < 0 or _SEEK_DATA is None or _SEEK_HOLE is None or position >= self.size_bytes:
            return position, self.size_bytes
        try:
            start = os.lseek(self._fd, position, _SEEK_DATA)
            end = os.lseek(self._fd, start, _SEEK_HOLE)
        except OSError as error:
            start = self.size_bytes if error.errno == errno.ENXIO else position
            end = self.size_bytes
        return min(start, self.size_bytes), min(end, self.size_bytes)

    def current_size_bytes(self) -> int:
        """The file's size now, which differs from ``size_bytes`` when a broker appends to it or truncates it."""
        return os.fstat(self._fd).st_size if self._stored is None else self._stored.current_size_bytes()

    def close(self) -> None:
        if self._stored is not None:
            self._stored.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()


def _open_to_read(path: str, directory_fd: int | None = None) -> int:
    """A descriptor that leaves the file's access time alone, which the system allows its owner and root."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | _O_NOATIME, dir_fd=directory_fd)
    except PermissionError:
        return os.open(path, flags, dir_fd=directory_fd)


def read_listed(directory_fd: int, name: str, size_bytes: int) -> bytes | None:
    """All of a small local file that had this size when its directory was listed, with no look at it but reading.

    None if it cannot be read or has another size now: a FileSource says why.
    """
    try:
        fd = _open_to_read(name, directory_fd)
    except OSError:
        return None
    try:
        content = os.pread(fd, size_bytes + 1, 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    return content if len(content) == size_bytes else None


class BytesSource:
    """Bytes in memory as a Source, for tests and for decompressed bytes."""

    def __init__(self, data: bytes, path: str = "<memory>") -> None:
        self.path = path
        self._data = data
        self.size_bytes = len(data)
        self.bytes_read = 0

    def read_at(self, position: int, length: int) -> bytes:
        got = self._data[position : position + length] if length > 0 else b""
        self.bytes_read += len(got)
        return got

    def data_range(self, position: int) -> tuple[int, int]:
        """All that is left."""
        return position, self.size_bytes

    def close(self) -> None:
        pass


def check_unchanged(path: str | os.PathLike[str], state: FileState, location: Location) -> None:
    """Raise FileChanged if the file at the path was replaced, removed or truncated since it was opened.

    A file that grew is the same file. A remote path is not checked: stores never change a file in place. Nor is one in
    a bundle.
    """
    if is_remote(path) or opened.bundle_of(os.fspath(path)) is not None:
        return
    try:
        status = os.lstat(path)
    except OSError as error:
        raise FileChanged("another file took its place while it was read, or none", location) from error
    if (status.st_dev, status.st_ino) != state.device_inode:
        raise FileChanged("another file took its place while it was read, or none", location)
    if status.st_size < state.size_bytes:
        raise FileChanged(cut_words(status.st_size, state), location)


def cut_words(size_bytes: int, state: FileState) -> str:
    """The message for a file that has become shorter since it was opened."""
    return f"the file was cut while it was read: it has {size_bytes} bytes, and had {state.size_bytes} at opening"


def os_reason(error: OSError) -> str:
    """The operating system's own words for an error, without Python's brackets."""
    return os.strerror(error.errno) if error.errno is not None else str(error)


def read_whole(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The whole of a small file; raises LimitExceeded past ``max_bytes``, UnreadableFile as FileSource does."""
    from format.errors import LimitExceeded

    with FileSource(path) as source:
        if source.size_bytes > max_bytes:
            raise LimitExceeded(
                f"the file has {source.size_bytes} bytes, over the limit of {max_bytes}", Location(source.path)
            )
        return source.read_at(0, source.size_bytes)
