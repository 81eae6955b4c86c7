"""Waiting for changes in directories, by inotify or by polling.

inotify does not report changes on network file systems, and the number of its watches is limited. So each directory is
watched or polled. Watched directories are also checked from time to time; if inotify misses a change, the directory is
polled from then on.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from inotify_simple import INotify

#: The intervals between checks of polled directories, and of watched ones.
POLL_S = 0.1
SWEEP_S = 2.0
#: Checks take at most this part of the time: with many directories, the intervals are longer.
_MOST_OF_TIME = 1 / 200
#: The time between the first event of inotify and reading events, so that a burst is read at once.
_GATHER_S = 0.002
_MOUNTS = Path("/proc/self/mountinfo")
#: File systems on which another host, or a process outside this kernel, may change files.
_SILENT_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "gpfs", "afs", "beegfs", "virtiofs"}
    | {"vboxsf", "fuse", "fuseblk", "ocfs2", "gfs2"}
)

#: A function that returns the state of a directory; a different value means that something changed.
Look = Callable[[], Hashable]


class Stopping(msgspec.Struct, frozen=True):
    """The conditions on which following ends.

    ``is_asked`` returns whether it is to end, and ``wake_fd`` becomes readable then (-1 for none). ``reader_fd`` is the
    descriptor that results are written to: following ends when its reader closes it (-1 for none).
    """

    is_asked: Callable[[], bool]
    wake_fd: int = -1
    reader_fd: int = -1


NEVER = Stopping(lambda: False)


class Changes:
    """The followed directories, and their changes; close it, or use it as a context manager."""

    def __init__(self, stopping: Stopping = NEVER, *, may_watch: bool = True) -> None:
        self._stopping = stopping
        self._looks: dict[Path, tuple[Look, Hashable]] = {}
        self._inotify = _inotify() if may_watch else None
        self._watch_of: dict[Path, int] = {}
        self._path_of: dict[int, Path] = {}
        self._missed: set[Path] = set()  # directories with a change that a sweep found and inotify had not reported
        self._poll = select.poll()
        self._next_poll = self._next_sweep = 0.0
        self.reader_is_gone = False
        for fd in (stopping.wake_fd, -1 if self._inotify is None else self._inotify.fd):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)
        if stopping.reader_fd >= 0:
            self._poll.register(stopping.reader_fd, 0)  # errors are always reported

    def is_over(self) -> bool:
        """Whether following is to end."""
        return self.reader_is_gone or self._stopping.is_asked()

    def polled_count(self) -> int:
        """The number of directories that inotify does not watch."""
        return len(self._looks) - len(self._watch_of)

    def add(self, directory: Path, look: Look) -> None:
        """Follow a directory; changes before this call are not reported."""
        self._looks[directory] = look, look()
        if self._inotify is None or directory in self._watch_of or is_silent(directory):
            return
        try:
            watch = self._inotify.add_watch(directory, _mask())
        except OSError:
            return  # no more watches, or the directory does not exist: it is polled
        self._watch_of[directory] = watch
        self._path_of[watch] = directory

    def seen(self, directory: Path) -> None:
        """Take the present state of a directory as known, so that only later changes are reported."""
        known = self._looks.get(directory)
        if known is not None:
            self._looks[directory] = known[0], known[0]()

    def forget(self, directory: Path) -> None:
        """Stop following a directory."""
        self._looks.pop(directory, None)
        self._unwatch(directory)

    def _unwatch(self, directory: Path) -> None:
        watch = self._watch_of.pop(directory, None)
        if watch is not None and self._inotify is not None:
            self._path_of.pop(watch, None)
            with suppress(OSError):
                self._inotify.rm_watch(watch)

    def wait(self, most_s: float | None = None) -> set[Path]:
        """Wait until something may have changed, or following is to end; return the directories with changes.

        After ``most_s`` the wait ends, and the result is empty.
        """
        until = None if most_s is None else time.monotonic() + most_s
        while not self.is_over():
            changed = self._due()
            if changed:
                return changed
            now = time.monotonic()
            if until is not None and now >= until:
                break
            moments = [self._next_sweep] if self._watch_of else []
            moments += [self._next_poll] if self.polled_count() else []
            moments += [] if until is None else [until]
            timeout = None if not moments else max(0.0, min(moments) - now)
            ready = self._poll.poll(None if timeout is None else timeout * 1000 + 1)
            for fd, event in ready:
                if fd == self._stopping.reader_fd and event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                    self.reader_is_gone = True
            if self._inotify is not None and any(fd == self._inotify.fd for fd, _ in ready):
                time.sleep(_GATHER_S)
                changed = self._reported()
                if changed:
                    return changed
        return set()

    def _reported(self) -> set[Path]:
        """The directories for which inotify reports changes."""
        from inotify_simple import flags

        if self._inotify is None:
            return set()
        changed: set[Path] = set()
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                return set(self._looks)
            path = self._path_of.get(event.wd)
            if path is None:
                continue
            changed.add(path)
            self._missed.discard(path)
            if event.mask & flags.IGNORED:  # the directory was deleted, and its watch with it
                del self._path_of[event.wd]
                self._watch_of.pop(path, None)
        return changed

    def _due(self) -> set[Path]:
        """The directories with changes, of those whose check is due."""
        now = time.monotonic()
        changed: set[Path] = set()
        if now >= self._next_poll:
            changed |= self._different(path for path in list(self._looks) if path not in self._watch_of)
            self._next_poll = _after(now, POLL_S)
        if self._watch_of and now >= self._next_sweep:
            missed = self._different(list(self._watch_of))
            if missed:
                reported = self._reported()
                for path in missed - reported:
                    if path in self._missed:
                        self._unwatch(path)  # inotify does not report changes here
                self._missed |= missed - reported  # the first miss may only be a delay
                changed |= missed | reported
            self._next_sweep = _after(now, SWEEP_S)
        return changed

    def _different(self, paths: Iterable[Path]) -> set[Path]:
        changed: set[Path] = set()
        for path in paths:
            look, before = self._looks[path]
            if look() != before:
                changed.add(path)
        return changed

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _after(started: float, least_s: float) -> float:
    """The time of the next check, after one that started at ``started`` and ends now."""
    now = time.monotonic()
    return now + max(least_s, (now - started) / _MOST_OF_TIME)


def _inotify() -> INotify | None:
    """An inotify instance; None without the package, or if the system has none."""
    try:
        from inotify_simple import INotify
    except ImportError:
        return None
    try:
        return INotify(nonblocking=True)
    except OSError:
        return None


def _mask() -> int:
    from inotify_simple import flags

    return int(
        flags.MODIFY
        | flags.CREATE
        | flags.DELETE
        | flags.MOVED_FROM
        | flags.MOVED_TO
        | flags.DELETE_SELF
        | flags.MOVE_SELF
        | flags.ONLYDIR
    )


def is_silent(directory: Path) -> bool:
    """Whether a directory is on a file system whose changes this kernel may not see."""
    kind = _file_system_of(os.path.realpath(directory))
    return kind.partition(".")[0] in _SILENT_FILE_SYSTEMS


def _file_system_of(path: str) -> str:
    """The type of the file system at a path, such as ext4; empty if unknown."""
    best, kind = -1, ""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        place = fields.split(" ")[4].encode().decode("unicode_escape")
        if len(place) >= best and (path == place or path.startswith(place.rstrip("/") + "/")):
            best, kind = len(place), rest.split(" ")[0]
    return kind
