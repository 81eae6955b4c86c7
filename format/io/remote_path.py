"""Paths on other file systems, such as ``s3://bucket/kafka/orders-0``: a Path backed by a remote store.

A RemotePath is joined and split like any Path, so callers that only use names need not distinguish the two; status and
listings go through ``format.io.remote_files``. All readers get their paths from ``path_of`` and list with
``entries_of``.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path, PosixPath
from typing import Any, Protocol
from urllib.parse import unquote

from format.io.addresses import without_query
from format.io.bundles import opened
from format.io.bundles.bundle_path import BundlePath

_REMOTE = re.compile(r"(?!(?i:file):)[A-Za-z][A-Za-z0-9+.-]+://")
#: The address of a local file. Neither a question mark nor a number sign ends the path, as in Hadoop's addresses.
_FILE = re.compile(r"file:(//[^/]*)?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)
#: Schemes whose addresses have no host or bucket: ``local:///mnt/copy``.
_WITHOUT_HOST = ("local", "memory", "aiven+file")


class Entry(Protocol):
    """One entry of a directory listing; os.DirEntry is one."""

    @property
    def name(self) -> str: ...

    def is_dir(self, *, follow_symlinks: bool = True) -> bool: ...

    def is_file(self, *, follow_symlinks: bool = True) -> bool: ...

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result: ...


class RemotePath(PosixPath):
    """A read-only path on another file system; ``str`` returns the address."""

    __slots__ = ()

    @property
    def scheme(self) -> str:
        """The scheme, such as ``s3``."""
        return self.parts[0].removesuffix(":")

    def __str__(self) -> str:
        # A Path collapses the two slashes of an address into one.
        scheme, _, rest = super().__str__().partition(":")
        return f"{scheme}://" + (rest if scheme in _WITHOUT_HOST else rest.removeprefix("/"))

    def __fspath__(self) -> str:
        return str(self)

    @property
    def parent(self) -> RemotePath:
        """The parent; a bucket or host is its own parent, as the root directory is."""
        is_top = len(self.parts) <= (1 if self.scheme in _WITHOUT_HOST else 2)
        return self if is_top else super().parent

    def absolute(self) -> RemotePath:
        """The path itself."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        """The path itself: there are no links."""
        return self

    def lstat(self) -> os.stat_result:
        """The status: size, modification time and type; raises OSError."""
        from format.io import remote_files

        return remote_files.status_of(str(self))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The same as ``lstat``."""
        return self.lstat()

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether the path exists; raises OSError if that cannot be determined."""
        return self._mode() != 0

    def _mode(self) -> int:
        try:
            return self.lstat().st_mode
        except FileNotFoundError:
            return 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory; raises OSError if that cannot be determined."""
        return stat.S_ISDIR(self._mode())

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file; raises OSError if that cannot be determined."""
        return stat.S_ISREG(self._mode())

    def is_symlink(self) -> bool:
        """Always False."""
        return False

    def open(self, *arguments: Any, **options: Any) -> Any:
        """Not supported, raises OSError: FileSource reads remote files."""
        raise OSError("a remote path cannot be opened: use FileSource")


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path is on another file system: it begins with a scheme other than ``file:``."""
    return _REMOTE.match(os.fspath(path)) is not None


def reads_addresses() -> bool:
    """Whether this process was given addresses to read; does not load the readers of stores to answer."""
    remote_files = sys.modules.get("format.io.remote_files")
    return remote_files is not None and remote_files.are_given()


def is_on_disk(path: str | os.PathLike[str]) -> bool:
    """Whether a path is on a file system of this machine: neither remote nor in a bundle."""
    return not is_remote(path) and opened.bundle_of(os.fspath(path)) is None


def path_of(path: str | os.PathLike[str]) -> Path:
    """The Path for a text: a RemotePath, a BundlePath, or a local Path, the last also for ``file:///…``.

    The query of an address (``?endpoint_override=…``) and access keys are not part of the path: see
    ``remote_files.know``.
    """
    if isinstance(path, Path):
        return path
    text = os.fspath(path)
    if _REMOTE.match(text):
        return RemotePath(without_query(text))
    if opened.bundle_of(text) is not None:
        return BundlePath(text)
    address = _FILE.match(text)
    return Path(text) if address is None else Path(unquote(address["path"]))


def entries_of(path: str | os.PathLike[str]) -> AbstractContextManager[Iterable[Entry]]:
    """The entries of a directory, as a context manager like os.scandir; raises OSError."""
    if is_remote(path):
        from format.io import remote_files

        return remote_files.listing(os.fspath(path))
    bundled = opened.bundle_of(os.fspath(path))
    return os.scandir(path) if bundled is None else bundled[1].listing(bundled[2])


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether the name exists, also as a broken link; raises nothing."""
    if is_on_disk(path):
        return os.path.lexists(path)
    try:
        path_of(path).lstat()
    except OSError:
        return False
    return True


def absolute(path: Path) -> Path:
    """The absolute path without ``.`` and ``..``; remote paths and paths in bundles are returned as they are."""
    return path if isinstance(path, (RemotePath, BundlePath)) else Path(os.path.abspath(path))
