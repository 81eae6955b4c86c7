"""The schema language of Kafka's generated messages: versioned fields, nullable versions, tagged fields.

A ``Message`` describes one key, value or control record in all its versions. The tables in
``format.internal_topics.schemas`` consist of messages, and ``format.internal_topics.reader`` decodes by them. Source:
Kafka's generator module (MessageSpec, StructSpec, FieldSpec, FieldType), KIP-482 for flexible versions.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from format.kafka_uuid import ZERO_UUID

#: Types of fixed width, with their bytes; other types are string, bytes, records, struct, and arrays "[]TYPE".
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


class Versions(msgspec.Struct, frozen=True):
    """A range of versions, both ends included; empty if ``lowest`` > ``highest``."""

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
    """Parse a range in Kafka's notation: ``"none"``, ``"2"``, ``"0-4"`` or ``"3+"``."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), _HIGHEST)
    lowest, _, highest = text.partition("-")
    return Versions(int(lowest), int(highest or lowest))


class Field(msgspec.Struct, frozen=True):
    """One field. ``tag`` is the number of a tagged field, None for a field with a fixed place.

    ``default`` is the value of a tagged field that is absent. ``fields`` are those of a struct, or of the structs of an
    array.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # compared by identity

    name: str
    type: str
    fields: tuple[Field, ...]
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Any

    @property
    def element_type(self) -> str | None:
        """The type of the elements of an array, None for other types."""
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
    """A Field for a table, with the versions that have it and those in which it may be null, in Kafka's notation.

    The default of ``default`` is the zero of the type: 0, "", [], False, the zero UUID, or a struct of these. Raises
    ValueError for an unknown type.
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


class Message(msgspec.Struct, frozen=True):
    """A message: Kafka's name, its versions, its flexible versions (compact encodings, tagged fields), its fields."""

    __eq__, __hash__ = object.__eq__, object.__hash__  # compared by identity

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


def message(name: str, *fields: Field, valid: str = "0", flexible: str = "0+") -> Message:
    """A Message for a table; by default it has only version 0, which is flexible."""
    return Message(name, parse_versions(valid), parse_versions(flexible), fields)


class RecordType(msgspec.Struct, frozen=True):
    """A record type: its number, Kafka's name, its key (None for a topic without keys) and its value.

    ``gone_in`` is the first release that does not know it any longer, "" if the newest known release has it.
    """

    id: int
    name: str
    key: Message | None
    value: Message
    gone_in: str = ""
