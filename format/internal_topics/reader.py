"""Reads Kafka's messages by their schemas: a bounded cursor, and nested functions made once for each version."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from format.errors import CorruptDataError, LimitExceeded, TruncatedData
from format.findings import Finding, Judgement, Severity, finding
from format.internal_topics.schema import FIXED_WIDTH_TYPES, STRUCT_CODES, Message, MessageField
from format.location import Location
from format.wording import counted_plainly

#: The code of a finding for bytes that contradict the schema, and of the errors that the decoders raise.
INVALID: Final = "internal-record-invalid"


class DecodingProblem(msgspec.Struct, frozen=True):
    """An invalid or unknown part that did not stop the decoding; ``position`` is the byte in the key or value."""

    code: str  # of format.findings.FINDING_CODES
    severity: Severity
    message: str
    part: str  # "key" or "value"
    position: int

    def finding(self, location: Location) -> Finding:
        """The finding that reports the problem for the record at ``location``."""
        return finding(self.code, location, f"{self.part}: {self.message}", judgement=Judgement(severity=self.severity))


class DecodedMessage(msgspec.Struct, frozen=True):
    """A key, value or control record.

    ``name`` is Kafka's name of the message ("OffsetCommitKey"), ``record_type`` the name of the record type
    ("OFFSET_COMMIT"); both are None if the type number ``type_id`` is unknown. ``data`` has Kafka's field names in
    Kafka's order, with JSON values: bytes are base64, UUIDs are Kafka's 22 characters, and a float that is not finite
    is its name. Tagged fields with their default are left out, and unknown tagged fields are in "_taggedFields" ({tag:
    base64}).

    ``part`` is "key", "value" or "control". ``data`` is None for a tombstone (``is_tombstone``), and for a newer type
    or version that cannot be decoded, whose bytes are in ``raw``.
    """

    topic: str
    part: str
    name: str | None = None
    record_type: str | None = None
    type_id: int | None = None
    version: int | None = None
    data: dict[str, Any] | None = None
    problems: tuple[DecodingProblem, ...] = ()
    raw: bytes | None = None
    is_tombstone: bool = False

    def newer(self, location: Location) -> Finding:
        """The finding about a record of a type or version that is newer than this program: what it says is missing."""
        words = "; ".join(each.message for each in self.problems)
        return finding("version-unknown", location, f"the record is newer than this program: {words}")


#: The most fields and array elements of one message; messages of brokers have some thousands.
MAX_DECODED_VALUES = 1_000_000
#: The most problems that are kept of one key or value; hostile bytes could have millions.
MAX_PROBLEMS = 20
#: The longest string that Kafka reads, in bytes (Short.MAX_VALUE).
MAX_STRING_BYTES = 0x7FFF
_MAX_VARINT_BYTES = 5
_INT16 = struct.Struct(">h")


class FieldPlace(NamedTuple):
    """The place of a string, or of bytes, in what is read; ``name`` is that of its field, "" for a tag not known."""

    name: str
    is_text: bool
    position: int
    length: int


class Cursor:
    """Reads forward, never past ``end``, and collects problems that do not stop the reading.

    All reads raise TruncatedData at the end, and CorruptDataError for bytes that no encoder writes; ``charge`` raises
    LimitExceeded. After an error, ``path`` has the names of the fields around its place, the innermost first.
    ``leaves``, where it is a list, takes the places of all strings and bytes that are read.
    """

    __slots__ = ("buffer", "end", "leaves", "part", "path", "position", "problems", "values_left")

    def __init__(self, buffer: bytes, part: str, max_values: int = MAX_DECODED_VALUES) -> None:
        self.buffer = buffer
        self.position = 0
        self.end = len(buffer)
        self.part = part  # "key" or "value", for messages
        self.values_left = max_values
        self.problems: list[DecodingProblem] = []
        self.path: list[str] = []
        self.leaves: list[FieldPlace] | None = None

    def take(self, length: int) -> int:
        """Step over ``length`` bytes; returns the position where they start."""
        at = self.position
        if length > self.end - at:
            raise TruncatedData(f"needs {counted_plainly(length, 'byte')} at byte {at}, but has {self.end - at}")
        self.position = at + length
        return at

    def charge(self, values: int) -> None:
        """Count decoded values against the limit."""
        self.values_left -= values
        if self.values_left < 0:
            raise LimitExceeded(f"the {self.part} decodes to more than {MAX_DECODED_VALUES} values")

    def warn(self, code: str, message: str, severity: Severity) -> None:
        """Add a problem at the current position; only the first MAX_PROBLEMS are kept."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(DecodingProblem(code, severity, message, self.part, self.position))

    def read_int16(self) -> int:
        at = self.take(2)
        return int(_INT16.unpack_from(self.buffer, at)[0])

    def read_unsigned_varint(self) -> int:
        """Read an unsigned varint of at most 31 bits, as for lengths, tags and type numbers."""
        buffer, start = self.buffer, self.position
        value = 0
        for count in range(_MAX_VARINT_BYTES):
            at = start + count
            if at >= self.end:
                raise TruncatedData(f"an unsigned varint at byte {start} has no end")
            byte = buffer[at]
            value |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                if value > 0x7FFFFFFF:
                    break
                self.position = at + 1
                return value
        raise CorruptDataError(f"an unsigned varint at byte {start} is longer than 31 bits")

    def read_length(self, compact: bool, width: int) -> int:
        """Read the length of a string (width 2), or of bytes or an array (width 4): -1 for null.

        Kafka reads all negative lengths as null; a length below -1, which it never writes, is a problem.
        """
        at = self.position
        if compact:
            return self.read_unsigned_varint() - 1
        length = int.from_bytes(self.buffer[self.take(width) : at + width], "big", signed=True)
        if length < -1:
            self.warn(INVALID, f"length {length} at byte {at} is read as null", Severity.WARNING)
            return -1
        return length

    def read_text(self, length: int) -> str:
        """Read a string of ``length`` bytes; bytes that are not UTF-8 become U+FFFD, as in Kafka, and are a problem."""
        if length > MAX_STRING_BYTES:
            raise CorruptDataError(f"a string of {length} bytes at byte {self.position}, more than {MAX_STRING_BYTES}")
        at = self.take(length)
        raw = self.buffer[at : at + length]
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.warn(INVALID, f"the string at byte {at} is not UTF-8", Severity.WARNING)
            return raw.decode("utf-8", "replace")


Reader = Callable[[Cursor], Any]

#: The key of unknown tagged fields in decoded data; the value is {tag: base64}.
TAGGED_FIELDS = "_taggedFields"
_UUID_BYTES = 16


@cache
def reader_for(message: Message, version: int) -> Callable[[Cursor], dict[str, Any]]:
    """The function that reads one message in this version from a cursor.

    It raises TruncatedData and CorruptDataError for bytes that are not such a message, and LimitExceeded for more than
    MAX_DECODED_VALUES values; ``cursor.path`` then has the names of the fields.
    """
    return _struct_reader(message.fields, version, version in message.flexible)


def _struct_reader(
    fields: tuple[MessageField, ...], version: int, flexible: bool
) -> Callable[[Cursor], dict[str, Any]]:
    present = [each for each in fields if version in each.versions]
    plain = [(each.name, _field_reader(each, version, flexible)) for each in present if each.tag is None]
    tagged = {
        each.tag: (each.name, each.default, _field_reader(each, version, flexible))
        for each in present
        if each.tag is not None
    }
    order = [each.name for each in present]

    def read_struct(cursor: Cursor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        name = ""
        try:
            for name, read in plain:
                found[name] = read(cursor)
            if not flexible:
                return found
            name = TAGGED_FIELDS
            if cursor.position < cursor.end and cursor.buffer[cursor.position] == 0:
                cursor.position += 1  # no tagged fields: the usual case
                return found
            return _with_tagged_fields(cursor, found, tagged, order)
        except (CorruptDataError, LimitExceeded):
            cursor.path.append(name)
            raise

    return read_struct


def _with_tagged_fields(
    cursor: Cursor, found: dict[str, Any], tagged: dict[int, tuple[str, Any, Reader]], order: list[str]
) -> dict[str, Any]:
    """Add the tagged fields that do not have their default to a struct, in the order of the schema."""
    unknown: dict[str, str] = {}
    last_tag = -1
    for _ in range(cursor.read_unsigned_varint()):
        tag = cursor.read_unsigned_varint()
        size_bytes = cursor.read_unsigned_varint()
        if tag <= last_tag:
            cursor.warn(INVALID, f"tagged field {tag} follows tagged field {last_tag}", Severity.WARNING)
        last_tag = max(tag, last_tag)
        cursor.charge(1)
        if tag not in tagged:
            start = cursor.take(size_bytes)
            cursor.warn("version-unknown", f"tagged field {tag} is not known", Severity.INFO)
            unknown[str(tag)] = base64.b64encode(cursor.buffer[start : start + size_bytes]).decode("ascii")
            if cursor.leaves is not None:
                cursor.leaves.append(FieldPlace("", False, start, size_bytes))
            continue
        name, default, read = tagged[tag]
        start = cursor.position
        try:
            value = read(cursor)
        except (CorruptDataError, LimitExceeded):
            cursor.path.append(name)
            raise
        read_bytes = cursor.position - start
        if read_bytes != size_bytes:  # Kafka continues at the end of the value, and ignores the size
            wrong = (
                f"tagged field {tag} ({name}) has {counted_plainly(read_bytes, 'byte')}, but its size is {size_bytes}"
            )
            if cursor.leaves is not None:
                raise CorruptDataError(wrong)  # what follows may be a string, and would be read as numbers
            cursor.warn(INVALID, wrong, Severity.WARNING)
        if value == default:
            found.pop(name, None)
        else:
            found[name] = value
    found = {name: found[name] for name in order if name in found}
    if unknown:
        found[TAGGED_FIELDS] = unknown
    return found


def _field_reader(field: MessageField, version: int, flexible: bool) -> Reader:
    nullable = version in field.nullable
    element_type = field.element_type
    if element_type is not None:
        return _array_reader(field, element_type, version, flexible, nullable)
    if field.type != "struct":
        return _value_reader(field.name, field.type, flexible, nullable)
    read = _struct_reader(field.fields, version, flexible)
    if not nullable:
        return read

    def read_nullable(cursor: Cursor) -> dict[str, Any] | None:
        at = cursor.take(1)
        return None if cursor.buffer[at] >= 0x80 else read(cursor)

    def read_nullable_tagged(cursor: Cursor) -> dict[str, Any] | None:
        return None if cursor.read_unsigned_varint() == 0 else read(cursor)

    return read_nullable if field.tag is None else read_nullable_tagged


def _value_reader(name: str, type: str, flexible: bool, nullable: bool) -> Reader:
    if type == "bool":
        return lambda cursor: cursor.buffer[cursor.take(1)] != 0
    if type == "uuid":
        return lambda cursor: _uuid(cursor.buffer, cursor.take(_UUID_BYTES))
    if type == "float64":
        return _read_float64
    if type in STRUCT_CODES:
        unpack = struct.Struct(">" + STRUCT_CODES[type])
        width = unpack.size
        return lambda cursor: unpack.unpack_from(cursor.buffer, cursor.take(width))[0]
    width = 2 if type == "string" else 4

    def read_variable(cursor: Cursor) -> str | None:
        length = cursor.read_length(flexible, width)
        if length < 0:
            if nullable:
                return None
            raise CorruptDataError(f"is null, which is not allowed, at byte {cursor.position}")
        if cursor.leaves is not None and length:
            cursor.leaves.append(FieldPlace(name, type == "string", cursor.position, length))
        if type == "string":
            return cursor.read_text(length)
        at = cursor.take(length)
        return base64.b64encode(cursor.buffer[at : at + length]).decode("ascii")

    return read_variable


def _read_float64(cursor: Cursor) -> float | str:
    """Read a number; one that is not finite is returned as its name in Kafka's JSON."""
    number: float = struct.unpack_from(">d", cursor.buffer, cursor.take(8))[0]
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def _uuid(buffer: bytes, at: int) -> str:
    return base64.urlsafe_b64encode(buffer[at : at + _UUID_BYTES])[:22].decode("ascii")


def _array_reader(field: MessageField, element_type: str, version: int, flexible: bool, nullable: bool) -> Reader:
    element = MessageField(field.name, element_type, field.fields, field.versions, field.nullable, None, None)
    least_bytes = max(1, _least_bytes(element, version, flexible, nullable=False))
    weight = 1 + len(field.fields)
    code = STRUCT_CODES.get(element_type) if element_type != "float64" else None
    if element_type == "struct":
        read = _struct_reader(field.fields, version, flexible)
    else:
        read = _value_reader(field.name, element_type, flexible, nullable=False)

    def read_array(cursor: Cursor) -> list[Any] | None:
        at = cursor.position
        count = cursor.read_length(flexible, 4)
        if count < 0:
            if nullable:
                return None
            raise CorruptDataError(f"is null, which is not allowed, at byte {at}")
        left = cursor.end - cursor.position
        if count > left // least_bytes:
            elements = counted_plainly(count, "element")
            raise TruncatedData(f"{elements} at byte {at}: needs at least {count * least_bytes} bytes, but has {left}")
        cursor.charge(count * weight)
        if code is not None:
            return list(struct.unpack_from(f">{count}{code}", cursor.buffer, cursor.take(count * least_bytes)))
        found: list[Any] = []
        try:
            for _ in range(count):
                found.append(read(cursor))
        except (CorruptDataError, LimitExceeded):
            cursor.path.append(f"[{len(found)}]")
            raise
        return found

    return read_array


def _least_bytes(field: MessageField, version: int, flexible: bool, nullable: bool) -> int:
    """The least number of bytes of a value of the field, which bounds the count of an array before it is read."""
    if field.type in FIXED_WIDTH_TYPES:
        return FIXED_WIDTH_TYPES[field.type]
    if field.type == "struct":
        if nullable:
            return 1
        parts = [
            _least_bytes(each, version, flexible, version in each.nullable)
            for each in field.fields
            if each.tag is None and version in each.versions
        ]
        return sum(parts) + (1 if flexible else 0)
    if flexible:
        return 1
    return 2 if field.type == "string" else 4
