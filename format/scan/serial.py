"""The serial driver: reads logs chunk by chunk in this process.

It also holds what every driver does with one range: count progress, and stop at a file that changed.
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

#: Where only headers are read, chunks are small: the file is looked at again after so many bytes.
_HEADER_CHECK_BYTES = MIB


class SerialDriver(Generic[PartT]):
    """Reads one log after the other, in any order; has nothing to close."""

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
        """Nothing is left open."""

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
    """The parts of a range of an open log, whatever is damaged in it; raises FileChanged where the file changes."""
    chunks = _watched(walk.needs.chunks(source, batch_range), walk.needs.reads_bodies, log, source, progress)
    return walk.parts(OpenedRange(log, source, batch_range, chunks, room))


def _watched(
    chunks: Iterator[BatchChunk], reads_bodies: bool, log: LogUnit, source: FileSource, progress: LogProgress
) -> Iterator[BatchChunk]:
    """The chunks. After each, or after some small ones, progress is counted and the file is looked at again."""
    step = 0 if reads_bodies else _HEADER_CHECK_BYTES
    next_look = 0
    for chunk in chunks:
        yield chunk
        position = chunk.buffer_position
        if position >= next_look:
            next_look = position + step
            progress.reached(position)
            check_unchanged(log.path, source.state, log.location)
