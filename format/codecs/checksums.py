"""Checksums: CRC-32C for v2 batches and producer snapshots, CRC-32 for v0 and v1 messages.

Buffers are read in place; the libraries release the GIL for large ones.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Protocol, cast

_CRC32C_POLYNOMIAL = 0x82F63B78  # with reversed bits, as in the tables
_CRC32_POLYNOMIAL = 0xEDB88320
_TABLES = 16  # the kernel takes 16 bytes in a step


class Crc32c(Protocol):
    """The type of ``crc32c_of``."""

    def __call__(self, buffer: bytes | bytearray | memoryview, before: int = 0, /) -> int: ...


def crc32c_of(buffer: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The CRC-32C (Castagnoli) of the bytes, unsigned; ``before`` is the CRC of the bytes before them."""
    return crc32c_function()(buffer, before)


def crc32_of(buffer: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The CRC-32 (of zip and gzip) of the bytes, unsigned; ``before`` is the CRC of the bytes before them."""
    return zlib.crc32(buffer, before)


@cache
def crc32c_function() -> Crc32c:
    """The function that ``crc32c_of`` calls, for loops over many small pieces.

    The library's extension module is loaded without its package: to import the package takes a tenth of a short run,
    since that reads installation metadata.
    """
    package = find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return cast("Crc32c", module.crc32c)
    from crc32c import crc32c

    return cast("Crc32c", crc32c)


@cache
def crc_tables() -> memoryview:
    """The kernel's tables for CRCs, uint32 in one dimension: 16 tables of 256 for CRC-32C, then 16 for CRC-32.

    Table ``n`` has the effect of a byte on the CRC when ``n`` more bytes follow it.
    """
    import numpy as np

    tables = np.empty((2, _TABLES, 256), np.uint32)
    for table, polynomial in zip(tables, (_CRC32C_POLYNOMIAL, _CRC32_POLYNOMIAL), strict=True):
        crc = np.arange(256, dtype=np.uint32)
        for _ in range(8):
            crc = crc >> np.uint32(1) ^ (crc & np.uint32(1)) * np.uint32(polynomial)
        table[0] = crc
        for number in range(1, _TABLES):
            crc = crc >> np.uint32(8) ^ table[0][crc & np.uint32(0xFF)]
            table[number] = crc
    return memoryview(tables.reshape(-1))
