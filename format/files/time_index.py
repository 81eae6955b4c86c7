"""The time index (.timeindex): maps timestamps to offsets before which no timestamp is larger (KIP-33).

Kafka's rules (storage TimeIndex): timestamps rise, and offsets do not fall. A timestamp of -1 (no timestamp) is never
appended, so the index of a segment of v0 messages is empty. Zeros are valid as the first entry (timestamp 0 at the base
offset), and padding elsewhere. The last slot is kept free for the entry that is written when the segment rolls. A
look-up takes the largest entry at or below the target; without one, it starts at the base offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from format.errors import InvalidIndex
from format.files.index_file import (
    SlotIndex,
    check_base_offset,
    encode_columns,
    floor_slot,
    last_slot,
    not_above_previous,
    problems_of_entries,
    read_columns,
    slot_location,
)
from format.files.side_file import INT64_RANGE, PathOrSource, Problem, opened
from format.io.source import Source
from format.layout import TIME_INDEX_ENTRY
from format.limits import DEFAULT_LIMITS, Limits


class TimestampOffset(NamedTuple):
    """One entry: its number from 0, the timestamp in ms and the absolute offset (Kafka's TimestampOffset)."""

    entry_number: int
    timestamp: int
    offset: int


class TimeIndex(SlotIndex, frozen=True):
    """A whole time index; ``timestamps`` are in ms."""

    timestamps: NDArray[np.int64]

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
        columns, problems, facts = read_columns(source, base_offset, TIME_INDEX_ENTRY, limits, zero_may_be_first=True)
        timestamps, relative_offsets = columns
        problems = (*_problems(base_offset, *columns), *problems)
        return TimeIndex(problems=problems, timestamps=timestamps, relative_offsets=relative_offsets, **facts)


def _problems(
    base_offset: int, timestamps: NDArray[np.int64], relative_offsets: NDArray[np.int64]
) -> tuple[Problem, ...]:
    is_zero = (timestamps == 0) & (relative_offsets == 0)
    is_zero[:1] = False
    is_negative = (timestamps < 0) | (relative_offsets < 0)
    is_compared = ~is_zero & ~is_negative
    return problems_of_entries(
        TIME_INDEX_ENTRY,
        (
            (is_zero, "zeros before the last entry"),
            (is_negative, "a negative timestamp or offset"),
            (
                not_above_previous(timestamps, is_compared, strictly=True),
                "the timestamp is not above the timestamp of the previous entry",
            ),
            (
                not_above_previous(relative_offsets, is_compared, strictly=False),
                "the offset is below the offset of the previous entry",
            ),
            (relative_offsets > INT64_RANGE[1] - base_offset, "the absolute offset does not fit in 63 bits"),
        ),
    )


def floor_entry(source: Source, base_offset: int, target_timestamp: int) -> TimestampOffset | None:
    """Find the largest entry at or below the target (ms), as TimeIndex.lookup does; None if there is none.

    Reads a few slots and at most one window of 4 KiB. Raises InvalidIndex for an entry with a negative timestamp or
    offset.
    """
    check_base_offset(source, base_offset)
    found = floor_slot(
        source,
        TIME_INDEX_ENTRY,
        lambda slot: slot[0] > target_timestamp,
        zero_may_be_first=True,
        target=target_timestamp,
    )
    return None if found is None else _entry(source, base_offset, *found)


def last_entry(source: Source, base_offset: int) -> TimestampOffset | None:
    """Find the last entry before the padding, which has the segment's largest timestamp once the segment is closed.

    None for an index without entries. Raises InvalidIndex as ``floor_entry`` does.
    """
    check_base_offset(source, base_offset)
    found = last_slot(source, TIME_INDEX_ENTRY, zero_may_be_first=True)
    return None if found is None else _entry(source, base_offset, *found)


def _entry(source: Source, base_offset: int, number: int, slot: tuple[int, ...]) -> TimestampOffset:
    timestamp, relative_offset = slot
    if timestamp < 0 or relative_offset < 0 or base_offset + relative_offset > INT64_RANGE[1]:
        raise InvalidIndex(
            f"entry {number} has timestamp {timestamp} and relative offset {relative_offset}",
            slot_location(source, TIME_INDEX_ENTRY, base_offset, number),
        )
    return TimestampOffset(number, timestamp, base_offset + relative_offset)


def write(entries: TimeIndex | tuple[ArrayLike, ArrayLike]) -> bytes:
    """Encode a trimmed index: one that was read, or a column of timestamps and a column of relative offsets.

    Raises InvalidIndex for a relative offset that does not fit in an int32.
    """
    columns = (entries.timestamps, entries.relative_offsets) if isinstance(entries, TimeIndex) else entries
    return encode_columns(TIME_INDEX_ENTRY, columns)
