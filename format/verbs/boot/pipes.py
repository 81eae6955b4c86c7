"""Pipes (FIFOs) under the names of files: a broker that opens one to read or to write waits for its other end."""

from __future__ import annotations

import stat
from pathlib import Path

from format.io.session import is_on_disk
from format.verbs.boot.steps import StopsStart


def is_pipe(path: Path) -> bool:
    """Whether a path leads to a pipe, links followed."""
    try:
        return is_on_disk(path) and stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def stop_at_pipe(path: Path, kafka_class: str) -> None:
    """Raises StopsStart where a path leads to a pipe: opening it does not return, and the broker says nothing."""
    if is_pipe(path):
        reason = "it is a pipe: the broker waits for another process to open it, and its start never ends"
        raise StopsStart(None, kafka_class, path=path, reason=reason)


def unsized_index(path: Path, kafka_class: str) -> StopsStart:
    """The end of a start at an index that is a pipe: recovery cannot give it a size, and then fails to empty it."""
    text = f'{kafka_class}.mmap()" is null'
    return StopsStart(text, kafka_class, path=path, reason="it is a pipe, which cannot be given a size")
