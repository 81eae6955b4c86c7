"""Sizes of files and partition directories, from the file system."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec

from format import layout


class DirectorySizes(msgspec.Struct):
    """Bytes of the regular files right in a directory, bytes and number of the live ``.log`` files among them."""

    size_bytes: int = 0
    log_size_bytes: int = 0
    segment_count: int = 0

    def add_files(self, directory: Path, names: Iterable[str]) -> None:
        """Add files of a local directory; files that no longer exist count as 0."""
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return  # a live broker deleted it
        try:
            for name in names:
                with suppress(OSError):
                    self.add(name, os.stat(name, dir_fd=fd, follow_symlinks=False))
        finally:
            os.close(fd)

    def add(self, name: str, status: os.stat_result) -> None:
        """Add a file by its status."""
        if S_ISREG(status.st_mode):
            self.size_bytes += status.st_size
            if is_live_log(name):
                self.log_size_bytes += status.st_size
                self.segment_count += 1


def is_live_log(name: str) -> bool:
    """Whether this is the name of a live log, also of one whose offset is too large."""
    return name[20:] == layout.LOG_SUFFIX and layout.SEGMENT_FILE.match(name) is not None


def size_of_files(paths: Iterable[Path]) -> int:
    """The bytes of the regular files among these paths; a file that does not exist counts as 0."""
    size_bytes = 0
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            continue
        size_bytes += status.st_size if S_ISREG(status.st_mode) else 0
    return size_bytes
