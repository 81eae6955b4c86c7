"""Batches of two replicas over the same offsets: which of them, and which of their records, are the same.

Batches with equal headers are compared as bytes, many at once. What is left on both sides is compared record by
record, so that batches which were recompressed, merged or compacted are recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.limits import Limits
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column
from format.log.read_records import record_tables
from format.log.record_differences import differing_records
from format.log.record_table import RecordTable
from format.offset_ranges import Int64s, Range, clipped, merged, runs
from format.value_class import state_class
from format.verbs.diff.replica_log import Window

#: Takes records that only one of two replicas has: its side, 0 or 1, and the records. They are not to be kept.
TakeLone = Callable[[int, RecordTable], None]


@state_class
class WindowDifference:
    """What two replicas have over some offsets; the pairs are for the one and the other.

    ``other_content``: offsets that both have with different records. ``other_epochs``: the offsets of batches where
    all those of one side are of later leader epochs. ``same_records``: offsets of records that are the same in other
    bytes. ``unreadable``: errors of batches whose records cannot be read, with their offsets.

    Where one of the two has headers only: ``lone`` are the offsets of batches that overlap none of the other,
    ``unknown`` those of batches in other bytes, with records that may be the same.
    """

    other_content: list[Range] = field(default_factory=list)
    other_epochs: tuple[list[Range], list[Range]] = ([], [])
    same_records: list[Range] = field(default_factory=list)
    unreadable: tuple[list[tuple[Range, KafkaLogError]], ...] = field(default_factory=lambda: ([], []))
    lone: tuple[list[Range], list[Range]] = ([], [])
    unknown: list[Range] = field(default_factory=list)


def compare_windows(
    mine: Window, theirs: Window, bounds: Range, limits: Limits, take_lone: TakeLone
) -> WindowDifference:
    """Compare the batches of two windows inside the bounds."""
    found = WindowDifference()
    if mine.chunk is theirs.chunk and np.array_equal(mine.rows, theirs.rows):
        return found
    same, same_there = _same_batches(mine, theirs)
    rest, rest_there = mine.picked(~same), theirs.picked(~same_there)
    if _have_other_epochs(rest, rest_there):
        found.other_epochs = spans_of(rest, bounds), spans_of(rest_there, bounds)
        return found
    if not (mine.has_records and theirs.has_records):
        _compare_headers((mine, theirs), (same, same_there), bounds, found)
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


def _same_batches(mine: Window, theirs: Window) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which batches of both windows are the same bytes, by row."""
    same, same_there = np.zeros(len(mine), bool), np.zeros(len(theirs), bool)
    at = np.minimum(np.searchsorted(theirs.base_offset, mine.base_offset), len(theirs) - 1)
    left, right = mine.table, theirs.table.rows(at)
    alike = np.flatnonzero(_equal_headers(left, right))
    if not len(alike):
        return same, same_there
    other = at[alike]
    # Neighbours on both sides are compared as one piece.
    edges = np.flatnonzero((np.diff(alike) != 1) | (np.diff(other) != 1) | ~_adjoin(left, right, alike)) + 1
    for piece in np.split(np.arange(len(alike)), edges):
        if _equal_bytes(mine, theirs, alike[piece], other[piece]):
            same[alike[piece]] = same_there[other[piece]] = True
            continue
        for one in piece.tolist():
            if _equal_bytes(mine, theirs, alike[one : one + 1], other[one : one + 1]):
                same[alike[one]] = same_there[other[one]] = True
    return same, same_there


def _equal_headers(left: BatchTable, right: BatchTable) -> NDArray[np.bool_]:
    """Which rows have equal headers, the stored CRC and the size among them."""
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


def _equal_bytes(mine: Window, theirs: Window, rows: NDArray[np.intp], others: NDArray[np.intp]) -> bool:
    """Whether batches with equal headers are the same; where one side has only headers, their right CRCs say so."""
    if not (mine.has_records and theirs.has_records):
        return True
    return _content(mine, rows) == _content(theirs, others)


def _content(window: Window, rows: NDArray[np.intp]) -> bytes:
    """The bytes from the first of some adjoining batches to the end of the last."""
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


def _have_other_epochs(mine: Window, theirs: Window) -> bool:
    """Whether all batches of one side are of later leader epochs than those of the other: then all records differ."""
    if not len(mine) or not len(theirs):
        return False
    left, right = mine.table, theirs.table
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
    """The records of both sides, cut where both have come to the same offset."""
    mine, theirs = next(left, None), next(right, None)
    while mine is not None or theirs is not None:
        ends = [int(each.offset[-1]) for each in (mine, theirs) if each is not None]
        bound = min(ends)
        one, mine = _cut(mine, bound)
        other, theirs = _cut(theirs, bound)
        yield one, other
        mine = next(left, None) if mine is None else mine
        theirs = next(right, None) if theirs is None else theirs


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
    mine: RecordTable | None, theirs: RecordTable | None, found: WindowDifference, take_lone: TakeLone
) -> None:
    if mine is None or theirs is None:
        for side, table in enumerate((mine, theirs)):
            if table is not None:
                take_lone(side, table)
        return
    offsets: Int64Column = mine.offset
    others: Int64s = theirs.offset
    at = np.minimum(np.searchsorted(others, offsets), len(others) - 1)
    common = others[at] == offsets
    if common.any():
        left, right = mine.rows(np.flatnonzero(common)), theirs.rows(at[common])
        differ = differing_records(left, right)
        found.other_content += runs(left.offset[differ])
        found.same_records += runs(left.offset[~differ])
    if not common.all():
        take_lone(0, mine.rows(np.flatnonzero(~common)))
    is_lone = np.ones(len(others), bool)
    is_lone[at[common]] = False
    if is_lone.any():
        take_lone(1, theirs.rows(np.flatnonzero(is_lone)))
