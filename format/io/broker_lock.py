"""The .lock file of a log directory: whether a running broker holds it, as the kernel reports without locking it.

A broker locks the whole file through Java's FileChannel.lock (server-common FileLock), which is a POSIX record lock
that fcntl's F_GETLK reports. Newer brokers delete the file when they stop; old ones and killed ones leave it unlocked.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

import msgspec

from format.io.bundles import opened
from format.io.remote_path import is_there
from format.io.source import os_reason

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

#: The C library's struct flock: its format and where l_type and l_pid are in it; None where it is not known here.
_FLOCK: tuple[str, int, int] | None = None
if sys.platform == "linux" and struct.calcsize("P") == 8:
    _FLOCK = ("hhqqi4x", 0, 4)  # l_type, l_whence, l_start, l_len, l_pid
elif sys.platform == "darwin":
    _FLOCK = ("qqihh", 3, 2)  # l_start, l_len, l_pid, l_type, l_whence


class BrokerLock(msgspec.Struct, frozen=True):
    """Whether a process holds the lock. None means unknown, for the reason in ``reason``.

    ``pid`` is the process that holds it; None if no process does, or if the kernel does not report it (a process in
    another container, or on another host of a network file system).
    """

    path: str
    is_present: bool | None
    is_held: bool | None
    pid: int | None = None
    reason: str = ""

    @property
    def may_be_held(self) -> bool:
        """Whether a broker may be running: not only if a process holds the lock, but also if that is unknown."""
        return self.is_held is not False


def probe(path: str | os.PathLike[str]) -> BrokerLock:
    """Find out which process holds the lock.

    Opens the file read-only and raises nothing. A missing file is not held.
    """
    name = os.fspath(path)
    bundled = opened.bundle_of(name)
    if bundled is not None:
        holder = bundled[1].lock_holder(bundled[2])
        return BrokerLock(name, is_there(name), holder is not None, holder or None)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return BrokerLock(name, is_present=False, is_held=False)
        return BrokerLock(name, None, None, reason=f"cannot open: {os_reason(error)}")
    except ValueError as error:  # a null character in the path
        return BrokerLock(name, None, None, reason=f"cannot open: {error}")
    try:
        return _probe(name, descriptor)
    finally:
        os.close(descriptor)


def _probe(name: str, descriptor: int) -> BrokerLock:
    if fcntl is None or _FLOCK is None:
        return BrokerLock(name, True, None, reason="locks of this operating system are not supported")
    layout, type_index, pid_index = _FLOCK
    fields = [0] * 5
    fields[type_index] = fcntl.F_WRLCK  # report any lock that conflicts with the one that a broker takes
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(layout, *fields))
    except OSError as error:
        return BrokerLock(name, True, None, reason=f"the file system does not report locks: {os_reason(error)}")
    found = struct.unpack(layout, answer)
    if found[type_index] == fcntl.F_UNLCK:
        return BrokerLock(name, True, False)
    pid = found[pid_index]
    return BrokerLock(name, True, True, pid if pid > 0 else None)
