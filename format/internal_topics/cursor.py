"""A bounded cursor over the bytes of one key, value or embedded blob, which reads the primitives of Kafka's messages.

Source: clients protocol/ByteBufferAccessor, Readable, utils/ByteUtils; KIP-482 for unsigned varints.
"""

from __future__ import annotations

import struct

from format.errors import CorruptDataError, LimitExceeded, TruncatedData
from format.findings import Severity
from format.internal_topics.decoded import INVALID, Problem
from format.wording import counted_plainly

#: The most fields and array elements of one message; messages of brokers have some thousands.
MAX_DECODED_VALUES = 1_000_000
#: The most problems that are kept of one key or value; hostile bytes could have millions.
MAX_PROBLEMS = 20
#: The longest string that Kafka reads, in bytes (Short.MAX_VALUE).
MAX_STRING_BYTES = 0x7FFF
_MAX_VARINT_BYTES = 5
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class Cursor:
    """Reads forward, never past ``end``, and collects problems that do not stop the reading.

    All reads raise TruncatedData at the end, and CorruptDataError for bytes that no encoder writes; ``charge`` raises
    LimitExceeded. After an error, ``path`` has the names of the fields around its place, the innermost first.
    """

    __slots__ = ("buffer", "end", "part", "path", "position", "problems", "values_left")

    def __init__(self, buffer: bytes, part: str, max_values: int = MAX_DECODED_VALUES) -> None:
        self.buffer = buffer
        self.position = 0
        self.end = len(buffer)
        self.part = part  # "key" or "value", for messages
        self.values_left = max_values
        self.problems: list[Problem] = []
        self.path: list[str] = []

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
            self.problems.append(Problem(code, severity, message, self.part, self.position))

    def read_int16(self) -> int:
        at = self.take(2)
        return int(_INT16.unpack_from(self.buffer, at)[0])

    def read_int32(self) -> int:
        at = self.take(4)
        return int(_INT32.unpack_from(self.buffer, at)[0])

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
        length = self.read_int16() if width == 2 else self.read_int32()
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
