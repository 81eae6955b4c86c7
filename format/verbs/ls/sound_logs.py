"""The totals of a partition's small logs where nothing is odd, each read by one call and added up by another.

All other logs are left to ``log_totals``, which reports what is odd about them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from format import layout
from format.io import read_policy
from format.io.remote_path import is_on_disk
from format.io.source import read_listed
from format.log.walker import HEADER_CHUNK_BYTES
from format.node.partition import Partition
from format.node.segment import Segment, segment_file_name
from format.scan.progress import Advance
from format.state.totals import HeaderSums, LogTotals


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

    def has_plain_files(self, segment: Segment) -> bool:
        """Whether a log and both indexes are on this disk, so that names and sizes leave nothing to report."""
        is_complete = layout.OFFSET_INDEX_SUFFIX in segment.files and layout.TIME_INDEX_SUFFIX in segment.files
        return is_complete and not segment.is_remote and self.size_bytes(segment) is not None

    def add(self, segment: Segment, next_base_offset: int | None) -> bool:
        """Add the log of a segment; False, and nothing is added, if it is large or anything about it is not plain."""
        name = segment_file_name(segment.base_offset, layout.LOG_SUFFIX)
        size_bytes = self._log_bytes.get(name)
        if size_bytes is None or size_bytes > HEADER_CHUNK_BYTES or segment.is_remote or self._directory_fd < 0:
            return False
        kept = self._sums.keep()
        self._sums.begin(segment.base_offset)
        content = read_listed(self._directory_fd, name, size_bytes)
        is_sound = content is not None and self._sums.add(content) == size_bytes
        if not is_sound or (next_base_offset is not None and self._sums.reaches(next_base_offset)):
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
