"""The check of batches' CRCs: computed from the bytes, and compared with the stored ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32_of, crc32c_function, crc_tables
from format.kernel.checks import check_crcs
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.log.batch_table import BatchTable

#: Up to this size the kernel computes the CRC of a batch faster than a library can be called.
_SMALL_BATCH_BYTES = 1024
#: The first byte that the CRC covers; the last one is the end of the batch.
_CRC_START_V2 = layout.RECORD_BATCH.offset_of("attributes")
_CRC_START_LEGACY = layout.MESSAGE_V0.offset_of("magic")


def compute_crc_valid(table: BatchTable, buffer: memoryview, buffer_position: int) -> None:
    """Fill ``table.crc_valid``; all batches must be whole in ``buffer``, which starts at ``buffer_position``.

    The CRC of v2 is a CRC-32C from the attributes on (KIP-98), that of v0 and v1 a CRC-32 from the magic on.
    """
    valid = table.crc_valid
    large: slice | NDArray[np.intp] = slice(None)
    if KERNEL_IS_COMPILED:
        columns, view = memoryview(table.columns), memoryview(valid)
        if not check_crcs(buffer, buffer_position, columns, _SMALL_BATCH_BYTES, crc_tables(), view):
            return
        large = np.flatnonzero(table.size_bytes > _SMALL_BATCH_BYTES)
    starts = table.position[large] - buffer_position
    ends = (starts + table.size_bytes[large]).tolist()
    is_v2 = table.magic[large] == 2
    crc32c = crc32c_function()
    if is_v2.all():
        crcs = [crc32c(buffer[at:end]) for at, end in zip((starts + _CRC_START_V2).tolist(), ends, strict=True)]
    else:
        crcs = [
            crc32c(buffer[start + _CRC_START_V2 : end]) if v2 else crc32_of(buffer[start + _CRC_START_LEGACY : end])
            for start, end, v2 in zip(starts.tolist(), ends, is_v2.tolist(), strict=True)
        ]
    valid[large] = table.crc[large] == np.array(crcs, np.int64)
