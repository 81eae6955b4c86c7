"""Writing values in Avro's binary encoding as JSON text, by a program that ``format.decoding.avro`` makes of a schema.

Everything that a value can ask for is bounded: the depth, the length of each part, and the text, of which each part
writes at least a byte. So no value takes long or much memory, whatever its bytes and its schema are.
"""

from __future__ import annotations

from binascii import b2a_base64
from uuid import UUID

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.utf8 import *

#: The kinds of nodes of a program, by number. Each node is a row: the kind, and up to three numbers.
AVRO_NODES = (
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    "fixed",  # its size
    "enum",  # the first row of its symbols, their number
    "array",  # the row of its items
    "map",  # the row of its values
    "union",  # the first row of its branches, their number
    "record",  # the first row of its fields, their number
    "decimal",  # its size, -1 for bytes, -2 for the whole value; the scale
    "uuid",  # 16 bytes
    "date",
    "time",  # the digits after the second: 3 or 6
    "timestamp",  # the digits after the second: 3, 6 or 9; whether it is in UTC
    "part",  # of an enum, union or record: the row of its node, the start and the end of its text in the pieces
    "all-bytes",  # the whole value
)
#: What is wrong with a value, by number; 0 means nothing.
AVRO_ERRORS = (
    "",
    "there is no room",
    "the value is cut off",
    "a number has more than 64 bits",
    "an int has more than 32 bits",
    "a boolean is neither 0 nor 1",
    "a length is negative",
    "a string is not UTF-8",
    "a union has no such branch",
    "an enum has no such symbol",
    "it is nested too deeply",
    "bytes follow the value",
    "a decimal is too long",
    "its text is too long",
)
_N_NULL = AVRO_NODES.index("null")
_N_BOOLEAN = AVRO_NODES.index("boolean")
_N_INT = AVRO_NODES.index("int")
_N_LONG = AVRO_NODES.index("long")
_N_FLOAT = AVRO_NODES.index("float")
_N_DOUBLE = AVRO_NODES.index("double")
_N_BYTES = AVRO_NODES.index("bytes")
_N_STRING = AVRO_NODES.index("string")
_N_FIXED = AVRO_NODES.index("fixed")
_N_ENUM = AVRO_NODES.index("enum")
_N_ARRAY = AVRO_NODES.index("array")
_N_MAP = AVRO_NODES.index("map")
_N_UNION = AVRO_NODES.index("union")
_N_RECORD = AVRO_NODES.index("record")
_N_DECIMAL = AVRO_NODES.index("decimal")
_N_UUID = AVRO_NODES.index("uuid")
_N_DATE = AVRO_NODES.index("date")
_N_TIME = AVRO_NODES.index("time")
_N_TIMESTAMP = AVRO_NODES.index("timestamp")
_N_ALL_BYTES = AVRO_NODES.index("all-bytes")
_NO_ROOM = 1
_CUT_OFF = 2
_OVER_64_BITS = 3
_OVER_32_BITS = 4
_NO_BOOLEAN = 5
_NEGATIVE = 6
_NOT_UTF8 = 7
_NO_BRANCH = 8
_NO_SYMBOL = 9
_TOO_DEEP = 10
_BYTES_FOLLOW = 11
_LONG_DECIMAL = 12
_TOO_LONG = 13
#: The most levels of records, arrays, maps and unions in each other.
MOST_DEPTH = 100
_MOST_DEPTH = MOST_DEPTH
_MOST_DECIMAL_BYTES = 1024
#: The most bytes of the text of a value: so many, and more for each of its bytes.
MOST_TEXT_BYTES = 1 << 20
MOST_TEXT_PER_BYTE = 256
_MOST_TEXT = MOST_TEXT_BYTES
_MOST_TEXT_PER_BYTE = MOST_TEXT_PER_BYTE
#: What a number or a word takes at most, with what copies write past it.
_SPARE_BYTES = 96
_DAY_S = 86_400
#: Days from 0000-03-01 to 1970-01-01, and to those of the first and the last day that has four digits of a year.
_EPOCH_DAY = 719_468
_FIRST_DAY = 306
_LAST_DAY = 3_652_364


class _Reader:
    """Reads one value and writes its text; the bytes, the program and the room are set before."""

    nodes: Table
    pieces: Bytes
    source: Bytes
    out: Room

    def __init__(self) -> None:
        self.at = self.end = 0  # in the bytes
        self.next = self.limit = 0  # in the room: where to write, and where to stop
        self.depth = 0
        self.error = 0

    def read_long(self) -> int:
        """Read a zigzag varint of 64 bits."""
        value = 0
        shift = 0
        while self.at < self.end:
            byte = self.source[self.at]
            self.at += 1
            if shift == 63 and byte > 1:
                self.error = _OVER_64_BITS
                return 0
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                half: int = value >> 1
                return -half - 1 if value & 1 else half
            shift += 7
        self.error = _CUT_OFF
        return 0

    def read_length(self) -> int:
        """Read the length of bytes, which must be there."""
        length = self.read_long()
        if length < 0:
            self.error = _NEGATIVE
        elif length > self.end - self.at and self.error == 0:
            self.error = _CUT_OFF
        return length

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be written."""
        if self.limit - self.next < size:
            self.error = _NO_ROOM
            return False
        return True

    def put(self, byte: int) -> None:
        """Write a byte."""
        self.out[self.next] = byte
        self.next += 1

    def put_node(self, row: int) -> int:
        """Write the value of a node."""
        kind = self.nodes[row, 0]
        if self.error != 0 or not self.has_room(_SPARE_BYTES):
            return 0
        if kind == _N_STRING:
            self.put_string()
        elif kind in (_N_LONG, _N_INT):
            number = self.read_long()
            if kind == _N_INT and self.error == 0 and not -TWO_31 <= number <= MAX_I32:
                self.error = _OVER_32_BITS
            self.next = put_number(self.out, self.next, number)
        elif kind == _N_UNION:
            branch = self.read_long()
            if self.error == 0 and not 0 <= branch < self.nodes[row, 2]:
                self.error = _NO_BRANCH
            if self.error == 0 and self.goes_down():
                self.put_node(self.nodes[self.nodes[row, 1] + branch, 1])
                self.depth -= 1
        elif kind == _N_RECORD:
            self.put_record(row)
        elif kind == _N_NULL:
            self.put_word(0x6E, 0x75, 0x6C, 0x6C)
        elif kind == _N_BOOLEAN:
            self.put_boolean()
        elif kind == _N_ENUM:
            branch = self.read_long()
            if self.error == 0 and not 0 <= branch < self.nodes[row, 2]:
                self.error = _NO_SYMBOL
            if self.error == 0:
                self.put_piece(self.nodes[row, 1] + branch)
        elif kind in (_N_ARRAY, _N_MAP):
            self.put_blocks(self.nodes[row, 1], kind == _N_MAP)
        elif kind in (_N_FLOAT, _N_DOUBLE):
            size = 4 if kind == _N_FLOAT else 8
            if self.end - self.at < size:
                self.error = _CUT_OFF
                return 0
            self.put_text(_number_text(read_f32(self.source, self.at) if size == 4 else read_f64(self.source, self.at)))
            self.at += size
        elif kind in (_N_DATE, _N_TIME, _N_TIMESTAMP):
            number = self.read_long()
            if self.error == 0:
                self.put_moment(number, kind, self.nodes[row, 1], self.nodes[row, 2] != 0)
        else:
            self.put_bytes(row, kind)
        return 0

    def put_word(self, first: int, second: int, third: int, fourth: int) -> None:
        """Write four characters."""
        self.put(first)
        self.put(second)
        self.put(third)
        self.put(fourth)

    def put_boolean(self) -> None:
        """Write true or false."""
        if self.at >= self.end:
            self.error = _CUT_OFF
        elif self.source[self.at] == 1:
            self.put_word(0x74, 0x72, 0x75, 0x65)
        elif self.source[self.at] == 0:
            self.put_word(0x66, 0x61, 0x6C, 0x73)
            self.put(0x65)
        else:
            self.error = _NO_BOOLEAN
        self.at += 1

    def goes_down(self) -> bool:
        """Whether a level may be entered; it is left by decreasing the depth."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            self.error = _TOO_DEEP
        return self.error == 0

    def put_piece(self, row: int) -> None:
        """Write the text of a part."""
        start = self.nodes[row, 2]
        end = self.nodes[row, 3]
        if self.has_room(end - start):
            self.next = copy_bytes(self.out, self.next, self.pieces, start, end)

    def put_record(self, row: int) -> int:
        """Write an object with the fields of a record."""
        if not self.goes_down():
            return 0
        field = self.nodes[row, 1]
        last = field + self.nodes[row, 2]
        if field == last:
            self.put(0x7B)
        while field < last and self.error == 0:
            self.put_piece(field)  # with the bracket or the comma before the name
            self.put_node(self.nodes[field, 1])
            field += 1
        self.depth -= 1
        if self.error == 0 and self.has_room(1):
            self.put(0x7D)
        return 0

    def put_blocks(self, item: int, is_map: bool) -> int:
        """Write the items of an array or the entries of a map."""
        if not self.goes_down():
            return 0
        self.put(0x7B if is_map else 0x5B)
        is_first = True
        while self.error == 0:
            count = self.read_long()
            if count < 0:
                self.read_long()  # the size of the block in bytes
                if count < -MAX_I64:  # it has no positive counterpart
                    self.error = _OVER_64_BITS
                    break
                count = -count
            if count == 0 or self.error != 0:
                break
            while count > 0 and self.error == 0:
                if not is_first and self.has_room(1):
                    self.put(0x2C)
                is_first = False
                if is_map and self.error == 0:
                    self.put_string()
                    if self.error == 0 and self.has_room(1):
                        self.put(0x3A)
                self.put_node(item)
                count -= 1
        self.depth -= 1
        if self.error == 0 and self.has_room(1):
            self.put(0x7D if is_map else 0x5D)
        return 0

    def put_string(self) -> None:
        """Write a string in quotes."""
        length = self.read_length()
        if self.error != 0:
            return
        stop = self.at + length
        if not is_utf8(self.source, self.at, stop):
            self.error = _NOT_UTF8
            return
        if not self.has_room(6 * length + 2):
            return
        self.put(0x22)
        while self.at < stop:
            byte = self.source[self.at]
            if byte == 0x22 or byte == 0x5C or byte < 0x20:
                self.put(0x5C)
                if byte >= 0x20:
                    self.put(byte)
                elif byte == 0x0A:
                    self.put(0x6E)
                elif byte == 0x0D:
                    self.put(0x72)
                elif byte == 0x09:
                    self.put(0x74)
                else:
                    self.put_word(0x75, 0x30, 0x30, 0x30 + (byte >> 4))
                    self.put((byte & 0xF) + (0x30 if byte & 0xF < 10 else 0x57))
            else:
                self.put(byte)
            self.at += 1
        self.put(0x22)

    def put_bytes(self, row: int, kind: int) -> int:
        """Write bytes in base64, a UUID of 16 bytes, or a decimal in digits."""
        length = self.nodes[row, 1]
        if kind == _N_ALL_BYTES or (kind == _N_DECIMAL and length < -1):
            length = self.end - self.at
        elif kind == _N_BYTES or (kind == _N_DECIMAL and length < 0):
            length = self.read_length()
        elif kind == _N_UUID:
            length = 16
        if self.error == 0 and length > self.end - self.at:
            self.error = _CUT_OFF
        if kind == _N_DECIMAL and length > _MOST_DECIMAL_BYTES and self.error == 0:
            self.error = _LONG_DECIMAL
        if self.error != 0:
            return 0
        data = self.source[self.at : self.at + length]
        self.at += length
        if kind == _N_DECIMAL:
            self.put_text(_decimal_text(data, self.nodes[row, 2]))
        elif kind == _N_UUID:
            self.put_text(_uuid_text(data))
        elif self.has_room(length + length // 2 + 8):
            self.put_text(_base64_text(data))
        return 0

    def put_text(self, text: bytes) -> int:
        """Write text that is JSON."""
        length = len(text)
        if self.has_room(length):
            self.next = copy_bytes(self.out, self.next, text, 0, length)
        return 0

    def put_moment(self, value: int, kind: int, digits: int, is_utc: bool) -> None:
        """Write a date, a time of the day or a timestamp in ISO 8601, or its number where that has no form for it."""
        unit = 1
        shown = digits
        while shown > 0:
            unit *= 10
            shown -= 1
        days = value
        rest = 0
        if kind != _N_DATE:
            days = value // (unit * _DAY_S)
            rest = value - days * unit * _DAY_S
            if rest < 0:
                days -= 1
                rest += unit * _DAY_S
        if (kind == _N_TIME and days != 0) or not _FIRST_DAY - _EPOCH_DAY <= days <= _LAST_DAY - _EPOCH_DAY:
            self.next = put_number(self.out, self.next, value)
            return
        self.put(0x22)
        if kind != _N_TIME:
            self.put_date(days + _EPOCH_DAY)
        if kind == _N_TIMESTAMP:
            self.put(0x54)
        if kind != _N_DATE:
            second = rest // unit
            self.put_digits(second // 3600, 2)
            self.put(0x3A)
            self.put_digits(second // 60 % 60, 2)
            self.put(0x3A)
            self.put_digits(second % 60, 2)
            self.put(0x2E)
            self.put_digits(rest % unit, digits)
        if kind == _N_TIMESTAMP and is_utc:
            self.put(0x5A)
        self.put(0x22)

    def put_date(self, day: int) -> None:
        """Write the date of a day that is counted from 0000-03-01."""
        era = day // 146_097
        day -= era * 146_097
        year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
        day -= 365 * year + year // 4 - year // 100
        month = (5 * day + 2) // 153
        day -= (153 * month + 2) // 5
        month += 3 if month < 10 else -9
        self.put_digits(year + era * 400 + (1 if month <= 2 else 0), 4)
        self.put(0x2D)
        self.put_digits(month, 2)
        self.put(0x2D)
        self.put_digits(day + 1, 2)

    def put_digits(self, value: int, digits: int) -> None:
        """Write a number with leading zeros."""
        at = self.next + digits
        self.next = at
        while digits > 0:
            at -= 1
            self.out[at] = 0x30 + value % 10
            value //= 10
            digits -= 1


def write_avro(nodes: Table, pieces: Bytes, buffer: Bytes, spans: Table, first: int, out: Room, results: Table) -> int:
    """Write the text of each value of ``spans`` (starts and ends in the buffer) from row ``first`` on.

    The first node is that of the value. A row of ``results`` gets the start and the end of the text in ``out``, an
    error (AVRO_ERRORS), and the index in the buffer at which it was found. Returns the row of the first value for
    which there is no room.
    """
    reader = _Reader()
    reader.nodes = nodes
    reader.pieces = bytes_at(pieces)
    reader.source = bytes_at(buffer)
    reader.out = room_at(out)
    row = first
    written = 0
    while row < len(spans):
        reader.at = spans[row, 0]
        reader.end = spans[row, 1]
        reader.next = written
        most = _MOST_TEXT + _MOST_TEXT_PER_BYTE * (reader.end - reader.at)
        is_whole = most <= len(out) - written
        reader.limit = written + most if is_whole else len(out)
        reader.depth = 0
        reader.error = 0
        reader.put_node(0)
        if reader.error == 0 and reader.at != reader.end:
            reader.error = _BYTES_FOLLOW
        if reader.error == _NO_ROOM:
            if not is_whole:
                break
            reader.error = _TOO_LONG
        results[row, 0] = written
        if reader.error == 0:
            written = reader.next
        results[row, 1] = written
        results[row, 2] = reader.error
        results[row, 3] = reader.at
        row += 1
    return row


def _number_text(value: float) -> bytes:
    """A float as JSON: what JSON has no number for is "NaN", "Infinity" or "-Infinity"."""
    if value - value == 0:
        return repr(value).encode()
    if value != value:
        return b'"NaN"'
    return b'"Infinity"' if value > 0 else b'"-Infinity"'


def _decimal_text(data: Bytes, scale: int) -> bytes:
    """A decimal as a JSON string with all its digits."""
    number = int.from_bytes(data, "big", signed=True)
    digits = str(abs(number))
    if scale > 0:
        digits = digits.zfill(scale + 1)
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    return f'"{"-" if number < 0 else ""}{digits}"'.encode()


def _uuid_text(data: Bytes) -> bytes:
    """A UUID of 16 bytes as a JSON string."""
    return f'"{UUID(bytes=bytes(data))}"'.encode()


def _base64_text(data: Bytes) -> bytes:
    """Bytes in base64 as a JSON string."""
    return b'"' + b2a_base64(data, newline=False) + b'"'
