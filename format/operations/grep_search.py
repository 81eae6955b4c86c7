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
    """Where the fields to search lie in the buffer, in its order: the headers of a record are one region.

    ``next_rows`` has, for each region, the first one of the next record.
    """

    starts: list[int]
    ends: list[int]
    rows: list[int]
    next_rows: list[int]
    places: list[int]


class _Search:
    """One search of one table: collects, as it goes, the region of each match and its start and end in the buffer."""

    def __init__(self, table: RecordTable, places: Places, match_of: Callable[[int, int, bytes], Span | None]) -> None:
        """``match_of`` gets a region's place, the record's row and a key's or value's bytes."""
        self.table = table
        self.places = places
        self.match_of = match_of
        self.regions: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def hits(self, found: _Regions | None) -> Hits:
        """The matches as columns."""
        if found is None:
            return Hits(*(np.empty(0, np.int64) for _ in range(4)))
        region = np.asarray(self.regions, np.int64)
        place = np.asarray(found.places, np.int64)[region]
        field_start = np.asarray(found.starts, np.int64)[region]
        is_header = place == HEADERS
        start = np.where(is_header, -1, np.asarray(self.starts, np.int64) - field_start)
        end = np.where(is_header, -1, np.asarray(self.ends, np.int64) - field_start)
        return Hits(np.asarray(found.rows, np.int64)[region], place, start, end)

    def by_needle(self, needle: bytes, folds_ascii: bool, is_enough: bool) -> Hits:
        """Where the needle is; ``is_enough`` says that a key or value that has it matches.

        Every turn leaves a region behind, so that a needle that is everywhere costs no more than one step a field.
        """
        table = self.table
        first, end = int(table.start[0]), int(table.start[-1] + table.size_bytes[-1])
        content, shift = _content(table.buffer, first, end)
        haystack = content.lower() if folds_ascii else content
        at = haystack.find(needle, first - shift, end - shift)
        if at < 0:
            return self.hits(None)
        found = _regions(table, self.places, shift)
        starts, ends, places, next_rows = found.starts, found.ends, found.places, found.next_rows
        count, length, last = len(ends), len(needle), end - shift
        region = 0
        while at >= 0:
            region = bisect_right(ends, at, region)
            if region == count:
                break
            start = starts[region]
            if at >= start:
                stop = at + length
                if stop > ends[region]:
                    region += 1
                elif is_enough and places[region] != HEADERS:
                    self._add(region, at, stop)
                    region = next_rows[region]
                else:
                    region = self._try(found, region, content)
                if region == count:
                    break
                start = starts[region]
            at = haystack.find(needle, start, last)
        return self.hits(found)

    def by_field(self) -> Hits:
        """Every field tried, up to the first of a record that matches."""
        table = self.table
        first, end = int(table.start[0]), int(table.start[-1] + table.size_bytes[-1])
        content, shift = _content(table.buffer, first, end)
        found = _regions(table, self.places, shift)
        region = 0
        while region < len(found.ends):
            region = self._try(found, region, content)
        return self.hits(found)

    def _try(self, found: _Regions, region: int, content: bytes) -> int:
        """Ask whether a region matches; the next one to ask about."""
        start = found.starts[region]
        span = self.match_of(found.places[region], found.rows[region], content[start : found.ends[region]])
        if span is None:
            return region + 1
        self._add(region, start + span[0], start + span[1])
        return found.next_rows[region]

    def _add(self, region: int, start: int, end: int) -> None:
        self.regions.append(region)
        self.starts.append(start)
        self.ends.append(end)


def search(table: RecordTable, pattern: Pattern, places: Places = EVERYWHERE) -> Hits:
    """The records of a table with a match of the pattern in one of the places."""

    def match_of(place: int, row: int, field: bytes) -> Span | None:
        if place == HEADERS:
            return (0, 0) if _is_in_headers(table, row, pattern, places) else None
        return pattern.match_in(field)

    searched = _Search(table, places, match_of)
    if not len(table):
        return searched.hits(None)
    if pattern.needle:
        return searched.by_needle(pattern.needle, pattern.folds_ascii, pattern.verifier is None)
    return searched.by_field()


def search_header_names(table: RecordTable, names: frozenset[bytes]) -> Hits:
    """The records of a table that have a header of one of these names, whatever its value."""

    def match_of(_place: int, row: int, _field: bytes) -> Span | None:
        return (0, 0) if any(key in names for key, _ in table.headers(row) or ()) else None

    searched = _Search(table, Places(key=False, value=False), match_of)
    if not len(table):
        return searched.hits(None)
    (name, *others) = names
    return searched.by_field() if others or not name else searched.by_needle(name, False, False)


def _content(buffer: memoryview, first: int, end: int) -> tuple[bytes, int]:
    """Bytes that hold the buffer from ``first`` to ``end``, and the place in the buffer where they start."""
    whole = buffer.obj
    is_most = 2 * (end - first) >= len(buffer)  # several tables may share a buffer: each must cost its own part only
    if is_most and isinstance(whole, bytes) and len(whole) == len(buffer):
        return whole, 0
    return bytes(buffer[first:end]), first


def _regions(table: RecordTable, places: Places, shift: int) -> _Regions:
    """The regions of all records; a null field has none, an empty one an empty one. Positions less ``shift``."""
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
    if not numbers:
        raise ValueError("there is no place to look in")
    mask = np.stack(kept, axis=1)
    rows = np.broadcast_to(np.arange(len(table))[:, None], mask.shape)[mask]
    place = np.broadcast_to(np.asarray(numbers)[None, :], mask.shape)[mask]
    return _Regions(
        (np.stack(starts, axis=1)[mask] - shift).tolist(),
        (np.stack(ends, axis=1)[mask] - shift).tolist(),
        rows.tolist(),
        np.searchsorted(rows, rows, side="right").tolist(),
        place.tolist(),
    )


def _is_in_headers(table: RecordTable, row: int, pattern: Pattern, places: Places) -> bool:
    for key, value in table.headers(row) or ():
        if places.headers and pattern.match_in(key) is not None:
            return True
        if value is None or not (places.headers or key in places.header_names):
            continue
        if pattern.match_in(value) is not None:
            return True
    return False
