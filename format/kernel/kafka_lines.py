"""The lines that kafka-dump-log (``kafka.tools.DumpLogSegments``) prints for batches and records."""

from __future__ import annotations

from format import layout

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.crc import *
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *
    from format.kernel.utf8 import *

#: The fixed text of the lines. In _WORDS each takes _WORD_BYTES: a byte for its length, then the text.
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

#: Bits for what write_dump_log prints of records: metadata, contents, and whether both are as release 3.9.1 has them.
DUMP_LOG_METADATA = 1
DUMP_LOG_CONTENTS = 2
DUMP_LOG_3_9_1 = 4
_WANTS_METADATA = DUMP_LOG_METADATA
_WANTS_CONTENTS = DUMP_LOG_CONTENTS
_WANTS_3_9_1 = DUMP_LOG_3_9_1
#: Reasons why write_dump_log stopped, by number.
DUMP_LOG_STOPS = ("done", "full", "odd-batch", "odd-record")
_DUMP_DONE = 0
_DUMP_FULL = 1
_DUMP_ODD_BATCH = 2
_DUMP_ODD_RECORD = 3
#: More bytes than the fixed text and the numbers of one line.
_LINE_BYTES = 1024
_CODEC_COUNT = len(layout.CODEC_NAMES)


def write_dump_log(
    batches: Table,
    crc_valid: memoryview,
    buffer: Bytes,
    records: Table,
    tables: Words,
    last: int,
    wants: int,
    state: Row,
    out: Room,
) -> int:
    """Write what kafka-dump-log prints for the batch rows up to ``last`` and for their records.

    ``batches`` is a batch table, and ``crc_valid`` has a byte for each of its rows. ``records`` is an indexed record
    table over ``buffer``, empty if records are not printed. ``tables`` is checksums.crc_tables(). ``wants`` is made of
    the DUMP_LOG bits.

    ``state`` is where to begin, and on return where it stopped: the batch row, whether the line of that batch is
    written, the record row, and the reason (DUMP_LOG_STOPS). It stops at odd rows, which the caller must write: control
    batches, unknown codecs, sums that may overflow 32 or 64 bits, and text that is not UTF-8. It also stops at a line
    that may not fit in ``out``: a line takes at most 1 KiB and twice the size of the record. Returns the number of
    bytes written.
    """
    line = room_at(out)
    words = bytes_at(_WORDS)
    source = bytes_at(buffer)
    source_bytes = len(buffer)
    crc_words = words_at(tables)
    batch = state[0]
    is_begun = state[1] != 0
    row = state[2]
    count = len(records)
    room = len(out)
    at = 0
    stop = _DUMP_DONE
    while batch < last:
        if not is_begun:
            if room - at < _LINE_BYTES:
                stop = _DUMP_FULL
                break
            if (
                (batches[batch, B_ATTRIBUTES] & CODEC_MASK) >= _CODEC_COUNT
                or batches[batch, B_BASE_OFFSET] < 0
                or batches[batch, B_LAST_DELTA] < 0
                or batches[batch, B_BASE_OFFSET] > MAX_I64 - batches[batch, B_LAST_DELTA]
                or batches[batch, B_BASE_SEQUENCE] < -1
                or (batches[batch, B_MAGIC] == 2 and batches[batch, B_ATTRIBUTES] & CONTROL_BIT)
            ):
                stop = _DUMP_ODD_BATCH
                break
            at = _put_batch(words, batches, batch, crc_valid[batch] == 1, line, at)
            is_begun = True
        while row < count and records[row, R_BATCH] == batch:
            if room - at < _LINE_BYTES + 2 * records[row, R_SIZE]:
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


def _put_batch(words: Bytes, batches: Table, row: int, is_valid: bool, out: Room, at: int) -> int:
    """Write the line of a batch."""
    magic = batches[row, B_MAGIC]
    attributes = batches[row, B_ATTRIBUTES]
    if magic == 2:
        at = _put_field(words, _W_BASE_OFFSET, batches[row, B_BASE_OFFSET], out, at)
        at = _put_field(words, _W_LAST_OFFSET, batches[row, B_BASE_OFFSET] + batches[row, B_LAST_DELTA], out, at)
        at = _put_field(words, _W_COUNT, batches[row, B_COUNT], out, at)
        at = _put_word(words, _W_BASE_SEQUENCE, out, at)
        sequence = batches[row, B_BASE_SEQUENCE]
        at = put_number(out, at, sequence)
        at = _put_word(words, _W_LAST_SEQUENCE, out, at)
        if sequence >= 0:
            sequence += batches[row, B_LAST_DELTA]
            if sequence > MAX_I32:
                sequence -= TWO_31
        at = put_number(out, at, sequence)
        at = _put_field(words, _W_PRODUCER_ID, batches[row, B_PRODUCER_ID], out, at)
        at = _put_field(words, _W_PRODUCER_EPOCH, batches[row, B_PRODUCER_EPOCH], out, at)
        at = _put_field(words, _W_LEADER_EPOCH, batches[row, B_EPOCH], out, at)
        at = _put_boolean(words, _W_IS_TRANSACTIONAL, attributes & TRANSACTIONAL_BIT != 0, out, at)
        at = _put_boolean(words, _W_IS_CONTROL, attributes & CONTROL_BIT != 0, out, at)
        at = _put_word(words, _W_HORIZON, out, at)
        if attributes & DELETE_HORIZON_BIT:
            out[at] = 91
            at = put_number(out, at + 1, batches[row, B_BASE_TIMESTAMP])
            out[at] = 93
            at += 1
        else:
            at = _put_word(words, _W_EMPTY, out, at)
    else:
        at = _put_field(words, _W_OFFSET, batches[row, B_BASE_OFFSET], out, at)
    at = _put_field(words, _W_POSITION, batches[row, B_POSITION], out, at)
    at = _put_time(words, magic, attributes, out, at)
    at = put_number(out, at, batches[row, B_MAX_TIMESTAMP])
    at = _put_field(words, _W_SIZE, batches[row, B_SIZE], out, at)
    at = _put_field(words, _W_MAGIC, magic, out, at)
    at = _put_word(words, _W_CODEC, out, at)
    at = _put_word(words, _W_CODEC_NONE + (attributes & CODEC_MASK), out, at)
    at = _put_field(words, _W_CRC, batches[row, B_CRC], out, at)
    at = _put_boolean(words, _W_IS_VALID_BATCH, is_valid, out, at)
    out[at] = 10
    return at + 1


def _put_record(
    words: Bytes,
    source: Bytes,
    end: int,
    records: Table,
    row: int,
    batches: Table,
    batch: int,
    tables: Words,
    wants: int,
    out: Room,
    at: int,
) -> int:
    """Write the line of a record; -1 if some text is not UTF-8 or the offset is less than the batch's base offset."""
    magic = batches[batch, B_MAGIC]
    is_first = True
    if wants & _WANTS_METADATA:
        is_first = False
        at = _put_word(words, _W_BAR, out, at)
        at = _put_field(words, _W_OFFSET, records[row, R_OFFSET], out, at)
        at = _put_time(words, magic, batches[batch, B_ATTRIBUTES], out, at)
        at = put_number(out, at, records[row, R_TIMESTAMP])
        at = _put_field(words, _W_KEY_SIZE, records[row, R_KEY_LENGTH], out, at)
        at = _put_field(words, _W_VALUE_SIZE, records[row, R_VALUE_LENGTH], out, at)
        if magic == 2:
            sequence = batches[batch, B_BASE_SEQUENCE]
            if sequence >= 0:
                if records[row, R_OFFSET] < batches[batch, B_BASE_OFFSET]:
                    return -1
                sequence += records[row, R_OFFSET] - batches[batch, B_BASE_OFFSET]
                if sequence > MAX_I32:
                    sequence -= TWO_31
            at = _put_field(words, _W_SEQUENCE, sequence, out, at)
            at = _put_word(words, _W_HEADER_KEYS, out, at)
            if records[row, R_HEADER_COUNT] > 0:
                start = records[row, R_HEADERS_START]
                at = _put_header_keys(source, start, end, records[row, R_HEADER_COUNT], out, at)
                if at < 0:
                    return -1
            out[at] = 93
            at += 1
        else:
            start = records[row, R_START]
            stop = start + records[row, R_SIZE]
            crc = read_u32(source, start + LEGACY_CRC_AT)
            is_valid = crc_of(source, start + CRC_START_LEGACY, stop, tables, LEGACY_TABLES) == crc
            at = _put_boolean(words, _W_IS_VALID_RECORD, is_valid, out, at)
            at = _put_field(words, _W_CRC, crc, out, at)
            if wants & _WANTS_3_9_1:
                out[at] = 125
                at += 1
    if wants & _WANTS_CONTENTS:
        if records[row, R_KEY_LENGTH] >= 0:
            at = _put_word(words, _W_BAR if is_first else _W_SPACE, out, at)
            is_first = False
            at = _put_word(words, _W_KEY, out, at)
            at = _put_text(source, records[row, R_KEY_START], records[row, R_KEY_LENGTH], end, out, at)
            if at < 0:
                return -1
        if records[row, R_VALUE_LENGTH] >= 0:
            at = _put_word(words, _W_BAR if is_first and not wants & _WANTS_3_9_1 else _W_SPACE, out, at)
            at = _put_word(words, _W_PAYLOAD, out, at)
            at = _put_text(source, records[row, R_VALUE_START], records[row, R_VALUE_LENGTH], end, out, at)
            if at < 0:
                return -1
    out[at] = 10
    return at + 1


def _put_header_keys(source: Bytes, start: int, end: int, count: int, out: Room, at: int) -> int:
    """Write the keys of a record's headers with commas between them; -1 if one is not UTF-8."""
    for number in range(count):
        if number:
            out[at] = 44
            at += 1
        length, start = read_varint(source, start, end)
        at = _put_text(source, start, length, end, out, at)
        if at < 0:
            return -1
        length, start = read_varint(source, start + length, end)
        if length > 0:
            start += length
    return at


def _put_text(source: Bytes, start: int, length: int, limit: int, out: Room, at: int) -> int:
    """Write bytes that must be UTF-8; -1 if they are not. ``limit`` is the end of the readable bytes."""
    if not copy_ascii(out, at, source, start, start + length, limit) and not is_utf8(source, start, start + length):
        return -1
    return at + length


def _put_time(words: Bytes, magic: int, attributes: int, out: Room, at: int) -> int:
    """Write the name of the timestamp type."""
    if magic == 0:
        return _put_word(words, _W_NO_TIME, out, at)
    return _put_word(words, _W_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else _W_CREATE_TIME, out, at)


def _put_boolean(words: Bytes, word: int, value: bool, out: Room, at: int) -> int:
    """Write a word, then true or false."""
    at = _put_word(words, word, out, at)
    return _put_word(words, _W_TRUE if value else _W_FALSE, out, at)


def _put_field(words: Bytes, word: int, number: int, out: Room, at: int) -> int:
    """Write a word, then a number."""
    return put_number(out, _put_word(words, word, out, at), number)


def _put_word(words: Bytes, word: int, out: Room, at: int) -> int:
    """Write one of _WORD_TEXTS."""
    start = word * _WORD_BYTES + 1
    return copy_piece(out, at, words, start, start + words[start - 1])
