"""Tables of batches for tests of the states, from the values of some columns."""

from __future__ import annotations

import numpy as np

from format.kernel.tables import BATCH_COLUMNS
from format.log.batch_table import BatchTable

SIZE = 100


def row(base_offset: int, producer_id: int, **fields: int) -> dict[str, int]:
    """A batch of one record; positions follow the offsets."""
    return {
        "position": base_offset * SIZE,
        "size_bytes": SIZE,
        "magic": 2,
        "base_offset": base_offset,
        "record_count": 1,
        "max_timestamp": base_offset,
        "producer_id": producer_id,
        **fields,
    }


def table_of(rows: list[dict[str, int]]) -> BatchTable:
    return BatchTable(np.array([[each.get(name, 0) for name in BATCH_COLUMNS] for each in rows], np.int64))
