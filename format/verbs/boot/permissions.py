"""Files and directories that this user, or the user who owns the log directory, cannot open.

A broker opens every file of a log to read and to write. Which user runs it is not known: the owner of the log directory
is the likely one. After a restore as root that user often cannot write the files.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from format.io.session import is_on_disk
from format.io.source import os_reason
from format.layout import (
    CLEAN_SHUTDOWN,
    LOCK,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from format.node.partition import parse_partition_dir
from format.verbs.boot.steps import NotKnown

_READ, _WRITE, _SEARCH = 4, 2, 1
_OPENED_TO_WRITE = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def closed_to_this_user(log_dirs: list[Path]) -> list[NotKnown]:
    """The log directories that the user of this program may not list."""
    found = []
    for path in filter(is_on_disk, log_dirs):
        try:
            os.listdir(path)
            (path / ".").stat()
        except PermissionError as error:
            found.append(NotKnown(f"the log directory cannot be listed: {os_reason(error)}", path))
        except OSError:
            continue  # not a directory, or not there: the simulated start reports it
    return found


def closed_to_the_owner(log_dirs: list[Path]) -> list[NotKnown]:
    """One entry for each directory with files that the owner of its log directory can apparently not open."""
    found = []
    for log_dir in filter(is_on_disk, log_dirs):
        try:
            status = log_dir.stat()
            names = sorted(name for name in os.listdir(log_dir) if parse_partition_dir(name))
        except OSError:
            continue
        if status.st_uid == 0:
            continue  # root opens everything
        directories = [log_dir, *(log_dir / name for name in names)]
        is_copy = not any(_has_writable_log(directory) for directory in directories)
        for directory in directories:
            closed = _closed(directory, status, is_copy=is_copy)
            if closed:
                found.append(NotKnown(_words(closed, status.st_uid), directory))
    return found


def _has_writable_log(directory: Path) -> bool:
    """Whether the mode of some log in a directory lets its owner write: often of none in a copy kept as evidence."""
    with suppress(OSError), os.scandir(directory) as entries:
        return any(entry.name.endswith(LOG_SUFFIX) and _is_writable(entry) for entry in entries)
    return False


def _is_writable(entry: os.DirEntry[str]) -> bool:
    try:
        return bool(entry.stat().st_mode & stat.S_IWUSR)
    except OSError:
        return False  # a link that leads nowhere, or a file that has just been removed


def _closed(directory: Path, owner: os.stat_result, *, is_copy: bool) -> list[tuple[str, os.stat_result]]:
    """The files in a directory that the owner cannot open, and ``.`` for the directory itself, by name."""
    closed = []
    with suppress(OSError):  # not listable for this user: nothing more can be found out
        status = directory.stat()
        if not _is_open(status, owner, _READ | _WRITE | _SEARCH, is_copy=True):
            closed.append((".", status))
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):  # a link that leads nowhere, or a file that has just been removed
                    status = entry.stat()
                    wanted = _wanted(entry.name)
                    if stat.S_ISREG(status.st_mode) and not _is_open(status, owner, wanted, is_copy=is_copy):
                        closed.append((entry.name, status))
    return sorted(closed)


def _wanted(name: str) -> int:
    """The access that a start needs: logs, indexes and the lock are opened to write, the others only read."""
    if name == CLEAN_SHUTDOWN:
        return 0
    return _READ | _WRITE if name == LOCK or name.endswith(_OPENED_TO_WRITE) else _READ


def _is_open(status: os.stat_result, owner: os.stat_result, wanted: int, *, is_copy: bool) -> bool:
    """Whether the permission bits grant the owner of the log directory the access ``wanted``.

    ``is_copy``: no log can be written. For the owner's own files read access is then enough: the original may differ.
    """
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == owner.st_uid:
        needed = wanted & _READ if is_copy else wanted
        return (mode >> 6) & needed == needed
    bits = mode >> 3 if status.st_gid == owner.st_gid else mode
    return bits & wanted == wanted


def _words(closed: list[tuple[str, os.stat_result]], owner: int) -> str:
    name, status = closed[0]
    first = "the directory" if name == "." else name
    more = f", and {len(closed) - 1:,} more here" if len(closed) > 1 else ""
    return (
        f"the owner of the log directory, user {owner}, cannot open {first} (user {status.st_uid}, mode "
        f"{stat.S_IMODE(status.st_mode):04o}){more}: a broker that runs as that user fails on it"
    )
