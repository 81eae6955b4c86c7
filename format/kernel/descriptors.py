"""System calls on the files of an open directory: C makes them itself, Python through ``os``.

Compiled modules have these functions from ``descriptors.pxd``; this file is never compiled. Failures are numbers:
callers leave it to ``format.io.source`` to say why.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from format.kernel.memory import Bytes, Room

__all__ = ("NAME_DIGITS", "read_log", "size_of_file")

#: The digits of a base offset in a file's name.
NAME_DIGITS = 20

_O_NOATIME = getattr(os, "O_NOATIME", 0)  # of Linux only


def size_of_file(names: Bytes, at: int, directory_fd: int) -> int:
    """The size of the file whose name is at ``names[at]``, up to a zero byte; -1 for no regular file, -2 if that fails.

    A symbolic link is not followed.
    """
    name = bytes(names[at:]).partition(b"\0")[0]
    try:
        status = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except OSError:
        return -2
    return status.st_size if S_ISREG(status.st_mode) else -1


def read_log(room: Room, length: int, directory_fd: int, base_offset: int) -> int:
    """Read up to ``length`` bytes of the log of a base offset into ``room``; return how many, or -1 if that fails."""
    name = f"{base_offset:0{NAME_DIGITS}d}.log"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            fd = os.open(name, flags | _O_NOATIME, dir_fd=directory_fd)
        except PermissionError:
            fd = os.open(name, flags, dir_fd=directory_fd)
        try:
            content = os.pread(fd, length, 0)
        finally:
            os.close(fd)
    except OSError:
        return -1
    room[: len(content)] = content
    return len(content)
