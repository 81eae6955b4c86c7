"""The schema language of Kafka's generated messages: versioned fields, nullable versions, tagged fields.

A ``Message`` says what one key, value or control record holds in each of its versions. The tables in
``format.internal_topics.schemas`` are written in it; ``format.internal_topics.reader`` decodes by it.
Source: Kafka's generator module (MessageSpec, StructSpec, FieldSpec, FieldType), KIP-482 for flexible versions.
"""

from __future__ import annotations

from typing import Any, Final

from format.kafka_uuid import ZERO_UUID
from format.value_class import value_class

#: Types of a fixed width in bytes; the others are string, bytes, records, struct, and arrays "[]TYPE" of them.
FIXED_WIDTH_TYPES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
_TYPES = {*FIXED_WIDTH_TYPES, "string", "bytes", "records", "struct"}
_HIGHEST = 32767


@value_class
class Versions:
    """An inclusive range of versions; empty where ``lowest`` > ``highest``."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __str__(self) -> str:
        if self.lowest > self.highest:
            return "none"
        if self.highest == _HIGHEST:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


NO_VERSIONS: Final = Versions(0, -1)


def parse_versions(text: str) -> Versions:
    """A range from Kafka's notation: ``"none"``, ``"2"``, ``"0-4"`` or ``"3+"``."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), _HIGHEST)
    lowest, _, highest = text.partition("-")
    return Versions(int(lowest), int(highest or lowest))


@value_class
class Field:
    """One field. ``tag`` is its number where it is a tagged field, None where it has a fixed place.

    ``default`` matters for a tagged field only: what its absence means. ``fields`` are those of a struct or of an
    array's structs.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # each is one of a kind

    name: str
    type: str
    fields: tuple[Field, ...]
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Any

    @property
    def element_type(self) -> str | None:
        """The type of an array's elements, None for what is no array."""
        return self.type[2:] if self.type.startswith("[]") else None


def field(
    name: str,
    type: str,
    *fields: Field,
    versions: str = "0+",
    nullable: str = "none",
    tag: int | None = None,
    default: Any = ...,
) -> Field:
    """A row of a table: the versions it is in, those in which it may be null.

    Without ``default`` it is the type's zero: 0, "", [], False, the zero UUID, or a struct of such.
    """
    if (type[2:] if type.startswith("[]") else type) not in _TYPES:
        raise ValueError(f"field {name}: unknown type {type}")
    if default is ...:
        default = _zero(type, fields)
    return Field(name, type, fields, parse_versions(versions), parse_versions(nullable), tag, default)


def _zero(type: str, fields: tuple[Field, ...]) -> Any:
    if type.startswith("[]"):
        return []
    if type == "struct":
        return {each.name: each.default for each in fields if each.tag is None}
    return {"string": "", "bytes": "", "records": "", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}.get(type, 0)


@value_class
class Message:
    """A message by Kafka's name: its versions, those with compact encodings and tagged fields, its fields."""

    __eq__, __hash__ = object.__eq__, object.__hash__  # each is one of a kind

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


def message(name: str, *fields: Field, valid: str = "0", flexible: str = "0+") -> Message:
    """A message of a table; by default of version 0 alone, flexible."""
    return Message(name, parse_versions(valid), parse_versions(flexible), fields)


@value_class
class RecordType:
    """What a record's type number means: Kafka's name for it, its key (where the topic has keys) and its value.

    ``gone_in`` is the release that no longer knows it, "" for a type that the newest known release still reads.
    """

    id: int
    name: str
    key: Message | None
    value: Message
    gone_in: str = ""
