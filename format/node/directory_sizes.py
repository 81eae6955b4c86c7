"""Sizes from the file system alone: what a file, a partition directory or a log directory takes up."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable
from pathlib import Path

from format import layout
from format.findings import Finding, finding
from format.io.source import os_reason
from format.location import Location
from format.value_class import state_class


@state_class
class DirectorySizes:
    """Bytes of the regular files right in a directory, and of the live ``.log`` among them with their number."""

    size_bytes: int = 0
    log_size_bytes: int = 0
    segment_count: int = 0

    def add_file(self, path: Path) -> None:
        """Add a file; one that is gone counts as nothing."""
        try:
            self.add(path.name, path.lstat())
        except OSError:
            return  # a live broker deleted it

    def add(self, name: str, status: os.stat_result) -> None:
        """Add a file by its status."""
        if not stat.S_ISREG(status.st_mode):
            return
        self.size_bytes += status.st_size
        match = layout.SEGMENT_FILE.match(name)
        if match is not None and match["suffix"] == layout.LOG_SUFFIX and match["leftover"] is None:
            self.log_size_bytes += status.st_size
            self.segment_count += 1


def size_of_files(paths: Iterable[Path]) -> int:
    """Bytes of the regular files among these; one that is gone counts as nothing."""
    size_bytes = 0
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            continue
        size_bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size_bytes


def file_size_bytes(path: Path, location: Location) -> Generator[Finding, None, int | None]:
    """The size of one file; where it cannot be read, a finding and None."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        yield finding("file-changed", location, "the file vanished after its directory was listed")
    except OSError as error:
        yield finding("file-unreadable", location, f"cannot look: {os_reason(error)}")
    return None
