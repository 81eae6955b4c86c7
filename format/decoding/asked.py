"""What a command or a caller asks to be decoded, in words."""

from __future__ import annotations

import re

from format.decoding.schemas import SchemaOf

_SCHEMA_OF = re.compile(r"(?P<topic>[^=]+)=(?P<file>.+?)(?::(?P<message>[A-Za-z_][\w.]*))?")


def schema_of_topic(text: str) -> tuple[str, SchemaOf]:
    """A topic and its schema from ``TOPIC=FILE[:MESSAGE]``. Raises ValueError."""
    found = _SCHEMA_OF.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not TOPIC=FILE or TOPIC=FILE:MESSAGE")
    return found["topic"], SchemaOf(found["file"], found["message"])
