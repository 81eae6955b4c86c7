"""The SHA-256 of a file while it is written; of large pieces it can be taken in a thread beside whoever writes them."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

_LARGE_BYTES = 128 * 1024
_MOST_WAITING = 2


class FileDigest:
    """Takes a file's bytes in order; ``beside`` True lets a thread take the large pieces, which must not change then.

    hashlib releases the GIL for them, so the next piece is made meanwhile. Not for a process that forks.
    """

    def __init__(self, *, beside: bool = False) -> None:
        self._digest = hashlib.sha256()
        self._beside = beside
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()

    def update(self, content: memoryview) -> None:
        """The next bytes of the file."""
        if not self._beside or len(content) < _LARGE_BYTES:
            self._wait(0)
            self._digest.update(content)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "digest")
        self._wait(_MOST_WAITING - 1)
        self._waiting.append(self._thread.submit(self._digest.update, content))

    def _wait(self, count: int) -> None:
        while len(self._waiting) > count:
            self._waiting.popleft().result()

    def hexdigest(self) -> str:
        """The digest of all bytes so far, in hexadecimal."""
        self._wait(0)
        return self._digest.hexdigest()

    def close(self) -> None:
        """End the thread, if there is one; what waits is left out."""
        thread, self._thread = self._thread, None
        self._waiting.clear()
        if thread is not None:
            thread.shutdown(cancel_futures=True)
