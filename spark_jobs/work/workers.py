"""The preparation of a Python worker of Spark for a task."""

from __future__ import annotations

import gc

import msgspec

from format.io import remote_files
from format.io.freed_memory import keep_freed_memory
from format.node import remote_tier
from format.node.remote_tier import RemoteTier

_begun = 0


class Surroundings(msgspec.Struct, frozen=True):
    """State of the planning process that its tasks need: addresses with options, and remote segments."""

    addresses: tuple[str, ...] = msgspec.field(default_factory=remote_files.known)
    tier: RemoteTier | None = msgspec.field(default_factory=lambda: remote_tier.current)


def begin_task(surroundings: Surroundings) -> None:
    """Prepare this process for a task.

    After each task Spark's worker collects garbage, which takes 40 to 60 ms with all that is imported: as long as
    reading 64 MiB. Objects that exist when the first two tasks begin are permanent, so they are set aside from it.
    Those of later tasks are not, as they would never be freed.
    """
    global _begun
    keep_freed_memory()
    remote_files.know(surroundings.addresses)
    remote_tier.current = surroundings.tier
    if _begun < 2:
        _begun += 1
        gc.freeze()
