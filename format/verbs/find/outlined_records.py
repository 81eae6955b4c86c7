"""The offsets and, if known, the timestamps of the records of a batch whose header alone is in a bundle."""

from __future__ import annotations

import numpy as np

from format import layout
from format.errors import NotInBundle
from format.io.bundles.opened import BundledFile
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BatchTable
from format.log.record_table import RECORD_COLUMN, RecordTable
from format.log.walker import header_chunks


def outlined_table(
    log: FileSource, bundled: BundledFile, batch_range: BatchRange, limits: Limits, location: Location, *, by_time: bool
) -> RecordTable:
    """The records of one batch; unknown timestamps are -1.

    Raises NotInBundle for unknown offsets, or, ``by_time``, times.
    """
    headers = next(header_chunks(log, batch_range, limits=limits)).headers.rows(slice(0, 1))
    table = headers.with_crcs(np.ones(1, np.int8)).unopened()
    found = bundled.outline(batch_range.start) or _from_header(table, bundled, by_time)
    if found is None:
        first, last = int(table.base_offset[0]), table.last_offset_of(0)
        what = "timestamps" if by_time else "offsets"
        raise NotInBundle(
            f"the bundle does not hold the {what} of the records of this batch, offsets {first} to {last}",
            location.at(position=int(table.position[0]), length=int(table.size_bytes[0]), offset=first),
        )
    columns = np.zeros((len(found[0]), len(RECORD_COLUMN)), np.int64)
    columns[:, RECORD_COLUMN["offset"]], columns[:, RECORD_COLUMN["timestamp"]] = found
    columns[:, RECORD_COLUMN["key_length"]] = columns[:, RECORD_COLUMN["value_length"]] = -1
    return RecordTable(table, memoryview(b""), columns)


def _from_header(table: BatchTable, bundled: BundledFile, by_time: bool) -> tuple[list[int], list[int]] | None:
    """Offsets and timestamps from a header alone: of a batch without gaps, whose records share a timestamp.

    For a compressed v0/v1 message the bundle has the first offset.
    """
    first, last = int(table.base_offset[0]), table.last_offset_of(0)
    timestamp = int(table.max_timestamp[0])
    if table.magic[0] < 2 and not table.is_wrapper[0]:
        return [first], [timestamp]
    count = int(table.record_count[0])
    if table.is_wrapper[0]:
        first, count = bundled.inner_offsets(table.position)[0].tolist()
    if first < 0 or count != last - first + 1 or count > layout.MAX_RELATIVE_OFFSET // 64:
        return None
    is_known = count == 1 or bool(table.is_append_time[0])
    if by_time and not is_known:
        return None
    return list(range(first, last + 1)), [timestamp if is_known else layout.NO_TIMESTAMP] * count
