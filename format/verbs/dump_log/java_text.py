"""Values and file names as Java has them: malformed UTF-8, wrapping sums, the order of hash tables, java.io.File."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Sequence

from format.files.side_file import INT64_RANGE
from format.io.session import is_remote
from format.layout import string_hash
from format.verbs.dump_log.options import KafkaStops

_LONG = re.compile(r"[+-]?[0-9]{1,40}")
_AS_JAVA = "kafkalog-java-replacement"
#: A surrogate, which may be cut off.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def split_files(value: str) -> list[str]:
    """The files in the value of --files, split at commas; trailing empty names are dropped, as in String.split."""
    if value == "":
        return [""]
    parts = value.split(",")
    while parts and parts[-1] == "":
        parts.pop()
    return parts


def normalised(path: str) -> str:
    """The path as java.io.File normalises it: without doubled or trailing slashes. An address stays as it is."""
    if is_remote(path):
        return path
    joined = re.sub("/+", "/", path)
    return joined if joined == "/" else joined.removesuffix("/")


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def stem_of(path: str) -> str:
    """The name up to its first dot."""
    return name_of(path).split(".")[0]


def sibling(path: str, suffix: str) -> str:
    """The path of the file beside it with the same stem and another suffix."""
    return os.path.join(os.path.dirname(path), stem_of(path) + suffix)


def java_long(text: str) -> int:
    """Long.parseLong; raises KafkaStops for text that is not a long."""
    if not _LONG.fullmatch(text) or not INT64_RANGE[0] <= int(text) <= INT64_RANGE[1]:
        raise KafkaStops(f"{text!r} in the name of the file is no number")
    return int(text)


def path_line(path: str, rest: str, *, before: str = "") -> bytes:
    """A line that contains a path, with the path's bytes as the user gave them."""
    return before.encode() + os.fsencode(path) + rest.encode() + b"\n"


def java_utf8(raw: bytes) -> bytes:
    """The UTF-8 of Java's ``new String(raw, UTF_8)``: malformed sequences become replacement characters.

    Java and Python agree on what is malformed, but Java replaces a surrogate by one replacement character, Python each
    byte of it by its own.
    """
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", _AS_JAVA).encode("utf-8")
    return raw


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    surrogate = _SURROGATE.match(error.object, error.start)
    return "\N{REPLACEMENT CHARACTER}", error.end if surrogate is None else surrogate.end()


codecs.register_error(_AS_JAVA, _replace)


def int32(number: int) -> int:
    """The number as a Java int holds it, wrapped."""
    return (number + 2**31) % 2**32 - 2**31


def increment_sequence(sequence: int, increment: int) -> int:
    """A producer's sequence ``increment`` records later; it wraps from 2**31-1 to 0 (DefaultRecordBatch)."""
    if sequence > int32(2**31 - 1 - increment):
        return int32(increment - (2**31 - 1 - sequence) - 1)
    return int32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """A producer's sequence ``decrement`` records earlier (DefaultRecordBatch)."""
    if sequence < decrement:
        return int32(2**31 - 1 - (decrement - sequence) + 1)
    return int32(sequence - decrement)


def hash_map_order(keys: Iterable[str], *, is_scala: bool = False) -> list[str]:
    """Keys in the iteration order of a java.util.HashMap or a Scala mutable.HashMap.

    The table size of both is a power of two, and doubles when the table is three quarters full. Java's computeIfAbsent
    doubles it two keys later and inserts a new key at the front of its bucket; Scala keeps each bucket sorted by hash.
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
    """Sort keys that give the iteration order of a Scala mutable.HashMap or HashSet for these unsigned hash codes."""
    capacity = 16
    while len(hashes) >= capacity * 3 // 4:
        capacity *= 2
    spreads = [own ^ own >> 16 for own in hashes]
    return [(spread & (capacity - 1), int32(spread)) for spread in spreads]
