"""A digest of the values in Arrow columns, in any division into batches: to compare what was written with what is read.

Equal digests mean equal values, nulls, order and number of rows in every column.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class ColumnsDigest:
    """The digest, fed batch by batch; two digests are equal if their columns have the same values."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """The next rows. Raises ValueError for a column of a type that no row schema has."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self._feed(name, column)
        self.rows += batch.num_rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnsDigest) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> dict[str, bytes]:
        return {name: digest.digest() for name, digest in self._digests.items()}

    def _take(self, name: str, content: Any) -> None:
        digest = self._digests.get(name)
        if digest is None:
            digest = self._digests[name] = blake2b()
        digest.update(content)

    def _feed(self, name: str, array: pa.Array) -> None:
        kind = array.type
        if pa.types.is_list(kind):
            self._take(name, _numbers(pc.list_value_length(array), -1))
            values = array.flatten()
            for number, each in enumerate(values.type):
                self._feed(f"{name}.{each.name}", values.field(number))
        elif pa.types.is_binary(kind) or pa.types.is_string(kind):
            self._take(f"{name} length", _numbers(pc.binary_length(array), -1))
            self._take(name, _content(array))
        elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
            self._take(f"{name} valid", np.ascontiguousarray(array.is_valid().to_numpy(zero_copy_only=False)))
            self._take(name, _numbers(array, 0))
        else:
            raise ValueError(f"column {name} has the type {kind}")


def _numbers(array: pa.Array, null: int) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array.cast(pa.int64()).fill_null(null).to_numpy(zero_copy_only=False))


def _content(array: pa.Array) -> memoryview:
    """The bytes of all values in a row; Arrow keeps none for a null."""
    _, offsets, content = array.buffers()
    if content is None or not len(array):
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(content)[int(ends[0]) : int(ends[-1])]
