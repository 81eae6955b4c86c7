"""The schemas of Kafka's own records: versioned fields, nullable versions and tagged fields, in a file for each topic.

A ``Message`` describes one key, value or control record in all its versions. The ``.schema`` files beside this module
have lines of these kinds; what stands two spaces deeper below a line is part of it, and ``#`` begins a comment:

- ``type NUMBER NAME``: a record type with a ``key`` and a ``value``; ``until RELEASE`` if later releases lack it
- ``key``, ``value`` or ``message NAME VERSIONS``; ``flexible VERSIONS``: with compact encodings and tagged fields
- ``struct NAME``: fields that several messages have
- ``NAME TYPE``: a field; then may stand the versions that have it, ``@TAG``, and ``= DEFAULT`` of a tagged field

A type is one of FIXED_WIDTH_TYPES, string, bytes, struct or the name of a struct; ``[]`` before it makes an array, and
``?`` after it says that the field may be null (``?2+``: from version 2 on). Versions are ``2``, ``0-4`` or ``3+``.
``since RELEASE`` after a type, a field, or a version of a message (``, 4 since 4.3``): older releases lack it. Fields
may share a line, between commas, and may follow a message or struct after a colon.

For a new release of Kafka, add its fields and raise the versions of their messages; the oracle tests compare all with
the jars of the release. Source: Kafka's generator module (MessageSpec, FieldSpec, FieldType), KIP-482.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from struct import calcsize
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from format.kafka_uuid import ZERO_UUID

Release = tuple[int, int]

#: Types that ``struct`` reads and writes, with their codes there.
STRUCT_CODES: Final = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d",
}  # fmt: skip
#: Types of fixed width, with their bytes; other types are string, bytes, struct, and arrays "[]TYPE".
FIXED_WIDTH_TYPES: Final = {name: calcsize(f">{code}") for name, code in STRUCT_CODES.items()} | {"uuid": 16}
_TYPES = {*FIXED_WIDTH_TYPES, "string", "bytes", "struct"}
_ZEROS = {"string": "", "bytes": "", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}
_HIGHEST = 32767
_VERSIONS = r"\d+(?:\+|-\d+)?"
_RELEASE = r"\d+\.\d+"
_TYPE_LINE = re.compile(rf"type (\d+) (\w+)(?: since ({_RELEASE}))?(?: until ({_RELEASE}))?")
_MESSAGE_LINE = re.compile(
    rf"(key|value|message) (\w+) ({_VERSIONS})(?: flexible ({_VERSIONS}))?((?:, \d+ since {_RELEASE})*)"
)
_FIELD = re.compile(
    rf"(\w+) (\[\])?(\w+)(\?({_VERSIONS})?)?(?: ({_VERSIONS}))?(?: @(\d+))?(?: = (\S+))?(?: since ({_RELEASE}))?"
)


class Versions(msgspec.Struct, frozen=True):
    """A range of versions, both ends included; empty if ``lowest`` > ``highest``."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))


NO_VERSIONS: Final = Versions(0, -1)


class MessageField(msgspec.Struct, frozen=True):
    """One field. ``tag`` is the number of a tagged field, None for a field with a fixed place.

    ``default`` is the value of a tagged field that is absent. ``fields`` are those of a struct, or of the structs of an
    array. ``since`` is the release that brought a field to versions that were there before.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # compared by identity

    name: str
    type: str
    fields: tuple[MessageField, ...]
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Any
    since: Release | None = None

    @property
    def element_type(self) -> str | None:
        """The type of the elements of an array, None for other types."""
        return self.type[2:] if self.type.startswith("[]") else None


class Message(msgspec.Struct, frozen=True):
    """A message: Kafka's name, its versions, its flexible versions (compact encodings, tagged fields), its fields.

    ``since`` has the releases that brought versions, where older ones lack them.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # compared by identity

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[MessageField, ...]
    since: dict[int, Release] = {}

    def as_of(self, release: Release) -> Message:
        """The message in a release, this one if nothing differs."""
        later = [version for version, since in self.since.items() if since > release]
        fields = tuple(each for each in self.fields if each.since is None or each.since <= release)
        if not later and len(fields) == len(self.fields):
            return self
        highest = min((version - 1 for version in later), default=self.versions.highest)
        return replace(self, versions=Versions(self.versions.lowest, highest), fields=fields)


class RecordType(msgspec.Struct, frozen=True):
    """A record type: its number, Kafka's name, its key (None for a topic without keys) and its value.

    ``since`` is the first release that knows it, ``until`` the first that does not know it any longer; None where all
    older ones do, or the newest known one.
    """

    id: int
    name: str
    key: Message | None
    value: Message
    since: Release | None = None
    until: Release | None = None

    def as_of(self, release: Release) -> RecordType:
        """The record type in a release that knows it, this one if nothing differs."""
        value = self.value.as_of(release)
        return self if value is self.value else replace(self, value=value)


class Schema(msgspec.Struct, frozen=True):
    """What a ``.schema`` file has: record types by number, and messages, those of the types too, by Kafka's name."""

    types: dict[int, RecordType]
    messages: dict[str, Message]


@cache
def schema_of(name: str) -> Schema:
    """The schema in the file of this name: an internal topic, "control_records" or "consumer_protocol"."""
    content = get_data(__package__, f"{name}.schema")  # importlib.resources takes longer to import than to read it
    if content is None:
        raise FileNotFoundError(f"{name}.schema")
    return read_schema(content.decode())


class _Line(NamedTuple):
    number: int
    text: str
    below: list[_Line]

    def match(self, pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
        found = pattern.fullmatch(text)
        if found is None:
            raise ValueError(f"line {self.number}: {text!r} is not understood")
        return found.groups()


def read_schema(text: str) -> Schema:
    """Read the content of a ``.schema`` file. Raises ValueError for a line that is no part of one."""
    schema = Schema({}, {})
    structs: dict[str, tuple[MessageField, ...]] = {}
    for line in _lines(text):
        if line.text.startswith("type "):
            number, name, since, until = line.match(_TYPE_LINE, line.text)
            parts = dict(_message(each, structs) for each in line.below)
            if not {"value"} <= parts.keys() <= {"key", "value"}:
                raise ValueError(f"line {line.number}: the type has no value, or something else")
            found = RecordType(int(number), name, parts.get("key"), parts["value"], _release(since), _release(until))
            schema.types[found.id] = found
            schema.messages.update((each.name, each) for each in parts.values())
        elif line.text.startswith("struct "):
            (name,) = line.match(re.compile(r"struct (\w+)"), line.text.partition(":")[0])
            structs[name] = _fields(line, structs)
        else:
            _, message = _message(line, structs)
            schema.messages[message.name] = message
    return schema


def _lines(text: str) -> list[_Line]:
    """The lines of a file, each with those below it, without comments."""
    blocks: list[list[_Line]] = [[]]
    for number, raw in enumerate(text.splitlines(), 1):
        content = raw.partition("#")[0].rstrip()
        depth = (len(content) - len(content.lstrip())) // 2
        if depth >= len(blocks):
            raise ValueError(f"line {number} is too deep")
        if content:
            line = _Line(number, content.strip(), [])
            blocks[depth].append(line)
            blocks[depth + 1 :] = [line.below]
    return blocks[0]


def _message(line: _Line, structs: dict[str, tuple[MessageField, ...]]) -> tuple[str, Message]:
    """A message, after the word that says whether it is a key, a value or neither."""
    word, name, versions, flexible, since = line.match(_MESSAGE_LINE, line.text.partition(":")[0])
    releases = {int(each[0]): (int(each[1]), int(each[2])) for each in re.findall(r"(\d+) since (\d+).(\d+)", since)}
    fields = _fields(line, structs)
    return word, Message(name, _versions(versions), _versions(flexible, NO_VERSIONS), fields, releases)


def _fields(line: _Line, structs: dict[str, tuple[MessageField, ...]]) -> tuple[MessageField, ...]:
    """The fields after the colon of a line, and below it."""
    here = _Line(line.number, line.text.partition(": ")[2], [])
    found = []
    for each in (here, *line.below) if here.text else line.below:
        texts = each.text.split(", ")
        found += [_field(each, text, structs, each.below if text is texts[-1] else []) for text in texts]
    return tuple(found)


def _field(line: _Line, text: str, structs: dict[str, tuple[MessageField, ...]], below: list[_Line]) -> MessageField:
    name, array, kind, null, nullable, versions, tag, default, since = line.match(_FIELD, text)
    if kind not in _TYPES and kind not in structs:
        raise ValueError(f"line {line.number}: unknown type {kind}")
    fields = structs[kind] if kind in structs else _fields(line._replace(text="", below=below), structs)
    kind = "struct" if kind in structs else kind
    found = _versions(versions or "0+")
    if default is not None:
        value = json.loads(default)
    elif array:
        value = []
    elif kind == "struct":
        value = {each.name: each.default for each in fields if each.tag is None}
    else:
        value = _ZEROS.get(kind, 0)
    may_be_null = _versions(nullable, found) if null else NO_VERSIONS
    number = None if tag is None else int(tag)
    return MessageField(name, (array or "") + kind, fields, found, may_be_null, number, value, _release(since))


def _versions(text: str | None, otherwise: Versions = NO_VERSIONS) -> Versions:
    """A range in Kafka's notation."""
    if text is None:
        return otherwise
    lowest, _, highest = text.removesuffix("+").partition("-")
    return Versions(int(lowest), _HIGHEST if text.endswith("+") else int(highest or lowest))


def _release(text: str | None) -> Release | None:
    if text is None:
        return None
    major, minor = text.split(".")
    return int(major), int(minor)
