"""The offset index (.index): maps offsets to positions of batches in the segment.

Kafka's rules (storage OffsetIndex): offsets and positions rise. An entry is appended for a batch more than
``index.interval.bytes`` after the last indexed one, so no entry has position 0. A look-up takes the largest entry at or
below the target; without one, it starts at the base offset and position 0.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from format.errors import InvalidIndex
from format.files.index_file import (
    absolute_offsets,
    check_base_offset,
    floor_slot,
    last_slot,
    not_above_previous,
    problems_of_entries,
    read_slots,
    slot_location,
)
from format.files.side_file import INT32_RANGE, INT64_RANGE, PathOrSource, Problem, opened
from format.io.source import Source
from format.layout import MAX_RELATIVE_OFFSET, OFFSET_INDEX_ENTRY
from format.limits import DEFAULT_LIMITS, Limits


class OffsetPosition(NamedTuple):
    """One entry (Kafka's OffsetPosition): its number from 0, the absolute offset, the byte position in the segment."""

    entry_number: int
    offset: int
    position: int


class OffsetIndex(msgspec.Struct, frozen=True):
    """A whole offset index: two int64 columns of ``entry_count`` values, and the problems of the file.

    ``padding_bytes`` counts the preallocated zeros of an active segment's index, ``trailing_bytes`` the bytes of an
    incomplete slot at the end.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    path: str
    base_offset: int
    relative_offsets: NDArray[np.int64]
    positions: NDArray[np.int64]
    file_size_bytes: int
    padding_bytes: int
    trailing_bytes: int
    problems: tuple[Problem, ...]

    @property
    def entry_count(self) -> int:
        return len(self.relative_offsets)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The absolute offsets, computed at each access."""
        return absolute_offsets(self.base_offset, self.relative_offsets)

    def has_entries_of(self, other: OffsetIndex) -> bool:
        """Whether both have the same entries."""
        return np.array_equal(self.relative_offsets, other.relative_offsets) and np.array_equal(
            self.positions, other.positions
        )

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
        check_base_offset(source, base_offset)
        slots = read_slots(source, OFFSET_INDEX_ENTRY, limits, zero_may_be_first=False)
        relative_offsets = slots.entries["relative_offset"].astype(np.int64)
        positions = slots.entries["position"].astype(np.int64)
        return OffsetIndex(
            path=source.path,
            base_offset=base_offset,
            relative_offsets=relative_offsets,
            positions=positions,
            file_size_bytes=source.size_bytes,
            padding_bytes=slots.padding_bytes,
            trailing_bytes=slots.trailing_bytes,
            problems=(*_problems(base_offset, relative_offsets, positions), *slots.problems),
        )


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
    if isinstance(entries, OffsetIndex):
        columns = entries.relative_offsets, entries.positions
    else:
        columns = np.asarray(entries[0], dtype=np.int64), np.asarray(entries[1], dtype=np.int64)
    for name, column in zip(OFFSET_INDEX_ENTRY.names, columns, strict=True):
        if len(column) and not INT32_RANGE[0] <= int(column.min()) <= int(column.max()) <= MAX_RELATIVE_OFFSET:
            raise InvalidIndex(f"a {name.replace('_', ' ')} does not fit in 32 bits")
    table = np.empty(len(columns[0]), dtype=OFFSET_INDEX_ENTRY.numpy_dtype())
    table["relative_offset"], table["position"] = columns
    return table.tobytes()
