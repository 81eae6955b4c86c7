"""Writing records in the v2 format, and fields of records one after the other."""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *
    from format.kernel.tables import *

#: The most bytes that put_v2_records writes for a record, besides its key, value and headers.
NEW_RECORD_BYTES = 48


def put_v2_records(out: Room, buffer: Bytes, records: Table, base_offset: int, base_timestamp: int) -> int:
    """Write records of any format as the records of a v2 batch with these bases; return the number of bytes written.

    ``out`` must have room for all keys, values and headers, and for NEW_RECORD_BYTES more for each record. Offsets and
    timestamps must be less than 63 bits from the bases.
    """
    source = bytes_at(buffer)
    target = room_at(out)
    at = 0
    for row in range(len(records)):
        timestamp_delta = records[row, R_TIMESTAMP] - base_timestamp
        offset_delta = records[row, R_OFFSET] - base_offset
        key_start = records[row, R_KEY_START]
        key_length = records[row, R_KEY_LENGTH]
        value_start = records[row, R_VALUE_START]
        value_length = records[row, R_VALUE_LENGTH]
        header_count = records[row, R_HEADER_COUNT]
        headers_start = records[row, R_HEADERS_START]
        attributes = records[row, R_ATTRIBUTES]
        headers_end = headers_start
        if header_count > 0:
            headers_end = records[row, R_START] + records[row, R_SIZE]
        elif header_count < 0:  # a message: its attributes become attributes of the batch
            header_count = 0
            attributes = 0
        size = 1 + _varint_bytes(timestamp_delta) + _varint_bytes(offset_delta) + _varint_bytes(header_count)
        size += _varint_bytes(key_length) + _varint_bytes(value_length) + headers_end - headers_start
        if key_length > 0:
            size += key_length
        if value_length > 0:
            size += value_length
        at = _put_varint(target, at, size)
        target[at] = attributes & 0xFF
        at = _put_varint(target, at + 1, timestamp_delta)
        at = _put_varint(target, at, offset_delta)
        at = _put_varint(target, at, key_length)
        if key_length > 0:
            at = copy_bytes(target, at, source, key_start, key_start + key_length)
        at = _put_varint(target, at, value_length)
        if value_length > 0:
            at = copy_bytes(target, at, source, value_start, value_start + value_length)
        at = _put_varint(target, at, header_count)
        at = copy_bytes(target, at, source, headers_start, headers_end)
    return at


def join_fields(out: Room, ends: Words, buffer: Bytes, starts: Row, lengths: Row) -> int:
    """Write ``buffer[start : start + length]`` for each row, and where it ends in ``out``; return where the last does.

    A negative length is one of 0. Returns -1 at the first field outside the buffer, or for which ``out`` has no room.
    Other threads run meanwhile.
    """
    turn = end_turn()
    end = _join_fields(out, ends, buffer, starts, lengths)
    take_turn(turn)
    return end


def _join_fields(out: Room, ends: Words, buffer: Bytes, starts: Row, lengths: Row) -> int:
    source = bytes_at(buffer)
    target = room_at(out)
    size = len(buffer)
    room = len(out)
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            start = starts[row]
            if start < 0 or length > size - start or length > room - at:
                return -1
            at = copy_bytes(target, at, source, start, start + length)
        ends[row] = at
    return at


def _varint_bytes(value: int) -> int:
    """The number of bytes that ``_put_varint`` writes for a number."""
    rest = (value if value >= 0 else ~value) >> 6
    size = 1
    while rest:
        rest >>= 7
        size += 1
    return size


def _put_varint(out: Room, at: int, value: int) -> int:
    """Write a 64-bit number as a zigzag varint; return the index after it."""
    rest = value if value >= 0 else ~value
    low = (rest & 0x3F) << 1 | (value < 0)
    rest >>= 6
    while rest:
        out[at] = low | 0x80
        at += 1
        low = rest & 0x7F
        rest >>= 7
    out[at] = low
    return at + 1
