"""Values of a plan as compressed bytes, which need less memory on the driver than the objects.

They travel to the tasks as these bytes, and are unpacked each time they are asked for. Long lists are in a temporary
file, so that the driver needs as much memory for the plan of a hundred thousand segments as for that of a thousand.
"""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, overload
from weakref import finalize

import lz4.block

from format.limits import MIB

ValueT = TypeVar("ValueT")

_MOST_BYTES_IN_MEMORY = MIB  # of one list
_IN_A_GROUP = 128


def packed(value: Any) -> bytes:
    """The value as compressed bytes."""
    content: bytes = lz4.block.compress(pickle.dumps(value, protocol=5))  # zlib takes as long as the pickling
    return content


def unpacked(content: bytes) -> Any:
    """The value of ``packed``. Only what this package packed may be given."""
    return pickle.loads(lz4.block.decompress(content))


class PackedList(Sequence[ValueT]):
    """A sequence of packed values."""

    def __init__(self, values: Iterable[ValueT] = ()) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MOST_BYTES_IN_MEMORY)  # noqa: SIM115
        finalize(self, self._file.close)
        self._ends = array("Q", [0])
        for value in values:
            self._ends.append(self._ends[-1] + self._file.write(packed(value)))

    def content(self, number: int) -> bytes:
        """The bytes of a value."""
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return self._file.read(end - start)

    @property
    def contents(self) -> list[bytes]:
        """The bytes of all values."""
        return [self.content(number) for number in range(len(self))]

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, number: int) -> ValueT: ...
    @overload
    def __getitem__(self, number: slice) -> list[ValueT]: ...
    def __getitem__(self, number: int | slice) -> ValueT | list[ValueT]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        value: ValueT = unpacked(self.content(range(len(self))[number]))
        return value


class PackedStream(Generic[ValueT]):
    """Many small values that are read in their order, packed in groups, which need fewer bytes than single values."""

    def __init__(self, values: Iterable[ValueT]) -> None:
        rest = iter(values)
        self._groups: PackedList[list[ValueT]] = PackedList(iter(lambda: list(islice(rest, _IN_A_GROUP)), []))

    def __iter__(self) -> Iterator[ValueT]:
        for group in self._groups:
            yield from group


class PackedByNumber(Mapping[int, ValueT]):
    """Packed values by number; ``contents`` are their bytes."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}

    def add(self, number: int, value: ValueT) -> None:
        """Keep a value."""
        self.contents[number] = packed(value)

    def __getitem__(self, number: int) -> ValueT:
        value: ValueT = unpacked(self.contents[number])
        return value

    def __iter__(self) -> Iterator[int]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)
