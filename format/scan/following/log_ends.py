"""The ends of logs that are being written: the position and offset after the last whole batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from format.io.source import Source
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_header import has_right_crc, header_tables
from format.log.batch_ranges import BatchRange
from format.log.batch_table import BatchTable
from format.log.walker import batch_chunks
from format.node.partition import Segment
from format.scan.selection import Selection, start_position

_LAST_OFFSET = 2**63 - 2
_ZEROS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class LogEnd:
    """A position between batches of a segment, the offset there, and some batches before it."""

    position: int
    next_offset: int
    last_batches: BatchTable | None = field(default=None, compare=False, repr=False)


def end_of_table(table: BatchTable) -> LogEnd:
    """The end of the last batch of a table."""
    return LogEnd(int(table.end_position[-1]), table.last_offset_of(len(table) - 1) + 1, table)


def whole_batches(source: Source, start: int, most_bytes: int) -> BatchTable | None:
    """The whole batches from a position on, up to ``most_bytes`` but at least one; None if there is none.

    The last batch in the file counts only if its CRC is right: in a preallocated file its header may be written first.
    """
    tables: list[BatchTable] = []
    for table in header_tables(source, start, source.size_bytes):
        count = int(np.searchsorted(table.end_position, start + most_bytes, "right"))
        if count < len(table):
            tables.append(table.rows(slice(0, max(count, 0 if tables else 1))))
            break
        tables.append(table)
    else:
        if tables and not _is_settled(source, tables[-1]):
            tables[-1] = tables[-1].rows(slice(0, -1))
    found = BatchTable.concatenated(tables) if tables else None
    return found if found is not None and len(found) else None


def _is_settled(source: Source, table: BatchTable) -> bool:
    position, size_bytes, magic = (int(column[-1]) for column in (table.position, table.size_bytes, table.magic))
    return has_right_crc(source, position, size_bytes, magic)


def end_of_segment(segment: Segment, source: Source) -> LogEnd:
    """The end of a segment's log, found from the last entry of its index on."""
    start = start_position(segment, source, Selection(from_offset=_LAST_OFFSET))
    for position in (start, 0) if start else (0,):
        end = LogEnd(position, -1)
        for table in header_tables(source, position, source.size_bytes):
            end = end_of_table(table)
        if end.next_offset >= 0:
            return end
    return LogEnd(0, segment.base_offset)


def place_of_offset(segment: Segment, source: Source, offset: int) -> LogEnd | None:
    """The start of the batch that contains an offset, or of the next one; None if the log ends before the offset."""
    start = start_position(segment, source, Selection(from_offset=offset))
    for table in header_tables(source, start, source.size_bytes):
        row = int(np.searchsorted(table.last_offset, offset))
        if row < len(table):
            return LogEnd(int(table.position[row]), int(table.base_offset[row]))
    return None


def end_behind_damage(source: Source, start: int, limits: Limits = DEFAULT_LIMITS) -> LogEnd | None:
    """The end of the last intact batch after damage at ``start``; None if there is none.

    Zeros at ``start`` are not damage but a preallocated file, for which the result is None.
    """
    if not any(source.read_at(start, _ZEROS_BYTES)):
        return None
    end = None
    for chunk in batch_chunks(source, BatchRange(start), with_bodies=False, limits=limits):
        if len(chunk.table):
            end = end_of_table(chunk.table)
    return end
