"""The totals of a partition's small logs where nothing is odd, each read by one call and added up by another.

All other logs are left to ``log_totals``, which reports what is odd about them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from format import layout
from format.io import read_policy
from format.io.remote_path import is_on_disk
from format.io.source import read_listed
from format.log.walker import HEADER_CHUNK_BYTES
from format.node.partition import Partition
from format.node.segment import NamedFiles, Segment, segment_file_name
from format.scan.progress import Advance
from format.state.totals import HeaderSums, LogTotals

_PLAIN = {layout.LOG_SUFFIX, layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX}


class SoundLogs:
    """The small logs of one partition, added up one after the other; a context. None where reads follow a policy."""

    def __init__(self, partition: Partition, advance: Advance) -> None:
        self._advance = advance
        self._sums = HeaderSums()
        self._log_bytes = partition.sizes.log_bytes
        self._directory_fd = -1
        if read_policy.current is None and is_on_disk(partition.path):
            with suppress(OSError):
                self._directory_fd = os.open(partition.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def size_bytes(self, segment: Segment) -> int | None:
        """The size of a segment's log when it was looked at; None where that is not known."""
        return self._log_bytes.get(segment_file_name(segment.base_offset, layout.LOG_SUFFIX))

    def add(self, segment: Segment, next_base_offset: int | None) -> bool:
        """Add the log of a segment; False, and nothing is added, if it is large or anything about it is not plain."""
        size_bytes = self.size_bytes(segment)
        if size_bytes is None or segment.is_remote:
            return False
        name = segment_file_name(segment.base_offset, layout.LOG_SUFFIX)
        return self._add(name, size_bytes, segment.base_offset, next_base_offset)

    def add_run(self, segments: Sequence[Segment], start: int, *, scan: bool) -> int:
        """Add logs from one on, for totals that say nothing of single segments; returns the number of the next one.

        It stops at the last segment, and at one of which there is more to say: it lacks an index or is not here, or its
        log is large or not sound. With ``scan`` False no log is read.
        """
        size_of = self._log_bytes.get
        for number in range(start, len(segments) - 1):
            segment = segments[number]
            files = segment.files
            if not (isinstance(files, NamedFiles) and files.names.keys() >= _PLAIN):
                return number
            name = files.names[layout.LOG_SUFFIX]
            size_bytes = size_of(name)
            if size_bytes is None:
                return number
            if scan and not self._add(name, size_bytes, segment.base_offset, segments[number + 1].base_offset):
                return number
        return max(start, len(segments) - 1)

    def _add(self, name: str, size_bytes: int, base_offset: int, next_base_offset: int | None) -> bool:
        if size_bytes > HEADER_CHUNK_BYTES or self._directory_fd < 0:
            return False
        content = read_listed(self._directory_fd, name, size_bytes)
        if content is None:
            return False
        kept = self._sums.keep()
        if not self._sums.add(content, base_offset, next_base_offset):
            self._sums.restore(kept)
            return False
        self._advance(size_bytes)
        return True

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
