"""Progress on standard error: bytes, rate and time left; only on a terminal, and only for long work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

_DELAY_S = 0.7  # shorter work shows nothing, and rich is not even imported
_INTERVAL_S = 0.1


class Progress:
    """Progress that shows nothing, and the interface of progress. ``advance`` is cheap: call it for every batch."""

    def advance(self, length_bytes: int) -> None:
        """Add bytes to the work that is done."""

    def hide(self) -> None:
        """Clear the bar before something else is written to the same terminal; the next ``advance`` shows it again."""

    def close(self) -> None:
        """Remove the bar for good."""


class TerminalProgress(Progress):
    """A bar that rich draws on standard error."""

    def __init__(self, description: str, total_bytes: int | None) -> None:
        self._description = description
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._next = time.monotonic() + _DELAY_S
        self._bar: Any = None
        self._task: Any = None
        self._is_visible = False

    def advance(self, length_bytes: int) -> None:
        self._done_bytes += length_bytes
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _INTERVAL_S
        if self._bar is None:
            self._make_bar()
        if not self._is_visible:
            self._bar.start()
            self._is_visible = True
        self._bar.update(self._task, completed=self._done_bytes)

    def hide(self) -> None:
        if self._is_visible:
            self._bar.stop()
            self._is_visible = False

    def close(self) -> None:
        self.hide()
        self._next = float("inf")

    def _make_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._description, total=self._total_bytes)


def open_progress(description: str, total_bytes: int | Callable[[], int] | None, *, is_wanted: bool = True) -> Progress:
    """A bar if ``is_wanted`` and standard error is a terminal that can show one; else a silent Progress."""
    stream = sys.stderr
    if is_wanted and stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "", None):
        return TerminalProgress(description, total_bytes() if callable(total_bytes) else total_bytes)
    return Progress()
