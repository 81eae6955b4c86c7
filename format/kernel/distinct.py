"""Numbers for distinct byte strings and distinct rows of integers: equal values get equal numbers.

Numbers count from 0 in the order of first occurrence. The hash tables use open addressing: a slot holds a number, or
-1. The number of slots is a power of two, and greater than the number of distinct values. ``seed`` is any 32-bit
number.
"""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *

_MULTIPLIER = 0x01000193
_MASK = 0xFFFFFFFF


def number_strings(buffer: Bytes, spans: Table, seed: int, slots: Row, firsts: Row, numbers: Row) -> int:
    """Number the byte strings of ``spans``; return the number of distinct strings.

    A row of ``spans`` is the start and the length of a string in ``buffer``.

    ``slots`` must hold -1 everywhere. ``firsts`` gets the row of the first occurrence of each number, and ``numbers``
    the number of each row, -1 for a negative length.
    """
    source = bytes_at(buffer)
    mask = len(slots) - 1
    count = 0
    number = -1
    first = 0
    for row in range(len(spans)):
        start = spans[row, 0]
        length = spans[row, 1]
        if length < 0:
            numbers[row] = -1
            continue
        if number >= 0 and spans[first, 1] == length and same_bytes(source, spans[first, 0], source, start, length):
            numbers[row] = number  # the same as the row before: most records of a batch belong to one group
            continue
        slot = _hash_of_string(source, start, length, seed) & mask
        number = slots[slot]
        while number >= 0:
            first = firsts[number]
            if spans[first, 1] == length and same_bytes(source, spans[first, 0], source, start, length):
                break
            slot = (slot + 1) & mask
            number = slots[slot]
        if number < 0:
            number = count
            slots[slot] = number
            firsts[number] = row
            first = row
            count += 1
        numbers[row] = number
    return count


def number_rows(rows: Table, width: int, seed: int, slots: Row, known: Table, known_count: int, numbers: Row) -> int:
    """Number rows of ``width`` integers; return the new number of known rows.

    ``known`` holds the values of each number. Its first ``known_count`` rows are known from earlier calls; after them
    it has room for all of ``rows``.
    """
    mask = len(slots) - 1
    count = known_count
    for row in range(len(rows)):
        slot = _hash_of_row(rows, row, width, seed) & mask
        number = slots[slot]
        while number >= 0:
            column = 0
            while column < width and known[number, column] == rows[row, column]:
                column += 1
            if column == width:
                break
            slot = (slot + 1) & mask
            number = slots[slot]
        if number < 0:
            number = count
            slots[slot] = number
            for column in range(width):
                known[number, column] = rows[row, column]
            count += 1
        numbers[row] = number
    return count


def place_rows(known: Table, known_count: int, width: int, seed: int, slots: Row) -> None:
    """Enter the numbers of known rows, which are all distinct, in ``slots``, which must hold -1 everywhere."""
    mask = len(slots) - 1
    for row in range(known_count):
        slot = _hash_of_row(known, row, width, seed) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


def _hash_of_string(source: Bytes, start: int, length: int, seed: int) -> int:
    digest = seed
    for at in range(start, start + length):
        digest = (digest ^ source[at]) * _MULTIPLIER & _MASK
    return digest ^ digest >> 15


def _hash_of_row(rows: Table, row: int, width: int, seed: int) -> int:
    digest = seed
    for column in range(width):
        value = rows[row, column]
        digest = (digest ^ value & _MASK) * _MULTIPLIER & _MASK
        digest = (digest ^ digest >> 15 ^ value >> 32 & _MASK) * _MULTIPLIER & _MASK
    return digest ^ digest >> 13
