"""Indexing of records, record headers and messages: where each of their fields is in a buffer."""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

#: Errors of records and messages, by number; 0 is none.
RECORD_ERRORS = (
    "",
    "the record's length is cut off or overflows",
    "the record's length is negative or too small",
    "the record ends past the batch",
    "a varint is cut off or longer than its type allows",
    "a varint overflows its type",
    "the key's length is invalid",
    "the value's length is invalid",
    "the number of headers is invalid",
    "a header key's length is invalid",
    "a header value's length is invalid",
    "the record's fields end before its length says",
    "the record's offset does not fit in 64 bits",
    "the record's timestamp does not fit in 64 bits",
    "the message is cut off",
    "the message's size is invalid",
    "the message's magic is neither 0 nor 1",
)
_ERROR_LENGTH_VARINT = 1
_ERROR_LENGTH = 2
_ERROR_PAST_BATCH = 3
_ERROR_VARINT = 4
_ERROR_VARINT_OVERFLOW = 5
_ERROR_KEY = 6
_ERROR_VALUE = 7
_ERROR_HEADER_COUNT = 8
_ERROR_HEADER_KEY = 9
_ERROR_HEADER_VALUE = 10
_ERROR_LEFT_OVER = 11
_ERROR_OFFSET = 12
_ERROR_TIMESTAMP = 13
_ERROR_MESSAGE_CUT = 14
_ERROR_MESSAGE_SIZE = 15
_ERROR_MESSAGE_MAGIC = 16


def index_records(
    buffer: Bytes, spans: Table, first: int, last: int, table: Table, first_row: int, results: Table
) -> int:
    """Index the fields of all records of the v2 batches in ``spans[first:last]``; write one table row for each record.

    Nothing is copied: a row holds where each field is in the buffer. ``results[i]`` gets the result of span i
    (RESULT_COLUMNS): an error number (RECORD_ERRORS), the index of the error, the number of records read, and the index
    after the last of them. A span stops at its first error, at its record count, or when the table is full (no error,
    but fewer records). Returns the number of the row after the last one written. Other threads run meanwhile.
    """
    turn = end_turn()
    row = _index_spans(buffer, spans, first, last, table, first_row, results)
    take_turn(turn)
    return row


def _index_spans(
    buffer: Bytes, spans: Table, first: int, last: int, table: Table, first_row: int, results: Table
) -> int:
    source = bytes_at(buffer)
    row = first_row
    capacity = len(table)
    for span in range(first, last):
        batch = spans[span, S_BATCH]
        at = spans[span, S_START]
        end = spans[span, S_END]
        count = spans[span, S_COUNT]
        base_offset = spans[span, S_BASE_OFFSET]
        base_timestamp = spans[span, S_BASE_TIMESTAMP]
        append_timestamp = spans[span, S_APPEND_TIMESTAMP]
        is_append_time = spans[span, S_IS_APPEND_TIME]
        done = 0
        error = 0
        error_at = at
        while done < count and at < end and row < capacity:
            start = at
            error_at = at
            length, at = read_varint(source, at, end)
            if at < 0:
                error = _ERROR_LENGTH_VARINT
                break
            if length < 1:
                error = _ERROR_LENGTH
                break
            if length > end - at:
                error = _ERROR_PAST_BATCH
                break
            stop = at + length
            attributes = buffer[at]
            error_at = at + 1
            timestamp_delta, at = _read_varlong(source, at + 1, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            error_at = at
            offset_delta, at = read_varint(source, at, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            if (offset_delta > 0 and base_offset > MAX_I64 - offset_delta) or (
                offset_delta < 0 and base_offset < MIN_I64 - offset_delta
            ):
                error = _ERROR_OFFSET
                break
            if is_append_time:
                timestamp = append_timestamp
            else:
                if (timestamp_delta > 0 and base_timestamp > MAX_I64 - timestamp_delta) or (
                    timestamp_delta < 0 and base_timestamp < MIN_I64 - timestamp_delta
                ):
                    error = _ERROR_TIMESTAMP
                    break
                timestamp = base_timestamp + timestamp_delta
            error_at = at
            key_length, at = read_varint(source, at, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            key_start = at
            if key_length < -1 or key_length > stop - at:
                error = _ERROR_KEY
                break
            if key_length > 0:
                at += key_length
            error_at = at
            value_length, at = read_varint(source, at, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            value_start = at
            if value_length < -1 or value_length > stop - at:
                error = _ERROR_VALUE
                break
            if value_length > 0:
                at += value_length
            error_at = at
            header_count, at = read_varint(source, at, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            headers_start = at
            if header_count < 0 or header_count > (stop - at) // 2:
                error = _ERROR_HEADER_COUNT
                break
            header = 0
            while header < header_count:
                error_at = at
                part_length, at = read_varint(source, at, stop)
                if at < 0:
                    error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                    break
                if part_length < 0 or part_length > stop - at:
                    error = _ERROR_HEADER_KEY
                    break
                at += part_length
                error_at = at
                part_length, at = read_varint(source, at, stop)
                if at < 0:
                    error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                    break
                if part_length < -1 or part_length > stop - at:
                    error = _ERROR_HEADER_VALUE
                    break
                if part_length > 0:
                    at += part_length
                header += 1
            if error:
                break
            if at != stop:
                error_at = at
                error = _ERROR_LEFT_OVER
                break
            table[row, R_BATCH] = batch
            table[row, R_OFFSET] = base_offset + offset_delta
            table[row, R_TIMESTAMP] = timestamp
            table[row, R_ATTRIBUTES] = attributes
            table[row, R_START] = start
            table[row, R_SIZE] = at - start
            table[row, R_KEY_START] = key_start
            table[row, R_KEY_LENGTH] = key_length
            table[row, R_VALUE_START] = value_start
            table[row, R_VALUE_LENGTH] = value_length
            table[row, R_HEADERS_START] = headers_start
            table[row, R_HEADER_COUNT] = header_count
            row += 1
            done += 1
        if error:
            at = error_at
        results[span, 0] = error
        results[span, 1] = error_at
        results[span, 2] = done
        results[span, 3] = at
    return row


def _read_varlong(source: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of 64 bits: the value, and the index after it.

    The index is -1 if the varint is cut off or longer than ten bytes, and -2 if it overflows 64 bits.
    """
    shift = 0
    low = 0  # the first seven groups of seven bits, 49 bits
    high = 0  # the other groups, kept apart so that no sum needs more than 63 bits
    while at < end:
        byte = source[at]
        at += 1
        if shift == 63 and byte > 1:
            return 0, (-1 if byte & 0x80 else -2)
        if shift < 49:
            low |= (byte & 0x7F) << shift
        else:
            high |= (byte & 0x7F) << (shift - 49)
        if byte < 0x80:
            half = (low >> 1) + (high << 48)
            return (-half - 1 if low & 1 else half), at
        shift += 7
    return 0, -1


def index_headers(buffer: Bytes, start: int, end: int, count: int, table: Table) -> int:
    """Index ``count`` record headers; write one row for each: key start, key length, value start, value length.

    index_records must have checked the headers. Returns the index after the last one.
    """
    source = bytes_at(buffer)
    at = start
    for row in range(count):
        length, at = read_varint(source, at, end)
        table[row, 0] = at
        table[row, 1] = length
        at += length
        length, at = read_varint(source, at, end)
        table[row, 2] = at
        table[row, 3] = length
        if length > 0:
            at += length
    return at


def index_record_headers(buffer: Bytes, records: Table, table: Table) -> int:
    """Index the headers of all records of an indexed table; write one row for each, as ``index_headers`` does.

    ``table`` must have a row for every header of ``records``. Returns the number of rows written.
    """
    source = bytes_at(buffer)
    end = len(buffer)
    row = 0
    for record in range(len(records)):
        at = records[record, R_HEADERS_START]
        for _ in range(records[record, R_HEADER_COUNT]):
            length, at = read_varint(source, at, end)
            table[row, 0] = at
            table[row, 1] = length
            at += length
            length, at = read_varint(source, at, end)
            table[row, 2] = at
            table[row, 3] = length
            if length > 0:
                at += length
            row += 1
    return row


def index_messages(buffer: Bytes, start: int, end: int, table: Table, first_row: int, result: Row) -> int:
    """Index the v0 and v1 messages of a message set in ``buffer[start:end]``; write one record row for each.

    Offsets and timestamps are as stored: the inner offsets of v1 are relative. The ``batch`` column gets the magic of
    the message; the caller replaces it with the row of the batch. ``result`` is one row of RESULT_COLUMNS. Returns the
    number of the row after the last one written. A full table is not an error.
    """
    source = bytes_at(buffer)
    row = first_row
    capacity = len(table)
    at = start
    error = 0
    error_at = start
    while at < end and row < capacity:
        error_at = at
        if end - at < HEADER_V0:
            error = _ERROR_MESSAGE_CUT
            break
        length = read_i32(source, at + LENGTH_AT)
        magic = buffer[at + MAGIC_AT]
        if magic > 1:
            error = _ERROR_MESSAGE_MAGIC
            break
        if length < (MIN_V1 if magic == 1 else MIN_V0):
            error = _ERROR_MESSAGE_SIZE
            break
        if length > end - at - OVERHEAD:
            error = _ERROR_MESSAGE_CUT
            break
        stop = at + OVERHEAD + length
        timestamp = -1
        field = at + HEADER_V0
        if magic == 1:
            timestamp = read_i64(source, at + LEGACY_TIMESTAMP_AT)
            field = at + HEADER_V1
        error_at = field
        key_length = read_i32(source, field)
        field += 4
        if key_length < -1 or key_length > stop - field - 4:
            error = _ERROR_KEY
            break
        key_start = field
        if key_length > 0:
            field += key_length
        error_at = field
        value_length = read_i32(source, field)
        field += 4
        if value_length < -1 or value_length > stop - field:
            error = _ERROR_VALUE
            break
        value_start = field
        if value_length > 0:
            field += value_length
        if field != stop:
            error_at = field
            error = _ERROR_LEFT_OVER
            break
        table[row, R_BATCH] = magic
        table[row, R_OFFSET] = read_i64(source, at)
        table[row, R_TIMESTAMP] = timestamp
        table[row, R_ATTRIBUTES] = buffer[at + LEGACY_ATTRIBUTES_AT]
        table[row, R_START] = at
        table[row, R_SIZE] = stop - at
        table[row, R_KEY_START] = key_start
        table[row, R_KEY_LENGTH] = key_length
        table[row, R_VALUE_START] = value_start
        table[row, R_VALUE_LENGTH] = value_length
        table[row, R_HEADERS_START] = stop
        table[row, R_HEADER_COUNT] = -1
        row += 1
        at = stop
    if error:
        at = error_at if error_at < end else end
    result[0] = error
    result[1] = error_at
    result[2] = row - first_row
    result[3] = at
    return row
