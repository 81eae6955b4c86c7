"""What a filter of a query can select: columns, places of partitions, and ranges of offsets and times.

A filter is an expression of Arrow, which decides what it can select under a guarantee: the simplifier that skips files
and row groups of data sets says so only where it is proven. Here the guarantees are of partitions and of ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce
from operator import and_
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from format.timestamps import EPOCH

#: Ranges that are closer to each other than this are read as one.
_LEAST_GAP = 1000
#: Of more numbers in a filter, those in the middle are not looked at one by one.
_MOST_NUMBERS = 256
_NUMBER = re.compile(r"-?\d+")
_TIME = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})")
_INT64 = (-(2**63), 2**63 - 1)
#: The option of Arrow's ``is_in`` for null, and its value for the answer null.
_NULL_ANSWER, _NULL = "null_matching_behavior", 2

Guarantee = Mapping[str, Any]


class ValueRange(msgspec.Struct, frozen=True):
    """Values from ``first`` to ``last``, both included."""

    first: int
    last: int


EVERY_VALUE = ValueRange(*_INT64)


class Narrowing:
    """What rows of a table with this schema a filter can select; a filter of None selects all."""

    def __init__(self, schema: pa.Schema, condition: pc.Expression | None) -> None:
        self._schema = schema
        self._condition = condition
        self._text = "" if condition is None else str(condition)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns of which the filter may read a value: those whose names are in its text."""
        words = set(re.findall(r"\w+", self._text))
        return frozenset(name for name in self._schema.names if name in words)

    def allowed(self, guarantees: Sequence[Guarantee]) -> list[int]:
        """The numbers of the guarantees under which the filter can select a row. A guarantee is a value by column."""
        return self._possible([reduce(and_, map(self._is, each, each.values())) for each in guarantees])

    def ranges(self, column: str) -> list[ValueRange]:
        """Ranges of a column of numbers or times (ms) outside which the filter selects no row; none for no row."""
        if column not in self.columns:
            return [EVERY_VALUE]
        kind = self._schema.field(column).type
        edges = sorted(_times_in(self._text) if pa.types.is_timestamp(kind) else _numbers_in(self._text))
        edges = [each for each in edges if _INT64[0] < each < _INT64[1]]
        if len(edges) > _MOST_NUMBERS:
            edges = [*edges[: _MOST_NUMBERS // 2], *edges[-_MOST_NUMBERS // 2 :]]
        parts: list[ValueRange] = []
        before = _INT64[0]
        for edge in edges:  # the filter may turn at an edge
            parts += [ValueRange(before, edge - 1)] if before < edge else []
            parts.append(ValueRange(edge, edge))
            before = edge + 1
        parts.append(ValueRange(before, _INT64[1]))
        field = pc.field(column)

        def within(part: ValueRange) -> pc.Expression:
            return (field >= pa.scalar(part.first, kind)) & (field <= pa.scalar(part.last, kind))

        possible = self._possible([field.is_null(), *map(within, parts)])
        if 0 in possible:
            return [EVERY_VALUE]
        return _joined(parts[number - 1] for number in possible)

    def hull(self, columns: Iterable[str]) -> ValueRange | None:
        """The values that all of these columns can have together; None for none."""
        first, last = _INT64
        for column in columns:
            found = self.ranges(column)
            if not found:
                return None
            first, last = max(first, found[0].first), min(last, found[-1].last)
        return ValueRange(first, last) if first <= last else None

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that the filter selects."""
        return batch if self._condition is None else batch.filter(self._exact)

    @cached_property
    def _exact(self) -> pc.Expression:
        has_not_in = "invert(" in self._text and "is_in(" in self._text
        return _with_unknown_nulls(self._condition) if has_not_in else self._condition

    def _is(self, column: str, value: Any) -> pc.Expression:
        field = pc.field(column)
        return field.is_null() if value is None else field == pa.scalar(value, self._schema.field(column).type)

    def _possible(self, guarantees: Sequence[pc.Expression]) -> list[int]:
        """The numbers of the guarantees that do not contradict the filter, in order."""
        if self._condition is None:
            return list(range(len(guarantees)))
        known = ds.FileSystemDataset.from_paths(
            [str(number) for number in range(len(guarantees))],  # never opened
            schema=self._schema,
            format=ds.IpcFileFormat(),
            filesystem=fs.LocalFileSystem(),
            partitions=list(guarantees),
        )
        return sorted(int(each.path) for each in known.get_fragments(filter=self._condition))


def _with_unknown_nulls(condition: pc.Expression) -> pc.Expression:
    """The filter with SQL's answer to whether null is IN a list: null, so that NOT IN does not select it.

    DataFusion passes on lists of more than three values as Arrow's ``is_in``, which says false of null. How it answers
    is an option that pyarrow does not have, but the filter as it is pickled does.
    """
    rebuild, (pickled,) = condition.__reduce__()
    with pa.ipc.open_file(pickled) as reader:
        batch = reader.get_batch(0)
    arrays = []
    for array in batch.columns:
        names = [each.name for each in array.type] if pa.types.is_struct(array.type) else []
        if "value_set" in names:  # the options of is_in
            values = dict(zip(names, array.flatten(), strict=True))
            values[_NULL_ANSWER] = pa.array([_NULL] * len(array), values[_NULL_ANSWER].type)
            array = pa.StructArray.from_arrays(list(values.values()), fields=list(array.type))
        arrays.append(array)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=batch.schema))
    return rebuild(sink.getvalue())


def _numbers_in(text: str) -> set[int]:
    return {int(each) for each in _NUMBER.findall(text)}


def _times_in(text: str) -> set[int]:
    found = _numbers_in(text)  # of times that no calendar has
    for match in _TIME.finditer(text):
        *parts, ms = map(int, match.groups())
        try:
            since = datetime(*parts, tzinfo=UTC) - EPOCH  # type: ignore[arg-type, misc]
        except ValueError:
            continue
        found.add(since // timedelta(milliseconds=1) + ms)
    return found


def _joined(parts: Iterable[ValueRange]) -> list[ValueRange]:
    """The parts in order, those as one that are close to each other."""
    joined: list[ValueRange] = []
    for part in parts:
        if joined and part.first - joined[-1].last <= _LEAST_GAP:
            joined[-1] = ValueRange(joined[-1].first, part.last)
        else:
            joined.append(part)
    return joined
