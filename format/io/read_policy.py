"""How files are read beside a running broker: a bounded rate, and no eviction of data from the page cache."""

from __future__ import annotations

import errno
import os
import time

from format.limits import MIB

_SLICE_BYTES = 128 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SLICES_PER_S = 16  # reads per second that a rate is spread over
#: Up to this much time without reads is made up for. Otherwise time spent on processing would lower the rate.
_CREDIT_S = 1.0
_NOT_AT_ONCE = (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from malloc.h
_LARGEST_KEPT_BYTES = 16 * MIB


class ReadPolicy:
    """The policy for all reads of a session.

    ``max_bytes_per_s`` bounds their rate over any few seconds. With ``spares_cache`` pages that were cached before stay
    cached, and all others are dropped after reading, so the page cache is left as other processes filled it.
    """

    def __init__(self, max_bytes_per_s: int | None = None, *, spares_cache: bool = False) -> None:
        self._free_at = time.monotonic()  # when the rate allows the next read
        self.set(max_bytes_per_s, spares_cache=spares_cache)

    def set(self, max_bytes_per_s: int | None, *, spares_cache: bool) -> None:
        """Read this way from now on."""
        self.max_bytes_per_s = max_bytes_per_s
        self.spares_cache = spares_cache and hasattr(os, "posix_fadvise") and hasattr(os, "preadv")

    @property
    def is_plain(self) -> bool:
        """Whether files are read as the system does it."""
        return self.max_bytes_per_s is None and not self.spares_cache

    def prepare(self, fd: int) -> None:
        """Prepare a file that was opened and not read yet."""
        if self.spares_cache:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead: those pages would stay cached

    def read(self, fd: int, length: int, position: int) -> bytes:
        """Read like ``os.pread``, but possibly fewer bytes; raises OSError."""
        if self.max_bytes_per_s is not None:
            length = min(length, max(_PAGE_BYTES, self.max_bytes_per_s // _SLICES_PER_S))
        got = self._read_sparing(fd, length, position) if self.spares_cache else os.pread(fd, length, position)
        self.pace(len(got))
        return got

    def pace(self, length: int) -> None:
        """Wait until the rate, if there is one, allows the next read after a read of ``length`` bytes."""
        if self.max_bytes_per_s is None:
            return
        now = time.monotonic()
        self._free_at = max(self._free_at, now - _CREDIT_S) + length / self.max_bytes_per_s
        if self._free_at > now:
            time.sleep(self._free_at - now)

    def _read_sparing(self, fd: int, length: int, position: int) -> bytes:
        cached = _read_cached(fd, length, position)
        if cached:
            return cached
        got = os.pread(fd, min(length, _SLICE_BYTES), position)
        start = position - position % _PAGE_BYTES  # includes the page in which the slice before it ended
        os.posix_fadvise(fd, start, position + len(got) - start, os.POSIX_FADV_DONTNEED)
        return got


def _read_cached(fd: int, length: int, position: int) -> bytes:
    """The first bytes from ``position`` as far as they are in the page cache; none if the system cannot report that."""
    buffer = bytearray(length)
    try:
        count = os.preadv(fd, [buffer], position, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _NOT_AT_ONCE:
            return b""
        raise
    except AttributeError:
        return b""
    return bytes(memoryview(buffer)[:count])


def keep_freed_memory() -> None:
    """Make the allocator of this process keep freed blocks of up to 16 MiB each, 32 MiB in total.

    To get the memory of every chunk from the system again, page by page, costs about as much as reading the chunk.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
    mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_KEPT_BYTES)
