"""The preparation of a Python worker of Spark for a task."""

from __future__ import annotations

import msgspec

from format.io import remote_files
from format.io.freed_memory import keep_freed_memory
from format.node import remote_tier
from format.node.remote_tier import RemoteTier


class Surroundings(msgspec.Struct, frozen=True):
    """State of the planning process that its tasks need: addresses with options, and remote segments."""

    addresses: tuple[str, ...] = msgspec.field(default_factory=remote_files.known)
    tier: RemoteTier | None = msgspec.field(default_factory=lambda: remote_tier.current)


def begin_task(surroundings: Surroundings) -> None:
    """Prepare this process for a task."""
    keep_freed_memory()
    remote_files.know(surroundings.addresses)
    remote_tier.current = surroundings.tier
