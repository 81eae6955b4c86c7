"""The start and the end of the parts of a segment, which the task that reads one finds in the segment's index."""

from __future__ import annotations

import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.files import offset_index
from format.io.source import FileSource, Source
from format.limits import Limits
from format.log.batch_header import has_right_crc, read_header
from format.log.batch_ranges import batch_ranges
from format.node.partition import Segment
from spark_jobs.work.file_states import FileState, words_for_change
from spark_jobs.work.planning import PlannedSegment
from spark_jobs.work.workers import path_of

_MOST_TRIES = 16  # index entries in which a sound batch is looked for


def opened(segment: PlannedSegment) -> tuple[FileSource, str | None]:
    """The log of a segment, opened, and the message if it differs from the plan (on another host, another broker's).

    Raises UnreadableFile where it cannot be opened.
    """
    source = FileSource(path_of(segment.path))
    now = FileState(source.size_bytes, source.mtime_ns)
    return source, words_for_change(segment.path, segment.state, now)


def files_of(segment: PlannedSegment) -> Segment:
    """The segment with its log and indexes. The time index may be missing."""
    log = path_of(segment.path)
    files = {layout.LOG_SUFFIX: log}
    if segment.index_path is not None:
        files[layout.OFFSET_INDEX_SUFFIX] = path_of(segment.index_path)
        files[layout.TIME_INDEX_SUFFIX] = log.with_suffix(layout.TIME_INDEX_SUFFIX)
    return Segment(log.parent, segment.location.base_offset or 0, None, files)


def bounds_of(segment: PlannedSegment, source: Source, part: int, limits: Limits) -> tuple[int, int | None]:
    """The start and the end of a part of a segment, both where batches begin; None for the end of the log.

    Every task finds the same bounds: a part ends at the first index entry past its share, where the next part begins. A
    wrong index entry makes parts that do not fit, which is noticed when they are put together.
    """
    if segment.part_count == 1:
        return 0, None
    share = -(-segment.state.size_bytes // segment.part_count)
    try:
        if segment.index_path is None:
            raise FileNotFoundError
        index = offset_index.read(path_of(segment.index_path), segment.location.base_offset or 0, limits)
        positions = np.sort(index.positions)
    except (KafkaLogError, OSError):
        positions = np.empty(0, np.int64)
    if len(positions) and int(positions[-1]) > share:
        shares = np.arange(1, segment.part_count) * share
        starts = [positions[at : at + _MOST_TRIES].tolist() for at in np.searchsorted(positions, shares)]
    else:
        starts = [[each.start] for each in list(batch_ranges(source, share))[1 : segment.part_count]]

    def bound(number: int) -> int | None:
        """The start of this part, or of the next one that begins with a sound batch, so that parts do not overlap."""
        return next(filter(None, (_first_sound(source, each) for each in starts[number - 1 :])), None)

    start = 0 if part == 0 else bound(part)
    return (source.size_bytes, None) if start is None else (start, bound(part + 1))


def _first_sound(source: Source, positions: list[int]) -> int | None:
    """The first of these positions at which there is a batch with a valid CRC."""
    for position in positions:
        header = read_header(source, position)
        if (
            header is not None
            and header.end_position <= source.size_bytes
            and has_right_crc(source, position, header.size_bytes, header.magic)
        ):
            return position
    return None
