"""The preparation of a Python worker of Spark for a task."""

from __future__ import annotations

from dataclasses import field

from format.io import remote_files
from format.io.freed_memory import keep_freed_memory
from format.node import remote_tier
from format.node.remote_tier import RemoteTier
from format.value_class import value_class


@value_class
class Surroundings:
    """State of the planning process that its tasks need: addresses with options, and remote segments."""

    addresses: tuple[str, ...] = field(default_factory=remote_files.known)
    tier: RemoteTier | None = field(default_factory=lambda: remote_tier.current)


def begin_task(surroundings: Surroundings) -> None:
    """Prepare this process for a task."""
    keep_freed_memory()
    remote_files.know(surroundings.addresses)
    remote_tier.current = surroundings.tier
