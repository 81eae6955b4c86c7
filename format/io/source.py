"""Read-only sources of bytes: positioned reads up to a size that is fixed when the source is opened.

Local files are read with ``pread`` and never mapped, since a mapped file that shrinks kills the process.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from format.errors import FileChanged, LimitExceeded, UnreadableFile
from format.io.session import StoredPath, is_on_disk, path_of, session_of
from format.location import Location

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from format.io.read_policy import ReadPolicy


class FileState(msgspec.Struct, frozen=True):
    """The size, modification time and identity of an opened file. Remote and bundled files have made-up inodes."""

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]


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


class StoredFile(Protocol):
    """A remote or bundled file, read by ranges.

    ``read`` returns the bytes, and how many bytes were fetched for them. ``headers_only`` is the file itself if it is a
    log of which only the batch headers are there.
    """

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    @property
    def headers_only(self) -> HeadersOnly | None: ...
    def read(self, length: int, position: int) -> tuple[bytes, int]: ...
    def current_size_bytes(self) -> int: ...
    def close(self) -> None: ...


class HeadersOnly(Protocol):
    """A log of batch headers, with zeros between them, and with what was known of the whole log.

    ``damage`` are the places, by position, where no batch was found in the whole log. ``outline`` returns the offsets
    and timestamps of the records of a batch, if they are known: for a batch with a wrong CRC whose records can be read.
    ``stored_bytes`` is how many bytes of the batch at a position are there. ``crc_valid`` returns for batches at some
    positions 1 for a valid CRC, 0 for a wrong one, -1 for unknown, and ``has_bad_records`` whether the CRC is right and
    the records could not be read. ``inner_offsets`` returns the first offset and the number of the records in
    compressed v0/v1 messages, -1 for unknown.
    """

    @property
    def damage(self) -> Mapping[int, Any]: ...
    def outline(self, position: int) -> tuple[list[int], list[int]] | None: ...
    def outlined_offset(self, timestamp: int) -> int | None: ...
    def inner_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def next_header(self, position: int) -> int: ...
    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]: ...
    def has_bad_records(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]: ...
    def stored_bytes(self, position: int) -> int: ...


class FileSource:
    """A regular file, opened read-only and not through a symbolic link; local, remote, or in a bundle.

    ``place`` is its path, which knows its session. ``headers_only`` is the log of which only the batch headers are
    there, None for a file with all its bytes.
    """

    __slots__ = (
        *("_data", "_fd", "_policy", "_stored", "bytes_read", "device_inode", "headers_only", "mtime_ns", "path"),
        *("place", "size_bytes"),
    )
    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    def __init__(self, path: str | os.PathLike[str], state: FileState | None = None) -> None:
        """Open; raises UnreadableFile if this is not a readable regular file, FileChanged if it does not exist.

        ``state`` comes from another source of this file, whose fixed size is taken over. Raises FileChanged if the file
        was replaced or truncated since.
        """
        self.place = path_of(path)
        self.path = str(self.place) if isinstance(self.place, StoredPath) else os.fspath(path)
        self.bytes_read = 0
        self._fd = -1
        self._data = (0, 0)  # the range of data found last: on NFS each search is a request
        self._policy: ReadPolicy | None = None
        self._stored: StoredFile | None = None
        self.headers_only: HeadersOnly | None = None
        try:
            if isinstance(self.place, StoredPath):
                self._open_stored(self.place)
            else:
                self._open_local()
        except FileNotFoundError as error:
            message = "cannot open: the file does not exist, or no longer exists"
            raise FileChanged(message, Location(self.path)) from error
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
        except FileNotFoundError:
            raise
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
        session = session_of(self.place)
        if session is not None and not session.policy.is_plain:
            self._policy = session.policy
            self._policy.prepare(self._fd)

    def _open_stored(self, place: StoredPath) -> None:
        stored: StoredFile = place.open_stored()
        self._stored = stored
        self.headers_only = stored.headers_only
        self.size_bytes, self.mtime_ns = stored.size_bytes, stored.mtime_ns
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
            if self._policy is None:
                got = os.pread(self._fd, length, position)
            else:
                got = self._policy.read(self._fd, length, position)
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
        start, end = self._data
        if start <= position < end:
            return position, end
        try:
            start = os.lseek(self._fd, position, _SEEK_DATA)
            end = os.lseek(self._fd, start, _SEEK_HOLE)
        except OSError as error:
            start = self.size_bytes if error.errno == errno.ENXIO else position
            end = self.size_bytes
        self._data = min(start, self.size_bytes), min(end, self.size_bytes)
        return self._data

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

    def __exit__(self, *error: object) -> None:
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
    if not is_on_disk(path):
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


_BLOCK_BYTES = 4096
_MOST_PATCHED = 8


class PatchedSource:
    """A Source over a file, with zeros for unreadable blocks of 4 KiB; ``unreadable`` has the position of each.

    The zeros do not match the CRC of the batch they are in, so that batch counts as damaged, and reading resumes after
    it. ``patch`` puts a few bytes in the place of those in the file, which itself is not changed.
    """

    def __init__(self, file: FileSource) -> None:
        self._file = file
        self.path = file.path
        self.size_bytes = file.size_bytes
        self.mtime_ns = file.mtime_ns
        self.bytes_read = 0
        self.unreadable: set[int] = set()
        self._patches: dict[int, bytes] = {}
        self._patched_at: list[int] = []  # their positions, sorted

    def patch(self, position: int, content: bytes) -> None:
        """Show ``content``, at most 8 bytes, in the place of the bytes at a position."""
        if position not in self._patches:
            insort(self._patched_at, position)
        self._patches[position] = content

    def read_at(self, position: int, length: int) -> bytes:
        """Read like FileSource, but without UnreadableFile for I/O errors; raises FileChanged."""
        length = min(length, self.size_bytes - position)
        if length <= 0:
            return b""
        content = self._stored(position, length)
        first = bisect_right(self._patched_at, position - _MOST_PATCHED)
        last = bisect_left(self._patched_at, position + length)
        return content if first >= last else self._patched(content, position, self._patched_at[first:last])

    def _patched(self, content: bytes, position: int, patched_at: list[int]) -> bytes:
        """The bytes at a position with the patches at these positions."""
        changed = bytearray(content)
        for at in patched_at:
            patch = self._patches[at]
            start, end = max(at, position), min(at + len(patch), position + len(content))
            if start < end:
                changed[start - position : end - position] = patch[start - at : end - at]
        return bytes(changed)

    def _stored(self, position: int, length: int) -> bytes:
        """The bytes of the file, with zeros for unreadable blocks."""
        self.bytes_read += length
        if not self._touches_unreadable(position, length):
            try:
                return self._file.read_at(position, length)
            except UnreadableFile as error:
                if error.code != UnreadableFile.code:
                    raise
        return b"".join(self._block(at, position, length) for at in range(*_blocks(position, length)))

    def data_range(self, position: int) -> tuple[int, int]:
        """The same as for the FileSource."""
        return self._file.data_range(position)

    def _touches_unreadable(self, position: int, length: int) -> bool:
        return bool(self.unreadable) and any(at in self.unreadable for at in range(*_blocks(position, length)))

    def _block(self, block_start: int, position: int, length: int) -> bytes:
        start, end = max(block_start, position), min(block_start + _BLOCK_BYTES, position + length)
        if block_start not in self.unreadable:
            try:
                return self._file.read_at(start, end - start)
            except UnreadableFile as error:
                if error.code != UnreadableFile.code:
                    raise
                self.unreadable.add(block_start)
        return bytes(end - start)

    def close(self) -> None:
        self._file.close()


def _blocks(position: int, length: int) -> tuple[int, int, int]:
    return position - position % _BLOCK_BYTES, position + length, _BLOCK_BYTES
