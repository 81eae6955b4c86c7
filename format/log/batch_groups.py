"""Groups of batches that are decompressed and indexed together: neighbours of one kind, a few MiB at the most."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from format.limits import MIB
from format.log.batch_table import BatchTable
from format.value_class import value_class

#: About how many bytes of records a group holds, if compression makes an eighth of them.
_GROUP_BYTES = 2 * MIB
_COMPRESSION = 8


class BatchKind(IntEnum):
    """The ways of reading what a batch holds."""

    V2 = 0  # a record batch
    MESSAGE = 1  # an uncompressed v0 or v1 message
    WRAPPER = 2  # a compressed one, with messages inside


@value_class
class BatchGroup:
    """Rows of a batch table, all of one kind, in order."""

    kind: BatchKind
    rows: NDArray[np.intp]


def batch_groups(table: BatchTable, which: NDArray[np.bool_]) -> list[BatchGroup]:
    """The rows that ``which`` picks, in groups."""
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
