"""Paths in a bundle, such as ``incident.tar.zst/var/kafka/orders-0``: a Path whose files are read from the bundle."""

from __future__ import annotations

import os
import stat
from pathlib import PosixPath
from typing import Any

from format.io.bundles import opened
from format.io.bundles.opened import OpenedBundle


class BundlePath(PosixPath):
    """A read-only path in an opened bundle: the path of the bundle, and the path in it."""

    __slots__ = ()

    def _place(self) -> tuple[OpenedBundle, str]:
        found = opened.bundle_of(str(self))
        if found is None:
            raise FileNotFoundError(f"not in an opened bundle: {self}")
        return found[1], found[2]

    def absolute(self) -> BundlePath:
        """The path itself."""
        return self

    def resolve(self, strict: bool = False) -> BundlePath:
        """The path itself: links are not followed."""
        return self

    def lstat(self) -> os.stat_result:
        """The status that it had in the source; raises OSError."""
        bundle, inner = self._place()
        return bundle.status(inner)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The same as ``lstat``, after following a link unless ``follow_symlinks`` is false."""
        bundle, inner = self._place()
        return bundle.followed_status(inner) if follow_symlinks else bundle.status(inner)

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether the bundle lists it."""
        return self._mode(follow_symlinks) != 0

    def _mode(self, follows: bool) -> int:
        try:
            return self.stat(follow_symlinks=follows).st_mode
        except OSError:
            return 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        """Whether it was a symbolic link."""
        return stat.S_ISLNK(self._mode(False))

    def open(self, *arguments: Any, **options: Any) -> Any:
        """Not supported, raises OSError: FileSource reads files in bundles."""
        raise OSError("a path in a bundle cannot be opened: use FileSource")
