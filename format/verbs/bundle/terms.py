"""The options of bundle, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from format.limits import DEFAULT_LIMITS, Limits
from format.scan.progress import Advance, no_progress
from format.value_class import state_class, value_class
from format.verbs.bundle.names import Names
from format.verbs.report.terms import Report

#: Makes the page of a report.
Render = Callable[[Report], str]


@value_class
class BundleTerms:
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


@state_class
class Bundled:
    """The counts of a bundle's content, and notes about what was left out."""

    counts: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
