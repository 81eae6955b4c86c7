"""The directory in which kafkalog keeps what takes seconds to make again: ``kafkalog`` in the user's cache."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

#: How long a file is kept that no command uses, such as one for an earlier release of a library.
_LONGEST_UNUSED_S = 60 * 24 * 3600


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


def note_use(path: Path) -> None:
    """Note that a file of the cache was used, which keeps it from being removed. It need not exist."""
    with suppress(OSError):
        os.utime(path)


def remove_unused(place: Path) -> None:
    """Remove the files of the cache that were not used for long; called where a new file is made."""
    oldest = time.time() - _LONGEST_UNUSED_S
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
