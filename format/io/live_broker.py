"""Repeated checks, for what a running broker may be about to change by an append or a rename."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from format import layout
from format.io import broker_lock

#: The longest time between two steps of one change by a broker on a busy host.
_PATIENCE_S = 3.0
_PAUSE_S = 0.05


def is_broker_running(partition_dir: Path) -> bool:
    """Whether a process holds the lock of the log directory that a partition directory lies in."""
    return broker_lock.probe(partition_dir.absolute().parent / layout.LOCK).is_held is True


def comes_true(condition: Callable[[], bool], partition_dir: Path) -> bool:
    """Whether the condition holds now or, if a broker is running, within a few seconds."""
    if condition():
        return True
    if not is_broker_running(partition_dir):
        return False
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        time.sleep(_PAUSE_S)
        if condition():
            return True
    return False
