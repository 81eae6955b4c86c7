# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot loops over the bytes of a segment, written once as plain Python.

``kernel.pxd`` beside this file gives Cython the types, and setup.py compiles this same file at install; where
there is no compiler it runs as it is. Both twins give the same columns and the same errors.

Rules that keep it so: buffers come in as memoryviews of bytes, tables as memoryviews of int64 (plain Python
indexing then gives plain ints); every index is checked here, since the compiled twin checks none; no sum may
leave 64 bits, since only one twin would wrap; damage is a number in a status row, never an exception.
"""

from format import layout
from format.kernel_memory import *  # which the compiled twin has from kernel_memory.pxd

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
#: What put_v2_records takes for a record at the most, besides its key, its value and its headers.
NEW_RECORD_BYTES = 48
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
STOPS = ("end", "more-bytes", "table-full", "bad-length", "bad-magic", "suspicious")
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

#: Kinds of fields of a row of text, by number: of its batch, then of the record.
FIELDS = (
    "end",
    "number",
    "v2",  # a number, null before v2
    "timed",  # null in v0
    "count",
    "last-offset",
    "base-timestamp",
    "delete-horizon",
    "codec",
    "timestamp-type",
    "bit",
    "crc-valid",
    "record-number",
    "record-timestamp",
    "record-sequence",
    "record-bytes",
    "record-headers",
)
#: Words in a row of text, by number.
LITERALS = (
    "null",
    "false",
    "true",
    layout.NO_TIMESTAMP_TYPE,
    *layout.TIMESTAMP_TYPE_NAMES,
    *layout.CODEC_NAMES,
    "unknown-5",
    "unknown-6",
    "unknown-7",
)
#: What stands in the tables of characters between the bytes' classes and the bits of the unsafe characters.
CHARACTER_WORDS = (
    b"null",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b'{"base64":"',
    b'"}',
)

_STOP_END = 0
_STOP_MORE = 1
_STOP_FULL = 2
_STOP_BAD_LENGTH = 3
_STOP_BAD_MAGIC = 4
_STOP_SUSPICIOUS = 5

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

_CONTROL_KEY_BYTES = layout.CONTROL_KEY.size_bytes
_CONTROL_TYPE_AT = layout.CONTROL_KEY.offset_of("type")
_END_MARKER_BYTES = layout.END_TRANSACTION_MARKER.size_bytes
_LAST_END_MARKER_TYPE = layout.CONTROL_TYPES.index("COMMIT")  # ABORT, the other one, is 0
_CRC_START_V2 = layout.RECORD_BATCH.offset_of("attributes")
_CRC_START_LEGACY = layout.MESSAGE_V0.offset_of("magic")
_LEGACY_TABLES = 16 * 256  # where checksums.crc_tables() has those of CRC-32, after those of CRC-32C

_CODEC_MASK = layout.CODEC_MASK
_TIMESTAMP_TYPE_BIT = layout.TIMESTAMP_TYPE_BIT
_CONTROL_BIT = layout.CONTROL_BIT
_KNOWN_V0 = layout.KNOWN_ATTRIBUTES_V0
_KNOWN_V1 = layout.KNOWN_ATTRIBUTES_V1
_KNOWN_V2 = layout.KNOWN_ATTRIBUTES_V2

_F_END = FIELDS.index("end")
_F_V2 = FIELDS.index("v2")
_F_TIMED = FIELDS.index("timed")
_F_COUNT = FIELDS.index("count")
_F_LAST_OFFSET = FIELDS.index("last-offset")
_F_BASE_TIMESTAMP = FIELDS.index("base-timestamp")
_F_DELETE_HORIZON = FIELDS.index("delete-horizon")
_F_CODEC = FIELDS.index("codec")
_F_TIMESTAMP_TYPE = FIELDS.index("timestamp-type")
_F_BIT = FIELDS.index("bit")
_F_CRC_VALID = FIELDS.index("crc-valid")
_F_RECORD = FIELDS.index("record-number")
_F_RECORD_TIMESTAMP = FIELDS.index("record-timestamp")
_F_RECORD_SEQUENCE = FIELDS.index("record-sequence")
_F_RECORD_BYTES = FIELDS.index("record-bytes")
_F_RECORD_HEADERS = FIELDS.index("record-headers")
_L_NULL = LITERALS.index("null")
_L_FALSE = LITERALS.index("false")
_L_TIMESTAMP_TYPES = LITERALS.index(layout.NO_TIMESTAMP_TYPE)
_L_CODECS = LITERALS.index(layout.CODEC_NAMES[0])
# What lies where in the tables of characters.
_TEXT_CLASSES = 256
_BARE_CLASSES = _TEXT_CLASSES + 256
_JSON_NULL = _BARE_CLASSES + 256
_ALPHABET = _JSON_NULL + len(CHARACTER_WORDS[0])
_BASE64_START = _ALPHABET + len(CHARACTER_WORDS[1])
_BASE64_END = _BASE64_START + len(CHARACTER_WORDS[2])
_UNSAFE = _BASE64_END + len(CHARACTER_WORDS[3])
_LETTER_U = 0x75
_LETTER_X = 0x78
_MURMUR2_SEED = 0x9747B28C
_MURMUR2_MULTIPLIER = 0x5BD1E995
_MURMUR2_MASK = 0xFFFFFFFF
_DELETE_HORIZON_BIT = layout.DELETE_HORIZON_BIT
_MAX_SEQUENCE = layout.MAX_RELATIVE_OFFSET
_MOST_NUMBERS = 256 + PIECE_BYTES  # bytes of a record's numbers, quotes and brackets
_MOST_PER_BYTE = 6  # what one byte of a key, value or header may become
_MOST_PER_HEADER = 48  # what a header takes besides

_NINE_E18 = 9000000000000000000
_TWO_31 = 0x80000000
_TWO_32 = 0x100000000
_U32_MAX = 0xFFFFFFFF
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


def _u32(source, at):
    value = source[at]
    value = (value << 8) | source[at + 1]
    value = (value << 8) | source[at + 2]
    return (value << 8) | source[at + 3]


def _i32(source, at):
    value = _u32(source, at)
    return value - _TWO_32 if value >= _TWO_31 else value


def _i64(source, at):
    return _i32(source, at) * _TWO_32 + _u32(source, at + 4)


def _i16(source, at):
    value = source[at]
    value = (value << 8) | source[at + 1]
    return value - 0x10000 if value >= 0x8000 else value


def hop(buffer, start, end, file_position, table, first_row, status):
    """Hop from batch header to batch header through ``buffer[start:end]``, one table row each.

    ``file_position`` is where buffer[0] lies in the file. Returns the number of the row after the last one
    written; ``status[0]`` says why it stopped (STOPS), ``status[1]`` where: the index of the next header, which
    lies past ``end`` when the last row's batch does.

    ``status[2]`` is the least base offset that the next batch may have, kept up from batch to batch: where no CRC
    is looked at, a header below it, or of v0 or v1 with attributes that no version knows, stops the hopping as
    suspicious. A negative one takes every header that leads on.
    """
    source = bytes_at(buffer)
    at = start
    row = first_row
    capacity = table.shape[0]
    stop = _STOP_END
    least_offset = status[2]
    while at < end:
        if row >= capacity:
            stop = _STOP_FULL
            break
        if end - at < _MAGIC_AT + 1:
            stop = _STOP_MORE
            break
        magic = buffer[at + _MAGIC_AT]
        length = _i32(source, at + _LENGTH_AT)
        if magic > 2:
            # A zero or negative length says more about the place than the byte where a magic would be.
            stop = _STOP_BAD_MAGIC if length >= _MIN_V0 else _STOP_BAD_LENGTH
            break
        base_offset = _i64(source, at)
        if least_offset >= 0 and (
            base_offset < least_offset
            or (magic < 2 and end - at > _LEGACY_ATTRIBUTES_AT and buffer[at + _LEGACY_ATTRIBUTES_AT] > 0x0F)
        ):
            stop = _STOP_SUSPICIOUS if length >= _MIN_V0 else _STOP_BAD_LENGTH
            break
        if magic == 2:
            if length < _MIN_V2:
                stop = _STOP_BAD_LENGTH
                break
            if end - at < _HEADER_V2:
                stop = _STOP_MORE
                break
            table[row, _B_LAST_DELTA] = _i32(source, at + _LAST_DELTA_AT)
            table[row, _B_COUNT] = _i32(source, at + _COUNT_AT)
            table[row, _B_ATTRIBUTES] = _i16(source, at + _ATTRIBUTES_AT)
            table[row, _B_CRC] = _u32(source, at + _CRC_AT)
            table[row, _B_EPOCH] = _i32(source, at + _EPOCH_AT)
            table[row, _B_BASE_TIMESTAMP] = _i64(source, at + _BASE_TIMESTAMP_AT)
            table[row, _B_MAX_TIMESTAMP] = _i64(source, at + _MAX_TIMESTAMP_AT)
            table[row, _B_PRODUCER_ID] = _i64(source, at + _PRODUCER_ID_AT)
            table[row, _B_PRODUCER_EPOCH] = _i16(source, at + _PRODUCER_EPOCH_AT)
            table[row, _B_BASE_SEQUENCE] = _i32(source, at + _BASE_SEQUENCE_AT)
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
            table[row, _B_CRC] = _u32(source, at + _LEGACY_CRC_AT)
            table[row, _B_EPOCH] = -1
            timestamp = -1
            if magic == 1:
                timestamp = _i64(source, at + _LEGACY_TIMESTAMP_AT)
            table[row, _B_BASE_TIMESTAMP] = timestamp
            table[row, _B_MAX_TIMESTAMP] = timestamp
            table[row, _B_PRODUCER_ID] = -1
            table[row, _B_PRODUCER_EPOCH] = -1
            table[row, _B_BASE_SEQUENCE] = -1
        table[row, _B_POSITION] = file_position + at
        table[row, _B_SIZE] = _OVERHEAD + length
        table[row, _B_MAGIC] = magic
        table[row, _B_BASE_OFFSET] = base_offset
        if least_offset >= 0 and base_offset < _MAX_I64:
            least_offset = base_offset + 1
        row += 1
        at += _OVERHEAD + length
    status[0] = stop
    status[1] = at
    status[2] = least_offset
    return row


def skip_batches(buffer, start, end, room, target, status):
    """Hop as ``hop`` does from ``start`` to the first batch that ends after ``target``, writing no rows.

    A batch counts whose header ``hop`` would accept and which ends at or before ``room``, where the file does.
    Returns 0 when such a batch is found, 1 when the next header is not whole in ``buffer[:end]``, 2 when something
    else than such a batch comes. ``status`` gets the index where it stopped, that of the last batch before it (-1 for
    none), and the size of the batch that was found.
    """
    source = bytes_at(buffer)
    at = start
    before = -1
    outcome = 1
    length = -_OVERHEAD
    while end - at > _MAGIC_AT:
        magic = buffer[at + _MAGIC_AT]
        length = _i32(source, at + _LENGTH_AT)
        header_bytes = _HEADER_V2
        least = _MIN_V2
        if magic == 0:
            header_bytes = _HEADER_V0
            least = _MIN_V0
        elif magic == 1:
            header_bytes = _HEADER_V1
            least = _MIN_V1
        if magic > 2 or length < least or length > room - at - _OVERHEAD:
            outcome = 2
            break
        if end - at < header_bytes:
            break
        if length > target - at - _OVERHEAD:
            outcome = 0
            break
        before = at
        at += _OVERHEAD + length
    status[0] = at
    status[1] = before
    status[2] = _OVERHEAD + length
    return outcome


def find_candidate(buffer, start, end, min_base_offset, max_size_bytes):
    """The first index in ``buffer[start:end]`` where a plausible batch or message header lies, else -1.

    Plausible: a magic that exists (and attributes, in v0 and v1), a base offset of at least ``min_base_offset``, a
    size of at most ``max_size_bytes`` from ``start`` on. The caller then checks the CRC.
    """
    source = bytes_at(buffer)
    at = start
    last = end - _HEADER_V0
    while at <= last:
        magic = buffer[at + _MAGIC_AT]
        if magic <= 2:
            length = _i32(source, at + _LENGTH_AT)
            if length >= _MIN_V0 and _OVERHEAD + length <= max_size_bytes - (at - start):
                base_offset = _i64(source, at)
                if base_offset >= min_base_offset:
                    if magic == 2:
                        # Under a right CRC fields that contradict each other are damage of another kind.
                        if length >= _MIN_V2 and end - at >= _HEADER_V2:
                            return at
                    else:
                        attributes = buffer[at + _LEGACY_ATTRIBUTES_AT]
                        if attributes <= 0x0F and (attributes & 7) <= 3 and (magic == 0 or length >= _MIN_V1):
                            return at
        at += 1
    return -1


def _varint(source, at, end):
    """A zigzag varint of 32 bits: its value and the index after it; that index is -1 or -2 for an error."""
    shift = 0
    value = 0
    while at < end:
        byte = source[at]
        at += 1
        if shift == 28 and byte > 0x0F:
            return 0, (-1 if byte & 0x80 else -2)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            half = value >> 1
            return (-half - 1 if value & 1 else half), at
        shift += 7
    return 0, -1


def _varlong(source, at, end):
    """A zigzag varint of 64 bits: its value and the index after it; that index is -1 or -2 for an error."""
    shift = 0
    low = 0  # seven groups of seven bits, 49 in all, then the rest: no sum leaves 63 bits
    high = 0
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


def _crc(source, at, end, tables, first):
    """The CRC of ``source[at:end]`` by the sixteen tables of 256 from ``tables[first]`` on: sixteen bytes a step."""
    crc = _U32_MAX
    while end - at >= 16:
        crc ^= source[at] | source[at + 1] << 8 | source[at + 2] << 16 | (source[at + 3] << 24)
        crc = (
            tables[first + 3840 + (crc & 0xFF)]
            ^ tables[first + 3584 + (crc >> 8 & 0xFF)]
            ^ tables[first + 3328 + (crc >> 16 & 0xFF)]
            ^ tables[first + 3072 + (crc >> 24)]
            ^ tables[first + 2816 + source[at + 4]]
            ^ tables[first + 2560 + source[at + 5]]
            ^ tables[first + 2304 + source[at + 6]]
            ^ tables[first + 2048 + source[at + 7]]
            ^ tables[first + 1792 + source[at + 8]]
            ^ tables[first + 1536 + source[at + 9]]
            ^ tables[first + 1280 + source[at + 10]]
            ^ tables[first + 1024 + source[at + 11]]
            ^ tables[first + 768 + source[at + 12]]
            ^ tables[first + 512 + source[at + 13]]
            ^ tables[first + 256 + source[at + 14]]
            ^ tables[first + source[at + 15]]
        )
        at += 16
    while at < end:
        crc = crc >> 8 ^ tables[first + (crc & 0xFF ^ source[at])]
        at += 1
    return crc ^ _U32_MAX


def check_crcs(buffer, buffer_position, table, largest_bytes, tables, valid):
    """Fill ``valid``, a byte a row, for the batches of at most ``largest_bytes``: 1 for a right CRC, else 0.

    The batches lie whole in ``buffer``. ``tables`` is checksums.crc_tables(). Returns how many rows are left, those
    of larger batches, which stay as they are.
    """
    source = bytes_at(buffer)
    words = words_at(tables)
    left = 0
    for row in range(table.shape[0]):
        at = table[row, _B_POSITION] - buffer_position
        size_bytes = table[row, _B_SIZE]
        if size_bytes > largest_bytes:
            left += 1
        elif table[row, _B_MAGIC] == 2:
            valid[row] = _crc(source, at + _CRC_START_V2, at + size_bytes, words, 0) == table[row, _B_CRC]
        else:
            crc = _crc(source, at + _CRC_START_LEGACY, at + size_bytes, words, _LEGACY_TABLES)
            valid[row] = crc == table[row, _B_CRC]
    return left


def find_doubtful_header(table, latest_timestamp):
    """The first batch row whose header's fields deserve a closer look, else -1.

    Quick, and strict: a row that it passes would get no finding from ``check_batch_headers``, which looks closer.
    """
    for row in range(table.shape[0]):
        magic = table[row, _B_MAGIC]
        attributes = table[row, _B_ATTRIBUTES]
        base_offset = table[row, _B_BASE_OFFSET]
        last_delta = table[row, _B_LAST_DELTA]
        timestamp = table[row, _B_MAX_TIMESTAMP]
        if last_delta < 0 or base_offset < 0 or base_offset > _MAX_I64 - last_delta:
            return row
        if timestamp < -1 or timestamp > latest_timestamp:
            return row
        if magic != 2:
            if attributes & ~(_KNOWN_V1 if magic else _KNOWN_V0):
                return row
            continue
        if attributes & ~_KNOWN_V2 or (attributes & _CONTROL_BIT and attributes & _CODEC_MASK):
            return row
        if table[row, _B_COUNT] < 0 or table[row, _B_COUNT] > last_delta + 1 or table[row, _B_EPOCH] < -1:
            return row
        if table[row, _B_PRODUCER_ID] < -1 or table[row, _B_BASE_SEQUENCE] < -1:
            return row
        if (table[row, _B_PRODUCER_ID] >= 0) != (table[row, _B_PRODUCER_EPOCH] >= 0):
            return row
    return -1


def find_doubtful_record(buffer, records, batches, max_record_bytes, tables):
    """The first record row that deserves a closer look, or the first of a batch that does, else -1.

    ``records`` is an indexed record table, ``batches`` the batch table that its batch column points into. Quick, and
    strict: a batch that it passes would get no finding from ``check_records``, which looks closer.
    """
    source = bytes_at(buffer)
    words = words_at(tables)
    row = 0
    end = buffer.shape[0]
    count = records.shape[0]
    while row < count:
        first = row
        batch = records[row, _R_BATCH]
        magic = batches[batch, _B_MAGIC]
        attributes = batches[batch, _B_ATTRIBUTES]
        base_offset = batches[batch, _B_BASE_OFFSET]
        last_delta = batches[batch, _B_LAST_DELTA]
        if last_delta < 0 or base_offset < 0 or base_offset > _MAX_I64 - last_delta:
            return row
        is_control = magic == 2 and attributes & _CONTROL_BIT
        is_inner = magic != 2 and attributes & _CODEC_MASK
        previous = -1
        if magic == 2:
            previous = base_offset - 1
        largest = records[row, _R_TIMESTAMP]
        while row < count and records[row, _R_BATCH] == batch:
            if records[row, _R_OFFSET] <= previous or records[row, _R_SIZE] > max_record_bytes:
                return row
            previous = records[row, _R_OFFSET]
            if records[row, _R_TIMESTAMP] > largest:
                largest = records[row, _R_TIMESTAMP]
            if magic == 2:
                if records[row, _R_ATTRIBUTES]:
                    return row
                if records[row, _R_HEADER_COUNT] and not _are_header_keys_utf8(
                    source, records[row, _R_HEADERS_START], end, records[row, _R_HEADER_COUNT]
                ):
                    return row
                if is_control and not _is_control_record(source, records, row):
                    return row
            elif is_inner:
                at = records[row, _R_START]
                crc = _crc(source, at + _CRC_START_LEGACY, at + records[row, _R_SIZE], words, _LEGACY_TABLES)
                if crc != _u32(source, at + _LEGACY_CRC_AT):
                    return row
            row += 1
        if magic == 2 and previous > base_offset + last_delta:
            return first
        if magic and not attributes & _TIMESTAMP_TYPE_BIT and largest != batches[batch, _B_MAX_TIMESTAMP]:
            return first
    return -1


def find_misplaced_record(buffer, records, batches, partition, partition_count, first):
    """The first record row from ``first`` on whose key belongs in another partition by Kafka's default partitioner.

    Else -1. Records without a key, and control records, belong anywhere.
    """
    source = bytes_at(buffer)
    for row in range(first, records.shape[0]):
        if records[row, _R_KEY_LENGTH] < 0:
            continue
        batch = records[row, _R_BATCH]
        if batches[batch, _B_MAGIC] == 2 and batches[batch, _B_ATTRIBUTES] & _CONTROL_BIT:
            continue
        digest = _murmur2(source, records[row, _R_KEY_START], records[row, _R_KEY_LENGTH])
        if (digest & _MAX_SEQUENCE) % partition_count != partition:
            return row
    return -1


def murmur2(buffer, at, length):
    """The unsigned 32-bit murmur2 hash of ``buffer[at:at + length]`` (clients common/utils/Utils.murmur2)."""
    return _murmur2(bytes_at(buffer), at, length)


def _murmur2(source, at, length):
    digest = _MURMUR2_SEED ^ (length & _MURMUR2_MASK)
    left = length
    while left >= 4:
        word = source[at + 3]
        word = word << 24 | source[at + 2] << 16 | source[at + 1] << 8 | source[at]
        word = word * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
        word = (word ^ word >> 24) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
        digest = digest * _MURMUR2_MULTIPLIER & _MURMUR2_MASK ^ word
        at += 4
        left -= 4
    if left:
        if left == 3:
            digest ^= source[at + 2] << 16
        if left >= 2:
            digest ^= source[at + 1] << 8
        digest = (digest ^ source[at]) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
    digest = (digest ^ digest >> 13) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
    return digest ^ digest >> 15


def _is_control_record(source, records, row):
    """Whether the key, and the value of an end transaction marker, are long enough and of a version that exists."""
    at = records[row, _R_KEY_START]
    if records[row, _R_KEY_LENGTH] < _CONTROL_KEY_BYTES or source[at] & 0x80:
        return False
    if _i16(source, at + _CONTROL_TYPE_AT) < 0 or _i16(source, at + _CONTROL_TYPE_AT) > _LAST_END_MARKER_TYPE:
        return True
    at = records[row, _R_VALUE_START]
    return records[row, _R_VALUE_LENGTH] >= _END_MARKER_BYTES and not source[at] & 0x80


def _are_header_keys_utf8(source, at, end, count):
    header = 0
    while header < count:
        length, at = _varint(source, at, end)
        if not _is_utf8(source, at, at + length):
            return False
        at += length
        length, at = _varint(source, at, end)
        if length > 0:
            at += length
        header += 1
    return True


def index_records(buffer, spans, first, last, table, first_row, results):
    """Index the fields of all records of the v2 batches in ``spans[first:last]``, one table row a record.

    Nothing is copied: a row holds where each field lies in the buffer. ``results[i]`` gets, for span i, an error
    number (ERRORS, 0 for none), where it is, how many records were read, and the index after the last of them.
    A span stops at its first error, at its record count, or when the table is full (no error, fewer records).
    Returns the number of the row after the last one written.
    """
    source = bytes_at(buffer)
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
            length, at = _varint(source, at, end)
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
            timestamp_delta, at = _varlong(source, at + 1, stop)
            if at < 0:
                error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                break
            error_at = at
            offset_delta, at = _varint(source, at, stop)
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
            key_length, at = _varint(source, at, stop)
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
            value_length, at = _varint(source, at, stop)
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
            header_count, at = _varint(source, at, stop)
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
                part_length, at = _varint(source, at, stop)
                if at < 0:
                    error = _ERROR_VARINT if at == -1 else _ERROR_VARINT_OVERFLOW
                    break
                if part_length < 0 or part_length > stop - at:
                    error = _ERROR_HEADER_KEY
                    break
                at += part_length
                error_at = at
                part_length, at = _varint(source, at, stop)
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
    source = bytes_at(buffer)
    at = start
    for row in range(count):
        length, at = _varint(source, at, end)
        table[row, 0] = at
        table[row, 1] = length
        at += length
        length, at = _varint(source, at, end)
        table[row, 2] = at
        table[row, 3] = length
        if length > 0:
            at += length
    return at


def index_record_headers(buffer, records, table):
    """Index the headers of all rows of an indexed record table, one row each as ``index_headers`` makes them.

    ``table`` must have a row for every header of ``records``; returns how many were written.
    """
    source = bytes_at(buffer)
    end = buffer.shape[0]
    row = 0
    for record in range(records.shape[0]):
        at = records[record, _R_HEADERS_START]
        for _ in range(records[record, _R_HEADER_COUNT]):
            length, at = _varint(source, at, end)
            table[row, 0] = at
            table[row, 1] = length
            at += length
            length, at = _varint(source, at, end)
            table[row, 2] = at
            table[row, 3] = length
            if length > 0:
                at += length
            row += 1
    return row


def index_messages(buffer, start, end, table, first_row, result):
    """Index the v0 and v1 messages of a message set in ``buffer[start:end]``, one record row each.

    Offsets and timestamps are as stored (v1 inner offsets are relative); ``batch`` gets the message's magic, which
    the caller reads before it puts the batch's row there. ``result`` is one row of RESULT_COLUMNS.
    Returns the number of the row after the last one written; a full table is no error.
    """
    source = bytes_at(buffer)
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
        length = _i32(source, at + _LENGTH_AT)
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
            timestamp = _i64(source, at + _LEGACY_TIMESTAMP_AT)
            field = at + _HEADER_V1
        error_at = field
        key_length = _i32(source, field)
        field += 4
        if key_length < -1 or key_length > stop - field - 4:
            error = _ERROR_KEY
            break
        key_start = field
        if key_length > 0:
            field += key_length
        error_at = field
        value_length = _i32(source, field)
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
        table[row, _R_OFFSET] = _i64(source, at)
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


def _is_utf8(source, at, end):
    """Whether the bytes are well-formed UTF-8 (no overlong forms, surrogates or code points past U+10FFFF)."""
    while at < end:
        byte = source[at]
        if byte < 0x80:
            at += 1
            continue
        if byte < 0xC2 or byte > 0xF4:
            return False
        more = 1 if byte < 0xE0 else (2 if byte < 0xF0 else 3)
        if end - at <= more:
            return False
        second = source[at + 1]
        if second & 0xC0 != 0x80:
            return False
        if (
            (byte == 0xE0 and second < 0xA0)
            or (byte == 0xED and second > 0x9F)
            or (byte == 0xF0 and second < 0x90)
            or (byte == 0xF4 and second > 0x8F)
        ):
            return False
        if more > 1 and source[at + 2] & 0xC0 != 0x80:
            return False
        if more > 2 and source[at + 3] & 0xC0 != 0x80:
            return False
        at += more + 1
    return True


def find_bad_header_key(buffer, table, first):
    """The first row at or after ``first`` of an indexed record table with a header key that is not UTF-8, else -1."""
    source = bytes_at(buffer)
    end = buffer.shape[0]
    for row in range(first, table.shape[0]):
        if not _are_header_keys_utf8(source, table[row, _R_HEADERS_START], end, table[row, _R_HEADER_COUNT]):
            return row
    return -1


def find_in_fields(buffer, fields, wanted, found):
    """Where ``wanted`` first lies in each field, counted from its start, or -1; no bytes lie at its start.

    ``fields`` has a start and an end in the buffer for each, which must be in it.
    """
    source = bytes_at(buffer)
    needle = bytes_at(wanted)
    length = wanted.shape[0]
    for row in range(fields.shape[0]):
        found[row] = find_bytes(source, fields[row, 0], fields[row, 1], needle, length)
        if found[row] >= 0:
            found[row] -= fields[row, 0]


def find_other_record(buffer, records, other_buffer, others, first):
    """The first row from ``first`` on whose key, value or headers are not the same bytes in both tables, else -1.

    Lengths, and the number of headers, must be the same in both; for one without headers -1 is as good as 0.
    """
    source = bytes_at(buffer)
    other = bytes_at(other_buffer)
    for row in range(first, records.shape[0]):
        length = records[row, _R_KEY_LENGTH]
        if length > 0 and not same_bytes(source, records[row, _R_KEY_START], other, others[row, _R_KEY_START], length):
            return row
        length = records[row, _R_VALUE_LENGTH]
        if length > 0 and not same_bytes(
            source, records[row, _R_VALUE_START], other, others[row, _R_VALUE_START], length
        ):
            return row
        if records[row, _R_HEADER_COUNT] > 0:
            at = records[row, _R_HEADERS_START]
            other_at = others[row, _R_HEADERS_START]
            length = records[row, _R_START] + records[row, _R_SIZE] - at
            if others[row, _R_START] + others[row, _R_SIZE] - other_at != length:
                return row
            if not same_bytes(source, at, other, other_at, length):
                return row
    return -1


def _varint_bytes(value):
    """How many bytes _put_varint takes for it."""
    rest = (value if value >= 0 else ~value) >> 6
    size = 1
    while rest:
        rest >>= 7
        size += 1
    return size


def _put_varint(out, at, value):
    """Put a number of 64 bits as a zigzag varint; the index after it."""
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


def put_v2_records(out, buffer, records, base_offset, base_timestamp):
    """Put the records, of whatever format, as those of a v2 batch with this base; the bytes put.

    ``out`` must have room for all keys, values and headers and NEW_RECORD_BYTES more for each record. Neither offsets
    nor timestamps may lie more than 63 bits apart.
    """
    source = bytes_at(buffer)
    target = room_at(out)
    at = 0
    for row in range(records.shape[0]):
        timestamp_delta = records[row, _R_TIMESTAMP] - base_timestamp
        offset_delta = records[row, _R_OFFSET] - base_offset
        key_start = records[row, _R_KEY_START]
        key_length = records[row, _R_KEY_LENGTH]
        value_start = records[row, _R_VALUE_START]
        value_length = records[row, _R_VALUE_LENGTH]
        header_count = records[row, _R_HEADER_COUNT]
        headers_start = records[row, _R_HEADERS_START]
        attributes = records[row, _R_ATTRIBUTES]
        headers_end = headers_start
        if header_count > 0:
            headers_end = records[row, _R_START] + records[row, _R_SIZE]
        elif header_count < 0:  # a message: what its attributes say, the batch says
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


#: 00 to 99, two digits each.
_DIGITS = memoryview(b"".join(b"%02d" % number for number in range(100)))


def _put_number(out, at, value):
    """The decimal digits of a number of 64 bits."""
    if value < 0:
        out[at] = 0x2D
        at += 1
        if value == _MIN_I64:  # which has no positive twin: its first digit, then the rest
            out[at] = 0x39
            at += 1
            value = -(value + _NINE_E18)
        else:
            value = -value
    rest = value
    stop = at + 1
    while rest >= 10000:
        rest = rest // 10000
        stop += 4
    while rest >= 10:
        rest = rest // 10
        stop += 1
    at = stop
    while value >= 100:
        rest = value // 100
        two = 2 * (value - rest * 100)
        value = rest
        at -= 2
        out[at] = _DIGITS[two]
        out[at + 1] = _DIGITS[two + 1]
    if value >= 10:
        out[at - 2] = 0x30 + value // 10
        value = value % 10
    out[at - 1] = 0x30 + value
    return stop


def _put_hex(out, at, value, digits):
    shift = 4 * digits
    while shift > 0:
        shift -= 4
        nibble = value >> shift & 0xF
        out[at] = nibble + (0x30 if nibble < 10 else 0x57)
        at += 1
    return at


def _code_point(source, at, end):
    """The character past ASCII that starts at ``at``, and the index after it; -1 for bytes that are no UTF-8."""
    byte = source[at]
    if byte < 0xC2:
        return -1, at
    after = at + (2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
    if after > end or not _is_utf8(source, at, after):
        return -1, at
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | source[at + 1] & 0x3F, after
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | (source[at + 1] & 0x3F) << 6 | source[at + 2] & 0x3F, after
    point = (byte & 0x07) << 18 | (source[at + 1] & 0x3F) << 12
    return point | (source[at + 2] & 0x3F) << 6 | source[at + 3] & 0x3F, after


def _put_json(out, first, source, start, end, tables):
    """Bytes as JSON: a string where they are UTF-8, else an object with the key base64."""
    out[first] = 0x22
    at = first + 1
    index = start
    while index < end:
        at, index = copy_escaped(out, at, source, index, end)
        escape = 0
        while index < end:
            byte = source[index]
            escape = tables[byte]
            if escape != 0:
                break
            out[at] = byte
            at += 1
            index += 1
        if escape == 0:
            break
        if byte < 0x80:
            out[at] = 0x5C
            out[at + 1] = escape
            at += 2
            if escape == _LETTER_U:
                at = _put_hex(out, at, byte, 4)
            index += 1
            continue
        point, after = _code_point(source, index, end)
        if point < 0:
            at = copy_piece(out, first, tables, _BASE64_START, _BASE64_END)
            at = _put_base64(out, at, source, start, end, tables)
            return copy_piece(out, at, tables, _BASE64_END, _UNSAFE)
        if tables[_UNSAFE + (point >> 3)] >> (point & 7) & 1 == 0:
            at = copy_bytes(out, at, source, index, after)
        else:
            if point > 0xFFFF:
                point -= 0x10000
                out[at] = 0x5C
                out[at + 1] = _LETTER_U
                at = _put_hex(out, at + 2, 0xD800 + (point >> 10), 4)
                point = 0xDC00 + (point & 0x3FF)
            out[at] = 0x5C
            out[at + 1] = _LETTER_U
            at = _put_hex(out, at + 2, point, 4)
        index = after
    out[at] = 0x22
    return at + 1


def _put_base64(out, at, source, start, end, tables):
    while end - start >= 3:
        bits = source[start] << 16 | source[start + 1] << 8 | source[start + 2]
        out[at] = tables[_ALPHABET + (bits >> 18)]
        out[at + 1] = tables[_ALPHABET + (bits >> 12 & 0x3F)]
        out[at + 2] = tables[_ALPHABET + (bits >> 6 & 0x3F)]
        out[at + 3] = tables[_ALPHABET + (bits & 0x3F)]
        at += 4
        start += 3
    if start < end:
        bits = source[start] << 16
        if end - start == 2:
            bits |= source[start + 1] << 8
        out[at] = tables[_ALPHABET + (bits >> 18)]
        out[at + 1] = tables[_ALPHABET + (bits >> 12 & 0x3F)]
        out[at + 2] = 0x3D
        if end - start == 2:
            out[at + 2] = tables[_ALPHABET + (bits >> 6 & 0x3F)]
        out[at + 3] = 0x3D
        at += 4
    return at


def _put_quoted(out, at, source, start, end, tables):
    """Bytes as a word of the text format: as they are where that is clear, else in double quotes with escapes."""
    index = start
    while index < end and tables[_BARE_CLASSES + source[index]]:
        index += 1
    if index == end and start < end and not (end - start == 1 and source[start] == 0x2D):
        return copy_bytes(out, at, source, start, end)
    out[at] = 0x22
    at += 1
    index = start
    while index < end:
        at, index = copy_escaped(out, at, source, index, end)
        escape = 0
        while index < end:
            byte = source[index]
            escape = tables[_TEXT_CLASSES + byte]
            if escape != 0:
                break
            out[at] = byte
            at += 1
            index += 1
        if escape == 0:
            break
        if byte < 0x80:
            out[at] = 0x5C
            out[at + 1] = escape
            at += 2
            if escape == _LETTER_X:
                at = _put_hex(out, at, byte, 2)
            index += 1
            continue
        point, after = _code_point(source, index, end)
        if point < 0:
            out[at] = 0x5C
            out[at + 1] = _LETTER_X
            at = _put_hex(out, at + 2, byte, 2)
            index += 1
            continue
        if tables[_UNSAFE + (point >> 3)] >> (point & 7) & 1 == 0:
            at = copy_bytes(out, at, source, index, after)
        else:
            out[at] = 0x5C
            out[at + 1] = _LETTER_U if point <= 0xFFFF else _LETTER_U - 0x20
            at = _put_hex(out, at + 2, point, 4 if point <= 0xFFFF else 8)
        index = after
    out[at] = 0x22
    return at + 1


def _put_headers(out, at, source, start, end, count, tables):
    """Record headers as a JSON array of [key, value]."""
    out[at] = 0x5B
    at += 1
    header = 0
    while header < count:
        if header > 0:
            out[at] = 0x2C
            at += 1
        out[at] = 0x5B
        length, start = _varint(source, start, end)
        at = _put_json(out, at + 1, source, start, start + length, tables)
        start += length
        out[at] = 0x2C
        at += 1
        length, start = _varint(source, start, end)
        if length < 0:
            at = copy_piece(out, at, tables, _JSON_NULL, _ALPHABET)
        else:
            at = _put_json(out, at, source, start, start + length, tables)
            start += length
        out[at] = 0x5D
        at += 1
        header += 1
    out[at] = 0x5D
    return at + 1


def _put_literal(out, at, pieces, literals, number):
    return copy_piece(out, at, pieces, literals[number, 0], literals[number, 1])


def _put_batch_fields(out, at, fields, literals, pieces, batches, crc_valid, batch, bounds):
    """Write a row as far as its batch tells it: the constant pieces, and the fields of the batch.

    A field of the record ends a segment: ``bounds`` gets where each segment starts, and where the last one ends.
    Returns the index after it.
    """
    magic = batches[batch, _B_MAGIC]
    attributes = batches[batch, _B_ATTRIBUTES]
    segment = 0
    bounds[0] = at
    for field in range(fields.shape[0]):
        at = copy_piece(out, at, pieces, fields[field, 0], fields[field, 1])
        kind = fields[field, 2]
        column = fields[field, 3]
        if kind >= _F_RECORD:
            segment += 1
            bounds[segment] = at
        elif kind == _F_END:
            break
        elif kind == _F_CRC_VALID:
            literal = _L_NULL if crc_valid[batch] < 0 else _L_FALSE + crc_valid[batch]
            at = _put_literal(out, at, pieces, literals, literal)
        elif kind == _F_CODEC:
            at = _put_literal(out, at, pieces, literals, _L_CODECS + (attributes & _CODEC_MASK))
        elif kind == _F_TIMESTAMP_TYPE:
            literal = _L_TIMESTAMP_TYPES
            if magic > 0:
                literal += 2 if attributes & _TIMESTAMP_TYPE_BIT else 1
            at = _put_literal(out, at, pieces, literals, literal)
        elif kind == _F_BIT:
            literal = _L_NULL
            if magic == 2:
                literal = _L_FALSE + (1 if attributes & column else 0)
            at = _put_literal(out, at, pieces, literals, literal)
        elif (
            (kind == _F_V2 and magic != 2)
            or (kind == _F_TIMED and magic == 0)
            or (kind == _F_COUNT and magic != 2 and batches[batch, column] < 0)
            or (kind == _F_BASE_TIMESTAMP and (magic == 0 or (magic == 2 and attributes & _DELETE_HORIZON_BIT)))
            or (kind == _F_DELETE_HORIZON and (magic != 2 or not attributes & _DELETE_HORIZON_BIT))
        ):
            at = _put_literal(out, at, pieces, literals, _L_NULL)
        elif kind == _F_LAST_OFFSET:
            at = _put_number(out, at, batches[batch, _B_BASE_OFFSET] + batches[batch, _B_LAST_DELTA])
        else:
            at = _put_number(out, at, batches[batch, column])
    bounds[segment + 1] = at
    return at


def put_batches(out, fields, literals, pieces, batches, crc_valid, first, most_bytes, bounds, status):
    """Write lines of batches from row ``first`` on into ``out``, as many as fit of ``most_bytes`` each.

    ``fields`` has a row for each field: where the piece of ``pieces`` before it starts and ends, its kind (FIELDS),
    and a column or, for a bit, a mask; the last one's kind is "end". ``literals`` has a start and end in ``pieces``
    for each of LITERALS. Sums must fit in 64 bits. Returns the row after the last one written; ``status[0]`` is the
    index after its line.
    """
    line = room_at(out)
    texts = bytes_at(pieces)
    at = 0
    row = first
    while row < batches.shape[0] and out.shape[0] - at >= most_bytes:
        at = _put_batch_fields(line, at, fields, literals, texts, batches, crc_valid, row, bounds)
        row += 1
    status[0] = at
    return row


def put_records(
    out,
    fields,
    record_fields,
    literals,
    pieces,
    tables,
    is_json,
    buffer,
    records,
    batches,
    crc_valid,
    first,
    scratch,
    bounds,
    status,
):
    """Write lines of records from row ``first`` on into ``out``, as many as surely fit.

    ``fields``, ``literals`` and ``pieces`` are as for ``put_batches``; ``record_fields`` are kind and column of those
    fields that come from the record, "record-number" and what follows it in FIELDS. ``tables`` tells of each byte how
    it is escaped in JSON (0 for not), then how in text, then whether a word of it needs no quotes; CHARACTER_WORDS
    follow, and a bit for each character that is escaped. ``scratch`` has room for what a row's batch tells. Returns
    the row after the last one written; ``status[0]`` is the index after its line.
    """
    line = room_at(out)
    texts = bytes_at(pieces)
    words = bytes_at(tables)
    source = bytes_at(buffer)
    fixed_text = room_at(scratch)
    end = buffer.shape[0]
    at = 0
    row = first
    known = -1
    fixed = 0
    magic = 0
    while row < records.shape[0]:
        batch = records[row, _R_BATCH]
        if batch != known:
            known = batch
            magic = batches[batch, _B_MAGIC]
            fixed = _MOST_NUMBERS + _put_batch_fields(
                fixed_text, 0, fields, literals, texts, batches, crc_valid, batch, bounds
            )
        count = records[row, _R_HEADER_COUNT]
        if fixed + _MOST_PER_BYTE * records[row, _R_SIZE] + _MOST_PER_HEADER * max(count, 0) > out.shape[0] - at:
            break
        for field in range(record_fields.shape[0]):
            at = copy_piece(line, at, fixed_text, bounds[field], bounds[field + 1])
            kind = record_fields[field, 0]
            column = record_fields[field, 1]
            if kind == _F_RECORD_BYTES:
                start = records[row, column]
                length = records[row, column + 1]
                if length < 0:
                    at = _put_literal(line, at, texts, literals, _L_NULL)
                elif is_json:
                    at = _put_json(line, at, source, start, start + length, words)
                else:
                    at = _put_quoted(line, at, source, start, start + length, words)
            elif kind == _F_RECORD_HEADERS and magic == 2:
                start = records[row, column]
                at = _put_headers(line, at, source, start, end, count, words)
            elif (
                kind == _F_RECORD_HEADERS
                or (kind == _F_RECORD_TIMESTAMP and magic == 0)
                or (kind == _F_RECORD_SEQUENCE and magic != 2)
            ):
                at = _put_literal(line, at, texts, literals, _L_NULL)
            elif kind == _F_RECORD_SEQUENCE:
                sequence = batches[batch, _B_BASE_SEQUENCE]
                if sequence < 0:
                    sequence = -1
                else:
                    sequence += records[row, _R_OFFSET] - batches[batch, _B_BASE_OFFSET]
                    sequence &= _MAX_SEQUENCE
                at = _put_number(line, at, sequence)
            else:
                at = _put_number(line, at, records[row, column])
        at = copy_piece(line, at, fixed_text, bounds[record_fields.shape[0]], bounds[record_fields.shape[0] + 1])
        row += 1
    status[0] = at
    return row


# -- lines of kafka-dump-log ---------------------------------------------------------------------------------

#: The fixed text of the lines, each in a slot of _WORD_BYTES: a byte for its length, then the text.
_WORD_TEXTS = (
    b"baseOffset: ",
    b" lastOffset: ",
    b" count: ",
    b" baseSequence: ",
    b" lastSequence: ",
    b" producerId: ",
    b" producerEpoch: ",
    b" partitionLeaderEpoch: ",
    b" isTransactional: ",
    b" isControl: ",
    b" deleteHorizonMs: OptionalLong",
    b".empty",
    b" position: ",
    b" size: ",
    b" magic: ",
    b" compresscodec: ",
    b" crc: ",
    b" isvalid: ",
    b"true",
    b"false",
    b"offset: ",
    b"| ",
    b" keySize: ",
    b" valueSize: ",
    b" sequence: ",
    b" headerKeys: [",
    b" isValid: ",
    b"key: ",
    b"payload: ",
    b" ",
    b" CreateTime: ",
    b" LogAppendTime: ",
    b" NoTimestampType: ",
    *(name.encode() for name in layout.CODEC_NAMES),
)
_WORD_BYTES = 32
_WORDS = memoryview(
    b"".join((bytes((len(text),)) + text).ljust(_WORD_BYTES, b"\0") for text in _WORD_TEXTS) + bytes(PIECE_BYTES)
)
_W_BASE_OFFSET = _WORD_TEXTS.index(b"baseOffset: ")
_W_LAST_OFFSET = _WORD_TEXTS.index(b" lastOffset: ")
_W_COUNT = _WORD_TEXTS.index(b" count: ")
_W_BASE_SEQUENCE = _WORD_TEXTS.index(b" baseSequence: ")
_W_LAST_SEQUENCE = _WORD_TEXTS.index(b" lastSequence: ")
_W_PRODUCER_ID = _WORD_TEXTS.index(b" producerId: ")
_W_PRODUCER_EPOCH = _WORD_TEXTS.index(b" producerEpoch: ")
_W_LEADER_EPOCH = _WORD_TEXTS.index(b" partitionLeaderEpoch: ")
_W_IS_TRANSACTIONAL = _WORD_TEXTS.index(b" isTransactional: ")
_W_IS_CONTROL = _WORD_TEXTS.index(b" isControl: ")
_W_HORIZON = _WORD_TEXTS.index(b" deleteHorizonMs: OptionalLong")
_W_EMPTY = _WORD_TEXTS.index(b".empty")
_W_POSITION = _WORD_TEXTS.index(b" position: ")
_W_SIZE = _WORD_TEXTS.index(b" size: ")
_W_MAGIC = _WORD_TEXTS.index(b" magic: ")
_W_CODEC = _WORD_TEXTS.index(b" compresscodec: ")
_W_CRC = _WORD_TEXTS.index(b" crc: ")
_W_IS_VALID_BATCH = _WORD_TEXTS.index(b" isvalid: ")
_W_TRUE = _WORD_TEXTS.index(b"true")
_W_FALSE = _WORD_TEXTS.index(b"false")
_W_OFFSET = _WORD_TEXTS.index(b"offset: ")
_W_BAR = _WORD_TEXTS.index(b"| ")
_W_KEY_SIZE = _WORD_TEXTS.index(b" keySize: ")
_W_VALUE_SIZE = _WORD_TEXTS.index(b" valueSize: ")
_W_SEQUENCE = _WORD_TEXTS.index(b" sequence: ")
_W_HEADER_KEYS = _WORD_TEXTS.index(b" headerKeys: [")
_W_IS_VALID_RECORD = _WORD_TEXTS.index(b" isValid: ")
_W_KEY = _WORD_TEXTS.index(b"key: ")
_W_PAYLOAD = _WORD_TEXTS.index(b"payload: ")
_W_SPACE = _WORD_TEXTS.index(b" ")
_W_CREATE_TIME = _WORD_TEXTS.index(b" CreateTime: ")
_W_APPEND_TIME = _WORD_TEXTS.index(b" LogAppendTime: ")
_W_NO_TIME = _WORD_TEXTS.index(b" NoTimestampType: ")
_W_CODEC_NONE = _WORD_TEXTS.index(b"none")

#: What write_dump_log is asked to print of records, as bits; the last: as release 3.9.1 prints it.
DUMP_LOG_METADATA = 1
DUMP_LOG_CONTENTS = 2
DUMP_LOG_3_9_1 = 4
_WANTS_METADATA = DUMP_LOG_METADATA
_WANTS_CONTENTS = DUMP_LOG_CONTENTS
_WANTS_3_9_1 = DUMP_LOG_3_9_1
#: Why write_dump_log stopped, by number.
DUMP_LOG_STOPS = ("done", "full", "odd-batch", "odd-record")
_DUMP_DONE = 0
_DUMP_FULL = 1
_DUMP_ODD_BATCH = 2
_DUMP_ODD_RECORD = 3
#: More than the fixed text and the numbers of one line can take.
_LINE_BYTES = 1024

_TRANSACTIONAL_BIT = layout.TRANSACTIONAL_BIT
_HORIZON_BIT = layout.DELETE_HORIZON_BIT
_CODEC_COUNT = len(layout.CODEC_NAMES)
_MAX_I32 = layout.MAX_RELATIVE_OFFSET


def _put_word(words, word, out, at):
    start = word * _WORD_BYTES + 1
    return copy_piece(out, at, words, start, start + words[start - 1])


def _put_text(source, start, length, out, at):
    """Copy text that must be UTF-8; -1 where it is not."""
    if not is_ascii(source, start, start + length) and not _is_utf8(source, start, start + length):
        return -1
    return copy_bytes(out, at, source, start, start + length)


def _put_header_keys(source, start, end, count, out, at):
    """The keys of a record's headers, with commas between them; -1 where one is not UTF-8."""
    for number in range(count):
        if number:
            out[at] = 44
            at += 1
        length, start = _varint(source, start, end)
        at = _put_text(source, start, length, out, at)
        if at < 0:
            return -1
        length, start = _varint(source, start + length, end)
        if length > 0:
            start += length
    return at


def _put_time(words, magic, attributes, out, at):
    if magic == 0:
        return _put_word(words, _W_NO_TIME, out, at)
    return _put_word(words, _W_APPEND_TIME if attributes & _TIMESTAMP_TYPE_BIT else _W_CREATE_TIME, out, at)


def _put_boolean(words, word, value, out, at):
    at = _put_word(words, word, out, at)
    return _put_word(words, _W_TRUE if value else _W_FALSE, out, at)


def _put_batch(words, batches, row, is_valid, out, at):
    """The line of a batch with plain fields."""
    magic = batches[row, _B_MAGIC]
    attributes = batches[row, _B_ATTRIBUTES]
    if magic == 2:
        at = _put_word(words, _W_BASE_OFFSET, out, at)
        at = _put_number(out, at, batches[row, _B_BASE_OFFSET])
        at = _put_word(words, _W_LAST_OFFSET, out, at)
        at = _put_number(out, at, batches[row, _B_BASE_OFFSET] + batches[row, _B_LAST_DELTA])
        at = _put_word(words, _W_COUNT, out, at)
        at = _put_number(out, at, batches[row, _B_COUNT])
        at = _put_word(words, _W_BASE_SEQUENCE, out, at)
        sequence = batches[row, _B_BASE_SEQUENCE]
        at = _put_number(out, at, sequence)
        at = _put_word(words, _W_LAST_SEQUENCE, out, at)
        if sequence >= 0:
            sequence += batches[row, _B_LAST_DELTA]
            if sequence > _MAX_I32:
                sequence -= _TWO_31
        at = _put_number(out, at, sequence)
        at = _put_word(words, _W_PRODUCER_ID, out, at)
        at = _put_number(out, at, batches[row, _B_PRODUCER_ID])
        at = _put_word(words, _W_PRODUCER_EPOCH, out, at)
        at = _put_number(out, at, batches[row, _B_PRODUCER_EPOCH])
        at = _put_word(words, _W_LEADER_EPOCH, out, at)
        at = _put_number(out, at, batches[row, _B_EPOCH])
        at = _put_boolean(words, _W_IS_TRANSACTIONAL, attributes & _TRANSACTIONAL_BIT, out, at)
        at = _put_boolean(words, _W_IS_CONTROL, attributes & _CONTROL_BIT, out, at)
        at = _put_word(words, _W_HORIZON, out, at)
        if attributes & _HORIZON_BIT:
            out[at] = 91
            at = _put_number(out, at + 1, batches[row, _B_BASE_TIMESTAMP])
            out[at] = 93
            at += 1
        else:
            at = _put_word(words, _W_EMPTY, out, at)
    else:
        at = _put_word(words, _W_OFFSET, out, at)
        at = _put_number(out, at, batches[row, _B_BASE_OFFSET])
    at = _put_word(words, _W_POSITION, out, at)
    at = _put_number(out, at, batches[row, _B_POSITION])
    at = _put_time(words, magic, attributes, out, at)
    at = _put_number(out, at, batches[row, _B_MAX_TIMESTAMP])
    at = _put_word(words, _W_SIZE, out, at)
    at = _put_number(out, at, batches[row, _B_SIZE])
    at = _put_word(words, _W_MAGIC, out, at)
    at = _put_number(out, at, magic)
    at = _put_word(words, _W_CODEC, out, at)
    at = _put_word(words, _W_CODEC_NONE + (attributes & _CODEC_MASK), out, at)
    at = _put_word(words, _W_CRC, out, at)
    at = _put_number(out, at, batches[row, _B_CRC])
    at = _put_boolean(words, _W_IS_VALID_BATCH, is_valid, out, at)
    out[at] = 10
    return at + 1


def _put_record(words, source, end, records, row, batches, batch, tables, wants, out, at):
    """The line of a record; -1 where a text in it is not UTF-8 or its sequence cannot be told so simply."""
    magic = batches[batch, _B_MAGIC]
    is_first = True
    if wants & _WANTS_METADATA:
        is_first = False
        at = _put_word(words, _W_BAR, out, at)
        at = _put_word(words, _W_OFFSET, out, at)
        at = _put_number(out, at, records[row, _R_OFFSET])
        at = _put_time(words, magic, batches[batch, _B_ATTRIBUTES], out, at)
        at = _put_number(out, at, records[row, _R_TIMESTAMP])
        at = _put_word(words, _W_KEY_SIZE, out, at)
        at = _put_number(out, at, records[row, _R_KEY_LENGTH])
        at = _put_word(words, _W_VALUE_SIZE, out, at)
        at = _put_number(out, at, records[row, _R_VALUE_LENGTH])
        if magic == 2:
            sequence = batches[batch, _B_BASE_SEQUENCE]
            if sequence >= 0:
                if records[row, _R_OFFSET] < batches[batch, _B_BASE_OFFSET]:
                    return -1
                sequence += records[row, _R_OFFSET] - batches[batch, _B_BASE_OFFSET]
                if sequence > _MAX_I32:
                    sequence -= _TWO_31
            at = _put_word(words, _W_SEQUENCE, out, at)
            at = _put_number(out, at, sequence)
            at = _put_word(words, _W_HEADER_KEYS, out, at)
            if records[row, _R_HEADER_COUNT] > 0:
                start = records[row, _R_HEADERS_START]
                at = _put_header_keys(source, start, end, records[row, _R_HEADER_COUNT], out, at)
                if at < 0:
                    return -1
            out[at] = 93
            at += 1
        else:
            start = records[row, _R_START]
            stop = start + records[row, _R_SIZE]
            crc = _u32(source, start + _LEGACY_CRC_AT)
            is_valid = _crc(source, start + _CRC_START_LEGACY, stop, tables, _LEGACY_TABLES) == crc
            at = _put_boolean(words, _W_IS_VALID_RECORD, is_valid, out, at)
            at = _put_word(words, _W_CRC, out, at)
            at = _put_number(out, at, crc)
            if wants & _WANTS_3_9_1:
                out[at] = 125
                at += 1
    if wants & _WANTS_CONTENTS:
        if records[row, _R_KEY_LENGTH] >= 0:
            at = _put_word(words, _W_BAR if is_first else _W_SPACE, out, at)
            is_first = False
            at = _put_word(words, _W_KEY, out, at)
            at = _put_text(source, records[row, _R_KEY_START], records[row, _R_KEY_LENGTH], out, at)
            if at < 0:
                return -1
        if records[row, _R_VALUE_LENGTH] >= 0:
            at = _put_word(words, _W_BAR if is_first and not wants & _WANTS_3_9_1 else _W_SPACE, out, at)
            at = _put_word(words, _W_PAYLOAD, out, at)
            at = _put_text(source, records[row, _R_VALUE_START], records[row, _R_VALUE_LENGTH], out, at)
            if at < 0:
                return -1
    out[at] = 10
    return at + 1


def write_dump_log(batches, crc_valid, buffer, records, tables, last, wants, state, out):
    """Write what kafka-dump-log prints for the batch rows up to ``last`` and for their records.

    ``batches`` is a batch table, ``crc_valid`` a byte for each of its rows; ``records`` an indexed record table over
    ``buffer``, without rows where records are not printed; ``tables`` is checksums.crc_tables(). ``wants`` is made of
    the DUMP_LOG bits.

    ``state`` says where to begin, and then where it stopped: the batch row, whether that batch's line is written, the
    record row, and why (DUMP_LOG_STOPS). The caller does what is odd: control batches, unknown codecs, sums that may
    leave their 32 or 64 bits, text that is not UTF-8. Returns how many bytes of ``out`` are filled; a line that
    ``out`` has no room for stops it, and takes at most 1 KiB and twice the record's size.
    """
    line = room_at(out)
    words = bytes_at(_WORDS)
    source = bytes_at(buffer)
    source_bytes = buffer.shape[0]
    crc_words = words_at(tables)
    batch = state[0]
    is_begun = state[1] != 0
    row = state[2]
    count = records.shape[0]
    room = out.shape[0]
    at = 0
    stop = _DUMP_DONE
    while batch < last:
        if not is_begun:
            if room - at < _LINE_BYTES:
                stop = _DUMP_FULL
                break
            if (
                (batches[batch, _B_ATTRIBUTES] & _CODEC_MASK) >= _CODEC_COUNT
                or batches[batch, _B_BASE_OFFSET] < 0
                or batches[batch, _B_LAST_DELTA] < 0
                or batches[batch, _B_BASE_OFFSET] > _MAX_I64 - batches[batch, _B_LAST_DELTA]
                or batches[batch, _B_BASE_SEQUENCE] < -1
                or (batches[batch, _B_MAGIC] == 2 and batches[batch, _B_ATTRIBUTES] & _CONTROL_BIT)
            ):
                stop = _DUMP_ODD_BATCH
                break
            at = _put_batch(words, batches, batch, crc_valid[batch] == 1, line, at)
            is_begun = True
        while row < count and records[row, _R_BATCH] == batch:
            if room - at < _LINE_BYTES + 2 * records[row, _R_SIZE]:
                stop = _DUMP_FULL
                break
            end = _put_record(words, source, source_bytes, records, row, batches, batch, crc_words, wants, line, at)
            if end < 0:
                stop = _DUMP_ODD_RECORD
                break
            at = end
            row += 1
        if stop != _DUMP_DONE:
            break
        batch += 1
        is_begun = False
    state[0] = batch
    state[1] = 1 if is_begun else 0
    state[2] = row
    state[3] = stop
    return at
