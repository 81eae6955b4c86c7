"""Adds up the small logs of a partition that are plainly sound: one call reads and adds many of them.

All other logs are left to ``log_totals``, which reports what is wrong with them.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress
from types import TracebackType
from typing import Self

from format.io.session import is_read_plainly
from format.log.walker import HEADER_CHUNK_BYTES
from format.node.partition import LiveFiles, Partition
from format.scan.progress import Advance
from format.state.totals import HeaderSums, LogTotals

_room: memoryview | None = None  # for one log, and one more byte, which shows whether it has grown


class SoundLogs:
    """The small logs of one partition, added up one after another; a context manager.

    No log is added where a read policy is set, or the partition is not on a disk. With ``scan`` False logs are passed
    over, not read.
    """

    def __init__(self, partition: Partition, advance: Advance, *, scan: bool = True) -> None:
        self._advance = advance
        self._sums = HeaderSums()
        self._files = partition.live_files
        self._scan = scan
        self._directory_fd = -1
        if scan and is_read_plainly(partition.path) and self._files:
            with suppress(OSError):
                self._directory_fd = os.open(partition.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def add(self, start: int, end: int) -> int:
        """Add the logs of segments from ``start`` to before ``end``; returns the number of the next one.

        It stops at a segment that needs a closer look: it lacks an index, or its log is large or not sound.
        """
        if self._files is None:
            return start
        if not self._scan:
            return end if self._files.have_indexes else start
        if self._directory_fd < 0:
            return start
        stop = self._sums.add_logs(self._directory_fd, self._files.table, start, end, _reading_room())
        self._advance(self._files.log_size_bytes(start, stop))
        return stop

    def log(self, number: int) -> tuple[int, int]:
        """The base offset of a segment that was added, and the size of its log."""
        files = self._files or LiveFiles(array("q"))
        return files.base_offset(number), files.log_bytes(number)

    def taken(self) -> LogTotals:
        """The totals of the logs that were added since the last call."""
        return self._sums.taken()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory_fd >= 0:
            os.close(self._directory_fd)


def _reading_room() -> memoryview:
    global _room
    if _room is None or len(_room) != HEADER_CHUNK_BYTES + 1:
        _room = memoryview(bytearray(HEADER_CHUNK_BYTES + 1))
    return _room
