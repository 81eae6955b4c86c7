"""What a command or a caller asks to be decoded, and the schemas that are at hand for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from format.decoding.schemas import SchemaOf, Schemas, find_schemas
from format.io.session import is_there
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind, directory_around
from format.node.target import Target

#: The topic in which a registry keeps its schemas, and its only partition.
SCHEMAS_PARTITION = "_schemas-0"
_SCHEMA_OF = re.compile(r"(?P<topic>[^=]+)=(?P<file>.+?)(?::(?P<message>[A-Za-z_][\w.]*))?")


def schema_of_topic(text: str) -> tuple[str, SchemaOf]:
    """A topic and its schema from ``TOPIC=FILE[:MESSAGE]``. Raises ValueError."""
    found = _SCHEMA_OF.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not TOPIC=FILE or TOPIC=FILE:MESSAGE")
    return found["topic"], SchemaOf(found["file"], found["message"])


def schemas_at_hand(targets: Sequence[Target], given: Path | None = None, limits: Limits = DEFAULT_LIMITS) -> Schemas:
    """The schemas at the path that is given; without one those in the targets, or beside partitions among them."""
    if given is not None:
        return find_schemas([Target(given)], limits=limits)
    places = list(targets)
    around = {directory_around(each.path) for each in targets if each.kind is Kind.PARTITION}
    around |= {directory_around(each.path.parent) for each in targets if each.kind is Kind.LOG}
    beside = [each / SCHEMAS_PARTITION for each in sorted(around)]
    return find_schemas([*places, *(Target(each, Kind.PARTITION) for each in beside if is_there(each))], limits=limits)
