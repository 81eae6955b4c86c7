"""Writing rows of batches and records as lines of JSON, logfmt or CSV."""

from __future__ import annotations

from format import layout

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *
    from format.kernel.utf8 import *

#: Kinds of fields in a line, by number: fields of the batch, then fields of the record.
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
    "record-below-log-start",  # whether the offset is less than the column's number
    "record-decoded",  # all decoded columns, which were written before
)
#: Words in a line, by number.
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
#: Words in the character tables, between the classes of bytes and the bits of unsafe characters.
CHARACTER_WORDS = (
    b"null",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b'{"base64":"',
    b'"}',
)

#: Shuffle masks of 16 bytes, one for each set of bytes, out of 8, that get a backslash. Each byte of a mask is the
#: index of the input byte to write next, or 8 for a backslash. Then the same for sets of bytes that are written twice.
EXPANSIONS = b"".join(
    bytes(
        each for byte in range(8) for each in ((byte if doubles else 8, byte) if marks >> byte & 1 else (byte,))
    ).ljust(16, b"\0")
    for doubles in (False, True)
    for marks in range(256)
)

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
_F_BELOW_LOG_START = FIELDS.index("record-below-log-start")
_F_DECODED = FIELDS.index("record-decoded")
_JSON_LINES = 0  # the numbers of rows.line_style.LINE_FORMATS
_LOGFMT_LINES = 1
_L_NULL = LITERALS.index("null")
_L_FALSE = LITERALS.index("false")
_L_TIMESTAMP_TYPES = LITERALS.index(layout.NO_TIMESTAMP_TYPE)
_L_CODECS = LITERALS.index(layout.CODEC_NAMES[0])
# The start of each part of the character tables.
_JSON_CLASSES = len(EXPANSIONS)
_TEXT_CLASSES = _JSON_CLASSES + 256
_BARE_CLASSES = _TEXT_CLASSES + 256
_JSON_NULL = _BARE_CLASSES + 256
_ALPHABET = _JSON_NULL + len(CHARACTER_WORDS[0])
_BASE64_START = _ALPHABET + len(CHARACTER_WORDS[1])
_BASE64_END = _BASE64_START + len(CHARACTER_WORDS[2])
_UNSAFE = _BASE64_END + len(CHARACTER_WORDS[3])
_LETTER_U = 0x75
_LETTER_X = 0x78
_MOST_NUMBERS = 256 + PIECE_BYTES  # bytes of the numbers, quotes and brackets of a record
_MOST_PER_BYTE = 6  # bytes written for one byte of a key, value or header
_MOST_PER_HEADER = 48  # further bytes for each header


def put_batches(
    out: Room,
    fields: Table,
    literals: Table,
    pieces: Bytes,
    batches: Table,
    crc_valid: memoryview,
    first: int,
    most_bytes: int,
    bounds: Row,
    status: Row,
) -> int:
    """Write lines of batches from row ``first`` on into ``out``, while there is room for ``most_bytes``, the longest.

    ``fields`` has a row for each field: the start and end in ``pieces`` of the fixed text before it, its kind (FIELDS),
    and a column or, for a bit, a mask; the last kind is "end". ``literals`` has a start and end in ``pieces`` for each
    of LITERALS. Sums must fit in 64 bits. Returns the row after the last one written; ``status[0]`` is the index after
    its line.
    """
    line = room_at(out)
    texts = bytes_at(pieces)
    at = 0
    row = first
    while row < len(batches) and len(out) - at >= most_bytes:
        at = _put_batch_fields(line, at, fields, literals, texts, batches, crc_valid, row, bounds)
        row += 1
    status[0] = at
    return row


def put_records(
    out: Room,
    fields: Table,
    record_fields: Table,
    literals: Table,
    pieces: Bytes,
    tables: Bytes,
    style: int,
    buffer: Bytes,
    records: Table,
    batches: Table,
    crc_valid: memoryview,
    decoded: Bytes,
    decoded_ends: Row,
    first: int,
    scratch: Room,
    bounds: Row,
    status: Row,
) -> int:
    """Write lines of records from row ``first`` on into ``out``, as many as are sure to fit.

    ``fields``, ``literals`` and ``pieces`` are the same as for ``put_batches``. ``record_fields`` has the kind and
    column of each field that comes from the record: "record-number" and the kinds after it. ``decoded`` is the text of
    the decoded columns of all records, each up to its end in ``decoded_ends``, which starts with a 0; it may be empty.
    ``style`` is the number of the format of lines.
    ``scratch`` has room for the fields of one batch. ``tables`` are the character tables: EXPANSIONS; for each byte,
    its escape in JSON (0 for none); for each byte, its escape in text; for each byte, whether a word of logfmt may have
    it without quotes; CHARACTER_WORDS; and a bit for each character, set if it is escaped. Returns the row after the
    last one written; ``status[0]`` is the index after its line.
    """
    line = room_at(out)
    texts = bytes_at(pieces)
    words = bytes_at(tables)
    source = bytes_at(buffer)
    fixed_text = room_at(scratch)
    made = bytes_at(decoded)
    made_bytes = 0
    end = len(buffer)
    at = 0
    row = first
    known = -1
    fixed = 0
    magic = 0
    while row < len(records):
        batch = records[row, R_BATCH]
        if batch != known:
            known = batch
            magic = batches[batch, B_MAGIC]
            fixed = _MOST_NUMBERS + _put_batch_fields(
                fixed_text, 0, fields, literals, texts, batches, crc_valid, batch, bounds
            )
        count = records[row, R_HEADER_COUNT]
        if len(decoded_ends) > 0:
            made_bytes = decoded_ends[row + 1] - decoded_ends[row]
        most = fixed + made_bytes + _MOST_PER_BYTE * records[row, R_SIZE] + _MOST_PER_HEADER * max(count, 0)
        if most > len(out) - at:
            break
        for field in range(len(record_fields)):
            at = copy_piece(line, at, fixed_text, bounds[field], bounds[field + 1])
            kind = record_fields[field, 0]
            column = record_fields[field, 1]
            if kind == _F_RECORD:
                at = put_number(line, at, records[row, column])
            elif kind == _F_RECORD_BYTES:
                start = records[row, column]
                length = records[row, column + 1]
                if length < 0:
                    at = _put_literal(line, at, texts, literals, _L_NULL)
                elif style == _JSON_LINES:
                    at = _put_json(line, at, source, start, start + length, end, words)
                elif style == _LOGFMT_LINES:
                    at = _put_word(line, at, source, start, start + length, end, words)
                else:
                    at = _put_cell(line, at, source, start, start + length, end, words)
            elif kind == _F_DECODED:
                at = copy_bytes(line, at, made, decoded_ends[row], decoded_ends[row + 1])
            elif kind == _F_BELOW_LOG_START:
                literal = _L_FALSE + (1 if records[row, R_OFFSET] < column else 0)
                at = _put_literal(line, at, texts, literals, literal)
            elif kind == _F_RECORD_HEADERS and magic == 2:
                start = at
                at = _put_headers(line, at, source, records[row, column], end, count, words)
                if style > _LOGFMT_LINES:
                    at = _quote_cell(line, start, at)
            elif (
                kind == _F_RECORD_HEADERS
                or (kind == _F_RECORD_TIMESTAMP and magic == 0)
                or (kind == _F_RECORD_SEQUENCE and magic != 2)
            ):
                at = _put_literal(line, at, texts, literals, _L_NULL)
            elif kind == _F_RECORD_SEQUENCE:
                sequence = batches[batch, B_BASE_SEQUENCE]
                if sequence < 0:
                    sequence = -1
                else:
                    sequence += records[row, R_OFFSET] - batches[batch, B_BASE_OFFSET]
                    sequence &= MAX_I32
                at = put_number(line, at, sequence)
            else:
                at = put_number(line, at, records[row, column])
        at = copy_piece(line, at, fixed_text, bounds[len(record_fields)], bounds[len(record_fields) + 1])
        row += 1
    status[0] = at
    return row


def _put_batch_fields(
    out: Room,
    at: int,
    fields: Table,
    literals: Table,
    pieces: Bytes,
    batches: Table,
    crc_valid: memoryview,
    batch: int,
    bounds: Row,
) -> int:
    """Write the fields of a row that come from its batch, and the pieces between all fields.

    A field that comes from the record ends a segment: ``bounds`` gets the start of each segment, and the end of the
    last one. Returns that end.
    """
    magic = batches[batch, B_MAGIC]
    attributes = batches[batch, B_ATTRIBUTES]
    segment = 0
    bounds[0] = at
    for field in range(len(fields)):
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
            at = _put_literal(out, at, pieces, literals, _L_CODECS + (attributes & CODEC_MASK))
        elif kind == _F_TIMESTAMP_TYPE:
            literal = _L_TIMESTAMP_TYPES
            if magic > 0:
                literal += 2 if attributes & TIMESTAMP_TYPE_BIT else 1
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
            or (kind == _F_BASE_TIMESTAMP and (magic == 0 or (magic == 2 and attributes & DELETE_HORIZON_BIT)))
            or (kind == _F_DELETE_HORIZON and (magic != 2 or not attributes & DELETE_HORIZON_BIT))
        ):
            at = _put_literal(out, at, pieces, literals, _L_NULL)
        elif kind == _F_LAST_OFFSET:
            at = put_number(out, at, batches[batch, B_BASE_OFFSET] + batches[batch, B_LAST_DELTA])
        else:
            at = put_number(out, at, batches[batch, column])
    bounds[segment + 1] = at
    return at


def _put_literal(out: Room, at: int, pieces: Bytes, literals: Table, number: int) -> int:
    """Write one of LITERALS."""
    return copy_piece(out, at, pieces, literals[number, 0], literals[number, 1])


def _put_headers(out: Room, at: int, source: Bytes, start: int, end: int, count: int, tables: Bytes) -> int:
    """Write record headers as a JSON array of [key, value]."""
    out[at] = 0x5B
    at += 1
    header = 0
    while header < count:
        if header > 0:
            out[at] = 0x2C
            at += 1
        out[at] = 0x5B
        length, start = read_varint(source, start, end)
        at = _put_json(out, at + 1, source, start, start + length, end, tables)
        start += length
        out[at] = 0x2C
        at += 1
        length, start = read_varint(source, start, end)
        if length < 0:
            at = copy_piece(out, at, tables, _JSON_NULL, _ALPHABET)
        else:
            at = _put_json(out, at, source, start, start + length, end, tables)
            start += length
        out[at] = 0x5D
        at += 1
        header += 1
    out[at] = 0x5D
    return at + 1


def _put_json(out: Room, first: int, source: Bytes, start: int, end: int, limit: int, tables: Bytes) -> int:
    """Write bytes as JSON: as a string if they are UTF-8, else as an object with the key base64.

    ``limit`` is the end of the readable bytes.
    """
    out[first] = 0x22
    at = first + 1
    index = start
    while index < end:
        at, index = copy_escaped(out, at, source, index, end, limit, tables, False)
        escape = 0
        while index < end:
            byte = source[index]
            escape = tables[_JSON_CLASSES + byte]
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
        point, after = read_character(source, index, end)
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


def _put_base64(out: Room, at: int, source: Bytes, start: int, end: int, tables: Bytes) -> int:
    """Write bytes in base64."""
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


def _quote_cell(out: Room, start: int, end: int) -> int:
    """Put ``out[start:end]`` in quotes and double those inside, if there are any. Returns the index after it."""
    count = 0
    for index in range(start, end):
        if out[index] == 0x22:
            count += 1
    if count == 0:
        return end
    at = end + count + 1
    after = at + 1
    out[at] = 0x22
    index = end
    while index > start:
        index -= 1
        at -= 1
        out[at] = out[index]
        if out[index] == 0x22:
            at -= 1
            out[at] = 0x22
    out[start] = 0x22
    return after


def _put_word(out: Room, at: int, source: Bytes, start: int, end: int, limit: int, tables: Bytes) -> int:
    """Write bytes as a word of logfmt: as they are, or in double quotes with escapes where needed.

    ``limit`` is the end of the readable bytes.
    """
    index = start
    while index < end and tables[_BARE_CLASSES + source[index]]:
        index += 1
    if index == end and start < end and not (end - start == 1 and source[start] == 0x2D):
        return copy_bytes(out, at, source, start, end)
    out[at] = 0x22
    at = _put_text(out, at + 1, source, start, end, limit, tables, False)
    out[at] = 0x22
    return at + 1


def _put_cell(out: Room, at: int, source: Bytes, start: int, end: int, limit: int, tables: Bytes) -> int:
    """Write bytes as a cell of CSV: in double quotes if they are empty or have a comma or a quote.

    A cell that a spreadsheet would take for a formula begins with a single quote.
    """
    index = start
    while index < end and source[index] != 0x22 and source[index] != 0x2C:
        index += 1
    is_quoted = index < end or start == end
    if is_quoted:
        out[at] = 0x22
        at += 1
    point = 0
    if start < end:
        point = source[start]
        if point >= 0x80:
            point, _after = read_character(source, start, end)
    # = + - @ ' and the first four in full width
    if point in (0x3D, 0x2B, 0x2D, 0x40, 0x27, 0xFF1D, 0xFF0B, 0xFF0D, 0xFF20):
        out[at] = 0x27
        at += 1
    at = _put_text(out, at, source, start, end, limit, tables, True)
    if is_quoted:
        out[at] = 0x22
        at += 1
    return at


def _put_text(out: Room, at: int, source: Bytes, start: int, end: int, limit: int, tables: Bytes, doubles: bool) -> int:
    """Write bytes as text with escapes; a double quote has a backslash before it or, with ``doubles``, another one."""
    index = start
    while index < end:
        at, index = copy_escaped(out, at, source, index, end, limit, tables, doubles)
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
            out[at] = 0x22 if doubles and byte == 0x22 else 0x5C
            out[at + 1] = escape
            at += 2
            if escape == _LETTER_X:
                at = _put_hex(out, at, byte, 2)
            index += 1
            continue
        point, after = read_character(source, index, end)
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
    return at


def _put_hex(out: Room, at: int, value: int, digits: int) -> int:
    """Write the last ``digits`` hexadecimal digits of a number."""
    shift = 4 * digits
    while shift > 0:
        shift -= 4
        nibble = value >> shift & 0xF
        out[at] = nibble + (0x30 if nibble < 10 else 0x57)
        at += 1
    return at
