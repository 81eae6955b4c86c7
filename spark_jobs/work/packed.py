"""Values of a plan as compressed bytes, which need less memory on the driver than the objects.

They travel to the tasks as these bytes, and are unpacked each time they are asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import lz4.block

ValueT = TypeVar("ValueT")


def packed(value: Any) -> bytes:
    """The value as compressed bytes."""
    content: bytes = lz4.block.compress(pickle.dumps(value, protocol=5))  # zlib takes as long as the pickling
    return content


def unpacked(content: bytes) -> Any:
    """The value of ``packed``. Only what this package packed may be given."""
    return pickle.loads(lz4.block.decompress(content))


class PackedList(Sequence[ValueT]):
    """A sequence of packed values; ``contents`` are their bytes."""

    def __init__(self, values: Iterable[ValueT] = ()) -> None:
        self.contents = [packed(value) for value in values]

    def __len__(self) -> int:
        return len(self.contents)

    @overload
    def __getitem__(self, number: int) -> ValueT: ...
    @overload
    def __getitem__(self, number: slice) -> list[ValueT]: ...
    def __getitem__(self, number: int | slice) -> ValueT | list[ValueT]:
        if isinstance(number, slice):
            return [unpacked(each) for each in self.contents[number]]
        value: ValueT = unpacked(self.contents[number])
        return value


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
