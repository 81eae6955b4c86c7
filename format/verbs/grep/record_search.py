"""The search in a record table: required bytes in all records at once, then the pattern in the fields of candidates.

``bytes.find`` runs over megabytes of records and ignores field boundaries. The records that its hits touch, or all
records if there are too many hits to be selective, are then matched field by field; only that decides.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.columns import DECODED_COLUMNS
from format.kernel.records import index_record_headers
from format.kernel.search import find_in_fields
from format.log.record_table import RecordTable
from format.verbs.grep.pattern import Needle, Pattern, Requirement

Int64Column = NDArray[np.int64]

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


_NO_ROWS = np.empty(0, np.intp)


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

    def matches(self, pattern: Pattern, fields: _Fields) -> NDArray[np.intp]:
        """The numbers of the fields that match."""
        spans = np.stack((fields.start - self._shift, fields.end - self._shift), axis=1)
        if pattern.verifier is not None:
            parts = map(self._plain.__getitem__, map(slice, *spans.T.tolist()))
            found = (match is not None for match in map(pattern.verifier.search, parts))
            return np.flatnonzero(np.fromiter(found, np.bool_, len(spans)))
        needle = pattern.needle or Needle(b"")
        at = np.empty(len(spans), np.int64)
        content, text = memoryview(self._bytes(needle.table)), memoryview(needle.text)
        find_in_fields(content, memoryview(spans), text, memoryview(at))
        return np.flatnonzero(at >= 0)


def search(table: RecordTable, pattern: Pattern, places: Places = EVERYWHERE) -> NDArray[np.intp]:
    """The rows of a table with a match of the pattern in one of the places, in order."""
    if not (places.key or places.value or places.headers or places.header_names):
        raise ValueError("no place to search is given")
    if not len(table):
        return _NO_ROWS
    content = _Content(table)
    found = [_search(table, content, each, places) for each in pattern.any_of or (pattern,)]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _search(table: RecordTable, content: _Content, pattern: Pattern, places: Places) -> NDArray[np.intp]:
    """The rows with a match of a pattern that does not consist of others."""
    rows = _candidates(table, content, pattern.required)
    found = [_NO_ROWS]

    def look_at(start: Int64Column, length: Int64Column) -> None:
        nonlocal rows
        kept = rows[length[rows] >= 0]
        matching = kept[content.matches(pattern, _Fields(kept, start[kept], start[kept] + length[kept]))]
        found.append(matching)
        rows = _without(rows, matching)

    if places.key:
        look_at(table.key_start, table.key_length)
    if places.value and len(rows):
        look_at(table.value_start, table.value_length)
    if (places.headers or places.header_names) and len(rows):
        for fields in _header_fields(table, rows, places):
            found.append(np.unique(fields.row[content.matches(pattern, fields)]))
    return np.sort(np.concatenate(found))


def with_decoded(
    rows: NDArray[np.intp], decoded: NDArray[np.object_], pattern: Pattern, places: Places
) -> NDArray[np.intp]:
    """The rows, and those that match in the text of decoded keys and values (``RecordTable.decoded``), in order."""
    found = [rows]
    left = _without(np.arange(len(decoded)), rows)
    for column, is_searched in ((_KEY_TEXT, places.key), (_VALUE_TEXT, places.value)):
        texts = decoded[left, column].tolist() if is_searched else ()
        is_match = [text is not None and pattern.is_in(text.encode()) for text in texts]
        found.append(left[np.flatnonzero(is_match)])
        left = _without(left, found[-1])
    return np.sort(np.concatenate(found))


def search_header_names(table: RecordTable, names: frozenset[bytes]) -> NDArray[np.intp]:
    """The rows of a table that have a header of one of these names, whatever its value, in order."""
    if not len(table):
        return _NO_ROWS
    required = (tuple(Needle(name) for name in names),) if all(names) else ()
    rows = _candidates(table, _Content(table), required)
    found = [np.unique(each.row[_have_names(table, each, names)]) for each in _headers(table, rows)]
    return np.concatenate([_NO_ROWS, *found])


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
