"""The CRC of a range of bytes.

Compiled modules have it from ``crc.pxd``; this file is never compiled.
"""

from __future__ import annotations

from format.kernel.memory import Bytes, Words

__all__ = ("LEGACY_TABLES", "crc_of")

#: Where checksums.crc_tables() has the tables of CRC-32, which follow those of CRC-32C.
LEGACY_TABLES = 16 * 256


def crc_of(source: Bytes, at: int, end: int, tables: Words, first: int) -> int:
    """The CRC of ``source[at:end]``; ``tables[first:]`` starts with the sixteen tables of its polynomial.

    Here a byte at a time, which needs the first table only; in C sixteen bytes at a time.
    """
    crc = 0xFFFFFFFF
    for index in range(at, end):
        crc = crc >> 8 ^ tables[first + (crc & 0xFF ^ source[index])]
    return crc ^ 0xFFFFFFFF
