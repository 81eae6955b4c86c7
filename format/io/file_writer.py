"""Writing of files and directories so that they survive a crash."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_LARGE_BYTES = 128 * 1024
_MOST_WAITING = 2


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
        self._digest.update(content)

    def _write(self, content: memoryview) -> None:
        while content:
            content = content[os.write(self._fd, content) :]

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
