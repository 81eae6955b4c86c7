"""The slots of an .index or .timeindex file: reading them, telling entries from padding, and binary search.

While a segment is active, its index files have their full size, with zeros after the last entry. A broker trims them
when it rolls or closes the segment (storage AbstractIndex). After a crash the zeros remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import InvalidIndex
from format.files.side_file import INT64_RANGE, MAX_PROBLEMS, Problem, check_size
from format.io.session import is_remote
from format.io.source import Source
from format.layout import Layout
from format.limits import Limits
from format.location import Location
from format.wording import counted_plainly

_SEARCH_WINDOW_BYTES = 4096
_READ_WINDOW_BYTES = 1024 * 1024
#: A broker's look-up begins with the newest 8 KiB of an offset index (1024 entries of 8 bytes).
_WARM_ENTRIES = 1024
#: For a remote file: the slots that are read with one request, and the most such requests before bisection.
_LOOK_SLOTS = 2048
_MOST_LOOKS = 4

#: The values of a slot in the order of the layout's fields.
Slot = tuple[int, ...]


class Slots(msgspec.Struct, frozen=True):
    """The entries of an index file, and the numbers of other bytes.

    ``entries`` is a structured array of the layout's dtype. ``padding_bytes`` counts the zero slots after the last
    entry, ``trailing_bytes`` the bytes of an incomplete slot at the end.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    entries: NDArray[Any]
    padding_bytes: int
    trailing_bytes: int
    problems: tuple[Problem, ...]


def check_base_offset(source: Source, base_offset: int) -> None:
    """Raise InvalidIndex for a base offset over 63 bits: the 20 digits of a file name can be more than an int64."""
    if not 0 <= base_offset <= INT64_RANGE[1]:
        raise InvalidIndex(f"the base offset {base_offset} does not fit in 63 bits", Location(source.path))


def read_slots(source: Source, layout: Layout, limits: Limits, *, zero_may_be_first: bool) -> Slots:
    """Read all slots of the file, backwards over the padding, so that its zeros are never in memory at once.

    With ``zero_may_be_first``, zeros are valid as the first entry, so a file of one zero slot has that entry.
    """
    check_size(source, limits)
    slot_count, trailing_bytes = divmod(source.size_bytes, layout.size_bytes)
    content = _without_zero_tail(source, slot_count * layout.size_bytes)
    entry_count = -(-len(content) // layout.size_bytes)
    if zero_may_be_first and slot_count == 1:
        entry_count = 1
    content += bytes(entry_count * layout.size_bytes - len(content))
    problems: tuple[Problem, ...] = ()
    if trailing_bytes:
        problems = (
            Problem(
                slot_count * layout.size_bytes,
                trailing_bytes,
                f"the file has {source.size_bytes} bytes, not a multiple of {layout.size_bytes}",
                InvalidIndex.code,
            ),
        )
    return Slots(
        entries=np.frombuffer(content, dtype=layout.numpy_dtype()),
        padding_bytes=(slot_count - entry_count) * layout.size_bytes,
        trailing_bytes=trailing_bytes,
        problems=problems,
    )


def _without_zero_tail(source: Source, end: int) -> bytes:
    """The first ``end`` bytes of the file without the zeros at their end."""
    while end > 0:
        start = max(0, end - _READ_WINDOW_BYTES)
        tail = source.read_at(start, end - start).rstrip(b"\0")
        if tail:
            return source.read_at(0, start) + tail if start else tail
        end = start
    return b""


def problems_of_runs(
    is_wrong: NDArray[np.bool_], size_bytes: int, describe: Callable[[int, int], str], code: str = InvalidIndex.code
) -> Iterator[Problem]:
    """A problem for each run of consecutive wrong entries, at most MAX_PROBLEMS and one that counts the others.

    ``is_wrong`` is bool for each entry; ``describe`` returns the message for the first and last number of a run.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_wrong, [False])).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    for start, stop in zip(starts[:MAX_PROBLEMS].tolist(), stops[:MAX_PROBLEMS].tolist(), strict=True):
        yield Problem(start * size_bytes, (stop - start) * size_bytes, describe(start, stop - 1), code)
    if len(starts) > MAX_PROBLEMS:
        first, last = int(starts[MAX_PROBLEMS]), int(stops[-1])
        more = len(starts) - MAX_PROBLEMS
        yield Problem(
            first * size_bytes,
            (last - first) * size_bytes,
            f"{counted_plainly(more, 'more run')} of such entries, from {first} to {last - 1}",
            code,
        )


def entries_with_problems(problems: Iterable[Problem], size_bytes: int, count: int) -> NDArray[np.bool_]:
    """Which of ``count`` entries of ``size_bytes`` have problems, as bool for each."""
    is_wrong = np.zeros(count, bool)
    for each in problems:
        is_wrong[each.position // size_bytes : -(-(each.position + each.length) // size_bytes)] = True
    return is_wrong


def problems_of_entries(
    layout: Layout, checks: Iterable[tuple[NDArray[np.bool_], str]], code: str = InvalidIndex.code
) -> tuple[Problem, ...]:
    """The problems of all checks, by position. A check is a pair: which entries fail it, and the message."""
    found: list[Problem] = []
    for is_wrong, words in checks:
        found += problems_of_runs(is_wrong, layout.size_bytes, partial(_described, words), code)
    return tuple(sorted(found, key=lambda problem: problem.position))


def _described(words: str, first: int, last: int) -> str:
    return f"{entry_range(first, last)}: {words}"


def slot_location(source: Source, layout: Layout, base_offset: int, number: int) -> Location:
    """The location of a slot."""
    return Location(source.path, base_offset=base_offset, position=number * layout.size_bytes, length=layout.size_bytes)


def entry_range(first: int, last: int) -> str:
    """``entry 3`` or ``entries 3 to 5``, for messages."""
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def not_above_previous(
    column: NDArray[np.int64], is_compared: NDArray[np.bool_], *, strictly: bool
) -> NDArray[np.bool_]:
    """Which compared entries are not above the previous compared entry; if not ``strictly``, which are below it."""
    is_wrong = np.zeros(len(column), dtype=np.bool_)
    numbers = np.flatnonzero(is_compared)
    values = column[numbers]
    is_wrong[numbers[1:]] = values[1:] <= values[:-1] if strictly else values[1:] < values[:-1]
    return is_wrong


def absolute_offsets(base_offset: int, relative_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Base offset plus relative offset (int64), at most the largest int64."""
    most = np.int64(INT64_RANGE[1] - base_offset)
    return np.minimum(relative_offsets, most) + np.int64(base_offset)


def last_slot(source: Source, layout: Layout, *, zero_may_be_first: bool) -> tuple[int, Slot] | None:
    """Find the last entry before the padding by bisection: its number and values; None for an index without entries.

    A zero slot among the entries, which ``read`` reports as damage, may end the search before it.
    """
    return floor_slot(source, layout, lambda slot: False, zero_may_be_first=zero_may_be_first)


def floor_slot(
    source: Source,
    layout: Layout,
    is_above: Callable[[Slot], bool],
    *,
    zero_may_be_first: bool,
    target: int | None = None,
    lowest: int | None = None,
) -> tuple[int, Slot] | None:
    """Find the last entry that is not above a target by bisection: its number and values; None if there is none.

    Reads single slots until the range fits one window of 4 KiB. A zero slot counts as above every target, since padding
    follows the entries. Zeros in the first slot are an entry if an entry follows and ``zero_may_be_first``. With
    ``target``, the target value of the slots' first field, the search in a remote file starts where the target is
    likely to be; ``lowest`` is the least value of that field, and is read from the first slot if it is None.
    """
    size_bytes = layout.size_bytes
    low, high = 0, source.size_bytes // size_bytes  # slots before low are not above the target, slots from high on are
    if high == 0:
        return None

    last_bytes = source.read_at((high - 1) * size_bytes, size_bytes)
    last = layout.struct.unpack(last_bytes)
    if (any(last) or (zero_may_be_first and high == 1)) and not is_above(last):
        return high - 1, last  # the usual case for a trimmed index and a target near its end
    high -= 1
    if target is not None and is_remote(source.path):
        if lowest is None:
            first_slot = layout.struct.unpack(source.read_at(0, size_bytes))
            if any(first_slot) and is_above(first_slot):
                return None
            lowest = first_slot[0]
        low, high = _narrowed(source, layout, is_above, target, (lowest, last[0], high))
    while high - low >= _SEARCH_WINDOW_BYTES // size_bytes:
        middle = (low + high) // 2
        slot = layout.struct.unpack(source.read_at(middle * size_bytes, size_bytes))
        if not any(slot) or is_above(slot):
            high = middle
        else:
            low = middle + 1

    first = max(0, low - 1)
    window = list(layout.struct.iter_unpack(source.read_at(first * size_bytes, (high - first) * size_bytes)))
    found: tuple[int, Slot] | None = None
    for number, slot in enumerate(window, start=first):
        if not any(slot) and not (zero_may_be_first and number == 0 and _is_entry_after_zero(source, layout, window)):
            break
        if is_above(slot):
            break
        found = number, slot
    return found


def _narrowed(
    source: Source, layout: Layout, is_above: Callable[[Slot], bool], target: int, bounds: tuple[int, int, int]
) -> tuple[int, int]:
    """Narrow ``low`` and ``high`` of ``floor_slot`` with a few reads of whole windows of slots (interpolation search).

    ``bounds`` are the value of the first field in the first slot, its value in a slot above the target, and the number
    of that slot. Each window is where the target would be if the values rose evenly between the known slots.
    """
    size_bytes = layout.size_bytes
    low, (low_value, high_value, high) = 0, bounds
    for _ in range(_MOST_LOOKS):
        if high - low <= _LOOK_SLOTS or high_value <= low_value:
            break
        guess = low + (high - low) * (target - low_value) // (high_value - low_value)
        first = max(low, min(guess - _LOOK_SLOTS // 2, high - _LOOK_SLOTS))
        content = source.read_at(first * size_bytes, _LOOK_SLOTS * size_bytes)
        slots = [layout.struct.unpack_from(content, number * size_bytes) for number in (0, _LOOK_SLOTS - 1)]
        is_past = [not any(slot) or is_above(slot) for slot in slots]
        if is_past[0]:
            high, high_value = first, slots[0][0]
        elif is_past[1]:
            return first + 1, first + _LOOK_SLOTS - 1
        else:
            low, low_value = first + _LOOK_SLOTS, slots[1][0]
    return low, high


def _is_entry_after_zero(source: Source, layout: Layout, window: list[Slot]) -> bool:
    if len(window) > 1:
        return any(window[1])
    return any(source.read_at(layout.size_bytes, layout.size_bytes))


def broker_slot(count: int, offset_at: Callable[[int], int], target: int) -> int:
    """The slot of an offset index that a broker's look-up finds for an offset, -1 for none.

    ``offset_at`` returns the offset in a slot. Nothing is checked: slots that are padding or out of order mislead this
    search as they mislead the broker's (storage AbstractIndex.indexSlotRangeFor).
    """
    if not count:
        return -1
    first_warm = max(0, count - 1 - _WARM_ENTRIES)
    if offset_at(first_warm) < target:
        low, high = first_warm, count - 1
    elif offset_at(0) > target:
        return -1
    else:
        low, high = 0, first_warm
    while low < high:
        middle = (low + high + 1) // 2
        found = offset_at(middle)
        if found == target:
            return middle
        if found > target:
            high = middle - 1
        else:
            low = middle
    return low
