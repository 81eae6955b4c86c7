"""Writing of files and directories: outside what is read, and so that they survive a crash."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from format import layout
from format.errors import InputError, OutputInsideSource
from format.io.session import is_remote, path_of
from format.location import Location

_LARGE_BYTES = 128 * 1024
_MOST_WAITING = 2
_MARKS_OF_A_LOG_DIR = (layout.META_PROPERTIES, *layout.OFFSET_CHECKPOINTS)


def check_apart(output: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> Path:
    """The real path of an output, which may not exist yet.

    Raises InputError for an address, OutputInsideSource where it equals, contains or lies inside a local source,
    also through symbolic links and bind mounts, or lies inside a broker's log directory.
    """
    location = Location(str(output))
    if is_remote(output):
        raise InputError("is an address; a new file can only be written to a file system of this host", location)
    real = Path(os.path.realpath(path_of(output)))
    for source in sources:
        relation = None if is_remote(source) else _relation(real, Path(os.path.realpath(source)))
        if relation is not None:
            raise OutputInsideSource(f"the output {relation} the source {source}, where nothing is written", location)
    for each in real.parents:
        if any(os.path.lexists(each / name) for name in _MARKS_OF_A_LOG_DIR):
            raise OutputInsideSource(f"the output would lie inside the log directory {each}", location)
    return real


def _relation(target: Path, source: Path) -> str | None:
    """How the target relates to the source, in words, by name or by device and inode; None where they are apart."""
    source_identity, target_identity = _identity(source), _identity(target)
    if target == source or (source_identity is not None and source_identity == target_identity):
        return "is"
    if source in target.parents or (source_identity and source_identity in map(_identity, target.parents)):
        return "lies inside"
    if target in source.parents or (target_identity and target_identity in map(_identity, source.parents)):
        return "contains"
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class DigestingWriter:
    """Writes an open file from start to end; with ``in_thread`` a thread writes from the first large piece on.

    hashlib and system calls release the GIL, so the caller can make the next piece meanwhile. A piece must not change
    after it was passed to ``write``. A process that uses the thread must not fork. All methods except ``close`` raise
    OSError; an error in the thread is raised by a later call.
    """

    def __init__(self, fd: int, *, in_thread: bool = False) -> None:
        self._fd = fd
        self._digest = hashlib.sha256()
        self._in_thread = in_thread
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self._is_flushing = False

    def write(self, content: memoryview) -> None:
        """Write the next bytes of the file."""
        if self._thread is None and (not self._in_thread or len(content) < _LARGE_BYTES):
            self._write(content)
        else:
            self._wait(_MOST_WAITING - 1)
            self._submit(lambda: self._write(content))

    def _write(self, content: memoryview) -> None:
        left = content
        while left:
            left = left[os.write(self._fd, left) :]
        self._digest.update(content)

    def _submit(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "writer")
        self._waiting.append(self._thread.submit(work))

    def _wait(self, count: int) -> None:
        while len(self._waiting) > count:
            self._waiting.popleft().result()

    def wait(self) -> None:
        """Wait until all bytes are written, so that they can be read back."""
        self._wait(0)

    def begin_flush(self) -> None:
        """Start to flush the file to the disk in the thread, if there is one; nothing may be written after this."""
        if self._thread is not None:
            self._submit(self._flush)
            self._is_flushing = True

    def flush(self) -> None:
        """Flush the file to the disk, or wait until the thread has done so."""
        self._wait(0)
        if not self._is_flushing:
            self._flush()

    def _flush(self) -> None:
        os.fsync(self._fd)

    def hexdigest(self) -> str:
        """The SHA-256 of all bytes written, in hexadecimal."""
        self._wait(0)
        return self._digest.hexdigest()

    def close(self) -> None:
        """End the thread, if there is one, and drop pending writes. The file stays open."""
        thread, self._thread = self._thread, None
        self._waiting.clear()
        if thread is not None:
            thread.shutdown(cancel_futures=True)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Flush the entries of a directory to the disk; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
