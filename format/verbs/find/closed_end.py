"""A quick look at the last headers of a closed segment's log, which confirms the last entry of its time index.

A look-up by time does this for each segment, and there may be thousands. It reads the same bytes as the header scan, in
a fraction of the time, and knows only one answer: the end is as a broker leaves it. All else is left to the scan.
"""

from __future__ import annotations

import numpy as np

from format.files.time_index import TimestampOffset
from format.io.session import is_on_disk
from format.io.source import FileSource
from format.kernel.headers import HOP_STOPS, hop
from format.layout import MESSAGE_V0
from format.log.batch_table import BATCH_COLUMN
from format.verbs.find.lookup_scan import NO_NEXT_OFFSET, is_in_order
from format.verbs.find.segment_lookup import END_READ_BYTES, LookupSegment

_MOST_READS = 4
_PLAIN_STOPS = (HOP_STOPS.index("end"), HOP_STOPS.index("more-bytes"))
_rows = np.empty((END_READ_BYTES // MESSAGE_V0.size_bytes + 1, len(BATCH_COLUMN)), np.int64)
_status = np.zeros(3, np.int64)


def confirms_last_entry(segment: LookupSegment, start: int, entry: TimestampOffset) -> bool:
    """Whether sound v2 batches in offset order lead from ``start`` to the end of the log, and the entry is of them.

    That is so if one of them spans its offset and has its timestamp, and none has a larger one. False for logs that are
    not on a disk.
    """
    log = segment.log
    if not is_on_disk(log.place):
        return False
    bytes_read = log.bytes_read
    is_confirmed = _are_confirming(_headers_to_end(log, start), segment, entry)
    if not is_confirmed:
        log.bytes_read = bytes_read  # the scan reads these bytes again, and counts them
    return is_confirmed


def _are_confirming(rows: list[list[int]], segment: LookupSegment, entry: TimestampOffset) -> bool:
    """Whether the last batches of a log are sound, and one of them is the entry's."""
    base, delta, timestamp, magic = (
        BATCH_COLUMN[name] for name in ("base_offset", "last_offset_delta", "max_timestamp", "magic")
    )
    after = NO_NEXT_OFFSET if segment.next_base_offset is None else segment.next_base_offset
    is_confirmed = False
    for row in reversed(rows):
        last_offset = row[base] + row[delta]
        if row[magic] != 2 or row[timestamp] > entry.timestamp:
            return False
        if not is_in_order(segment.base_offset, (row[base], last_offset), after):
            return False
        is_confirmed |= row[base] <= entry.offset <= last_offset and row[timestamp] == entry.timestamp
        after = row[base]
    return is_confirmed


def _headers_to_end(log: FileSource, start: int) -> list[list[int]]:
    """The rows of the headers from a position on, if the last batch ends with the log; none otherwise."""
    rows: list[list[int]] = []
    position = start
    _status[2] = 0
    for _ in range(_MOST_READS):
        buffer = memoryview(log.read_at(position, END_READ_BYTES))
        count = hop(buffer, 0, len(buffer), position, memoryview(_rows), 0, memoryview(_status))
        stop, length, _ = _status.tolist()
        if not count or stop not in _PLAIN_STOPS:
            return []
        rows += _rows[:count].tolist()
        position += length
        if position >= log.size_bytes:
            return rows if position == log.size_bytes else []
    return []
