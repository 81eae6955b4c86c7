"""Sizes and times of files when the work was planned, and the message where a task finds other files."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

import msgspec

from format.io.session import entries_of, is_remote
from spark_jobs.work.workers import path_of


class FileState(msgspec.Struct, frozen=True):
    """Size and time of a file, or the sums of several, when the plan was made."""

    size_bytes: int
    mtime_ns: int


def state_of_file(path: str) -> FileState:
    """Size and time of a regular file; both 0 for anything else, and where there is no file."""
    try:
        status = path_of(path).lstat() if is_remote(path) else os.lstat(path)
    except OSError:
        return FileState(0, 0)  # reading it reports why it cannot be read
    return FileState(status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else FileState(0, 0)


def states_of_logs(path: str) -> dict[str, FileState]:
    """Size and time of each ``.log`` file in a partition directory, by name."""
    found: dict[str, FileState] = {}
    try:
        with entries_of(path_of(path)) as entries:
            for entry in entries:
                if entry.name.endswith(".log"):
                    status = entry.stat(follow_symlinks=False)
                    is_file = stat.S_ISREG(status.st_mode)
                    found[entry.name] = FileState(status.st_size, status.st_mtime_ns) if is_file else FileState(0, 0)
    except OSError:
        pass  # reading it reports why it cannot be read
    return found


def sum_of(states: Collection[FileState]) -> FileState:
    """The bytes of some files, and the time of the newest of them."""
    return FileState(sum(each.size_bytes for each in states), max((each.mtime_ns for each in states), default=0))


def state_of_partition(path: str) -> FileState:
    """The bytes of a partition directory's ``.log`` files, and the time of the newest of them."""
    return sum_of(states_of_logs(path).values())


def state_of_place(path: str) -> FileState:
    """The state of a file, or of the logs in a partition directory."""
    return state_of_partition(path) if is_directory(path) else state_of_file(path)


def is_directory(path: str) -> bool:
    """Whether a path is a directory; false where that cannot be found out."""
    try:
        return path_of(path).is_dir()
    except OSError:
        return False


def words_for_change(path: str, planned: FileState, now: FileState) -> str | None:
    """The message about a file that differs from the plan; None where it does not, or has only grown.

    An object in a store is replaced as a whole, so an object with another time is another one even at the same size. A
    store that reports no times has 0 in the plan.
    """
    if now.size_bytes < planned.size_bytes:
        return (
            f"it has {now.size_bytes} bytes, and had {planned.size_bytes} when the work was planned: it shrank, or "
            "this host has another file of that path"
        )
    if now.mtime_ns < planned.mtime_ns:
        return (
            "it was last written earlier than the file for which the work was planned: it was replaced, or this host "
            "has another file of that path"
        )
    is_another = now.size_bytes == planned.size_bytes and now.mtime_ns != planned.mtime_ns
    if is_remote(path) and planned.mtime_ns and is_another:
        return "it was rewritten after the work was planned"
    return None
