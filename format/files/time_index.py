"""The time index (.timeindex): maps timestamps to offsets before which no timestamp is larger (KIP-33).

Kafka's rules (storage TimeIndex): timestamps rise, and offsets do not fall. A timestamp of -1 (no timestamp) is never
appended, so the index of a segment of v0 messages is empty. Zeros are valid as the first entry (timestamp 0 at the base
offset), and padding elsewhere. The last slot is kept free for the entry that is written when the segment rolls. A
look-up takes the largest entry at or below the target; without one, it starts at the base offset.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from numpy.typing import ArrayLike

from format.errors import KafkaLogError
from format.files import index_file
from format.files.index_file import EntryColumn, SlotIndex, encode_columns, read_slots
from format.files.side_file import PathOrSource, opened
from format.io.source import FileSource, Source
from format.layout import TIME_INDEX_ENTRY
from format.limits import DEFAULT_LIMITS, Limits


class TimestampOffset(NamedTuple):
    """One entry: its number from 0, the timestamp in ms and the absolute offset (Kafka's TimestampOffset)."""

    entry_number: int
    timestamp: int
    offset: int


class TimeIndex(SlotIndex, frozen=True):
    """A whole time index; ``timestamps`` are in ms."""

    timestamps = EntryColumn(0)
    relative_offsets = EntryColumn(1)

    @property
    def passes_sanity_check(self) -> bool:
        """Whether a broker that opens the file keeps it (TimeIndex.sanityCheck) instead of rebuilding it.

        The broker treats the whole file as entries: with padding, the last timestamp is 0.
        """
        if self.trailing_bytes:
            return False
        if self.entry_count == 0:
            return True
        if self.padding_bytes:
            return bool(self.timestamps[0] <= 0)
        return bool(self.timestamps[-1] >= self.timestamps[0] and self.relative_offsets[-1] >= 0)


def read(path_or_source: PathOrSource, base_offset: int, limits: Limits = DEFAULT_LIMITS) -> TimeIndex:
    """Read all entries of the file; damage is reported in ``problems``.

    Raises UnreadableFile, LimitExceeded, and InvalidIndex for a base offset over 63 bits.
    """
    with opened(path_or_source) as source:
        return TimeIndex(**read_slots(source, base_offset, TIME_INDEX_ENTRY, limits))


def floor_entry(source: Source, base_offset: int, target_timestamp: int | None) -> TimestampOffset | None:
    """Find the largest entry at or below the target (ms), as TimeIndex.lookup does; None if there is none.

    None for the target stands for the last entry before the padding, which has the largest timestamp of a closed
    segment. Reads a few slots and at most one window of 4 KiB. Raises InvalidIndex for an entry with a negative
    timestamp or offset.
    """
    found = index_file.floor_entry(source, TIME_INDEX_ENTRY, base_offset, target_timestamp)
    return None if found is None else TimestampOffset(*found)


def last_timestamp(path: Path | None, base_offset: int) -> int | None:
    """The timestamp of the last entry of an index; None where there is no index or entry, or it cannot be read."""
    if path is None:
        return None
    try:
        with FileSource(path) as source:
            entry = floor_entry(source, base_offset, None)
    except KafkaLogError:
        return None  # a broker rebuilds the index
    return None if entry is None else entry.timestamp


def write(columns: tuple[ArrayLike, ...]) -> bytes:
    """Encode a trimmed index from a column of timestamps and a column of relative offsets.

    Raises InvalidIndex for a relative offset that does not fit in an int32.
    """
    return encode_columns(TIME_INDEX_ENTRY, columns)
