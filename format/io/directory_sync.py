"""Flushing a directory's entries to the disk, so that a file that was renamed into it survives a crash."""

from __future__ import annotations

import os


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Flush the entries of a directory to the disk; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
