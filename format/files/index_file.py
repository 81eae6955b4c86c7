"""Side files of entries: their columns and problems; of an .index or .timeindex also padding, and binary search.

While a segment is active, its index files have their full size, with zeros after the last entry. A broker trims them
when it rolls or closes the segment (storage AbstractIndex). After a crash the zeros remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from format.errors import InvalidIndex, KafkaLogError
from format.files.side_file import INT64_RANGE, MAX_PROBLEMS, Problem, check_size
from format.io.session import is_remote
from format.io.source import Source
from format.layout import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, Layout
from format.limits import Limits
from format.location import Location
from format.wording import counted_plainly

_SEARCH_WINDOW_BYTES = 4096
_READ_WINDOW_BYTES = 1024 * 1024
#: A broker's look-up begins with the newest 8 KiB of an index.
_WARM_BYTES = 8192
#: For a remote file: the slots that are read with one request, and the most such requests before bisection.
_LOOK_SLOTS = 2048
_MOST_LOOKS = 4

#: The values of a slot in the order of the layout's fields.
Slot = tuple[int, ...]


class EntryColumn:
    """A column (int64) of the entries of a file, as an attribute."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get__(self, entries: EntryFile, owner: object = None) -> NDArray[np.int64]:
        return entries.columns[self._number]


class EntryFile(msgspec.Struct, frozen=True):
    """A whole file of entries: int64 columns in the order of the layout's fields, and the problems of the file.

    ``trailing_bytes`` counts the bytes after the last entry.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    path: str
    columns: tuple[NDArray[np.int64], ...]
    trailing_bytes: int
    problems: tuple[Problem, ...]

    @property
    def entry_count(self) -> int:
        return len(self.columns[0])


class SlotIndex(EntryFile, frozen=True):
    """A whole .index or .timeindex; ``padding_bytes`` counts the preallocated zeros of an active segment's index."""

    base_offset: int
    padding_bytes: int
    relative_offsets = EntryColumn(0)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The absolute offsets, computed at each access: at most the largest int64."""
        most = np.int64(INT64_RANGE[1] - self.base_offset)
        return np.minimum(self.relative_offsets, most) + np.int64(self.base_offset)


def may_begin_with_zeros(layout: Layout) -> bool:
    """Whether zeros are valid as the first entry, as they are in a time index: timestamp 0 at the base offset."""
    return layout is TIME_INDEX_ENTRY


def read_slots(source: Source, base_offset: int, layout: Layout, limits: Limits) -> dict[str, Any]:
    """The fields of a SlotIndex. Raises LimitExceeded, and InvalidIndex for a base offset over 63 bits.

    The file is read backwards over the padding, so that its zeros are never in memory at once.
    """
    check_base_offset(source, base_offset)
    check_size(source, limits)
    slot_count, trailing_bytes = divmod(source.size_bytes, layout.size_bytes)
    content = _without_zero_tail(source, slot_count * layout.size_bytes)
    entry_count = -(-len(content) // layout.size_bytes)
    if may_begin_with_zeros(layout) and slot_count == 1:
        entry_count = 1
    columns = columns_of(content.ljust(entry_count * layout.size_bytes, b"\0"), layout)
    return {
        "path": source.path,
        "columns": columns,
        "trailing_bytes": trailing_bytes,
        "problems": (*_problems_of_slots(layout, columns, base_offset), *trailing_problems(source, layout)),
        "base_offset": base_offset,
        "padding_bytes": (slot_count - entry_count) * layout.size_bytes,
    }


def columns_of(content: bytes, layout: Layout) -> tuple[NDArray[np.int64], ...]:
    """The columns of encoded entries."""
    table = np.frombuffer(content, dtype=layout.numpy_dtype())
    return tuple(table[name].astype(np.int64) for name in layout.names)


def _problems_of_slots(layout: Layout, columns: tuple[NDArray[np.int64], ...], base_offset: int) -> tuple[Problem, ...]:
    """Entries rise; only the offsets of a time index may be equal."""
    first, second = columns
    if not len(first):  # as many offset indexes of small segments
        return ()
    words = [name.removeprefix("relative_") for name in layout.names]
    is_zero = (first == 0) & (second == 0)
    if may_begin_with_zeros(layout):
        is_zero[:1] = False
    is_negative = (first < 0) | (second < 0)
    is_compared = ~is_zero & ~is_negative
    rises = layout is OFFSET_INDEX_ENTRY
    relation = "not above" if rises else "below"
    above_63_bits = columns[layout.names.index("relative_offset")] > INT64_RANGE[1] - base_offset
    checks = (
        (is_zero, "zeros before the last entry"),
        (is_negative, f"a negative {words[0]} or {words[1]}"),
        (
            not_above_previous(first, is_compared, strictly=True),
            f"the {words[0]} is not above the {words[0]} of the previous entry",
        ),
        (
            not_above_previous(second, is_compared, strictly=rises),
            f"the {words[1]} is {relation} the {words[1]} of the previous entry",
        ),
        (above_63_bits, "the absolute offset does not fit in 63 bits"),
    )
    return problems_of_entries(layout, checks)


def trailing_problems(source: Source, layout: Layout) -> tuple[Problem, ...]:
    """The problem of an incomplete slot or entry at the end, if there is one."""
    slot_bytes, length = layout.size_bytes, source.size_bytes % layout.size_bytes
    message = f"the file has {counted_plainly(source.size_bytes, 'byte')}, not a multiple of {slot_bytes}"
    return (Problem(source.size_bytes - length, length, message, InvalidIndex.code),) if length else ()


def encode_columns(layout: Layout, columns: Iterable[ArrayLike], error: type[KafkaLogError] = InvalidIndex) -> bytes:
    """Encode entries from columns in the order of the layout. Raises ``error`` for a value that does not fit."""
    wanted = [np.asarray(column, dtype=np.int64) for column in columns]
    table = np.empty(len(wanted[0]), dtype=layout.numpy_dtype())
    for field, column in zip(layout.fields, wanted, strict=True):
        table[field.name] = column
        if not np.array_equal(table[field.name], column):
            raise error(f"a {field.name.replace('_', ' ')} does not fit in {field.size_bytes * 8} bits")
    return table.tobytes()


def check_base_offset(source: Source, base_offset: int) -> None:
    """Raise InvalidIndex for a base offset over 63 bits: the 20 digits of a file name can be more than an int64."""
    if not 0 <= base_offset <= INT64_RANGE[1]:
        raise InvalidIndex(f"the base offset {base_offset} does not fit in 63 bits", Location(source.path))


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
    if not is_wrong.any():
        return
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


def floor_entry(source: Source, layout: Layout, base_offset: int, target: int | None) -> tuple[int, ...] | None:
    """Find the last entry whose first field is not above ``target``, without reading the whole file.

    None for the target stands for the last entry before the padding. Returns the number of the entry and its values,
    with the absolute offset; None if there is no such entry. A zero slot among the entries, which ``read`` reports as
    damage, may end the search before it. Raises InvalidIndex for an entry with a negative value.
    """
    check_base_offset(source, base_offset)
    found = _floor_slot(source, layout, target)
    if found is None:
        return None
    number, slot = found
    at = layout.names.index("relative_offset")
    if min(slot) < 0 or base_offset + slot[at] > INT64_RANGE[1]:
        values = " and ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in zip(layout.names, slot, strict=True)
        )
        position = number * layout.size_bytes
        where = Location(source.path, base_offset=base_offset, position=position, length=layout.size_bytes)
        raise InvalidIndex(f"entry {number} has {values}", where)
    return number, *slot[:at], base_offset + slot[at], *slot[at + 1 :]


def _floor_slot(source: Source, layout: Layout, target: int | None) -> tuple[int, Slot] | None:
    """The number and values of the entry of ``floor_entry``.

    Reads single slots until the range fits one window of 4 KiB. A zero slot counts as above every target, since padding
    follows the entries. Zeros in the first slot of a time index are an entry if an entry follows. In a remote file the
    search starts where the target is likely to be.
    """

    def is_above(slot: Slot) -> bool:
        return target is not None and slot[0] > target

    size_bytes, zero_may_be_first = layout.size_bytes, may_begin_with_zeros(layout)
    low, high = 0, source.size_bytes // size_bytes  # slots before low are not above the target, slots from high on are
    if high == 0:
        return None

    last_bytes = source.read_at((high - 1) * size_bytes, size_bytes)
    last = layout.struct.unpack(last_bytes)
    if (any(last) or (zero_may_be_first and high == 1)) and not is_above(last):
        return high - 1, last  # the usual case for a trimmed index and a target near its end
    high -= 1
    if target is not None and is_remote(source.path):
        lowest = 0  # a relative offset, or the timestamp in the first slot
        if zero_may_be_first:
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
    """Narrow ``low`` and ``high`` of ``_floor_slot`` with a few reads of whole windows of slots (interpolation search).

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


def broker_slot(
    count: int, value_at: Callable[[int], int], target: int, entry_bytes: int = OFFSET_INDEX_ENTRY.size_bytes
) -> int:
    """The slot that a broker's look-up finds for an offset, in a time index for a timestamp; -1 for none.

    ``value_at`` returns the offset or timestamp in a slot. Nothing is checked: slots that are padding or out of order
    mislead this search as they mislead the broker's (storage AbstractIndex.indexSlotRangeFor).
    """
    if not count:
        return -1
    first_warm = max(0, count - 1 - _WARM_BYTES // entry_bytes)
    if value_at(first_warm) < target:
        low, high = first_warm, count - 1
    elif value_at(0) > target:
        return -1
    else:
        low, high = 0, first_warm
    while low < high:
        middle = (low + high + 1) // 2
        found = value_at(middle)
        if found == target:
            return middle
        if found > target:
            high = middle - 1
        else:
            low = middle
    return low
