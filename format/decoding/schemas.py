"""Schemas: those of a registry as its topic ``_schemas`` holds them, or files in a directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.node.target import Target


class SchemaOf(msgspec.Struct, frozen=True):
    """The schema of a topic's values: a file in the directory of schemas, and of Protobuf's messages the one meant."""

    file: str
    message: str | None = None


class Schemas:
    """Schemas at hand, and findings about records or files that could not be read."""

    def __init__(self) -> None:
        self.findings: Sequence[Finding] = ()

    def __bool__(self) -> bool:
        """Whether there is any schema."""
        return False


def find_schemas(targets: Iterable[Target], until_ms: int | None = None, limits: Limits = DEFAULT_LIMITS) -> Schemas:
    """The schemas at some paths: of ``_schemas`` in them, as of a time (ms), or of the files in a directory.

    Empty where there are none.
    """
    return Schemas()
