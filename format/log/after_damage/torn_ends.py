"""The end of a log file after its last batch: whether it is zeros, or the beginning of a batch."""

from __future__ import annotations

from format import layout
from format.io.source import Source

_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")


def is_beginning_of_batch(source: Source, position: int, end: int, last_offset: int | None) -> bool:
    """Whether the bytes from ``position`` to the end of the file are the beginning of a batch: an unfinished write.

    Bytes that cannot start a header were overwritten. ``last_offset`` is the last offset before them.
    """
    header = source.read_at(position, min(layout.RECORD_BATCH.size_bytes, end - position))
    if len(header) < layout.LOG_ENTRY.size_bytes:
        return True
    base_offset, length = layout.LOG_ENTRY.struct.unpack_from(header)
    least_offset = 0 if last_offset is None else last_offset + 1
    if length < layout.MIN_MESSAGE_LENGTH or base_offset < least_offset:
        return False
    end_position = position + layout.LOG_ENTRY.size_bytes + length
    return bool(end_position > end and (len(header) <= _MAGIC_AT or header[_MAGIC_AT] <= 2))


def is_zero(source: Source, position: int, end: int) -> bool:
    """Whether there are only zero bytes from ``position`` to the end of the file; holes are not read."""
    while position < end:
        position, data_end = source.data_range(position)
        part = source.read_at(position, min(1 << 20, data_end - position, end - position))
        if part.count(0) != len(part):
            return False
        if not part:
            return position >= end
        position += len(part)
    return True
