"""The directory in which kafkalog keeps what takes seconds to make again: ``kafkalog`` in the user's cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def user_cache() -> Path | None:
    """The directory, which is made; None where it cannot be made, or others can write to it."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        place = Path(cache).absolute() / "kafkalog"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
    except (OSError, RuntimeError):
        return None
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return place if is_ours and os.access(place, os.W_OK) else None
