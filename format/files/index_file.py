"""The slots of an .index or .timeindex file: where the entries end and the preallocated zeros begin, and searching.

While its segment is active a broker keeps an index at its full size, zeros after the last entry, and trims it when it
rolls or closes the segment (storage AbstractIndex). After a crash the zeros stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from format.errors import InvalidIndex
from format.files.side_file import INT64_RANGE, MAX_PROBLEMS, Problem, check_size
from format.io.remote_path import is_remote
from format.io.source import Source
from format.layout import Layout
from format.limits import Limits
from format.location import Location
from format.value_class import value_class

_SEARCH_WINDOW_BYTES = 4096
_READ_WINDOW_BYTES = 1024 * 1024
#: A broker's look-up begins with the newest 8 KiB of an offset index (1024 entries of 8 bytes).
_WARM_ENTRIES = 1024
#: Of a file in a store: slots that are looked at with one request, and how often before plain bisection goes on.
_LOOK_SLOTS = 2048
_MOST_LOOKS = 4

#: A slot's values in the order of the layout's fields.
Slot = tuple[int, ...]


@value_class
class Slots:
    """The entries of an index file as they lie on disk (a structured array), and the number of other bytes.

    ``padding_bytes`` are the zero slots after the last entry, ``trailing_bytes`` what is left of a slot cut short.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    entries: NDArray[Any]
    padding_bytes: int
    trailing_bytes: int
    problems: tuple[Problem, ...]


def check_base_offset(source: Source, base_offset: int) -> None:
    """Raises InvalidIndex for a base offset outside 63 bits: a file name's 20 digits hold more than an int64."""
    if not 0 <= base_offset <= INT64_RANGE[1]:
        raise InvalidIndex(f"the base offset {base_offset} does not fit in 63 bits", Location(source.path))


def read_slots(source: Source, layout: Layout, limits: Limits, *, zero_may_be_first: bool) -> Slots:
    """All slots of the file, read backwards over the padding, so that its zeros are never held in memory at once.

    ``zero_may_be_first``: zeros are legal as the first entry, so that a file of one zero slot holds that entry.
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
    """One problem for each run of neighbouring entries that are wrong; ``describe`` takes the first and last number."""
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
            f"{more} more {'run' if more == 1 else 'runs'} of entries like these, from {first} to {last - 1}",
            code,
        )


def entries_with_problems(problems: Iterable[Problem], size_bytes: int, count: int) -> NDArray[np.bool_]:
    """Which entries of an index some problems are about."""
    is_wrong = np.zeros(count, bool)
    for each in problems:
        is_wrong[each.position // size_bytes : -(-(each.position + each.length) // size_bytes)] = True
    return is_wrong


def problems_of_entries(
    layout: Layout, checks: Iterable[tuple[NDArray[np.bool_], str]], code: str = InvalidIndex.code
) -> tuple[Problem, ...]:
    """The problems of all checks, by position. A check is a pair: which entries fail it, and what is wrong in words."""
    found: list[Problem] = []
    for is_wrong, words in checks:
        found += problems_of_runs(is_wrong, layout.size_bytes, partial(_described, words), code)
    return tuple(sorted(found, key=lambda problem: problem.position))


def _described(words: str, first: int, last: int) -> str:
    return f"{entry_range(first, last)}: {words}"


def slot_location(source: Source, layout: Layout, base_offset: int, number: int) -> Location:
    """Where a slot lies in its file."""
    return Location(source.path, base_offset=base_offset, position=number * layout.size_bytes, length=layout.size_bytes)


def entry_range(first: int, last: int) -> str:
    """``entry 3`` or ``entries 3 to 5``, the subject of a problem's message."""
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def not_above_previous(
    column: NDArray[np.int64], is_compared: NDArray[np.bool_], *, strictly: bool
) -> NDArray[np.bool_]:
    """Which entries do not lie above the nearest compared entry before them (or, not strictly, lie below it)."""
    is_wrong = np.zeros(len(column), dtype=np.bool_)
    numbers = np.flatnonzero(is_compared)
    values = column[numbers]
    is_wrong[numbers[1:]] = values[1:] <= values[:-1] if strictly else values[1:] < values[:-1]
    return is_wrong


def absolute_offsets(base_offset: int, relative_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Base offset plus relative offset, held at the largest int64 where the sum would pass it."""
    most = np.int64(INT64_RANGE[1] - base_offset)
    return np.minimum(relative_offsets, most) + np.int64(base_offset)


def last_slot(source: Source, layout: Layout, *, zero_may_be_first: bool) -> tuple[int, Slot] | None:
    """The number and values of the last entry before the padding, by bisection; None for an index without entries.

    A zero slot amid the entries, which is damage that ``read`` reports, may make it stop before it.
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
    """The number and values of the last entry that is not above the target, by bisection over the slots; else None.

    Reads single slots until the range fits one window of 4 KiB. A zero slot counts as above every target: what lies
    after the entries. Zeros as the first entry are an entry, and not padding, where an entry follows them. With a
    ``target`` for the slots' first field, a file in a store is first looked into where the target should be; its
    ``lowest`` value is read if it is not given.
    """
    size_bytes = layout.size_bytes
    low, high = 0, source.size_bytes // size_bytes  # slots below low are not above, slots from high on are
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
    """``low`` and ``high`` of ``floor_slot`` after a few looks at whole windows of slots.

    ``bounds`` are the first field at the start, that of a slot which is above, and the number of that slot. Each window
    lies where the target would be if the field rose evenly between the slots that are known, so that few requests are
    needed.
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
