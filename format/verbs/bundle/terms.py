"""The options of bundle, and its result."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from format.limits import DEFAULT_LIMITS, Limits
from format.scan.progress import Advance, no_progress
from format.verbs.bundle.names import Names
from format.verbs.report.terms import Report

#: Makes the page of a report.
Render = Callable[[Report], str]


class BundleTerms(msgspec.Struct, frozen=True):
    """The options of a bundle.

    ``render`` None leaves out the report, for the reason in ``no_report``. ``names`` None keeps all names.
    ``directory`` is that of temporary files, which have no names.
    """

    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress
    render: Render | None = None
    no_report: str = ""
    names: Names | None = None
    compacted_topics: frozenset[str] = frozenset()
    directory: str | None = None
    version: str = ""  # of the program


class Bundled(msgspec.Struct):
    """The counts of a bundle's content, and notes about what was left out."""

    counts: dict[str, int] = msgspec.field(default_factory=dict)
    left_out: list[str] = msgspec.field(default_factory=list)
