"""Records as lines of CSV, made by Arrow column by column: byte for byte what a writer of cells makes of the rows.

Only what is plain, which is printable ASCII without a backslash, is treated here; any other key, value or header goes
through the column's writer of cells. Needs pyarrow, which only this module and ``arrow_columns`` import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from format.columns import RECORD, RowSchema
from format.limits import MIB
from format.rows.arrow_columns import block_batches
from format.rows.record_rows import RowBlock

CellWriter = Callable[[Any], str]

_BATCH_BYTES = 2 * MIB
_ODD, _QUOTED = 1, 2
_GUARDED = b"=+-@'"


def _byte_kinds() -> NDArray[np.uint8]:
    kinds = np.full(256, _ODD, np.uint8)
    kinds[0x20:0x7F] = 0
    kinds[ord("\\")] = _ODD
    kinds[[ord(","), ord('"')]] = _QUOTED
    return kinds


_KINDS = _byte_kinds()
_IS_GUARDED = np.isin(np.arange(256), list(_GUARDED))
_NOTHING, _COMMA, _LINE_END = (pa.scalar(each, pa.large_string()) for each in ("", ",", "\n"))
#: The text before a cell and after it, by whether the cell is quoted (2) and whether it would be a formula (1).
_BEFORE = pa.array(["", "'", '"', "\"'"], pa.large_string())
_AFTER = pa.array(["", "", '"', '"'], pa.large_string())


class CsvLines:
    """Writes records as lines. ``writers`` has a function for each column: it makes a cell of a value, not of null."""

    def __init__(self, writers: Sequence[CellWriter], schema: RowSchema = RECORD) -> None:
        self._writers = dict(zip(schema.names, writers, strict=True))
        self._schema = schema

    def lines(self, block: RowBlock) -> Iterator[memoryview]:
        """The lines of a block's records, each with its LF, in pieces of some MiB; null is an empty cell."""
        for batch in block_batches(block, self._schema.names, batch_bytes=_BATCH_BYTES):
            cells = [
                self._cells(column.name, column.type, batch.column(column.name)) for column in self._schema.columns
            ]
            cells[-1] = pc.binary_join_element_wise(cells[-1], _NOTHING, _LINE_END)
            yield _content(pc.binary_join_element_wise(*cells, _COMMA))

    def _cells(self, name: str, kind: str, array: pa.Array) -> pa.Array:
        write = self._writers[name]
        if kind == "bytes":
            cells = _bytes_cells(array, write)
        elif kind == "headers":
            cells = _header_cells(array, write)
        elif kind == "string":
            words = array.dictionary_encode()
            cells = _strings([write(each) for each in words.dictionary.to_pylist()]).take(words.indices)
        else:
            cells = array.cast(pa.large_string())
        return cells.fill_null(_NOTHING)


def _strings(cells: list[str]) -> pa.Array:
    return pa.array(cells, pa.large_string())


def _bytes_cells(array: pa.Array, write: CellWriter) -> pa.Array:
    """The cells of keys or values; null stays null."""
    count = len(array)
    if array.null_count == count:
        return pa.nulls(count, pa.large_string())
    array = array.cast(pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + count + 1]
    octets = np.frombuffer(array.buffers()[2], np.uint8)
    is_full = offsets[1:] > offsets[:-1]
    starts = offsets[:-1][is_full]
    kinds, is_guarded = np.zeros(count, np.uint8), np.zeros(count, bool)
    if len(starts):
        # What lies between the first bytes of two neighbours that are not empty is the first one's.
        kinds[is_full] = np.bitwise_or.reduceat(_KINDS[octets[: offsets[-1]]], starts)
        is_guarded[is_full] = _IS_GUARDED[octets[starts]]
    is_odd = (kinds & _ODD) != 0
    plain = pc.if_else(pa.array(is_odd), pa.scalar(None, pa.large_binary()), array) if is_odd.any() else array
    plain = pc.replace_substring(plain.cast(pa.large_string()), '"', '""')
    around = pa.array(2 * (~is_full | ((kinds & _QUOTED) != 0)) + is_guarded)
    cells = pc.binary_join_element_wise(_BEFORE.take(around), plain, _AFTER.take(around), _NOTHING)
    return _replaced(cells, is_odd, array, write)


def _header_cells(array: pa.Array, write: CellWriter) -> pa.Array:
    """The cells of headers; nearly all records have none, and null stays null."""
    lengths = array.value_lengths()
    cells = pa.array([write([])], pa.large_string()).take(pc.multiply(lengths, 0))
    has_some = pc.greater(lengths, 0).fill_null(False).to_numpy(zero_copy_only=False)
    return _replaced(cells, has_some, array, lambda headers: write([(each["key"], each["value"]) for each in headers]))


def _replaced(cells: pa.Array, which: NDArray[np.bool_], array: pa.Array, write: CellWriter) -> pa.Array:
    """The cells, with those of some rows made by the column's writer."""
    if not which.any():
        return cells
    mask = pa.array(which)
    return pc.replace_with_mask(cells, mask, _strings([write(each) for each in array.filter(mask).to_pylist()]))


def _content(lines: pa.Array) -> memoryview:
    """All characters of a string array, one value after the other."""
    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(lines.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
