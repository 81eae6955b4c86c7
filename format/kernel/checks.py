"""Quick checks of batches and records: which CRCs are valid, and which rows need a full check.

The quick checks are strict: a full check finds nothing in rows that pass, and may find nothing in rows that fail.
"""

from __future__ import annotations

from format import layout

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.crc import *
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *
    from format.kernel.utf8 import *

_CONTROL_KEY_BYTES = layout.CONTROL_KEY.size_bytes
_CONTROL_TYPE_AT = layout.CONTROL_KEY.offset_of("type")
_END_MARKER_BYTES = layout.END_TRANSACTION_MARKER.size_bytes
_NEAR_BYTES = 2048  # how far ahead records are prefetched
_MANY_HEADERS = 1000  # a record with more headers is left to the full check, which has the limit
_LAST_END_MARKER_TYPE = layout.CONTROL_TYPES.index("COMMIT")  # 1; the only other type of end marker is ABORT, 0


def check_crcs(
    buffer: Bytes, buffer_position: int, table: Table, largest_bytes: int, tables: Words, valid: memoryview
) -> int:
    """Check the CRCs of batches of at most ``largest_bytes``: ``valid``, a byte for each row, gets 1 or 0.

    The batches are whole in ``buffer``. ``tables`` is checksums.crc_tables(). ``valid`` is left as it is for larger
    batches; returns the number of those.
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
    """The first batch row with header fields that need a full check, ``check_batch_headers``, else -1."""
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
        # Without a producer id, epoch and sequence mean nothing. Only markers have a producer id and no sequence.
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


def find_chain_break(table: Table, next_offset: int, leader_epoch: int) -> int:
    """The first batch row that does not plainly follow the row before it, else -1.

    A batch plainly follows if it is v2, starts at the next offset (``next_offset`` for the first row), has a record for
    each of its offsets, and has this leader epoch.
    """
    for row in range(len(table)):
        base_offset = table[row, B_BASE_OFFSET]
        last_delta = table[row, B_LAST_DELTA]
        if table[row, B_MAGIC] != 2 or base_offset != next_offset or table[row, B_EPOCH] != leader_epoch:
            return row
        if last_delta < 0 or table[row, B_COUNT] != last_delta + 1 or base_offset >= MAX_I64 - last_delta:
            return row
        next_offset = base_offset + last_delta + 1
    return -1


def find_wrong_offset(records: Table, batches: Table, first: int, previous: int) -> int:
    """The first row from ``first`` on whose offset is negative, does not rise in its batch, or is outside its v2 batch.

    ``records`` is an indexed record table; its batch column points into the batch table ``batches``. ``previous`` is
    the offset before the first row in the same batch, -1 for none. Returns -1 if there is no such row.
    """
    batch = -1
    for row in range(first, len(records)):
        if records[row, R_BATCH] != batch:
            if batch >= 0:
                previous = -1
            batch = records[row, R_BATCH]
            magic = batches[batch, B_MAGIC]
            base_offset = batches[batch, B_BASE_OFFSET]
            last_delta = batches[batch, B_LAST_DELTA]
        offset = records[row, R_OFFSET]
        if offset < 0 or offset <= previous:
            return row
        if magic == 2 and (last_delta < 0 or base_offset > MAX_I64 - last_delta):
            return row
        if magic == 2 and (offset < base_offset or offset > base_offset + last_delta):
            return row
        previous = offset
    return -1


def count_sound_batches(buffer: Bytes, spans: Table, batches: Table, max_record_bytes: int, found: Row) -> int:
    """The number of sound v2 batches before the first that needs a full check, ``index_records`` and ``RecordCheck``.

    The records of a sound batch can be decoded, and the full check finds nothing in them. Each row of ``spans`` is a
    batch: its row in the batch table ``batches``, and where in ``buffer`` its decompressed records start and end.
    ``found[0]`` grows by the number of records in the sound batches. ``found[1]``, if negative, gets the offset of the
    first record without a key.
    """
    source = bytes_at(buffer)
    for span in range(len(spans)):
        row = spans[span, S_BATCH]
        at = spans[span, S_START]
        end = spans[span, S_END]
        attributes = batches[row, B_ATTRIBUTES]
        base_offset = batches[row, B_BASE_OFFSET]
        base_timestamp = batches[row, B_BASE_TIMESTAMP]
        last_delta = batches[row, B_LAST_DELTA]
        count = batches[row, B_COUNT]
        if count < 0 or last_delta < 0 or base_offset < 0 or base_offset > MAX_I64 - last_delta:
            return span
        is_control = attributes & CONTROL_BIT
        previous = -1
        keyless = -1
        largest = MIN_I64
        smallest = MAX_I64
        left = count
        while left > 0:
            left -= 1
            start = at
            length, at = read_varint(source, at, end)
            if at < 0 or length < 1 or length > end - at:
                return span
            stop = at + length
            bring_near(source, start + _NEAR_BYTES, stop + _NEAR_BYTES)
            if stop - start > max_record_bytes or source[at]:
                return span
            timestamp, at = read_varint(source, at + 1, stop)
            if at < 0:
                return span
            if timestamp > largest:
                largest = timestamp
            if timestamp < smallest:
                smallest = timestamp
            delta, at = read_varint(source, at, stop)
            if at < 0 or delta <= previous or delta > last_delta:
                return span
            previous = delta
            key_length, at = read_varint(source, at, stop)
            if at < 0 or key_length < -1 or key_length > stop - at:
                return span
            key_at = at
            if key_length >= 0:
                at += key_length
            elif keyless < 0:
                keyless = delta
            value_length, at = read_varint(source, at, stop)
            if at < 0 or value_length < -1 or value_length > stop - at:
                return span
            if is_control and not _is_control_record(source, key_at, key_length, at, value_length):
                return span
            if value_length > 0:
                at += value_length
            # A record without headers ends here with a single zero byte.
            if (at + 1 != stop or source[at]) and not _are_headers_sound(source, at, stop):
                return span
            at = stop
        if at != end:
            return span
        if count > 0 and not attributes & TIMESTAMP_TYPE_BIT:
            if largest > 0 and base_timestamp > MAX_I64 - largest:
                return span
            if smallest < 0 and base_timestamp < MIN_I64 - smallest:
                return span
            if base_timestamp + largest != batches[row, B_MAX_TIMESTAMP]:
                return span
        found[0] += count
        if keyless >= 0 and found[1] < 0:
            found[1] = base_offset + keyless
    return len(spans)


def _are_headers_sound(source: Bytes, at: int, stop: int) -> bool:
    """Whether the headers of a record end where the record ends, are at most _MANY_HEADERS, and have UTF-8 keys."""
    count, at = read_varint(source, at, stop)
    if at < 0 or count < 0 or count > _MANY_HEADERS:
        return False
    header = 0
    while header < count:
        length, at = read_varint(source, at, stop)
        if at < 0 or length < 0 or length > stop - at or not is_utf8(source, at, at + length):
            return False
        length, at = read_varint(source, at + length, stop)
        if at < 0 or length < -1 or length > stop - at:
            return False
        if length > 0:
            at += length
        header += 1
    return at == stop


def _is_control_record(source: Bytes, key_at: int, key_length: int, value_at: int, value_length: int) -> bool:
    """Whether the key, and the value of an end transaction marker, are long enough and of a known version."""
    if key_length < _CONTROL_KEY_BYTES or source[key_at] & 0x80:
        return False
    kind = read_i16(source, key_at + _CONTROL_TYPE_AT)
    if kind < 0 or kind > _LAST_END_MARKER_TYPE:
        return True
    return value_length >= _END_MARKER_BYTES and not source[value_at] & 0x80


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
