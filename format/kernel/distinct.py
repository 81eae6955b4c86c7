"""Distinct values: numbers for byte strings and for rows of integers, equal numbers for equal values.

Numbers count from 0 in the order of first occurrence. The tables of hashes are open: a slot holds a number, or -1. They
have a power of two of slots, more than there can be numbers. ``seed`` is any number of 32 bits.
"""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module has these names from its .pxd file
    from format.kernel.memory import *

_MULTIPLIER = 0x01000193
_MASK = 0xFFFFFFFF


def number_strings(buffer: Bytes, spans: Table, seed: int, slots: Row, firsts: Row, numbers: Row) -> int:
    """Number the byte strings of ``spans``, whose rows are starts and lengths in the buffer; return how many differ.

    ``slots`` must hold -1 everywhere. ``firsts`` gets the row of the first occurrence of each number, ``numbers`` the
    number of each row: -1 for a negative length.
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
            numbers[row] = number  # as the row before: the records of a batch are mostly of one group
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
    """Number rows of ``width`` integers; return how many are known then.

    ``known`` has the row of each number: ``known_count`` of them at first, and room for all that may come.
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
    """Enter the numbers of known rows, which all differ, in ``slots``, which must hold -1 everywhere."""
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
