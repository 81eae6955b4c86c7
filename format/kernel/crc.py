"""The CRC of a range of bytes.

Compiled modules use the C function in ``crc.pxd``; this file is never compiled.
"""

from __future__ import annotations

from format.kernel.memory import Bytes, Words

__all__ = ("LEGACY_TABLES", "crc_of")

#: The index in checksums.crc_tables() of the tables of CRC-32. The tables of CRC-32C come before them.
LEGACY_TABLES = 16 * 256


def crc_of(source: Bytes, at: int, end: int, tables: Words, first: int) -> int:
    """The CRC of ``source[at:end]``; ``tables[first:]`` starts with the sixteen tables of its polynomial.

    This function takes a byte at a time and uses the first table only; the C function takes 16 bytes at a time.
    """
    crc = 0xFFFFFFFF
    for index in range(at, end):
        crc = crc >> 8 ^ tables[first + (crc & 0xFF ^ source[index])]
    return crc ^ 0xFFFFFFFF
