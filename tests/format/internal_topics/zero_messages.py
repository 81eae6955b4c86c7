"""Messages whose every field is zero, empty or null: the least that a later Kafka can add a tagged field to."""

from __future__ import annotations

import base64
from typing import Any

from format.internal_topics.schema import Field, Message
from format.kafka_uuid import ZERO_UUID

#: Tagged fields that no release has, by tag.
UNKNOWN_TAGS = {"90": base64.b64encode(b"later").decode(), "91": ""}
_ZEROS = {"string": "", "bytes": "", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}


def zero_message(message: Message, version: int, *, tags: dict[str, str] | None = None) -> dict[str, Any]:
    """The content of a message in a version; ``tags`` are unknown tagged fields of the message itself."""
    found = _zero_struct(message.fields, version)
    return found if tags is None else {**found, "_taggedFields": tags}


def _zero_struct(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    return {each.name: _zero(each, version) for each in fields if each.tag is None and version in each.versions}


def _zero(field: Field, version: int) -> Any:
    if version in field.nullable:
        return None
    if field.element_type is not None:
        return []
    return _zero_struct(field.fields, version) if field.type == "struct" else _ZEROS.get(field.type, 0)
