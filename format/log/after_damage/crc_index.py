"""CRCs of parts of a file, in a time that does not depend on the length of the part.

CRCs are linear: the CRC of a part follows from those of the file up to its start and up to its end. So the file is read
once, and the CRC up to every 4 KiB is kept. A header with a wrong length of many megabytes costs only a few KiB.
"""

from __future__ import annotations

from array import array
from functools import cache

import numpy as np

from format.codecs.checksums import crc32_of, crc32c_of, crc_tables
from format.io.source import Source

#: Parts of at most this many bytes are read directly.
DIRECT_BYTES = 16 * 1024
_STEP_BYTES = 4 * 1024
_READ_BYTES = 1024 * 1024
_BYTE_VALUES = 256
_LARGE_HOLE_BYTES = 64 * 1024 * 1024


class CrcIndex:
    """CRCs of parts of one file: CRC-32C for ``is_v2``, else CRC-32."""

    def __init__(self, source: Source, end: int, *, is_v2: bool) -> None:
        self._source = source
        self._end = end
        self._is_v2 = is_v2
        self._crc_of = crc32c_of if is_v2 else crc32_of
        self._start: int | None = None
        self._kept = array("I")  # the CRC from _start up to each multiple of _STEP_BYTES

    def crc(self, start: int, stop: int) -> int | None:
        """The CRC of the bytes from ``start`` to ``stop``; None if the file is shorter."""
        if stop - start <= DIRECT_BYTES:
            content = self._source.read_at(start, stop - start)
            return self._crc_of(content, 0) if len(content) == stop - start else None
        if self._start is None or self._is_after_hole(self._start, start):
            self._start, self._kept = start, array("I")
        if start < self._start or stop > self._end:
            return self._crc_by_reading(start, stop)
        before, up_to = self._up_to(start), self._up_to(stop)
        return None if before is None or up_to is None else up_to ^ _with_zeros(before, stop - start, self._is_v2)

    def _is_after_hole(self, index_start: int, start: int) -> bool:
        """Whether a hole of more than _LARGE_HOLE_BYTES is between the end of the index and ``start``."""
        position = index_start + len(self._kept) * _STEP_BYTES
        while start - position > _LARGE_HOLE_BYTES:
            data_start, data_end = self._source.data_range(position)
            if min(data_start, start) - position > _LARGE_HOLE_BYTES:
                return True
            position = data_end
        return False

    def _crc_by_reading(self, start: int, stop: int) -> int | None:
        crc = 0
        while start < stop:
            content = self._source.read_at(start, min(_READ_BYTES, stop - start))
            if not content:
                return None
            crc = self._crc_of(content, crc)
            start += len(content)
        return crc

    def _up_to(self, position: int) -> int | None:
        """The CRC from the start of the index up to a position; None if the file is shorter."""
        start = self._start or 0
        step = (position - start) // _STEP_BYTES
        while len(self._kept) <= step:
            self._keep_more(start + len(self._kept) * _STEP_BYTES)
        rest = start + step * _STEP_BYTES
        content = self._source.read_at(rest, position - rest)
        return self._crc_of(content, self._kept[step]) if len(content) == position - rest else None

    def _keep_more(self, position: int) -> None:
        """Read on, and keep the CRCs up to ``position`` and the steps after it."""
        if not self._kept:
            self._kept.append(0)
            return
        first = position - _STEP_BYTES
        content = memoryview(self._source.read_at(first, _READ_BYTES))
        crc = self._kept[-1]
        for at in range(0, max(len(content), 1), _STEP_BYTES):
            crc = self._crc_of(content[at : at + _STEP_BYTES], crc)
            self._kept.append(crc)


def _with_zeros(crc: int, count: int, is_v2: bool) -> int:
    """The CRC after ``count`` more zero bytes, without the CRC of the zeros themselves."""
    power = 0
    while count:
        if count & 1:
            low, second, third, high = _zeros_tables(power, is_v2)
            crc = low[crc & 0xFF] ^ second[crc >> 8 & 0xFF] ^ third[crc >> 16 & 0xFF] ^ high[crc >> 24]
        count >>= 1
        power += 1
    return crc


@cache
def _zeros_tables(power: int, is_v2: bool) -> tuple[list[int], ...]:
    """Tables of the CRC after ``2 ** power`` more zero bytes: one for each byte of the CRC, by the byte's value."""
    if power:
        before = np.array(_zeros_tables(power - 1, is_v2), np.uint32)
    else:
        first = 0 if is_v2 else len(crc_tables()) // 2
        byte_table = np.array(crc_tables()[first : first + _BYTE_VALUES], np.uint32)
        values = np.arange(_BYTE_VALUES, dtype=np.uint32)
        return tuple(
            ((crc >> np.uint32(8)) ^ byte_table[crc & np.uint32(0xFF)]).tolist()
            for crc in (values << np.uint32(8 * number) for number in range(4))
        )
    after = np.zeros_like(before)
    for number in range(4):
        after ^= before[number][before >> np.uint32(8 * number) & np.uint32(0xFF)]
    return tuple(after.tolist())
