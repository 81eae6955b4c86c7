"""Progress of a run: the function that receives the bytes done, and counters for logs and for other work."""

from __future__ import annotations

from collections.abc import Callable

#: A function that is called with the number of bytes of the sources that were processed since the last call.
Advance = Callable[[int], None]


def no_progress(length_bytes: int) -> None:
    """Ignore progress."""


class LogProgress:
    """The progress of one log. Each byte counts once, even if ranges overlap or are not in order.

    Drivers move it forward, and at the end to the size of the log. So the bytes of all logs add up to their sizes, even
    if a scan starts late, ends early or meets an unreadable file.
    """

    __slots__ = ("_advance", "_done_bytes")

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._done_bytes = 0

    def reached(self, position: int) -> None:
        """Count all bytes before ``position``."""
        if position > self._done_bytes:
            self._advance(position - self._done_bytes)
            self._done_bytes = position


class SpanProgress:
    """The progress of work that counts as ``total_bytes``, even if parts of it are repeated."""

    __slots__ = ("_account", "_done_bytes", "_total_bytes")

    def __init__(self, advance: Advance, total_bytes: int) -> None:
        self._account = LogProgress(advance)
        self._total_bytes = total_bytes
        self._done_bytes = 0

    def advance(self, length_bytes: int) -> None:
        """Count further bytes."""
        self._done_bytes += length_bytes
        self._account.reached(min(self._done_bytes, self._total_bytes))

    def restart(self) -> None:
        """Start again: the bytes that were counted are not counted twice."""
        self._done_bytes = 0

    def finish(self) -> None:
        """Count all bytes that are left."""
        self._account.reached(self._total_bytes)
