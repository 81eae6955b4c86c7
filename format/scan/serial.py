"""The serial driver: reads logs chunk by chunk in this process.

``read_range`` is used by other drivers too: it counts progress, and stops if the file changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from format.io.source import FileSource, check_unchanged
from format.limits import MIB
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange
from format.scan.processes.room import OwnRoom
from format.scan.progress import Advance, LogProgress, no_progress
from format.scan.protocol import LogParts, LogUnit, OpenedRange, PartT, Room, Walk

#: If only headers are read, chunks are small; then the file is checked for changes after this many bytes.
_HEADER_CHECK_BYTES = MIB


class SerialDriver(Generic[PartT]):
    """Reads one log after the other, in any order; it need not be closed."""

    def __init__(self, walk: Walk[PartT], advance: Advance = no_progress) -> None:
        self._walk = walk
        self._advance = advance
        self._room = OwnRoom()

    def parts(self, log: LogUnit) -> LogParts[PartT]:
        """The parts of a log."""
        return LogParts(lambda parts: self._read(log, parts))

    def _read(self, log: LogUnit, parts: LogParts[PartT]) -> Iterator[PartT]:
        with FileSource(log.path, log.state) as source:
            parts.state = source.state
            progress = LogProgress(self._advance)
            try:
                whole = log.whole_range(source, self._walk.needs.selection)
                yield from read_range(self._walk, log, source, whole, self._room, progress)
                check_unchanged(log.path, source.state, log.location)
            finally:
                progress.reached(source.size_bytes if log.end is None else min(log.end, source.size_bytes))

    def close(self) -> None:
        """Do nothing: there are no open resources."""

    def __enter__(self) -> SerialDriver[PartT]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_range(
    walk: Walk[PartT],
    log: LogUnit,
    source: FileSource,
    batch_range: BatchRange,
    room: Room,
    progress: LogProgress,
) -> Iterator[PartT]:
    """The parts of a range of an open log, with any damage; raises FileChanged if the file changes."""
    chunks = _watched(walk.needs.chunks(source, batch_range), walk.needs.reads_bodies, log, source, progress)
    return walk.parts(OpenedRange(log, source, batch_range, chunks, room))


def _watched(
    chunks: Iterator[BatchChunk], reads_bodies: bool, log: LogUnit, source: FileSource, progress: LogProgress
) -> Iterator[BatchChunk]:
    """The chunks; after each, or after several small ones, progress is counted and the file is checked for changes."""
    step = 0 if reads_bodies else _HEADER_CHECK_BYTES
    next_check = 0
    for chunk in chunks:
        yield chunk
        position = chunk.buffer_position
        if position >= next_check:
            next_check = position + step
            progress.reached(position)
            check_unchanged(log.path, source.state, log.location)
