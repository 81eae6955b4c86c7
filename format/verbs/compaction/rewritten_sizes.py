"""Computes the size of a v2 batch that is rebuilt from some of its records.

Offsets keep their deltas. Timestamps count from the first record that stays, or from the delete horizon, so that their
deltas, and with them the lengths of the records, change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.log.record_table import RecordTable

Int64Column = NDArray[np.int64]


def rebuilt_size(records: RecordTable, keep: NDArray[np.bool_], horizons: Int64Column, sizes: Int64Column) -> None:
    """Add to ``sizes`` (by batch row) the sizes of the kept records, and of the header with a batch's first one.

    ``horizons`` has the delete horizon that each batch has or gets, -1 for none.
    """
    rows = np.flatnonzero(keep)
    if not len(rows):
        return
    batches = records.batches
    batch = records.batch[rows]
    is_first = np.append(True, batch[1:] != batch[:-1])
    timestamps = records.timestamp[rows]
    first_of = np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))
    base = np.where(horizons[batch] >= 0, horizons[batch], timestamps[first_of])
    is_v2 = batches.magic[batch] == 2
    old = records.size_bytes[rows]
    body = old - _body_prefix(old)
    body += _varlong_size(timestamps - base) - _varlong_size(timestamps - batches.base_timestamp[batch])
    new = np.where(is_v2, body + _varlong_size(body), old)
    np.add.at(sizes, batch, new)
    starts = np.unique(batch[is_v2])
    begun = starts if not records.is_continued else starts[starts != int(batch[0])]
    sizes[begun] += layout.RECORD_BATCH.size_bytes


def _varlong_size(values: Int64Column) -> Int64Column:
    """The bytes of a zigzag varint of each value."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    size = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        size += zigzag >= np.uint64(1 << bits)
    return size


def _body_prefix(sizes: Int64Column) -> Int64Column:
    """The bytes of the length field of records whose sizes, with that field, are given."""
    prefix = np.ones(len(sizes), np.int64)
    for length in range(1, 6):
        # A body of b bytes has a length of n bytes where zigzag(b) < 2**(7n).
        prefix = np.where(sizes - length >= 1 << (7 * length - 1), length + 1, prefix)
    return prefix
