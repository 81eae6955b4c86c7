"""What a Python worker of Spark does before a task of ours."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from format.io import remote_files
from format.io.freed_memory import keep_freed_memory

_begun = 0


def begin_task(addresses: Iterable[str]) -> None:
    """Make this process ready for a task; ``addresses`` are those whose options it has to know.

    After each task Spark's worker collects garbage, which takes 40 to 60 ms with all that is imported: as much as to
    read 64 MiB. What is there when the first two tasks begin stays anyhow, so it is set aside from that; what later
    tasks bring is not, or it would never be freed.
    """
    global _begun
    keep_freed_memory()
    remote_files.know(addresses)
    if _begun < 2:
        _begun += 1
        gc.freeze()
