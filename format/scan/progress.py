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
