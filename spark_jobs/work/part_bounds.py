"""Where the parts of a segment begin and end: found by the task that reads one, from the segment's index."""

from __future__ import annotations

import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.files import offset_index
from format.io.remote_path import path_of
from format.io.source import FileSource, Source
from format.limits import Limits
from format.log.batch_header import has_right_crc, read_header
from format.log.batch_ranges import batch_ranges
from format.node.segment import Segment
from spark_jobs.work.file_states import FileState, words_for_change
from spark_jobs.work.planning import PlannedSegment

_MOST_TRIES = 16  # index entries that are tried for a sound batch


def opened(segment: PlannedSegment) -> tuple[FileSource, str | None]:
    """The segment's log, and what is wrong with it against the plan: on another host it may be another broker's.

    Raises UnreadableFile where it cannot be opened.
    """
    source = FileSource(segment.path)
    now = FileState(source.size_bytes, source.mtime_ns)
    return source, words_for_change(segment.path, segment.state, now)


def files_of(segment: PlannedSegment) -> Segment:
    """The log's segment with its indexes; a time index that is not there is found missing when it is read."""
    log = path_of(segment.path)
    files = {layout.LOG_SUFFIX: log}
    if segment.index_path is not None:
        files[layout.OFFSET_INDEX_SUFFIX] = path_of(segment.index_path)
        files[layout.TIME_INDEX_SUFFIX] = log.with_suffix(layout.TIME_INDEX_SUFFIX)
    return Segment(log.parent, segment.location.base_offset or 0, None, files)


def bounds_of(segment: PlannedSegment, source: Source, part: int, limits: Limits) -> tuple[int, int | None]:
    """Where a part of a segment begins and ends, None for the end of the log; both where batches begin.

    The same for every task that asks: a part ends at the first index entry past its share, where the next begins.
    A wrong index entry makes parts that do not fit together, which is seen when they are put together.
    """
    if segment.part_count == 1:
        return 0, None
    share = -(-segment.state.size_bytes // segment.part_count)
    try:
        if segment.index_path is None:
            raise FileNotFoundError
        index = offset_index.read(segment.index_path, segment.location.base_offset or 0, limits)
        positions = np.sort(index.positions)
    except (KafkaLogError, OSError):
        positions = np.empty(0, np.int64)
    if len(positions) and int(positions[-1]) > share:
        shares = np.arange(1, segment.part_count) * share
        starts = [positions[at : at + _MOST_TRIES].tolist() for at in np.searchsorted(positions, shares)]
    else:
        starts = [[each.start] for each in list(batch_ranges(source, share))[1 : segment.part_count]]

    def bound(number: int) -> int | None:
        """Where this part begins, or the next one that has a sound batch to begin with, so that none overlap."""
        return next(filter(None, (_first_sound(source, each) for each in starts[number - 1 :])), None)

    start = 0 if part == 0 else bound(part)
    return (source.size_bytes, None) if start is None else (start, bound(part + 1))


def _first_sound(source: Source, positions: list[int]) -> int | None:
    """The first of these positions where a batch with a right CRC lies."""
    for position in positions:
        header = read_header(source, position)
        if (
            header is not None
            and header.end_position <= source.size_bytes
            and has_right_crc(source, position, header.size_bytes, header.magic)
        ):
            return position
    return None
