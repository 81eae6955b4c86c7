"""Compares the batches of two replicas over the same offsets, and their records where the batches differ.

Batches with equal headers are compared as bytes, many at once. All others are compared record by record, so that
batches that were recompressed, merged or compacted are recognized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.limits import Limits
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column
from format.log.read_records import record_tables
from format.log.record_table import RecordTable, differing_records
from format.offset_ranges import Int64s, Range, clipped, merged, runs
from format.verbs.diff.replica_log import Window

#: Called with records that only one of two replicas has: its side, 0 or 1, and the records, which it must not keep.
TakeLone = Callable[[int, RecordTable], None]


class WindowDifference(msgspec.Struct):
    """The differences of two replicas over some offsets; pairs are for the one and the other.

    ``other_content``: offsets that both have with different records. ``other_epochs``: the offsets of batches where
    all those of one side have later leader epochs. ``same_records``: offsets of equal records in different bytes.
    ``unreadable``: errors of batches whose records cannot be read, with their offsets.

    Where one of the two has headers only: ``lone`` are the offsets of batches that overlap none of the other, and
    ``unknown`` those of batches with different bytes, whose records may be the same.
    """

    other_content: list[Range] = msgspec.field(default_factory=list)
    other_epochs: tuple[list[Range], list[Range]] = ([], [])
    same_records: list[Range] = msgspec.field(default_factory=list)
    unreadable: tuple[list[tuple[Range, KafkaLogError]], ...] = msgspec.field(default_factory=lambda: ([], []))
    lone: tuple[list[Range], list[Range]] = ([], [])
    unknown: list[Range] = msgspec.field(default_factory=list)


def compare_windows(
    left_side: Window, right_side: Window, bounds: Range, limits: Limits, take_lone: TakeLone
) -> WindowDifference:
    """Compare the batches of two windows inside the bounds."""
    found = WindowDifference()
    if left_side.chunk is right_side.chunk and np.array_equal(left_side.rows, right_side.rows):
        return found
    same, same_there = _same_batches(left_side, right_side)
    rest, rest_there = left_side.picked(~same), right_side.picked(~same_there)
    if _have_other_epochs(rest, rest_there):
        found.other_epochs = spans_of(rest, bounds), spans_of(rest_there, bounds)
        return found
    if not (left_side.has_records and right_side.has_records):
        _compare_headers((left_side, right_side), (same, same_there), bounds, found)
        return found
    left = _records(rest, bounds, limits, found.unreadable[0])
    right = _records(rest_there, bounds, limits, found.unreadable[1])
    for one, other in _joined(left, right):
        _compare_records(one, other, found, take_lone)
    found.other_content = merged(found.other_content)
    found.same_records = merged(found.same_records)
    return found


def records_of(window: Window, bounds: Range, limits: Limits) -> Iterator[RecordTable]:
    """The records of a window inside the bounds, as far as they can be read."""
    return _records(window, bounds, limits, [])


def spans_of(window: Window, bounds: Range) -> list[Range]:
    """The offsets of the batches of a window inside the bounds."""
    return merged(clipped(_spans(window), *bounds))


def _spans(window: Window) -> list[Range]:
    """The offsets of the batches as ranges, neighbours joined."""
    if not len(window):
        return []
    edges = np.flatnonzero(window.base_offset[1:] != window.last_offset[:-1] + 1)
    firsts = window.base_offset[np.concatenate(([0], edges + 1))].tolist()
    lasts = window.last_offset[np.concatenate((edges, [len(window) - 1]))].tolist()
    return list(zip(firsts, lasts, strict=True))


def _same_batches(left_side: Window, right_side: Window) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which batches of both windows have the same bytes, by row."""
    same, same_there = np.zeros(len(left_side), bool), np.zeros(len(right_side), bool)
    at = np.minimum(np.searchsorted(right_side.base_offset, left_side.base_offset), len(right_side) - 1)
    left, right = left_side.table, right_side.table.rows(at)
    alike = np.flatnonzero(_equal_headers(left, right))
    if not len(alike):
        return same, same_there
    other = at[alike]
    # Neighbours on both sides are compared as one piece.
    edges = np.flatnonzero((np.diff(alike) != 1) | (np.diff(other) != 1) | ~_adjoin(left, right, alike)) + 1
    for piece in np.split(np.arange(len(alike)), edges):
        if _equal_bytes(left_side, right_side, alike[piece], other[piece]):
            same[alike[piece]] = same_there[other[piece]] = True
            continue
        for one in piece.tolist():
            if _equal_bytes(left_side, right_side, alike[one : one + 1], other[one : one + 1]):
                same[alike[one]] = same_there[other[one]] = True
    return same, same_there


def _equal_headers(left: BatchTable, right: BatchTable) -> NDArray[np.bool_]:
    """Which rows have equal headers, including the stored CRC and the size."""
    differ = left.columns != right.columns
    differ[:, BATCH_COLUMN["position"]] = False
    equal: NDArray[np.bool_] = ~differ.any(axis=1)
    return equal


def _adjoin(left: BatchTable, right: BatchTable, alike: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each of these rows ends where the next one starts, in both files."""
    rows, after = alike[:-1], alike[1:]
    adjoin: NDArray[np.bool_] = left.end_position[rows] == left.position[after]
    adjoin &= right.end_position[rows] == right.position[after]
    return adjoin


def _equal_bytes(left_side: Window, right_side: Window, rows: NDArray[np.intp], others: NDArray[np.intp]) -> bool:
    """Whether batches with equal headers have equal bytes; where one side has only headers, equal CRCs prove it."""
    if not (left_side.has_records and right_side.has_records):
        return True
    return _content(left_side, rows) == _content(right_side, others)


def _content(window: Window, rows: NDArray[np.intp]) -> bytes:
    """The bytes of some adjoining batches."""
    chunk = window.chunk
    first, last = int(window.rows[rows[0]]), int(window.rows[rows[-1]])
    start = int(chunk.table.position[first]) - chunk.buffer_position
    end = int(chunk.table.position[last]) + int(chunk.table.size_bytes[last]) - chunk.buffer_position
    return bytes(chunk.bodies[start:end])


def _compare_headers(
    windows: tuple[Window, Window],
    same: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    bounds: Range,
    found: WindowDifference,
) -> None:
    """Compare the batches that are not the same by offsets and leader epochs, where records cannot be read."""
    edges = np.unique(np.concatenate([(each.base_offset, each.last_offset + 1) for each in windows], axis=None))
    edges = np.unique(np.clip(edges, bounds[0], bounds[1] + 1))
    firsts, lasts = edges[:-1], edges[1:] - 1
    rows, is_held, epochs = [], [], []
    for window in windows:
        at = np.maximum(np.searchsorted(window.base_offset, firsts, "right") - 1, 0)
        table = window.table
        rows.append(at)
        is_held.append((window.base_offset[at] <= firsts) & (window.last_offset[at] >= firsts))
        epochs.append(np.where(table.magic[at] == 2, table.leader_epoch[at], -1))
    by_both = is_held[0] & is_held[1]
    has_other_epoch = by_both & (epochs[0] != epochs[1]) & (epochs[0] >= 0) & (epochs[1] >= 0)
    is_unknown = by_both & ~has_other_epoch & ~(same[0][rows[0]] & same[1][rows[1]])

    def ranges(which: NDArray[np.bool_]) -> list[Range]:
        return merged(zip(firsts[which].tolist(), lasts[which].tolist(), strict=True))

    found.other_epochs = ranges(has_other_epoch), ranges(has_other_epoch)
    found.unknown = ranges(is_unknown)
    found.lone = ranges(is_held[0] & ~is_held[1]), ranges(is_held[1] & ~is_held[0])


def _have_other_epochs(left_side: Window, right_side: Window) -> bool:
    """Whether all batches of one side have later leader epochs than those of the other: then all records differ."""
    if not len(left_side) or not len(right_side):
        return False
    left, right = left_side.table, right_side.table
    if not ((left.magic == 2).all() and (right.magic == 2).all()):
        return False
    left_epochs, right_epochs = left.leader_epoch, right.leader_epoch
    return bool(left_epochs.max() < right_epochs.min() or right_epochs.max() < left_epochs.min())


def _records(
    window: Window, bounds: Range, limits: Limits, unreadable: list[tuple[Range, KafkaLogError]]
) -> Iterator[RecordTable]:
    """The records of a window inside the bounds, with rising offsets; batches that cannot be read are noted."""
    if not len(window):
        return
    which = np.zeros(len(window.chunk.table), bool)
    which[window.rows] = True
    highest = bounds[0] - 1
    for table in record_tables(window.chunk, which=which, limits=limits):
        for problem in table.problems:
            row = int(np.searchsorted(window.rows, problem.batch))
            lost = clipped([(int(window.base_offset[row]), int(window.last_offset[row]))], *bounds)
            unreadable.extend((each, problem.error) for each in lost)
        offsets = table.offset
        kept = (offsets > np.maximum.accumulate(np.concatenate(([highest], offsets[:-1])))) if len(offsets) else None
        if kept is None:
            continue
        kept &= (offsets >= bounds[0]) & (offsets <= bounds[1])
        if kept.all():
            yield table
        elif kept.any():
            yield table.rows(kept)
        highest = max(highest, int(offsets.max()))


def _joined(
    left: Iterator[RecordTable], right: Iterator[RecordTable]
) -> Iterator[tuple[RecordTable | None, RecordTable | None]]:
    """The records of both sides in pairs of tables that cover the same offsets."""
    left_side, right_side = next(left, None), next(right, None)
    while left_side is not None or right_side is not None:
        ends = [int(each.offset[-1]) for each in (left_side, right_side) if each is not None]
        bound = min(ends)
        one, left_side = _cut(left_side, bound)
        other, right_side = _cut(right_side, bound)
        yield one, other
        left_side = next(left, None) if left_side is None else left_side
        right_side = next(right, None) if right_side is None else right_side


def _cut(table: RecordTable | None, bound: int) -> tuple[RecordTable | None, RecordTable | None]:
    """The records up to an offset, and the others; None for none."""
    if table is None:
        return None, None
    count = int(np.searchsorted(table.offset, bound, "right"))
    if count == 0:
        return None, table
    if count == len(table):
        return table, None
    return table.rows(slice(0, count)), table.rows(slice(count, len(table)))


def _compare_records(
    left_side: RecordTable | None, right_side: RecordTable | None, found: WindowDifference, take_lone: TakeLone
) -> None:
    if left_side is None or right_side is None:
        for side, table in enumerate((left_side, right_side)):
            if table is not None:
                take_lone(side, table)
        return
    offsets: Int64Column = left_side.offset
    others: Int64s = right_side.offset
    at = np.minimum(np.searchsorted(others, offsets), len(others) - 1)
    common = others[at] == offsets
    if common.any():
        left, right = left_side.rows(np.flatnonzero(common)), right_side.rows(at[common])
        differ = differing_records(left, right)
        found.other_content += runs(left.offset[differ])
        found.same_records += runs(left.offset[~differ])
    if not common.all():
        take_lone(0, left_side.rows(np.flatnonzero(~common)))
    is_lone = np.ones(len(others), bool)
    is_lone[at[common]] = False
    if is_lone.any():
        take_lone(1, right_side.rows(np.flatnonzero(is_lone)))
