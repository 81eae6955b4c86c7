"""Progress of a run: a function that is called with the number of bytes done, and a counter for each log."""

from __future__ import annotations

from collections.abc import Callable

#: Takes how many more bytes of the sources are done.
Advance = Callable[[int], None]


def no_progress(length_bytes: int) -> None:
    """Ignores progress."""


class LogProgress:
    """The progress of one log. Each byte counts once, whatever the order and overlap of its ranges.

    Drivers move it forward, and at the end to the log's size, so that the bytes done of all logs add up to their sizes
    even where a scan starts late, ends early or meets an unreadable file.
    """

    __slots__ = ("_advance", "_done_bytes")

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._done_bytes = 0

    def reached(self, position: int) -> None:
        """All before ``position`` is done."""
        if position > self._done_bytes:
            self._advance(position - self._done_bytes)
            self._done_bytes = position


class SpanProgress:
    """The account of a part of the work that counts as so many bytes, however much of it is done again."""

    __slots__ = ("_account", "_done_bytes", "_total_bytes")

    def __init__(self, advance: Advance, total_bytes: int) -> None:
        self._account = LogProgress(advance)
        self._total_bytes = total_bytes
        self._done_bytes = 0

    def advance(self, length_bytes: int) -> None:
        """So many more bytes are done."""
        self._done_bytes += length_bytes
        self._account.reached(min(self._done_bytes, self._total_bytes))

    def restart(self) -> None:
        """What was done is done again; it is not counted twice."""
        self._done_bytes = 0

    def finish(self) -> None:
        """All is done."""
        self._account.reached(self._total_bytes)
