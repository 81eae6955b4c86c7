"""Groups of batches that are decompressed and indexed together: adjacent batches of one kind, up to a few MiB."""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.limits import MIB
from format.log.batch_table import BatchTable

#: The approximate bytes of records in a group, if compression makes them eight times smaller.
_GROUP_BYTES = 2 * MIB
_COMPRESSION = 8


class BatchKind(IntEnum):
    """The kinds of batches, whose records are read in different ways."""

    V2 = 0  # a record batch
    MESSAGE = 1  # an uncompressed v0 or v1 message
    WRAPPER = 2  # a compressed v0 or v1 message, with inner messages


class BatchGroup(msgspec.Struct, frozen=True):
    """Rows of a batch table, in order; all batches are of one kind."""

    kind: BatchKind
    rows: NDArray[np.intp]


def batch_groups(table: BatchTable, which: NDArray[np.bool_]) -> list[BatchGroup]:
    """The rows for which ``which`` (bool) is true, in groups."""
    rows = np.flatnonzero(which)
    if not len(rows):
        return []
    picked = table if len(rows) == len(table) else table.rows(rows)
    kinds = np.where(picked.magic == 2, BatchKind.V2, np.where(picked.is_wrapper, BatchKind.WRAPPER, BatchKind.MESSAGE))
    weights = picked.size_bytes * np.where(picked.codec > 0, _COMPRESSION, 1)
    numbers = (np.cumsum(weights) - weights) // _GROUP_BYTES
    edges = np.flatnonzero((kinds[1:] != kinds[:-1]) | (numbers[1:] != numbers[:-1])) + 1
    starts = [0, *edges.tolist()]
    return [
        BatchGroup(BatchKind(int(kinds[start])), rows[start:stop])
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True)
    ]
