"""The interface of a store: entries of single names, listings, and reading of objects by ranges."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Protocol

import msgspec


class RemoteEntry(msgspec.Struct, frozen=True):
    """A store's entry for one name; times are whole seconds, since some stores return no fractions."""

    name: str
    is_directory: bool
    size_bytes: int
    mtime_s: int
    tag: str = ""  # of the content (ETag), if the store has tags

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return self.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return not self.is_directory

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status, with the mode of a readable file or directory."""
        mode = stat.S_IFDIR | 0o555 if self.is_directory else stat.S_IFREG | 0o444
        times = (self.mtime_s, self.mtime_s, self.mtime_s)
        nanoseconds = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), self.mtime_s * 10**9)
        return os.stat_result((mode, 0, 0, 1, 0, 0, self.size_bytes, *times), nanoseconds)


class Ranges(Protocol):
    """An object opened for reading by ranges. Several threads may call ``read_at``, which raises OSError."""

    def read_at(self, length: int, position: int) -> bytes: ...

    def close(self) -> None: ...


class Store(Protocol):
    """One bucket, container or server. All methods raise OSError, and FileNotFoundError for a missing name."""

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a path in the store."""
        ...

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The paths, relative to a directory, and entries of all that is in it, or with ``is_deep`` below it."""
        ...

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open an object; ``entry`` is its entry."""
        ...


#: More bytes than any store holds in one object; offsets beyond it could not be computed with 64 bits.
_MOST_BYTES = 2**60


def checked_size(size_bytes: int) -> int:
    """The size that a store reports; raises OSError if no object can have it."""
    if not 0 <= size_bytes <= _MOST_BYTES:
        raise OSError(f"the store reports a size of {size_bytes} bytes, which no object has")
    return size_bytes


def error_words(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class."""
    if isinstance(error, OSError) and error.errno is not None and str(error.strerror) == os.strerror(error.errno):
        return os.strerror(error.errno)
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class WrongAddress(OSError):
    """The address itself cannot be used: its scheme or an option is unknown."""


class ObjectReplaced(OSError):
    """The object was replaced by another one while it was read."""
