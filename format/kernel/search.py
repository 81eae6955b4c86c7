"""Searching for bytes in record fields, and comparing records."""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *
    from format.kernel.tables import *


def find_in_fields(buffer: Bytes, fields: Table, wanted: Bytes, found: Row) -> None:
    """Find the first occurrence of ``wanted`` in each field: ``found`` gets its index in the field, or -1.

    ``fields`` has a row for each field, with its start and end in the buffer. An empty ``wanted`` is found at 0.
    """
    source = bytes_at(buffer)
    needle = bytes_at(wanted)
    length = len(wanted)
    for row in range(len(fields)):
        found[row] = find_bytes(source, fields[row, 0], fields[row, 1], needle, length)
        if found[row] >= 0:
            found[row] -= fields[row, 0]


def find_other_record(buffer: Bytes, records: Table, other_buffer: Bytes, others: Table, first: int) -> int:
    """The first row from ``first`` on whose key, value or headers differ between the two tables, else -1.

    The caller has compared key lengths, value lengths and header counts; a header count of -1 is equal to 0.
    """
    source = bytes_at(buffer)
    other = bytes_at(other_buffer)
    for row in range(first, len(records)):
        length = records[row, R_KEY_LENGTH]
        if length > 0 and not same_bytes(source, records[row, R_KEY_START], other, others[row, R_KEY_START], length):
            return row
        length = records[row, R_VALUE_LENGTH]
        if length > 0 and not same_bytes(
            source, records[row, R_VALUE_START], other, others[row, R_VALUE_START], length
        ):
            return row
        if records[row, R_HEADER_COUNT] > 0:
            at = records[row, R_HEADERS_START]
            other_at = others[row, R_HEADERS_START]
            length = records[row, R_START] + records[row, R_SIZE] - at
            if others[row, R_START] + others[row, R_SIZE] - other_at != length:
                return row
            if not same_bytes(source, at, other, other_at, length):
                return row
    return -1
