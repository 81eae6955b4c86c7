# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot loops over the bytes of a segment, written once as plain Python.

``kernel.pxd`` beside this file gives Cython the types, and setup.py compiles this same file at install; where
there is no compiler it runs as it is. Both twins give the same columns and the same errors.

Rules that keep it so: buffers come in as memoryviews of bytes, tables as memoryviews of int64 (plain Python
indexing then gives plain ints); every index is checked here, since the compiled twin checks none; no sum may
leave 64 bits, since only one twin would wrap; damage is a number in a status row, never an exception.
"""

from format import layout

#: Columns of a batch row; one row per v2 batch or outermost v0/v1 message.
BATCH_COLUMNS = (
    "position",
    "size_bytes",
    "magic",
    "base_offset",
    "last_offset_delta",
    "record_count",  # -1: a compressed v0/v1 wrapper, unknown before it is opened
    "attributes",
    "crc",
    "leader_epoch",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
#: Columns of a record row; starts are positions in the buffer that was indexed, lengths are bytes (-1 null).
RECORD_COLUMNS = (
    "batch",  # row of its batch in the batch table
    "offset",
    "timestamp",
    "attributes",
    "start",
    "size_bytes",
    "key_start",
    "key_length",
    "value_start",
    "value_length",
    "headers_start",
    "header_count",  # -1: a format without headers
)
#: Columns of a span: the decompressed records of one v2 batch, where they lie and what their deltas add to.
SPAN_COLUMNS = (
    "batch",
    "start",
    "end",
    "record_count",
    "base_offset",
    "base_timestamp",
    "append_timestamp",  # what every record has when the timestamp type is LogAppendTime
    "is_append_time",
)
#: Columns of a span's result.
RESULT_COLUMNS = ("error", "position", "records", "end")

#: Why hopping from header to header stopped, by number.
STOPS = ("end", "more-bytes", "table-full", "bad-length", "bad-magic")
#: What is wrong with a record or message, by number; 0 is nothing.
ERRORS = (
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

_STOP_END = 0
_STOP_MORE = 1
_STOP_FULL = 2
_STOP_BAD_LENGTH = 3
_STOP_BAD_MAGIC = 4

_LENGTH_AT = layout.LOG_ENTRY.offset_of("length")
_OVERHEAD = layout.LOG_ENTRY.size_bytes
_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
_EPOCH_AT = layout.RECORD_BATCH.offset_of("leader_epoch")
_CRC_AT = layout.RECORD_BATCH.offset_of("crc")
_ATTRIBUTES_AT = layout.RECORD_BATCH.offset_of("attributes")
_LAST_DELTA_AT = layout.RECORD_BATCH.offset_of("last_offset_delta")
_BASE_TIMESTAMP_AT = layout.RECORD_BATCH.offset_of("base_timestamp")
_MAX_TIMESTAMP_AT = layout.RECORD_BATCH.offset_of("max_timestamp")
_PRODUCER_ID_AT = layout.RECORD_BATCH.offset_of("producer_id")
_PRODUCER_EPOCH_AT = layout.RECORD_BATCH.offset_of("producer_epoch")
_BASE_SEQUENCE_AT = layout.RECORD_BATCH.offset_of("base_sequence")
_COUNT_AT = layout.RECORD_BATCH.offset_of("record_count")
_HEADER_V2 = layout.RECORD_BATCH.size_bytes
_LEGACY_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_LEGACY_ATTRIBUTES_AT = layout.MESSAGE_V0.offset_of("attributes")
_LEGACY_TIMESTAMP_AT = layout.MESSAGE_V1.offset_of("timestamp")
_HEADER_V0 = layout.MESSAGE_V0.size_bytes
_HEADER_V1 = layout.MESSAGE_V1.size_bytes
_MIN_V0 = layout.MIN_MESSAGE_LENGTH
_MIN_V1 = layout.MIN_MESSAGE_LENGTH + 8
_MIN_V2 = layout.RECORD_BATCH.size_bytes - layout.LOG_ENTRY.size_bytes

_B_POSITION = BATCH_COLUMNS.index("position")
_B_SIZE = BATCH_COLUMNS.index("size_bytes")
_B_MAGIC = BATCH_COLUMNS.index("magic")
_B_BASE_OFFSET = BATCH_COLUMNS.index("base_offset")
_B_LAST_DELTA = BATCH_COLUMNS.index("last_offset_delta")
_B_COUNT = BATCH_COLUMNS.index("record_count")
_B_ATTRIBUTES = BATCH_COLUMNS.index("attributes")
_B_CRC = BATCH_COLUMNS.index("crc")
_B_EPOCH = BATCH_COLUMNS.index("leader_epoch")
_B_BASE_TIMESTAMP = BATCH_COLUMNS.index("base_timestamp")
_B_MAX_TIMESTAMP = BATCH_COLUMNS.index("max_timestamp")
_B_PRODUCER_ID = BATCH_COLUMNS.index("producer_id")
_B_PRODUCER_EPOCH = BATCH_COLUMNS.index("producer_epoch")
_B_BASE_SEQUENCE = BATCH_COLUMNS.index("base_sequence")

_R_BATCH = RECORD_COLUMNS.index("batch")
_R_OFFSET = RECORD_COLUMNS.index("offset")
_R_TIMESTAMP = RECORD_COLUMNS.index("timestamp")
_R_ATTRIBUTES = RECORD_COLUMNS.index("attributes")
_R_START = RECORD_COLUMNS.index("start")
_R_SIZE = RECORD_COLUMNS.index("size_bytes")
_R_KEY_START = RECORD_COLUMNS.index("key_start")
_R_KEY_LENGTH = RECORD_COLUMNS.index("key_length")
_R_VALUE_START = RECORD_COLUMNS.index("value_start")
_R_VALUE_LENGTH = RECORD_COLUMNS.index("value_length")
_R_HEADERS_START = RECORD_COLUMNS.index("headers_start")
_R_HEADER_COUNT = RECORD_COLUMNS.index("header_count")

_S_BATCH = SPAN_COLUMNS.index("batch")
_S_START = SPAN_COLUMNS.index("start")
_S_END = SPAN_COLUMNS.index("end")
_S_COUNT = SPAN_COLUMNS.index("record_count")
_S_BASE_OFFSET = SPAN_COLUMNS.index("base_offset")
_S_BASE_TIMESTAMP = SPAN_COLUMNS.index("base_timestamp")
_S_APPEND_TIMESTAMP = SPAN_COLUMNS.index("append_timestamp")
_S_IS_APPEND_TIME = SPAN_COLUMNS.index("is_append_time")

_TWO_31 = 0x80000000
_TWO_32 = 0x100000000
_MAX_I64 = 0x7FFFFFFFFFFFFFFF
_MIN_I64 = -0x7FFFFFFFFFFFFFFF - 1

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


def _u32(buffer, at):
    value = buffer[at]
    value = (value << 8) | buffer[at + 1]
    value = (value << 8) | buffer[at + 2]
    return (value << 8) | buffer[at + 3]


def _i32(buffer, at):
    value = _u32(buffer, at)
    return value - _TWO_32 if value >= _TWO_31 else value


def _i64(buffer, at):
    return _i32(buffer, at) * _TWO_32 + _u32(buffer, at + 4)


def _i16(buffer, at):
    value = buffer[at]
    value = (value << 8) | buffer[at + 1]
    return value - 0x10000 if value >= 0x8000 else value


def hop(buffer, start, end, file_position, table, first_row, status):
    """Hop from batch header to batch header through ``buffer[start:end]``, one table row each.

    ``file_position`` is where buffer[0] lies in the file. Returns the number of the row after the last one
    written; ``status[0]`` says why it stopped (STOPS), ``status[1]`` where: the index of the next header, which
    lies past ``end`` when the last row's batch does.
    """
    at = start
    row = first_row
    capacity = table.shape[0]
    stop = _STOP_END
    while at < end:
        if row >= capacity:
            stop = _STOP_FULL
            break
        if end - at < _MAGIC_AT + 1:
            stop = _STOP_MORE
            break
        magic = buffer[at + _MAGIC_AT]
        length = _i32(buffer, at + _LENGTH_AT)
        if magic > 2:
            # A zero or negative length says more about the place than the byte where a magic would be.
            stop = _STOP_BAD_MAGIC if length >= _MIN_V0 else _STOP_BAD_LENGTH
            break
        if magic == 2:
            if length < _MIN_V2:
                stop = _STOP_BAD_LENGTH
                break
            if end - at < _HEADER_V2:
                stop = _STOP_MORE
                break
            table[row, _B_LAST_DELTA] = _i32(buffer, at + _LAST_DELTA_AT)
            table[row, _B_COUNT] = _i32(buffer, at + _COUNT_AT)
            table[row, _B_ATTRIBUTES] = _i16(buffer, at + _ATTRIBUTES_AT)
            table[row, _B_CRC] = _u32(buffer, at + _CRC_AT)
            table[row, _B_EPOCH] = _i32(buffer, at + _EPOCH_AT)
            table[row, _B_BASE_TIMESTAMP] = _i64(buffer, at + _BASE_TIMESTAMP_AT)
            table[row, _B_MAX_TIMESTAMP] = _i64(buffer, at + _MAX_TIMESTAMP_AT)
            table[row, _B_PRODUCER_ID] = _i64(buffer, at + _PRODUCER_ID_AT)
            table[row, _B_PRODUCER_EPOCH] = _i16(buffer, at + _PRODUCER_EPOCH_AT)
            table[row, _B_BASE_SEQUENCE] = _i32(buffer, at + _BASE_SEQUENCE_AT)
        else:
            if length < (_MIN_V1 if magic == 1 else _MIN_V0):
                stop = _STOP_BAD_LENGTH
                break
            if end - at < (_HEADER_V1 if magic == 1 else _HEADER_V0):
                stop = _STOP_MORE
                break
            attributes = buffer[at + _LEGACY_ATTRIBUTES_AT]
            table[row, _B_LAST_DELTA] = 0
            table[row, _B_COUNT] = -1 if attributes & 7 else 1
            table[row, _B_ATTRIBUTES] = attributes
            table[row, _B_CRC] = _u32(buffer, at + _LEGACY_CRC_AT)
            table[row, _B_EPOCH] = -1
            timestamp = -1
            if magic == 1:
                timestamp = _i64(buffer, at + _LEGACY_TIMESTAMP_AT)
            table[row, _B_BASE_TIMESTAMP] = timestamp
            table[row, _B_MAX_TIMESTAMP] = timestamp
            table[row, _B_PRODUCER_ID] = -1
            table[row, _B_PRODUCER_EPOCH] = -1
            table[row, _B_BASE_SEQUENCE] = -1
        table[row, _B_POSITION] = file_position + at
        table[row, _B_SIZE] = _OVERHEAD + length
        table[row, _B_MAGIC] = magic
        table[row, _B_BASE_OFFSET] = _i64(buffer, at)
        row += 1
        at += _OVERHEAD + length
    status[0] = stop
    status[1] = at
    return row


def find_candidate(buffer, start, end, min_base_offset, max_size_bytes):
    """The first index in ``buffer[start:end]`` where a plausible batch or message header lies, else -1.

    Plausible: a magic and attributes that exist, a base offset of at least ``min_base_offset``, a size of at
    most ``max_size_bytes`` from there, counts that are not negative. The caller then checks the CRC.
    """
    at = start
    last = end - _HEADER_V0
    while at <= last:
        magic = buffer[at + _MAGIC_AT]
        if magic <= 2:
            length = _i32(buffer, at + _LENGTH_AT)
            if length >= _MIN_V0 and _OVERHEAD + length <= max_size_bytes - (at - start):
                base_offset = _i64(buffer, at)
                if base_offset >= min_base_offset:
                    if magic == 2:
                        if (
                            length >= _MIN_V2
                            and end - at >= _HEADER_V2
                            and _i16(buffer, at + _ATTRIBUTES_AT) & 0x7FFF < 0x80
                            and (buffer[at + _ATTRIBUTES_AT + 1] & 7) <= 4
                            and _i32(buffer, at + _LAST_DELTA_AT) >= 0
                            and _i32(buffer, at + _COUNT_AT) >= 0
                            and _i32(buffer, at + _EPOCH_AT) >= -1
                        ):
                            return at
                    else:
                        attributes = buffer[at + _LEGACY_ATTRIBUTES_AT]
                        if attributes <= 0x0F and (attributes & 7) <= 3 and (magic == 0 or length >= _MIN_V1):
                            return at
        at += 1
    return -1


def _varint(buffer, at, end):
    """A zigzag varint of 32 bits: its value and the index after it; that index is -1 or -2 for an error."""
    shift = 0
    value = 0
    while at < end:
        byte = buffer[at]
        at += 1
        if shift == 28 and byte > 0x0F:
            return 0, (-1 if byte & 0x80 else -2)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            half = value >> 1
            return (-half - 1 if value & 1 else half), at
        shift += 7
    return 0, -1


def _varlong(buffer, at, end):
    """A zigzag varint of 64 bits: its value and the index after it; that index is -1 or -2 for an error."""
    shift = 0
    low = 0  # seven groups of seven bits, 49 in all, then the rest: no sum leaves 63 bits
    high = 0
    while at < end:
        byte = buffer[at]
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


def index_records(buffer, spans, first, last, table, first_row, results):
    """Index the fields of all records of the v2 batches in ``spans[first:last]``, one table row a record.

    Nothing is copied: a row holds where each field lies in the buffer. ``results[i]`` gets, for span i, an error
    number (ERRORS, 0 for none), where it is, how many records were read, and the index after the last of them.
    A span stops at its first error, at its record count, or when the table is full (no error, fewer records).
    Returns the number of the row after the last one written.
    """
    row = first_row
    capacity = table.shape[0]
    for span in range(first, last):
        batch = spans[span, _S_BATCH]
        at = spans[span, _S_START]
        end = spans[span, _S_END]
        count = spans[span, _S_COUNT]
        base_offset = spans[span, _S_BASE_OFFSET]
        base_timestamp = spans[span, _S_BASE_TIMESTAMP]
        append_timestamp = spans[span, _S_APPEND_TIMESTAMP]
        is_append_time = spans[span, _S_IS_APPEND_TIME]
        done = 0
        error = 0
        error_at = at
        while done < count and at < end and row < capacity:
            start = at
            error_at = at
            length, at = _varint(buffer, at, end)
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
            timestamp_delta, at = _varlong(buffer, at + 1, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            error_at = at
            offset_delta, at = _varint(buffer, at, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            if (offset_delta > 0 and base_offset > _MAX_I64 - offset_delta) or (
                offset_delta < 0 and base_offset < _MIN_I64 - offset_delta
            ):
                error = _ERROR_OFFSET
                break
            if is_append_time:
                timestamp = append_timestamp
            else:
                if (timestamp_delta > 0 and base_timestamp > _MAX_I64 - timestamp_delta) or (
                    timestamp_delta < 0 and base_timestamp < _MIN_I64 - timestamp_delta
                ):
                    error = _ERROR_TIMESTAMP
                    break
                timestamp = base_timestamp + timestamp_delta
            error_at = at
            key_length, at = _varint(buffer, at, stop)
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
            value_length, at = _varint(buffer, at, stop)
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
            header_count, at = _varint(buffer, at, stop)
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
                part_length, at = _varint(buffer, at, stop)
                if at < 0:
                    error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                    break
                if part_length < 0 or part_length > stop - at:
                    error = _ERROR_HEADER_KEY
                    break
                at += part_length
                error_at = at
                part_length, at = _varint(buffer, at, stop)
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
            table[row, _R_BATCH] = batch
            table[row, _R_OFFSET] = base_offset + offset_delta
            table[row, _R_TIMESTAMP] = timestamp
            table[row, _R_ATTRIBUTES] = attributes
            table[row, _R_START] = start
            table[row, _R_SIZE] = at - start
            table[row, _R_KEY_START] = key_start
            table[row, _R_KEY_LENGTH] = key_length
            table[row, _R_VALUE_START] = value_start
            table[row, _R_VALUE_LENGTH] = value_length
            table[row, _R_HEADERS_START] = headers_start
            table[row, _R_HEADER_COUNT] = header_count
            row += 1
            done += 1
        if error:
            at = error_at
        results[span, 0] = error
        results[span, 1] = error_at
        results[span, 2] = done
        results[span, 3] = at
    return row


def index_headers(buffer, start, end, count, table):
    """Index ``count`` record headers that index_records has checked: key start and length, value start and length."""
    at = start
    for row in range(count):
        length, at = _varint(buffer, at, end)
        table[row, 0] = at
        table[row, 1] = length
        at += length
        length, at = _varint(buffer, at, end)
        table[row, 2] = at
        table[row, 3] = length
        if length > 0:
            at += length
    return at


def index_messages(buffer, start, end, table, first_row, result):
    """Index the v0 and v1 messages of a message set in ``buffer[start:end]``, one record row each.

    Offsets and timestamps are as stored (v1 inner offsets are relative); ``batch`` gets the message's magic, which
    the caller reads before it puts the batch's row there. ``result`` is one row of RESULT_COLUMNS.
    Returns the number of the row after the last one written; a full table is no error.
    """
    row = first_row
    capacity = table.shape[0]
    at = start
    error = 0
    error_at = start
    while at < end and row < capacity:
        error_at = at
        if end - at < _HEADER_V0:
            error = _ERROR_MESSAGE_CUT
            break
        length = _i32(buffer, at + _LENGTH_AT)
        magic = buffer[at + _MAGIC_AT]
        if magic > 1:
            error = _ERROR_MESSAGE_MAGIC
            break
        if length < (_MIN_V1 if magic == 1 else _MIN_V0):
            error = _ERROR_MESSAGE_SIZE
            break
        if length > end - at - _OVERHEAD:
            error = _ERROR_MESSAGE_CUT
            break
        stop = at + _OVERHEAD + length
        timestamp = -1
        field = at + _HEADER_V0
        if magic == 1:
            timestamp = _i64(buffer, at + _LEGACY_TIMESTAMP_AT)
            field = at + _HEADER_V1
        error_at = field
        key_length = _i32(buffer, field)
        field += 4
        if key_length < -1 or key_length > stop - field - 4:
            error = _ERROR_KEY
            break
        key_start = field
        if key_length > 0:
            field += key_length
        error_at = field
        value_length = _i32(buffer, field)
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
        table[row, _R_BATCH] = magic
        table[row, _R_OFFSET] = _i64(buffer, at)
        table[row, _R_TIMESTAMP] = timestamp
        table[row, _R_ATTRIBUTES] = buffer[at + _LEGACY_ATTRIBUTES_AT]
        table[row, _R_START] = at
        table[row, _R_SIZE] = stop - at
        table[row, _R_KEY_START] = key_start
        table[row, _R_KEY_LENGTH] = key_length
        table[row, _R_VALUE_START] = value_start
        table[row, _R_VALUE_LENGTH] = value_length
        table[row, _R_HEADERS_START] = stop
        table[row, _R_HEADER_COUNT] = -1
        row += 1
        at = stop
    if error:
        at = error_at if error_at < end else end
    result[0] = error
    result[1] = error_at
    result[2] = row - first_row
    result[3] = at
    return row


def _is_utf8(buffer, at, end):
    """Whether the bytes are well-formed UTF-8 (no overlong forms, surrogates or code points past U+10FFFF)."""
    while at < end:
        byte = buffer[at]
        if byte < 0x80:
            at += 1
            continue
        if byte < 0xC2 or byte > 0xF4:
            return False
        more = 1 if byte < 0xE0 else (2 if byte < 0xF0 else 3)
        if end - at <= more:
            return False
        second = buffer[at + 1]
        if second & 0xC0 != 0x80:
            return False
        if (
            (byte == 0xE0 and second < 0xA0)
            or (byte == 0xED and second > 0x9F)
            or (byte == 0xF0 and second < 0x90)
            or (byte == 0xF4 and second > 0x8F)
        ):
            return False
        if more > 1 and buffer[at + 2] & 0xC0 != 0x80:
            return False
        if more > 2 and buffer[at + 3] & 0xC0 != 0x80:
            return False
        at += more + 1
    return True


def find_bad_header_key(buffer, table, first):
    """The first row at or after ``first`` of an indexed record table with a header key that is not UTF-8, else -1."""
    end = buffer.shape[0]
    for row in range(first, table.shape[0]):
        at = table[row, _R_HEADERS_START]
        count = table[row, _R_HEADER_COUNT]
        header = 0
        while header < count:
            length, at = _varint(buffer, at, end)
            if not _is_utf8(buffer, at, at + length):
                return row
            at += length
            length, at = _varint(buffer, at, end)
            if length > 0:
                at += length
            header += 1
    return -1
