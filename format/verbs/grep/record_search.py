"""The search in a record table: required bytes in all records at once, then the pattern in the fields of candidates.

``bytes.find`` runs over megabytes of records and ignores field boundaries. The records that its hits touch, or all
records if there are too many hits to be selective, are then matched field by field; only that decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from format.columns import DECODED_COLUMNS
from format.kernel.records import index_record_headers
from format.kernel.search import find_in_fields
from format.log.record_table import RecordTable
from format.verbs.grep.pattern import Needle, Pattern, Requirement

Int64Column = NDArray[np.int64]

KEY, VALUE, HEADERS = range(3)
#: Of a key and a value the decoded text among the decoded columns.
_KEY_TEXT, _VALUE_TEXT = (
    number for number, column in enumerate(DECODED_COLUMNS) if column.name in ("key_decoded", "value_decoded")
)
#: A scan for a needle stops at more than one hit per so many records: matching every record is then cheaper.
_RECORDS_PER_HIT = 4
_HITS_TO_JUDGE_BY = 16
_WINDOW_BYTES = 64 * 1024
_MOST_HEADERS = 64 * 1024  # decoded at once, unless a single record has more


class Places(msgspec.Struct, frozen=True):
    """Where a pattern may match: keys, values, every header's key and value, the values of headers by name."""

    key: bool = True
    value: bool = True
    headers: bool = True
    header_names: frozenset[bytes] = frozenset()


EVERYWHERE = Places()


class Hits(msgspec.Struct, frozen=True):
    """The records that match, in order, and the first match of each.

    All columns have one length: ``row`` in the table, ``place`` (KEY, VALUE or HEADERS), ``start`` and ``end`` in the
    field, both -1 for a header, and for a match in decoded text.
    """

    row: Int64Column
    place: Int64Column
    start: Int64Column
    end: Int64Column

    def __len__(self) -> int:
        return len(self.row)


_NO_HITS = Hits(*(np.empty(0, np.int64) for _ in range(4)))


class _Fields(msgspec.Struct, frozen=True):
    """Fields and their rows, the fields of one row in sequence; starts and ends are positions in the buffer."""

    row: NDArray[np.intp]
    start: Int64Column
    end: Int64Column


class _Content:
    """The bytes of all records of a table, unchanged and translated; positions refer to the table's buffer."""

    def __init__(self, table: RecordTable) -> None:
        first, end = int(table.start[0]), int(table.start[-1] + table.size_bytes[-1])
        whole = table.buffer.obj
        # Tables may share a buffer: each must only pay for its own part.
        is_most = 2 * (end - first) >= len(table.buffer)
        if is_most and isinstance(whole, bytes) and len(whole) == len(table.buffer):
            self._plain, self._shift = whole, 0
        else:
            self._plain, self._shift = bytes(table.buffer[first:end]), first
        self._first, self._end = first - self._shift, end - self._shift
        self._translated: dict[bytes, bytes] = {}

    def _bytes(self, table: bytes | None) -> bytes:
        if table is None:
            return self._plain
        if table not in self._translated:
            self._translated[table] = self._plain.translate(table)
        return self._translated[table]

    def positions(self, needle: Needle, most: int) -> Int64Column | None:
        """The positions of the needle; None as soon as there seem to be more than ``most``."""
        text, length = needle.text, self._end - self._first
        found: list[int] = []
        for first in range(self._first, self._end, _WINDOW_BYTES):
            end = min(first + _WINDOW_BYTES, self._end)
            content, start = self._plain, first
            stop = min(end + len(text) - 1, self._end)  # a needle that begins in this window may end in the next one
            if needle.table is not None:
                content, start, stop = content[start:stop].translate(needle.table), 0, stop - start
            most_here = most * (end - self._first) // length + _HITS_TO_JUDGE_BY
            at = content.find(text, start, stop)
            while at >= 0:
                found.append(first - start + at)
                if len(found) > most_here:
                    return None
                at = content.find(text, at + len(text), stop)
        return np.asarray(found, np.int64) + self._shift

    def matches(self, pattern: Pattern, fields: _Fields) -> tuple[NDArray[np.intp], Int64Column, Int64Column]:
        """The fields that match, and where in them the first match starts and ends."""
        spans = np.stack((fields.start - self._shift, fields.end - self._shift), axis=1)
        if pattern.verifier is not None:
            parts = map(self._plain.__getitem__, map(slice, *spans.T.tolist()))
            ends = np.fromiter(_ends(map(pattern.verifier.search, parts)), np.int64, 2 * len(spans))
            number = np.flatnonzero(ends[::2] >= 0)
            return number, ends[::2][number], ends[1::2][number]
        needle = pattern.needle or Needle(b"")
        at = np.empty(len(spans), np.int64)
        content, text = memoryview(self._bytes(needle.table)), memoryview(needle.text)
        find_in_fields(content, memoryview(spans), text, memoryview(at))
        number = np.flatnonzero(at >= 0)
        start = at[number]
        return number, start, start + len(needle.text)


def _ends(matches: Iterable[re.Match[bytes] | None]) -> Iterator[int]:
    """The start and end of each match, -1 twice for none; generated one by one to save memory."""
    for match in matches:
        if match is None:
            yield -1
            yield -1
        else:
            yield match.start()
            yield match.end()


def search(table: RecordTable, pattern: Pattern, places: Places = EVERYWHERE) -> Hits:
    """The records of a table with a match of the pattern in one of the places."""
    if not (places.key or places.value or places.headers or places.header_names):
        raise ValueError("no place to search is given")
    if not len(table):
        return _NO_HITS
    content = _Content(table)
    if pattern.any_of:
        return _first_of_each([_search(table, content, each, places) for each in pattern.any_of])
    return _search(table, content, pattern, places)


def _search(table: RecordTable, content: _Content, pattern: Pattern, places: Places) -> Hits:
    """The records with a match of a pattern that does not consist of others."""
    rows = _candidates(table, content, pattern.required)
    found: list[Hits] = []

    def look_at(place: int, start: Int64Column, length: Int64Column) -> None:
        nonlocal rows
        kept = rows[length[rows] >= 0]
        fields = _Fields(kept, start[kept], start[kept] + length[kept])
        number, first, end = content.matches(pattern, fields)
        found.append(_hits_at(kept[number], place, first, end))
        rows = _without(rows, kept[number])

    if places.key:
        look_at(KEY, table.key_start, table.key_length)
    if places.value and len(rows):
        look_at(VALUE, table.value_start, table.value_length)
    if (places.headers or places.header_names) and len(rows):
        for fields in _header_fields(table, rows, places):
            number, _, _ = content.matches(pattern, fields)
            found.append(_hits_at(np.unique(fields.row[number]), HEADERS))
    return _in_order(found)


def with_decoded(hits: Hits, decoded: NDArray[np.object_], pattern: Pattern, places: Places) -> Hits:
    """The hits, and those of other records in the text of decoded keys and values (``RecordTable.decoded``)."""
    found = [hits]
    left = _without(np.arange(len(decoded)), hits.row)
    for place, column, is_searched in ((KEY, _KEY_TEXT, places.key), (VALUE, _VALUE_TEXT, places.value)):
        texts = decoded[left, column].tolist() if is_searched else ()
        matching = [text is not None and pattern.is_in(text.encode()) for text in texts]
        rows = left[np.flatnonzero(matching)]
        found.append(_hits_at(rows, place))
        left = _without(left, rows)
    return _in_order(found)


def search_header_names(table: RecordTable, names: frozenset[bytes]) -> Hits:
    """The records of a table that have a header of one of these names, whatever its value."""
    if not len(table):
        return _NO_HITS
    required = (tuple(Needle(name) for name in names),) if all(names) else ()
    rows = _candidates(table, _Content(table), required)
    found = []
    for headers in _headers(table, rows):
        found.append(_hits_at(np.unique(headers.row[_have_names(table, headers, names)]), HEADERS))
    return _in_order(found)


def _hits_at(
    rows: NDArray[np.intp], place: int, start: Int64Column | None = None, end: Int64Column | None = None
) -> Hits:
    """Matches in one place of each record; without a start and an end in the field."""
    nowhere = np.full(len(rows), -1, np.int64)
    return Hits(rows, np.full(len(rows), place), nowhere if start is None else start, nowhere if end is None else end)


def _in_order(found: list[Hits]) -> Hits:
    """The matches of all places, in the order of the records."""
    columns = [np.concatenate(each) for each in zip(*map(astuple, [_NO_HITS, *found]), strict=True)]
    order = np.argsort(columns[0])
    return Hits(*(column[order] for column in columns))


def _first_of_each(several: list[Hits]) -> Hits:
    """The records that one of several patterns found, each with the match of the first of them."""
    columns = [np.concatenate(each) for each in zip(*map(astuple, several), strict=True)]
    first = np.unique(columns[0], return_index=True)[1]
    return Hits(*(column[first] for column in columns))


def _without(rows: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows that are not in ``others``, a subset of them; both are in order."""
    if not len(others):
        return rows
    return np.delete(rows, np.searchsorted(rows, others))


# -- records to look at ------------------------------------------------------------------------------------------


def _candidates(table: RecordTable, content: _Content, required: tuple[Requirement, ...]) -> NDArray[np.intp]:
    """The rows with a field that may match: by the first requirement that is selective, else all rows."""
    for needles in required:
        rows = _rows_holding(table, content, needles)
        if rows is not None:
            return rows
    return np.arange(len(table))


def _rows_holding(table: RecordTable, content: _Content, needles: Requirement) -> NDArray[np.intp] | None:
    """The rows that contain one of the needles, inside a field or not; None if there are very many hits.

    A needle inside a field is a hit or overlaps one, so a hit touches its row.
    """
    count = len(table)
    touched = np.zeros(count + 1, np.int64)  # for each row, how many more hits touch it than the row before
    for needle in needles:
        first = content.positions(needle, count // _RECORDS_PER_HIT)
        if first is None:
            return None
        last = first + (len(needle.text) - 1)
        np.add.at(touched, np.searchsorted(table.start, first, "right") - 1, 1)
        np.add.at(touched, np.searchsorted(table.start, last, "right"), -1)
    return np.flatnonzero(np.cumsum(touched[:-1]) > 0)


# -- headers -----------------------------------------------------------------------------------------------------


class _Headers(msgspec.Struct, frozen=True):
    """Headers and their rows; ``spans`` comes from index_headers, one row per header."""

    row: NDArray[np.intp]
    spans: Int64Column


def _headers(table: RecordTable, rows: NDArray[np.intp]) -> Iterator[_Headers]:
    """The headers of the rows, in order; the headers of one row always come together."""
    rows = rows[table.header_count[rows] > 0]
    last_number = np.cumsum(table.header_count[rows])
    first = done = 0
    while first < len(rows):
        stop = max(first + 1, int(np.searchsorted(last_number, done + _MOST_HEADERS, "right")))
        part = rows[first:stop]
        spans = np.empty((int(last_number[stop - 1]) - done, 4), np.int64)
        index_record_headers(table.buffer, memoryview(np.ascontiguousarray(table.columns[part])), memoryview(spans))
        yield _Headers(np.repeat(part, table.header_count[part]), spans)
        first, done = stop, int(last_number[stop - 1])


def _header_fields(table: RecordTable, rows: NDArray[np.intp], places: Places) -> Iterator[_Fields]:
    """The header fields to search: names and values, or only the values of the headers in ``places``."""
    for headers in _headers(table, rows):
        name_start, name_length, value_start, value_length = headers.spans.T
        has_value = value_length >= 0
        if not places.headers:
            has_value &= _have_names(table, headers, places.header_names)
        row, start, end = headers.row[has_value], value_start[has_value], (value_start + value_length)[has_value]
        if places.headers:
            row = np.concatenate((headers.row, row))
            start = np.concatenate((name_start, start))
            end = np.concatenate((name_start + name_length, end))
        yield _Fields(row, start, end)


def _have_names(table: RecordTable, headers: _Headers, names: frozenset[bytes]) -> NDArray[np.bool_]:
    """For each header, whether it has one of the names."""
    start, length = headers.spans[:, 0], headers.spans[:, 1]
    found = np.zeros(len(start), bool)
    for name in names:
        number = np.flatnonzero(length == len(name))
        if len(number) and name:
            windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(table.buffer, np.uint8), len(name))
            number = number[(windows[start[number]] == np.frombuffer(name, np.uint8)).all(axis=1)]
        found[number] = True
    return found
