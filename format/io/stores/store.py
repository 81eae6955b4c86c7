"""The interface of a store: entries of names, listings, and objects that are read by ranges."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Protocol

from format.value_class import value_class


@value_class
class RemoteEntry:
    """A store's entry for one name; times are whole seconds, since some store interfaces return no fractions."""

    name: str
    is_directory: bool
    size_bytes: int
    mtime_s: int
    tag: str = ""  # of the content, where the store has one

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return self.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return not self.is_directory

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status, with the mode of a readable file."""
        mode = stat.S_IFDIR | 0o555 if self.is_directory else stat.S_IFREG | 0o444
        times = (self.mtime_s, self.mtime_s, self.mtime_s)
        nanoseconds = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), self.mtime_s * 10**9)
        return os.stat_result((mode, 0, 0, 1, 0, 0, self.size_bytes, *times), nanoseconds)


class Ranges(Protocol):
    """An object opened for reading by ranges. ``read_at`` may be called by several threads."""

    def read_at(self, length: int, position: int) -> bytes: ...

    def close(self) -> None: ...


class Store(Protocol):
    """One bucket, container or server. All methods raise OSError, and FileNotFoundError for a missing name."""

    def entry(self, inner: str) -> RemoteEntry:
        """What has this path in the store."""
        ...

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """What lies in a directory, or with ``is_deep`` everything below it: paths below it, and their entries."""
        ...

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """An object whose entry is known."""
        ...


class ObjectReplaced(OSError):
    """Another object has taken the place of the one that is being read."""
