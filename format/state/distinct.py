"""Numbers for distinct byte strings and distinct rows of integers."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from format.kernel.distinct import number_rows, number_strings, place_rows
from format.log.batch_table import Int64Column

#: Another one for each process, so that no log can be made whose names all have the same hash.
_SEED = int.from_bytes(os.urandom(4), "big")
_LEAST_ROOM = 1024
#: How many slots there are at least for each number.
_LEAST_SLOTS_EACH = 1.4


def distinct_strings(buffer: memoryview, spans: Int64Column) -> tuple[Int64Column, Int64Column]:
    """The number of each string of ``spans`` (starts and lengths), and the row where each number is first.

    Equal strings have equal numbers, counted from 0 in order of first occurrence; a negative length has the number -1.
    """
    numbers = np.empty(len(spans), np.int64)
    firsts = np.empty(len(spans), np.int64)
    spans = np.ascontiguousarray(spans)
    slots = _empty_slots(len(spans))
    count = number_strings(buffer, memoryview(spans), _SEED, memoryview(slots), memoryview(firsts), memoryview(numbers))
    return numbers, firsts[:count]


class DistinctRows:
    """Rows of integers that have numbers, counted from 0 in order of first occurrence; grows."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._known = np.empty((_LEAST_ROOM, width), np.int64)
        self._slots = _empty_slots(_LEAST_ROOM)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Int64Column:
        """The row of each number; valid until more rows are numbered."""
        return self._known[: self._count]

    def complete(self) -> None:
        """Free what is needed only to number more rows."""
        self._slots = _empty_slots(0)
        self._known.resize((self._count, self._width), refcheck=False)

    def numbers_of(self, rows: Int64Column) -> Int64Column:
        """The number of each row; those that are new get the next ones."""
        self._make_room(self._count + len(rows))
        numbers = np.empty(len(rows), np.int64)
        self._count = number_rows(
            memoryview(np.ascontiguousarray(rows)),
            self._width,
            _SEED,
            memoryview(self._slots),
            memoryview(self._known),
            self._count,
            memoryview(numbers),
        )
        return numbers

    def _make_room(self, needed: int) -> None:
        if needed <= len(self._known):
            return
        # In place, so that there are never two of them: the memory of a large array moves without a copy.
        self._known.resize((needed + needed // 8, self._width), refcheck=False)
        if len(self._slots) < _LEAST_SLOTS_EACH * len(self._known):
            del self._slots
            self._slots = _empty_slots(len(self._known))
            place_rows(memoryview(self._known), self._count, self._width, _SEED, memoryview(self._slots))


def _empty_slots(numbers: int) -> NDArray[np.int64]:
    return np.full(1 << int(_LEAST_SLOTS_EACH * max(numbers, 1)).bit_length(), -1, np.int64)
