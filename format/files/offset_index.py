"""The offset index (.index): maps offsets to positions of batches in the segment.

Kafka's rules (storage OffsetIndex): offsets and positions rise. An entry is appended for a batch more than
``index.interval.bytes`` after the last indexed one, so no entry has position 0. A look-up takes the largest entry at or
below the target; without one, it starts at the base offset and position 0.
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
from format.layout import OFFSET_INDEX_ENTRY
from format.limits import DEFAULT_LIMITS, Limits


class OffsetPosition(NamedTuple):
    """One entry (Kafka's OffsetPosition): its number from 0, the absolute offset, the byte position in the segment."""

    entry_number: int
    offset: int
    position: int


class OffsetIndex(SlotIndex, frozen=True):
    """A whole offset index; ``positions`` are bytes in the segment."""

    positions: NDArray[np.int64]

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
        columns, problems, facts = read_columns(
            source, base_offset, OFFSET_INDEX_ENTRY, limits, zero_may_be_first=False
        )
        relative_offsets, positions = columns
        problems = (*_problems(base_offset, *columns), *problems)
        return OffsetIndex(problems=problems, relative_offsets=relative_offsets, positions=positions, **facts)


def _problems(
    base_offset: int, relative_offsets: NDArray[np.int64], positions: NDArray[np.int64]
) -> tuple[Problem, ...]:
    is_zero = (relative_offsets == 0) & (positions == 0)
    is_negative = (relative_offsets < 0) | (positions < 0)
    is_compared = ~is_zero & ~is_negative
    return problems_of_entries(
        OFFSET_INDEX_ENTRY,
        (
            (is_zero, "zeros before the last entry"),
            (is_negative, "a negative offset or position"),
            (
                not_above_previous(relative_offsets, is_compared, strictly=True),
                "the offset is not above the offset of the previous entry",
            ),
            (
                not_above_previous(positions, is_compared, strictly=True),
                "the position is not above the position of the previous entry",
            ),
            (relative_offsets > INT64_RANGE[1] - base_offset, "the absolute offset does not fit in 63 bits"),
        ),
    )


def floor_entry(source: Source, base_offset: int, target_offset: int) -> OffsetPosition | None:
    """Find the largest entry at or below the target offset, as OffsetIndex.lookup does; None if there is none.

    Without one, a scan starts at position 0. Reads a few slots and at most one window of 4 KiB. Raises InvalidIndex
    for an entry with a negative offset or position.
    """
    check_base_offset(source, base_offset)
    relative_target = target_offset - base_offset
    found = floor_slot(
        source,
        OFFSET_INDEX_ENTRY,
        lambda slot: slot[0] > relative_target,
        zero_may_be_first=False,
        target=relative_target,
        lowest=0,
    )
    return None if found is None else _entry(source, base_offset, *found)


def last_entry(source: Source, base_offset: int) -> OffsetPosition | None:
    """Find the last entry before the padding, without reading the whole file; None for an index without entries.

    Raises InvalidIndex as ``floor_entry`` does.
    """
    check_base_offset(source, base_offset)
    found = last_slot(source, OFFSET_INDEX_ENTRY, zero_may_be_first=False)
    return None if found is None else _entry(source, base_offset, *found)


def _entry(source: Source, base_offset: int, number: int, slot: tuple[int, ...]) -> OffsetPosition:
    relative_offset, position = slot
    if relative_offset < 0 or position < 0 or base_offset + relative_offset > INT64_RANGE[1]:
        raise InvalidIndex(
            f"entry {number} has relative offset {relative_offset} and position {position}",
            slot_location(source, OFFSET_INDEX_ENTRY, base_offset, number),
        )
    return OffsetPosition(number, base_offset + relative_offset, position)


def write(entries: OffsetIndex | tuple[ArrayLike, ArrayLike]) -> bytes:
    """Encode a trimmed index: one that was read, or a column of relative offsets and a column of positions.

    Raises InvalidIndex for a value that does not fit in an int32.
    """
    columns = (entries.relative_offsets, entries.positions) if isinstance(entries, OffsetIndex) else entries
    return encode_columns(OFFSET_INDEX_ENTRY, columns)
