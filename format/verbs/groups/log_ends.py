"""The log end offset of a partition, now or at a time in the past, from its last batch headers."""

from __future__ import annotations

import numpy as np

from format.errors import KafkaLogError
from format.files import time_index
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_ranges import BatchRange
from format.log.walker import batch_chunks
from format.node.partition import Partition, Segment
from format.scan.selection import Selection, start_position

_LAST = Selection(from_offset=2**63 - 1)


def log_end_of(partition: Partition, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The offset after the last batch of a partition; None where there is no segment, or none that can be read.

    CRCs are not computed: what verify finds damaged counts here as long as its header is plausible.
    """
    logs = [(segment, segment.log) for segment in partition.segments if segment.log is not None]
    if not logs:
        return None
    last, path = logs[-1]
    log_end = last.base_offset
    try:
        with FileSource(path) as source:
            start = start_position(last, source, _LAST)
            for chunk in batch_chunks(
                source, BatchRange(start, None), with_bodies=False, check_crc=False, limits=limits
            ):
                if len(chunk.table):
                    log_end = max(log_end, int(chunk.table.last_offset[-1]) + 1)
    except KafkaLogError:
        return None
    return log_end


def log_end_at(partition: Partition, at_ms: int, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The log end offset at a time: that of the first batch with a later timestamp. None as for ``log_end_of``.

    A batch is appended as a whole after its last record was made. The clocks of producers are trusted.
    """
    wanted = Selection(from_timestamp=at_ms + 1)
    for segment in partition.segments:
        is_closed = partition.next_base_offset(segment) is not None
        if segment.log is None or (is_closed and _is_before(segment, at_ms)):
            continue
        try:
            with FileSource(segment.log) as source:
                start = start_position(segment, source, wanted)
                for chunk in batch_chunks(
                    source, BatchRange(start, None), with_bodies=False, check_crc=False, limits=limits
                ):
                    later = np.flatnonzero(chunk.table.max_timestamp > at_ms)
                    if len(later):
                        return int(chunk.table.base_offset[later[0]])
        except KafkaLogError:
            return None
    return log_end_of(partition, limits)


def _is_before(segment: Segment, at_ms: int) -> bool:
    """Whether a closed segment has no timestamp after ``at_ms`` by its time index."""
    if segment.time_index is None:
        return False
    try:
        with FileSource(segment.time_index) as source:
            last = time_index.last_entry(source, segment.base_offset)
    except KafkaLogError:
        return False
    return last is not None and 0 <= last.timestamp <= at_ms
