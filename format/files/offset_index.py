"""The offset index (.index): maps offsets to positions of batches in the segment.

Kafka's rules (storage OffsetIndex): offsets and positions rise. An entry is appended for a batch more than
``index.interval.bytes`` after the last indexed one, so no entry has position 0. A look-up takes the largest entry at or
below the target; without one, it starts at the base offset and position 0.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from format.files import index_file
from format.files.index_file import EntryColumn, SlotIndex, encode_columns, read_slots
from format.files.side_file import PathOrSource, opened
from format.io.source import Source
from format.layout import OFFSET_INDEX_ENTRY
from format.limits import DEFAULT_LIMITS, Limits


class OffsetPosition(NamedTuple):
    """One entry (Kafka's OffsetPosition): its number from 0, the absolute offset, the byte position in the segment."""

    entry_number: int
    offset: int
    position: int


class OffsetIndex(SlotIndex, frozen=True):
    """A whole offset index; ``positions`` are bytes in the segment."""

    positions = EntryColumn(1)

    @property
    def passes_sanity_check(self) -> bool:
        """Whether a broker that opens the file keeps it (OffsetIndex.sanityCheck) instead of rebuilding it.

        The broker treats the whole file as entries, so the last one may be padding, which passes the check.
        """
        if self.trailing_bytes:
            return False
        return self.padding_bytes > 0 or self.entry_count == 0 or bool(self.relative_offsets[-1] >= 0)


def read(path_or_source: PathOrSource, base_offset: int, limits: Limits = DEFAULT_LIMITS) -> OffsetIndex:
    """Read all entries of the file; damage is reported in ``problems``.

    Raises UnreadableFile, LimitExceeded, and InvalidIndex for a base offset over 63 bits.
    """
    with opened(path_or_source) as source:
        return OffsetIndex(**read_slots(source, base_offset, OFFSET_INDEX_ENTRY, limits))


def floor_entry(source: Source, base_offset: int, target_offset: int | None) -> OffsetPosition | None:
    """Find the largest entry at or below the target offset, as OffsetIndex.lookup does; None if there is none.

    None for the target stands for the last entry before the padding. Without an entry, a scan starts at position 0.
    Reads a few slots and at most one window of 4 KiB. Raises InvalidIndex for an entry with a negative offset or
    position.
    """
    relative = None if target_offset is None else target_offset - base_offset
    found = index_file.floor_entry(source, OFFSET_INDEX_ENTRY, base_offset, relative)
    return None if found is None else OffsetPosition(*found)


def write(columns: tuple[ArrayLike, ...]) -> bytes:
    """Encode a trimmed index from a column of relative offsets and a column of positions.

    Raises InvalidIndex for a value that does not fit in an int32.
    """
    return encode_columns(OFFSET_INDEX_ENTRY, columns)
