"""Offset index look-ups as a broker's start makes them, in an index that is sound or not.

A start does not check an index: it trusts every entry, and takes the last entry of the file for the last one.
Source: storage AbstractIndex, OffsetIndex, LogSegment.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.files.index_file import broker_slot
from format.io.source import Source
from format.layout import OFFSET_INDEX_ENTRY
from format.verbs.boot.followed import opened
from format.verbs.boot.one_log.file_batches import first_batch_reaching, last_batch

_ENTRY_BYTES = OFFSET_INDEX_ENTRY.size_bytes


class OffsetIndexView(msgspec.Struct, frozen=True):
    """The entries of an index file, or of one that recovery has just written."""

    base_offset: int
    content: bytes = b""

    @property
    def entry_count(self) -> int:
        return len(self.content) // _ENTRY_BYTES

    def entry(self, number: int) -> tuple[int, int]:
        """Offset and position of an entry."""
        relative, position = OFFSET_INDEX_ENTRY.struct.unpack_from(self.content, number * _ENTRY_BYTES)
        return self.base_offset + relative, position

    @property
    def last_offset(self) -> int:
        return self.entry(self.entry_count - 1)[0] if self.entry_count else self.base_offset

    def position_for(self, offset: int) -> int:
        """The position from which to search the log for an offset: that of the entry which OffsetIndex.lookup finds.

        A negative position, which only an invalid entry has, stands for the start of the file.
        """
        slot = broker_slot(self.entry_count, lambda number: self.entry(number)[0], offset)
        return 0 if slot < 0 else max(0, self.entry(slot)[1])


def read_index(path: Path | None, base_offset: int) -> OffsetIndexView:
    """The index at a path; an empty one where the path is None."""
    if path is None:
        return OffsetIndexView(base_offset)
    with opened(path) as source:
        return OffsetIndexView(base_offset, source.read_at(0, source.size_bytes))


class LogEnd(msgspec.Struct, frozen=True):
    """Where a log ends for a broker: the next offset, and the position after the last whole batch."""

    next_offset: int
    position: int
    has_batches: bool


def log_end(source: Source, size_bytes: int, index: OffsetIndexView, shown_path: Path) -> LogEnd:
    """The end of a segment as a start finds it: from the last index entry on. Raises CorruptRecords."""
    offset = index.last_offset
    found = first_batch_reaching(source, offset, index.position_for(offset), size_bytes, shown_path)
    if found is None:
        return LogEnd(index.base_offset, 0, False)
    last = last_batch(source, found, size_bytes, shown_path)
    return LogEnd(last.next_offset, last.position + last.size_bytes, True)
