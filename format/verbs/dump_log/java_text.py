"""Values as Java prints them: text decoded from bytes that may not be UTF-8, 32- and 64-bit sums, hash tables' order.

Source: OpenJDK String (decoding with replacement), HashMap; Scala 2.13 mutable.HashMap.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

_AS_JAVA = "kafkalog-java-replacement"


def java_utf8(raw: bytes) -> bytes:
    """The bytes as UTF-8 after Java's ``new String(raw, UTF_8)``: what is malformed becomes replacement characters.

    Java and Python agree on what is malformed, but not on how much of it one replacement character stands for.
    """
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", _AS_JAVA).encode("utf-8")
    return raw


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\N{REPLACEMENT CHARACTER}", error.start + _replaced_length(error.object, error.start)


codecs.register_error(_AS_JAVA, _replace)


def _replaced_length(raw: bytes, at: int) -> int:
    """How many bytes from a malformed sequence's first on one replacement character stands for."""
    lead = raw[at]
    rest = raw[at + 1 : at + 4]
    if 0xE0 <= lead <= 0xEF:
        if not rest or not _is_second_of_three(lead, rest[0]):
            return 1
        if len(rest) == 1:
            return 2  # cut off
        return 3 if _is_continuation(rest[1]) else 2  # three: a surrogate
    if 0xF0 <= lead <= 0xF4:
        if not rest or not _is_second_of_four(lead, rest[0]):
            return 1
        if len(rest) == 1 or not _is_continuation(rest[1]):
            return 2
        return 3
    return 1


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _is_second_of_three(lead: int, byte: int) -> bool:
    return _is_continuation(byte) and not (lead == 0xE0 and byte < 0xA0)


def _is_second_of_four(lead: int, byte: int) -> bool:
    return _is_continuation(byte) and not (lead == 0xF0 and byte < 0x90) and not (lead == 0xF4 and byte > 0x8F)


def int32(number: int) -> int:
    """The number as a Java int holds it, wrapped."""
    return (number + 2**31) % 2**32 - 2**31


def int64(number: int) -> int:
    """The number as a Java long holds it, wrapped."""
    return (number + 2**63) % 2**64 - 2**63


def increment_sequence(sequence: int, increment: int) -> int:
    """A producer's sequence after so many records, past 2**31-1 from 0 on again (DefaultRecordBatch)."""
    if sequence > int32(2**31 - 1 - increment):
        return int32(increment - (2**31 - 1 - sequence) - 1)
    return int32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The sequence so many records before (DefaultRecordBatch)."""
    if sequence < decrement:
        return int32(2**31 - 1 - (decrement - sequence) + 1)
    return int32(sequence - decrement)


def string_hash(text: str) -> int:
    """String.hashCode, over UTF-16 units."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def hash_map_order(keys: Iterable[str], *, is_scala: bool = False) -> list[str]:
    """Keys in the order in which a java.util.HashMap, or a Scala mutable.HashMap, iterates over them.

    Both have a table of a power of two that doubles at three quarters. Java's computeIfAbsent doubles it two keys
    later, and puts a new key before the others of its bucket; Scala keeps each bucket sorted by hash.
    """
    names = list(keys)
    if is_scala:
        return [
            name for _, name in sorted(zip(scala_places([string_hash(each) for each in names]), names, strict=True))
        ]
    capacity = 16
    while len(names) - 1 > capacity * 3 // 4:
        capacity *= 2
    places = []
    for number, name in enumerate(names):
        own = string_hash(name)
        places.append(((own ^ own >> 16) & (capacity - 1), -number, name))
    return [name for _, _, name in sorted(places)]


def scala_places(hashes: Sequence[int]) -> list[tuple[int, int]]:
    """Where elements of these hash codes (unsigned) stand in a Scala mutable.HashMap or HashSet, to sort them by."""
    capacity = 16
    while len(hashes) >= capacity * 3 // 4:
        capacity *= 2
    spreads = [own ^ own >> 16 for own in hashes]
    return [(spread & (capacity - 1), int32(spread)) for spread in spreads]
