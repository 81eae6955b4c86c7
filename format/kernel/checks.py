"""Quick checks of batches and records: which CRCs are right, and which rows need a closer look."""

from __future__ import annotations

from format import layout

if not __file__.endswith(".so"):  # a compiled module has these names from its .pxd file
    from format.kernel.crc import *
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *
    from format.kernel.utf8 import *

_CONTROL_KEY_BYTES = layout.CONTROL_KEY.size_bytes
_CONTROL_TYPE_AT = layout.CONTROL_KEY.offset_of("type")
_END_MARKER_BYTES = layout.END_TRANSACTION_MARKER.size_bytes
_LAST_END_MARKER_TYPE = layout.CONTROL_TYPES.index("COMMIT")  # ABORT, the other one, is 0


def check_crcs(
    buffer: Bytes, buffer_position: int, table: Table, largest_bytes: int, tables: Words, valid: memoryview
) -> int:
    """Check the CRCs of batches of at most ``largest_bytes``: ``valid``, a byte for each row, gets 1 or 0.

    The batches are whole in ``buffer``. ``tables`` is checksums.crc_tables(). Larger batches stay as they are; returns
    how many of them there are.
    """
    source = bytes_at(buffer)
    words = words_at(tables)
    left = 0
    for row in range(len(table)):
        at = table[row, B_POSITION] - buffer_position
        size_bytes = table[row, B_SIZE]
        if size_bytes > largest_bytes:
            left += 1
        elif table[row, B_MAGIC] == 2:
            valid[row] = crc_of(source, at + CRC_START_V2, at + size_bytes, words, 0) == table[row, B_CRC]
        else:
            crc = crc_of(source, at + CRC_START_LEGACY, at + size_bytes, words, LEGACY_TABLES)
            valid[row] = crc == table[row, B_CRC]
    return left


def find_doubtful_header(table: Table, latest_timestamp: int) -> int:
    """The first batch row with header fields that need a closer look, else -1.

    It is quick and strict: the closer look, ``check_batch_headers``, would find nothing in a row that passes here.
    """
    for row in range(len(table)):
        magic = table[row, B_MAGIC]
        attributes = table[row, B_ATTRIBUTES]
        base_offset = table[row, B_BASE_OFFSET]
        last_delta = table[row, B_LAST_DELTA]
        timestamp = table[row, B_MAX_TIMESTAMP]
        if last_delta < 0 or base_offset < 0 or base_offset > MAX_I64 - last_delta:
            return row
        if timestamp < -1 or timestamp > latest_timestamp:
            return row
        if magic != 2:
            if attributes & ~(KNOWN_V1 if magic else KNOWN_V0):
                return row
            continue
        if attributes & ~KNOWN_V2 or (attributes & CONTROL_BIT and attributes & CODEC_MASK):
            return row
        if table[row, B_COUNT] < 0 or table[row, B_COUNT] > last_delta + 1 or table[row, B_EPOCH] < -1:
            return row
        # Without a producer id its epoch and sequence mean nothing; markers alone have one and no sequence.
        if table[row, B_PRODUCER_ID] < 0:
            if table[row, B_PRODUCER_ID] < -1 or attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
                return row
        elif table[row, B_PRODUCER_EPOCH] < 0:
            return row
        elif attributes & CONTROL_BIT:
            if table[row, B_BASE_SEQUENCE] != -1 or not attributes & TRANSACTIONAL_BIT:
                return row
        elif table[row, B_BASE_SEQUENCE] < 0:
            return row
    return -1


def find_doubtful_record(buffer: Bytes, records: Table, batches: Table, max_record_bytes: int, tables: Words) -> int:
    """The first record row that needs a closer look, or the first row of a batch that does, else -1.

    ``records`` is an indexed record table; its batch column points into the batch table ``batches``. ``tables`` is
    checksums.crc_tables(). It is quick and strict: the closer look, ``RecordCheck``, would find nothing in a batch that
    passes here.
    """
    source = bytes_at(buffer)
    words = words_at(tables)
    row = 0
    end = len(buffer)
    count = len(records)
    while row < count:
        first = row
        batch = records[row, R_BATCH]
        magic = batches[batch, B_MAGIC]
        attributes = batches[batch, B_ATTRIBUTES]
        base_offset = batches[batch, B_BASE_OFFSET]
        last_delta = batches[batch, B_LAST_DELTA]
        if last_delta < 0 or base_offset < 0 or base_offset > MAX_I64 - last_delta:
            return row
        is_control = magic == 2 and attributes & CONTROL_BIT
        is_inner = magic != 2 and attributes & CODEC_MASK
        previous = -1
        if magic == 2:
            previous = base_offset - 1
        largest = records[row, R_TIMESTAMP]
        while row < count and records[row, R_BATCH] == batch:
            if records[row, R_OFFSET] <= previous or records[row, R_SIZE] > max_record_bytes:
                return row
            previous = records[row, R_OFFSET]
            if records[row, R_TIMESTAMP] > largest:
                largest = records[row, R_TIMESTAMP]
            if magic == 2:
                if records[row, R_ATTRIBUTES]:
                    return row
                if records[row, R_HEADER_COUNT] and not _are_header_keys_utf8(
                    source, records[row, R_HEADERS_START], end, records[row, R_HEADER_COUNT]
                ):
                    return row
                if is_control and not _is_control_record(source, records, row):
                    return row
            elif is_inner:
                at = records[row, R_START]
                crc = crc_of(source, at + CRC_START_LEGACY, at + records[row, R_SIZE], words, LEGACY_TABLES)
                if crc != read_u32(source, at + LEGACY_CRC_AT):
                    return row
            row += 1
        if magic == 2 and previous > base_offset + last_delta:
            return first
        if magic and not attributes & TIMESTAMP_TYPE_BIT and largest != batches[batch, B_MAX_TIMESTAMP]:
            return first
    return -1


def _is_control_record(source: Bytes, records: Table, row: int) -> bool:
    """Whether the key, and the value of an end transaction marker, are long enough and of a known version."""
    at = records[row, R_KEY_START]
    if records[row, R_KEY_LENGTH] < _CONTROL_KEY_BYTES or source[at] & 0x80:
        return False
    if read_i16(source, at + _CONTROL_TYPE_AT) < 0 or read_i16(source, at + _CONTROL_TYPE_AT) > _LAST_END_MARKER_TYPE:
        return True
    at = records[row, R_VALUE_START]
    return records[row, R_VALUE_LENGTH] >= _END_MARKER_BYTES and not source[at] & 0x80


def find_bad_header_key(buffer: Bytes, table: Table, first: int) -> int:
    """The first row from ``first`` on of an indexed record table with a header key that is not UTF-8, else -1."""
    source = bytes_at(buffer)
    end = len(buffer)
    for row in range(first, len(table)):
        if not _are_header_keys_utf8(source, table[row, R_HEADERS_START], end, table[row, R_HEADER_COUNT]):
            return row
    return -1


def _are_header_keys_utf8(source: Bytes, at: int, end: int, count: int) -> bool:
    """Whether the keys of all headers of one record are UTF-8."""
    header = 0
    while header < count:
        length, at = read_varint(source, at, end)
        if not is_utf8(source, at, at + length):
            return False
        at += length
        length, at = read_varint(source, at, end)
        if length > 0:
            at += length
        header += 1
    return True
