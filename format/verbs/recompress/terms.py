"""The options of recompress."""

from __future__ import annotations

from format.rewriting.rewriter import WriteTerms
from format.verbs.recompress.plan import PlanTerms


class Recompression(WriteTerms, frozen=True, kw_only=True):
    """The terms of one run; ``segment_bytes`` None keeps the source's segments up to 2 GiB each."""

    plan: PlanTerms
    segment_bytes: int | None = None
    skip_damaged: bool = False
