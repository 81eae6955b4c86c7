"""Read-only sources of bytes: positioned reads up to a size that is fixed when the source is opened.

Local files are read with ``pread`` and never mapped, since a mapped file that shrinks kills the process.
"""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Protocol

from format.errors import FileChanged, LimitExceeded, UnreadableFile
from format.io import read_policy
from format.io.bundles import opened
from format.io.bundles.opened import BundledFile, OpenedBundle, StoredFile
from format.io.file_state import FileState
from format.io.remote_path import is_remote
from format.location import Location

_O_NOATIME = getattr(os, "O_NOATIME", 0)  # Linux only
_SEEK_DATA: int | None = getattr(os, "SEEK_DATA", None)
_SEEK_HOLE: int | None = getattr(os, "SEEK_HOLE", None)


class Source(Protocol):
    """A source of bytes, which all readers of this package take."""

    path: str
    size_bytes: int
    bytes_read: int  # the number of bytes that were read from the file system or the network

    def read_at(self, position: int, length: int) -> bytes:
        """Read up to ``length`` bytes from ``position``; fewer only at the fixed end.

        Raises FileChanged if the file ends before its fixed size, and UnreadableFile for an I/O error.
        """
        ...

    def data_range(self, position: int) -> tuple[int, int]:
        """The start and end of the next range of data from ``position`` on; the bytes before it are a hole of zeros.

        Both are the fixed end if only a hole follows.
        """
        ...

    def close(self) -> None: ...


class FileSource:
    """A regular file, opened read-only and not through a symbolic link; local, remote, or in a bundle.

    ``bundled`` is the file in a bundle, None for other files.
    """

    __slots__ = ("_fd", "_stored", "bundled", "bytes_read", "device_inode", "mtime_ns", "path", "size_bytes")
    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    def __init__(self, path: str | os.PathLike[str], state: FileState | None = None) -> None:
        """Open; raises UnreadableFile if this is not a readable regular file, FileChanged if it does not exist.

        ``state`` comes from another source of this file, whose fixed size is taken over. Raises FileChanged if the file
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
                raise FileChanged("the file was replaced by another one while it was read", Location(self.path))
            if self.size_bytes < state.size_bytes:
                now = self.size_bytes
                self.close()
                raise FileChanged(cut_words(now, state), Location(self.path))
            self.size_bytes, self.mtime_ns = state.size_bytes, state.mtime_ns

    def _open_local(self) -> None:
        try:
            self._fd = _open_to_read(self.path)
        except FileNotFoundError as error:
            raise FileChanged(
                "cannot open: the file does not exist, or no longer exists", Location(self.path)
            ) from error
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
            read_policy.current.prepare(self._fd)

    def _open_remote(self) -> None:
        from format.io.remote_file import RemoteFile

        self._take(RemoteFile(self.path))

    def _open_bundled(self, bundle: OpenedBundle, inner: str) -> None:
        try:
            self.bundled = bundle.open(inner)
        except FileNotFoundError as error:
            raise FileChanged(
                "cannot open: the file does not exist, or no longer exists", Location(self.path)
            ) from error
        self._take(self.bundled)

    def _take(self, stored: StoredFile) -> None:
        self._stored = stored
        self.size_bytes = stored.size_bytes
        self.mtime_ns = stored.mtime_ns
        self.device_inode = stored.device_inode

    @property
    def state(self) -> FileState:
        """The state with which another process can read the same file up to the same end."""
        return FileState(self.size_bytes, self.mtime_ns, self.device_inode)

    def read_at(self, position: int, length: int) -> bytes:
        length = min(length, self.size_bytes - position)
        if length <= 0:
            return b""
        got = self._pread(position, length)
        if len(got) == length:
            return got
        parts = [got]  # a short read: go on until the fixed end
        end = position + len(got)
        while end < position + length:
            got = self._pread(end, position + length - end)
            if not got:
                raise FileChanged(
                    f"the file ended at byte {end}, before its size of {self.size_bytes} at opening",
                    Location(self.path, position=end),
                )
            parts.append(got)
            end += len(got)
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
        """The next range of data; all bytes up to the end if the file system does not report holes."""
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
        """The present size, which differs from ``size_bytes`` after a broker appended to the file or truncated it."""
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


def _open_to_read(path: str) -> int:
    """Open a file, without updates of its access time if this process is its owner or root; raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | _O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def check_unchanged(path: str | os.PathLike[str], state: FileState, location: Location) -> None:
    """Raise FileChanged if the file at the path was replaced, removed or truncated since it was opened.

    A file that grew is the same file. Remote paths and paths in bundles are not checked: stores never change an object
    in place, and bundles do not change.
    """
    if is_remote(path) or opened.bundle_of(os.fspath(path)) is not None:
        return
    try:
        status = os.lstat(path)
    except OSError as error:
        raise FileChanged("the file was removed or replaced while it was read", location) from error
    if (status.st_dev, status.st_ino) != state.device_inode:
        raise FileChanged("the file was removed or replaced while it was read", location)
    if status.st_size < state.size_bytes:
        raise FileChanged(cut_words(status.st_size, state), location)


def cut_words(size_bytes: int, state: FileState) -> str:
    """The message for a file that was truncated since it was opened."""
    return f"the file was truncated while it was read: it has {size_bytes} bytes, and had {state.size_bytes} at opening"


def os_reason(error: OSError) -> str:
    """The operating system's message for an error, without the error number and path that ``str`` adds."""
    return os.strerror(error.errno) if error.errno is not None else str(error)


def read_whole(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The content of a small file; raises LimitExceeded past ``max_bytes``, and the errors of FileSource."""
    with FileSource(path) as source:
        if source.size_bytes > max_bytes:
            raise LimitExceeded(
                f"the file has {source.size_bytes} bytes, over the limit of {max_bytes}", Location(source.path)
            )
        return source.read_at(0, source.size_bytes)
