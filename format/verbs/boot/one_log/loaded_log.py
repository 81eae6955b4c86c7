"""A log as a broker loads it: what is known before, its segments, and the result.

Source: storage LogLoader, LoadedLogOffsets.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.verbs.boot.followed import opened
from format.verbs.boot.one_log.file_batches import CorruptRecords
from format.verbs.boot.one_log.index_lookups import LogEnd, OffsetIndexView, log_end, read_index
from format.verbs.boot.one_log.recovered_log import Recovered
from format.verbs.boot.steps import BootTerms, StopsStart


class LoadTerms(msgspec.Struct, frozen=True):
    """What is known of a log before it is loaded; ``is_deleted``: its directory waits for its deletion.

    ``may_be_remote``: a checkpoint has the log start offset. Where that is below the first segment, the segments before
    it are in remote storage.
    """

    boot: BootTerms
    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    is_deleted: bool = False
    may_be_remote: bool = False
    is_metadata: bool = False
    max_index_bytes: int | None = None  # the topic's segment.index.bytes, where the metadata has one
    why_recovered: str = "there was no clean shutdown"

    @property
    def is_whole(self) -> bool:
        """Whether the log is loaded: where its directory may be one of several, those to be recovered are not."""
        return self.clean or self.is_metadata or not self.boot.is_one_of_several


class LoadedSegment(msgspec.Struct):
    """A segment in the broker's memory: the file with its bytes, how many of them are valid, and its offset index."""

    base_offset: int
    place: Path | None
    shown_path: Path
    size_bytes: int
    index_place: Path | None
    recovered: Recovered | None = None
    _end: LogEnd | None = None  # as the reader found it on disk

    @property
    def index(self) -> OffsetIndexView:
        """The offset index: as recovery made it, or as it lies on disk."""
        return read_index(self.index_place, self.base_offset) if self.recovered is None else self.recovered.index

    def end(self) -> LogEnd:
        """Where the broker sees the segment end. Raises StopsStart where its reader fails."""
        if self.place is None:
            return LogEnd(self.base_offset, 0, False)
        if self.recovered is not None:
            return self.recovered.end
        if self._end is None:
            with opened(self.place) as source:
                try:
                    self._end = log_end(source, self.size_bytes, self.index, self.shown_path)
                except CorruptRecords as error:
                    raise reader_stops(error, self.shown_path, "to find the end of the log") from error
        return self._end


class LoadedLog(msgspec.Struct, frozen=True):
    """A log after its load: where it starts and ends, its segments, and the epochs that recovery saw."""

    log_start: int
    log_end: int
    segments: tuple[LoadedSegment, ...]
    epochs: tuple[tuple[int, int], ...]
    is_cleared: bool = False  # all segments were below the log start offset


def reader_stops(error: CorruptRecords, path: Path, purpose: str) -> StopsStart:
    """The end of a start at which the broker's reader fails."""
    reason = f"the broker reads the log {purpose}, and stops at bytes that are not a batch"
    return StopsStart(error.text, "FileLogInputStream.nextBatch", path=path, reason=reason, position=error.position)
