"""Search the records of a table: a literal over the whole decompressed buffer, its hits mapped to fields.

Never record by record where a literal is known: ``bytes.find`` runs over megabytes at once, and only where it hits
are fields looked up, headers taken apart and regular expressions run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from format.operations.grep_pattern import Pattern
from format.records import RecordTable

Int64Column = NDArray[np.int64]
Span = tuple[int, int]

KEY, VALUE, HEADERS = range(3)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a pattern may match: keys, values, every header's key and value, the values of headers by name."""

    key: bool = True
    value: bool = True
    headers: bool = True
    header_names: frozenset[bytes] = frozenset()


EVERYWHERE = Places()


@dataclass(frozen=True, slots=True)
class Hits:
    """The records that match, in order, and the first match of each.

    All of one length: ``row`` in the table, ``place`` (KEY, VALUE or HEADERS), ``start`` and ``end`` in the field; of
    a header both are -1.
    """

    row: Int64Column
    place: Int64Column
    start: Int64Column
    end: Int64Column

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class _Regions:
    """Where the fields to search lie in the buffer, in its order: the headers of a record are one region."""

    starts: list[int]
    ends: list[int]
    rows: list[int]
    places: list[int]


def search(table: RecordTable, pattern: Pattern, places: Places = EVERYWHERE) -> Hits:
    """The records of a table with a match of the pattern in one of the places."""

    def match_of(regions: _Regions, region: int, _at: int) -> Span | None:
        row = regions.rows[region]
        if regions.places[region] == HEADERS:
            return (-1, -1) if _is_in_headers(table, row, pattern, places) else None
        if pattern.verifier is None and pattern.needle:  # the hit lies in the field, and that is all it takes
            return _at - regions.starts[region], _at - regions.starts[region] + len(pattern.needle)
        return pattern.match_in(bytes(table.buffer[regions.starts[region] : regions.ends[region]]))

    return _search(table, pattern.needle, pattern.folds_ascii, places, match_of)


def search_header_names(table: RecordTable, names: frozenset[bytes]) -> Hits:
    """The records of a table that have a header of one of these names, whatever its value."""

    def match_of(regions: _Regions, region: int, _at: int) -> Span | None:
        headers = table.headers(regions.rows[region]) or ()
        return (-1, -1) if any(key in names for key, _ in headers) else None

    needle = next(iter(names)) if len(names) == 1 else None
    return _search(table, needle, False, Places(key=False, value=False), match_of)


def _search(
    table: RecordTable,
    needle: bytes | None,
    folds_ascii: bool,
    places: Places,
    match_of: Callable[[_Regions, int, int], Span | None],
) -> Hits:
    found: list[tuple[int, int, int, int]] = []
    if len(table):
        if needle:
            _search_for_needle(table, needle, folds_ascii, places, match_of, found)
        else:
            _search_each_field(table, places, match_of, found)
    columns = np.asarray(found, np.int64).reshape(-1, 4)
    return Hits(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3])


def _search_for_needle(
    table: RecordTable,
    needle: bytes,
    folds_ascii: bool,
    places: Places,
    match_of: Callable[[_Regions, int, int], Span | None],
    found: list[tuple[int, int, int, int]],
) -> None:
    first = int(table.start[0])
    end = int(table.start[-1] + table.size_bytes[-1])
    haystack, shift = _haystack(table.buffer, first, end, folds_ascii)
    at = haystack.find(needle, first - shift, end - shift)
    if at < 0:
        return
    regions = _regions(table, places)
    starts, ends, rows = regions.starts, regions.ends, regions.rows
    region = 0
    # Every turn leaves a region behind, so that a needle that is everywhere costs no more than one step a field.
    while at >= 0:
        at += shift
        region = bisect_right(ends, at, region)
        if region == len(ends):
            return
        if at >= starts[region]:
            row = rows[region]
            span = match_of(regions, region, at) if at + len(needle) <= ends[region] else None
            region += 1
            if span is not None:
                found.append((row, regions.places[region - 1], *span))
                while region < len(rows) and rows[region] == row:
                    region += 1
            if region == len(ends):
                return
        at = haystack.find(needle, starts[region] - shift, end - shift)


def _search_each_field(
    table: RecordTable,
    places: Places,
    match_of: Callable[[_Regions, int, int], Span | None],
    found: list[tuple[int, int, int, int]],
) -> None:
    regions = _regions(table, places)
    last_row = -1
    for region, row in enumerate(regions.rows):
        if row == last_row:
            continue
        span = match_of(regions, region, regions.starts[region])
        if span is not None:
            found.append((row, regions.places[region], *span))
            last_row = row


def _haystack(buffer: memoryview, first: int, end: int, folds_ascii: bool) -> tuple[bytes, int]:
    """Bytes that hold the buffer from ``first`` to ``end``, and the place in the buffer where they start."""
    whole = buffer.obj
    if not isinstance(whole, bytes) or len(whole) != len(buffer):
        whole, shift = bytes(buffer[first:end]), first
    else:
        shift = 0
    if folds_ascii:
        whole, shift = (whole[first - shift : end - shift]).lower(), first
    return whole, shift


def _regions(table: RecordTable, places: Places) -> _Regions:
    """The regions of all records; a null field has none, an empty one an empty one."""
    starts, ends, kept, numbers = [], [], [], []
    if places.key:
        starts.append(table.key_start)
        ends.append(table.key_start + table.key_length)
        kept.append(table.key_length >= 0)
        numbers.append(KEY)
    if places.value:
        starts.append(table.value_start)
        ends.append(table.value_start + table.value_length)
        kept.append(table.value_length >= 0)
        numbers.append(VALUE)
    if places.headers or places.header_names:
        starts.append(table.headers_start)
        ends.append(table.start + table.size_bytes)
        kept.append(table.header_count > 0)
        numbers.append(HEADERS)
    mask = np.stack(kept, axis=1)
    rows = np.broadcast_to(np.arange(len(table))[:, None], mask.shape)
    place = np.broadcast_to(np.asarray(numbers)[None, :], mask.shape)
    return _Regions(
        np.stack(starts, axis=1)[mask].tolist(),
        np.stack(ends, axis=1)[mask].tolist(),
        rows[mask].tolist(),
        place[mask].tolist(),
    )


def _is_in_headers(table: RecordTable, row: int, pattern: Pattern, places: Places) -> bool:
    for key, value in table.headers(row) or ():
        if places.headers and pattern.match_in(key) is not None:
            return True
        is_wanted = value is not None and (places.headers or key in places.header_names)
        if is_wanted and value is not None and pattern.match_in(value) is not None:
            return True
    return False
