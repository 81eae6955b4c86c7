"""metadata --schemas: the subjects of a schema registry, and the versions of their schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from format.decoding.registry import TOPIC
from format.decoding.schemas import Schemas, schemas_at
from format.errors import InputError
from format.limits import Limits
from format.location import Location
from format.node.target import Target
from format.verbs.metadata.metadata import Row
from format.wording import counted, listed


def registry_schemas(targets: Iterable[Target], until_ms: int | None, limits: Limits) -> Schemas:
    """The schemas of the registries at some paths, as of a time (ms). Raises InputError where there are none."""
    targets = list(targets)
    found = schemas_at(targets, until_ms, limits)
    if found.files and not found.versions:
        raise InputError(f"files of schemas, but no records of {TOPIC}", Location(str(targets[0].path)))
    return found


def version_rows(schemas: Schemas) -> Iterator[Row]:
    """Rows of columns.SCHEMA_VERSION, by subject and version."""
    levels = schemas.compatibility
    for each in schemas.versions:
        level = levels.get((each.registry, each.subject)) or levels.get((each.registry, None))
        yield (
            each.subject, each.version, each.id, each.kind, each.state, level, each.timestamp, each.offset, each.guid,
            list(map(asdict, each.references)), each.registry, each.text,
        )  # fmt: skip


def registry_sentence(schemas: Schemas) -> str:
    """What registries have, in one sentence."""
    versions = schemas.versions
    if not versions:
        return f"No schema was read from {TOPIC}."
    subjects = len({(each.registry, each.subject) for each in versions})
    states = Counter(each.state for each in versions)
    gone = [f"{states[state]:,} {state}" for state in ("deleted", "purged") if states[state]]
    words = f"{counted(subjects, 'subject')} with {counted(len(versions), 'version')}"
    return f"The schema registry has {words}{f', of which {listed(gone)}' if gone else ''}."
