"""The preparation of a Python worker of Spark for a task."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from format.io import remote_files
from format.io.freed_memory import keep_freed_memory

_begun = 0


def begin_task(addresses: Iterable[str]) -> None:
    """Prepare this process for a task; ``addresses`` are those whose options it needs.

    After each task Spark's worker collects garbage, which takes 40 to 60 ms with all that is imported: as long as
    reading 64 MiB. Objects that exist when the first two tasks begin are permanent, so they are set aside from it.
    Those of later tasks are not, as they would never be freed.
    """
    global _begun
    keep_freed_memory()
    remote_files.know(addresses)
    if _begun < 2:
        _begun += 1
        gc.freeze()
