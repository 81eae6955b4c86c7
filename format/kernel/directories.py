"""The files of a partition's directory by their names: the live files of each segment, and all others."""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.descriptors import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

#: The bits of the column ``suffixes``, as in tables.SEGMENT_SUFFIXES.
_INDEX, _LOG, _SNAPSHOT, _TIME_INDEX, _TXN_INDEX = 1, 2, 4, 8, 16


def group_files(directory_fd: int, names: Bytes, segments: Table, others: Table, counts: Row) -> int:
    """Ask for the status of files, and write a row for each base offset and for each name that is none of a segment's.

    ``names`` are sorted, each with a zero byte behind it. Returns the number of rows of ``segments``, or -1 if a file
    cannot be asked. ``counts`` gets the number of rows of ``others``, the bytes of all regular files together, and the
    bits that any row and that all rows of ``segments`` have in the column ``suffixes``.
    """
    source = bytes_at(names)
    end = len(names)
    start = 0
    number = 0
    row = -1
    other = 0
    total = 0
    while start < end:
        stop = start
        while source[stop] != 0:
            stop += 1
        size = size_of_file(source, start, directory_fd)
        if size == -2:
            return -1
        if size > 0:
            total += size
        suffix = 0
        base_offset = -1
        if size >= 0 and stop - start > NAME_DIGITS:
            suffix = _suffix_at(source, start + NAME_DIGITS, stop)
            if suffix:
                base_offset = _base_offset_at(source, start)
        if base_offset < 0:
            others[other, O_NUMBER] = number
            others[other, O_SIZE] = size
            other += 1
        else:
            if row < 0 or segments[row, F_BASE_OFFSET] != base_offset:
                row += 1
                segments[row, F_BASE_OFFSET] = base_offset
                segments[row, F_SUFFIXES] = 0
                segments[row, F_LOG_BYTES] = -1
            segments[row, F_SUFFIXES] |= suffix
            if suffix == _LOG:
                segments[row, F_LOG_BYTES] = size
        number += 1
        start = stop + 1
    counts[0] = other
    counts[1] = total
    counts[2] = 0
    counts[3] = -1
    for number in range(row + 1):
        counts[2] |= segments[number, F_SUFFIXES]
        counts[3] &= segments[number, F_SUFFIXES]
    return row + 1


def _base_offset_at(source: Bytes, start: int) -> int:
    """The base offset in the digits from ``start`` on; -1 if they are no digits, or too large for an offset."""
    base_offset = 0
    for at in range(start, start + NAME_DIGITS):
        digit = source[at] - 0x30
        if digit < 0 or digit > 9 or base_offset > (MAX_I64 - digit) // 10:
            return -1
        base_offset = 10 * base_offset + digit
    return base_offset


def _suffix_at(source: Bytes, start: int, stop: int) -> int:
    """The bit of the suffix in ``source[start:stop]``; 0 if it is none of a live file of a segment."""
    length = stop - start
    if length == 4 and same_bytes(source, start, b".log", 0, length):
        return _LOG
    if length == 6 and same_bytes(source, start, b".index", 0, length):
        return _INDEX
    if length == 10 and same_bytes(source, start, b".timeindex", 0, length):
        return _TIME_INDEX
    if length == 9 and same_bytes(source, start, b".txnindex", 0, length):
        return _TXN_INDEX
    if length == 9 and same_bytes(source, start, b".snapshot", 0, length):
        return _SNAPSHOT
    return 0
