"""How files are read beside a running broker: at a bounded rate, and without evicting its data from the page cache."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SLICE_BYTES = 128 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SLICES_PER_S = 16  # at which a rate is kept even
#: Time that is spent on processing is made up for, up to this much: else the rate would never be reached.
_CREDIT_S = 1.0
_NOT_AT_ONCE = (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class ReadPolicy:
    """The policy for all reads of a process.

    ``max_bytes_per_s`` bounds their rate over any few seconds. With ``spares_cache`` pages that were cached stay cached
    and all others are dropped after reading, so that other processes find the page cache unchanged.
    """

    def __init__(self, max_bytes_per_s: int | None = None, *, spares_cache: bool = False) -> None:
        self.max_bytes_per_s = self._rate = max_bytes_per_s
        self._spares_cache = spares_cache and hasattr(os, "posix_fadvise") and hasattr(os, "preadv")
        self._free_at = time.monotonic()  # when the rate allows the next read

    def opened(self, fd: int) -> None:
        """Prepare a file that was just opened and not read yet."""
        if self._spares_cache:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead: those pages would stay cached

    def read(self, fd: int, length: int, position: int) -> bytes:
        """Like ``os.pread``, but may return fewer bytes."""
        if self._rate is not None:
            length = min(length, max(_PAGE_BYTES, self._rate // _SLICES_PER_S))
        got = self._read_sparing(fd, length, position) if self._spares_cache else os.pread(fd, length, position)
        self.pace(len(got))
        return got

    def pace(self, length: int) -> None:
        """Wait as long as reading these bytes takes at the rate, if there is one."""
        if self._rate is not None:
            self._wait(length, self._rate)

    def _wait(self, length: int, rate: int) -> None:
        now = time.monotonic()
        self._free_at = max(self._free_at, now - _CREDIT_S) + length / rate
        if self._free_at > now:
            time.sleep(self._free_at - now)

    def _read_sparing(self, fd: int, length: int, position: int) -> bytes:
        in_memory = _read_at_once(fd, length, position)
        if in_memory:
            return in_memory
        got = os.pread(fd, min(length, _SLICE_BYTES), position)
        start = position - position % _PAGE_BYTES  # the page that the slice before it ended in, too
        os.posix_fadvise(fd, start, position + len(got) - start, os.POSIX_FADV_DONTNEED)
        return got


def _read_at_once(fd: int, length: int, position: int) -> bytes:
    """The bytes that are cached already; none if that is unknown."""
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


current: ReadPolicy | None = None


@contextmanager
def reading_by(policy: ReadPolicy | None) -> Iterator[None]:
    """All files are read by this policy while the context lasts; None is as the system does it."""
    global current
    before = current
    current = policy
    try:
        yield
    finally:
        current = before
