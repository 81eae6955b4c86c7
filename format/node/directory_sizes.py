"""Sizes from the file system alone: what a file, a partition directory or a log directory takes up."""

from __future__ import annotations

import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from format import layout
from format.findings import Finding, finding
from format.io.remote_path import entries_of
from format.io.source import os_reason
from format.location import Location


@dataclass(frozen=True, slots=True)
class DirectorySizes:
    """Bytes of the regular files right in a directory, and of the live ``.log`` among them with their number."""

    size_bytes: int = 0
    log_size_bytes: int = 0
    segment_count: int = 0


def read_directory_sizes(path: Path) -> DirectorySizes:
    """The sizes, as far as they can be had: what cannot be listed counts as nothing and is told where it is read."""
    size_bytes = log_size_bytes = segment_count = 0
    try:
        with entries_of(path) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # a live broker deleted it
                if not stat.S_ISREG(status.st_mode):
                    continue
                size_bytes += status.st_size
                match = layout.SEGMENT_FILE.match(entry.name)
                if match is not None and match["suffix"] == layout.LOG_SUFFIX and match["leftover"] is None:
                    log_size_bytes += status.st_size
                    segment_count += 1
    except OSError:
        pass
    return DirectorySizes(size_bytes, log_size_bytes, segment_count)


def file_size_bytes(path: Path, location: Location) -> Generator[Finding, None, int | None]:
    """The size of one file; where it cannot be told, a finding and None."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        yield finding("file-changed", location, "the file vanished after its directory was listed")
    except OSError as error:
        yield finding("file-unreadable", location, f"cannot look: {os_reason(error)}")
    return None
