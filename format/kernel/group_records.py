"""Decoding of group coordinator records (``__consumer_offsets``, ``__share_group_state``) into columns.

This module reads only the fields that a list of groups needs, and is some hundred times as fast as the decoder of
``format.internal_topics``, which reads every field. The schemas there name all fields; record types (``kind`` here) are
those of Kafka's ``CoordinatorRecordType``.
"""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

#: What is wrong with a record, by number; 0 means nothing.
GROUP_RECORD_ERRORS = (
    "",
    "the key is missing or cut off",
    "the record type is not known",
    "the value is cut off",
    "the version of the value is not known",
    "the value has an invalid length",
)
#: Added to the record types of __share_group_state, since both topics number their record types from 0.
SHARE_STATE_TYPES = 100
_SHARE_STATE_TYPES = SHARE_STATE_TYPES
_ERROR_KEY = 1
_ERROR_TYPE = 2
_ERROR_VALUE = 3
_ERROR_VERSION = 4
_ERROR_LENGTH = 5
_LEAST_FLEXIBLE_VERSION = 4
_UUID_BYTES = 16
_MOST_TEXT_BYTES = 0x7FFF


def read_group_records(buffer: Bytes, records: Table, first_type: int, table: Table) -> None:
    """Fill a row of ``table`` (GROUP_COLUMNS) for each record.

    ``first_type`` is 0 for records of __consumer_offsets, and SHARE_STATE_TYPES for records of __share_group_state. A
    record without a value gets -1 in the columns of its value.
    """
    source = bytes_at(buffer)
    for row in range(len(records)):
        table[row, G_TYPE] = -1
        table[row, G_GROUP_START] = 0
        table[row, G_GROUP_LENGTH] = 0
        table[row, G_NAME_START] = 0
        table[row, G_NAME_LENGTH] = -1
        table[row, G_PARTITION] = -1
        table[row, G_NUMBER] = -1
        table[row, G_DETAIL] = -1
        table[row, G_TIMESTAMP] = -1
        table[row, G_EXPIRE] = -1
        table[row, G_TEXT_START] = 0
        table[row, G_TEXT_LENGTH] = -1
        at = records[row, R_KEY_START]
        error = _read_key(source, at, at + records[row, R_KEY_LENGTH], first_type, table, row)
        if error == 0 and records[row, R_VALUE_LENGTH] >= 0:
            at = records[row, R_VALUE_START]
            error = _read_value(source, at, at + records[row, R_VALUE_LENGTH], table, row)
        table[row, G_ERROR] = error


def _read_key(source: Bytes, at: int, end: int, first_type: int, table: Table, row: int) -> int:
    """Fill the columns of the key; return an error number."""
    if end - at < 2:
        return _ERROR_KEY
    kind = read_i16(source, at) + first_type
    if not 0 <= kind - first_type <= 23 or kind == 18 or kind > _SHARE_STATE_TYPES + 1:
        return _ERROR_TYPE
    at += 2
    length, at = _read_length(source, at, end, False)
    if at < 0 or length < 0 or length > end - at:
        return _ERROR_KEY
    table[row, G_GROUP_START] = at
    table[row, G_GROUP_LENGTH] = length
    at += length
    if kind >= _SHARE_STATE_TYPES:
        if end - at < _UUID_BYTES + 4:
            return _ERROR_KEY
        table[row, G_NAME_START] = at
        table[row, G_NAME_LENGTH] = _UUID_BYTES
        table[row, G_PARTITION] = read_i32(source, at + _UUID_BYTES)
    elif (
        kind <= 1
        or kind == 5
        or kind == 7
        or kind == 8
        or kind == 10
        or kind == 13
        or kind == 14
        or kind == 16
        or kind == 19
        or kind == 21
        or kind == 22
    ):
        length, at = _read_length(source, at, end, False)
        if at < 0 or length < 0 or length > end - at:
            return _ERROR_KEY
        table[row, G_NAME_START] = at
        table[row, G_NAME_LENGTH] = length
        at += length
        if kind <= 1:
            if end - at < 4:
                return _ERROR_KEY
            table[row, G_PARTITION] = read_i32(source, at)
    table[row, G_TYPE] = kind
    return 0


def _read_value(source: Bytes, at: int, end: int, table: Table, row: int) -> int:
    """Fill the columns of the value; return an error number."""
    kind = table[row, G_TYPE]
    if end - at < 2:
        return _ERROR_VALUE
    version = read_i16(source, at)
    if version < 0 or version > (4 if kind <= 2 else 0):
        return _ERROR_VERSION
    if kind == 15:
        table[row, G_TEXT_START] = at
        table[row, G_TEXT_LENGTH] = end - at
        return 0
    at += 2
    if kind <= 1:
        return _read_commit(source, at, end, version, table, row)
    if kind == 2:
        return _read_classic_group(source, at, end, version, table, row)
    if kind >= _SHARE_STATE_TYPES:
        return _read_share_state(source, at, end, table, row)
    if kind == 8 or kind == 14 or kind == 22:  # a member: its epoch, the one before, and its state
        if end - at < 9:
            return _ERROR_VALUE
        table[row, G_NUMBER] = read_i32(source, at)
        table[row, G_DETAIL] = source[at + 8]
    elif kind == 3 or kind == 6 or kind == 11 or kind == 12 or kind == 20 or kind == 23:  # an epoch
        if end - at < 4:
            return _ERROR_VALUE
        table[row, G_NUMBER] = read_i32(source, at)
    elif kind == 17:  # an epoch, a hash, and the validated topology among the tagged fields
        if end - at < 12:
            return _ERROR_VALUE
        table[row, G_NUMBER] = read_i32(source, at)
        at = _find_first_tag(source, at + 12, end)
        if at >= 0 and end - at >= 4:
            table[row, G_DETAIL] = read_i32(source, at)
    return 0


def _read_commit(source: Bytes, at: int, end: int, version: int, table: Table, row: int) -> int:
    """Fill the columns of an offset commit."""
    if end - at < 8:
        return _ERROR_VALUE
    table[row, G_NUMBER] = read_i64(source, at)
    at += 8
    if version >= 3:
        if end - at < 4:
            return _ERROR_VALUE
        table[row, G_DETAIL] = read_i32(source, at)
        at += 4
    length, at = _read_length(source, at, end, version >= _LEAST_FLEXIBLE_VERSION)
    if at < 0:
        return _ERROR_VALUE
    if length < 0 or length > _MOST_TEXT_BYTES:
        return _ERROR_LENGTH
    if end - at < length + 8:
        return _ERROR_VALUE
    table[row, G_TEXT_START] = at
    table[row, G_TEXT_LENGTH] = length
    at += length
    table[row, G_TIMESTAMP] = read_i64(source, at)
    if version == 1:
        if end - at < 16:
            return _ERROR_VALUE
        table[row, G_EXPIRE] = read_i64(source, at + 8)
    return 0


def _read_classic_group(source: Bytes, at: int, end: int, version: int, table: Table, row: int) -> int:
    """Fill the columns of a classic group: its generation, its leader, and its number of members."""
    is_flexible = version >= _LEAST_FLEXIBLE_VERSION
    length, at = _read_length(source, at, end, is_flexible)  # of the protocol type
    if at < 0:
        return _ERROR_VALUE
    if length < 0 or length > _MOST_TEXT_BYTES:
        return _ERROR_LENGTH
    if end - at < length + 4:
        return _ERROR_VALUE
    table[row, G_NUMBER] = read_i32(source, at + length)
    at += length + 4
    length, at = _read_length(source, at, end, is_flexible)  # of the protocol
    if at < 0:
        return _ERROR_VALUE
    if length > _MOST_TEXT_BYTES:
        return _ERROR_LENGTH
    if length > 0:
        if end - at < length:
            return _ERROR_VALUE
        at += length
    length, at = _read_length(source, at, end, is_flexible)  # of the leader
    if at < 0:
        return _ERROR_VALUE
    if length > _MOST_TEXT_BYTES:
        return _ERROR_LENGTH
    if length >= 0:
        if end - at < length:
            return _ERROR_VALUE
        table[row, G_TEXT_START] = at
        table[row, G_TEXT_LENGTH] = length
        at += length
    if version >= 2:
        if end - at < 8:
            return _ERROR_VALUE
        table[row, G_TIMESTAMP] = read_i64(source, at)
        at += 8
    if is_flexible:
        length, at = _read_length(source, at, end, True)
        if at < 0:
            return _ERROR_VALUE
    else:
        if end - at < 4:
            return _ERROR_VALUE
        length = read_i32(source, at)
    if length < 0 or length > end - at:
        return _ERROR_LENGTH
    table[row, G_DETAIL] = length
    return 0


def _read_share_state(source: Bytes, at: int, end: int, table: Table, row: int) -> int:
    """Fill the columns of a share-partition. A snapshot has a state epoch and two timestamps, an update has none."""
    is_snapshot = table[row, G_TYPE] == _SHARE_STATE_TYPES
    at += 8 if is_snapshot else 4
    if end - at < (28 if is_snapshot else 12):
        return _ERROR_VALUE
    table[row, G_DETAIL] = read_i32(source, at)
    table[row, G_NUMBER] = read_i64(source, at + 4)
    at += 12
    if is_snapshot:
        table[row, G_TIMESTAMP] = read_i64(source, at + 8)
        at += 16
    count, at = _read_length(source, at, end, True)
    if at < 0:
        return _ERROR_VALUE
    while count > 0:  # two offsets, a state, a count of deliveries, and tagged fields
        if end - at < 20:
            return _ERROR_VALUE
        at = _after_tags(source, at + 19, end)
        if at < 0:
            return _ERROR_VALUE
        count -= 1
    at = _find_first_tag(source, at, end)
    if at >= 0 and end - at >= 4:
        table[row, G_EXPIRE] = read_i32(source, at)
    return 0


def _read_length(source: Bytes, at: int, end: int, is_flexible: bool) -> tuple[int, int]:
    """Read the length of a string: the length, -1 for null, and the index after it, -1 if it is cut off or invalid.

    A flexible version stores the length plus one as an unsigned varint, other versions store 16 bits.
    """
    if not is_flexible:
        if end - at < 2:
            return 0, -1
        length = read_i16(source, at)
        if length < 0:
            length = -1
        return length, at + 2
    length, at = read_unsigned(source, at, end)
    return (length - 1 if at >= 0 else 0), at


def _find_first_tag(source: Bytes, at: int, end: int) -> int:
    """Where the value of tagged field 0 starts; -1 without it. Tags are in order, so it can only be the first."""
    count, at = _read_length(source, at, end, True)
    if at < 0 or count < 0:
        return -1
    tag, at = _read_length(source, at, end, True)
    if at < 0 or tag != -1:
        return -1
    size, at = _read_length(source, at, end, True)
    return at if at >= 0 and size < end - at else -1


def _after_tags(source: Bytes, at: int, end: int) -> int:
    """The index after a set of tagged fields, -1 if they are cut off."""
    count, at = _read_length(source, at, end, True)
    while at >= 0 and count >= 0:
        size, at = _read_length(source, at, end, True)  # the tag
        if at >= 0:
            size, at = _read_length(source, at, end, True)
            if at >= 0:
                at = at + size + 1 if size < end - at else -1
        count -= 1
    return at
