"""Replaces the parts of Avro and Protobuf values but the fields to keep, each by one of its own kind and length."""

from __future__ import annotations

import re
from collections.abc import Sequence

from format.decoding.leaves import MAX_U64, Leaf, Path, varint_at
from format.decoding.plain import Undecodable
from format.files.side_file import INT64_RANGE
from format.internal_topics.encoder import unsigned_varint
from format.verbs.redact.replacements import Redactor

_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = re.compile(rb"[0-9A-Fa-f]")
_SIGN, _FRACTION = 0x80, 0x3F


class KeptFields:
    """The fields to keep, by their paths. ``found`` are those that a key or value had; callers may empty it."""

    def __init__(self, paths: frozenset[Path]) -> None:
        self.paths = paths
        self.found: set[Path] = set()
        #: What is above a field to keep: its name stays.
        self.above = frozenset(path[:length] for path in paths for length in range(1, len(path)))

    def has(self, leaf: Leaf) -> bool:
        """Whether a part stays as it is."""
        path = leaf.path
        for length in range(1, len(path) + 1):
            if path[:length] in self.paths:
                self.found.add(path[:length])
                return True
        return leaf.is_name and path in self.above


def replaced_leaves(data: bytes, leaves: Sequence[Leaf], kept: KeptFields, redactor: Redactor) -> bytes:
    """The value with all its parts replaced that are not kept. Raises Undecodable for a number in too many bytes."""
    new = bytearray(data)
    for leaf in leaves:
        if leaf.start < leaf.end and not kept.has(leaf):
            new[leaf.start : leaf.end] = _replaced(data[leaf.start : leaf.end], leaf, redactor)
    return bytes(new)


def _replaced(part: bytes, leaf: Leaf, redactor: Redactor) -> bytes:
    if leaf.form == "text":
        return _other_uuid(part, redactor) if _UUID.fullmatch(part) else redactor.replaced_text(part)
    hashed = redactor.replaced(part)
    if leaf.form == "words":
        return bytes(0x61 + byte % 26 for byte in hashed)
    if leaf.form == "float":  # finite, with its sign
        return hashed[:-1] + bytes((hashed[-1] & _FRACTION | part[-1] & _SIGN,))
    if leaf.form == "decimal":
        return _other_decimal(part, int.from_bytes(hashed, "big"))
    if leaf.form in ("varint", "zigzag"):
        return _other_varint(part, leaf, int.from_bytes(hashed, "big"))
    return hashed


def _other_uuid(text: bytes, redactor: Redactor) -> bytes:
    """Another UUID in the same writing."""
    hashed = redactor.replaced(text)
    return _HEX.sub(lambda match: b"%x" % (hashed[match.start()] & 15), text)


def _other_decimal(part: bytes, hashed: int) -> bytes:
    """Another number with as many digits and the same sign, so that it fits the precision, too."""
    value = int.from_bytes(part, "big", signed=True)
    digits = len(str(abs(value)))
    least: int = 10 ** (digits - 1) if digits > 1 else 0
    most: int = min(10**digits, 1 << 8 * len(part) - 1) - 1
    new = least + hashed % (most - least + 1)
    return (-new if value < 0 else new).to_bytes(len(part), "big", signed=True)


def _other_varint(part: bytes, leaf: Leaf, hashed: int) -> bytes:
    """Another number in as many bytes and with the same sign, in the bounds of the part if it is in them itself."""
    size, is_zigzag = len(part), leaf.form == "zigzag"
    raw, _ = varint_at(part, 0, size)
    low, high = (1 << 7 * (size - 1) if size > 1 else 0), min(1 << 7 * size, MAX_U64 + 1) - 1
    if is_zigzag:
        value = raw >> 1 ^ -(raw & 1)
        least, most = ((low + 1) // 2, high // 2) if value >= 0 else (-((high + 1) // 2), -(low // 2) - 1)
    elif raw >> 63 and leaf.least < 0:
        value, least, most = raw - MAX_U64 - 1, INT64_RANGE[0], -1
    else:
        value, least, most = raw, low, high
    if leaf.least <= value <= leaf.most:
        least, most = max(least, leaf.least), min(most, leaf.most)
    choices = [each for each in leaf.choices if least <= each <= most]
    if not choices and least > most:
        raise Undecodable("a number is written in more bytes than it needs")
    new = choices[hashed % len(choices)] if choices else least + hashed % (most - least + 1)
    return unsigned_varint((new << 1) ^ (new >> 63) if is_zigzag else new & MAX_U64)
