"""Settings of the C library's allocator: keep freed memory for the next chunk of the same size."""

from __future__ import annotations

import ctypes

from format.limits import MIB

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from malloc.h
_LARGEST_KEPT_BYTES = 16 * MIB
_LARGE_READ_BYTES = MIB
_waits_for_large_read = False


def keep_freed_memory() -> None:
    """Make the allocator of this process keep freed blocks of up to 16 MiB each, 32 MiB in total.

    To get the memory of every chunk from the system again, page by page, costs about as much as reading the chunk.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
    mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_KEPT_BYTES)


def keep_after_large_reads() -> None:
    """Call ``keep_freed_memory`` before the first large read; for less, loading ctypes costs more than it saves."""
    global _waits_for_large_read
    _waits_for_large_read = True


def before_read(length: int) -> None:
    """To be called before so many bytes are read in chunks."""
    global _waits_for_large_read
    if _waits_for_large_read and length >= _LARGE_READ_BYTES:
        _waits_for_large_read = False
        keep_freed_memory()
