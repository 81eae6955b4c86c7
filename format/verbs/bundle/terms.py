"""What is asked of a bundle, and what became of it."""

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
    """How a bundle is made.

    ``render`` None leaves out the report, for the reason in ``no_report``. ``names`` None keeps all names.
    ``directory`` is where temporary files without names are made.
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
    """What a bundle holds, in numbers, and what was left out of it, in words."""

    counts: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
