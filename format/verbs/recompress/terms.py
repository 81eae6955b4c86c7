"""What a run of recompress was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from format.limits import DEFAULT_LIMITS, Limits
from format.log.walker import BODY_CHUNK_BYTES
from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
from format.rewriting.written_segments import Advance, no_progress
from format.verbs.recompress.plan import PlanTerms

#: What is read at once; more would push it out of the processor's cache before it is used.
_CHUNK_BYTES = 2 * 1024 * 1024


@dataclass(slots=True)
class Recompression:
    """The terms of one run; ``segment_bytes`` None keeps the source's segments up to 2 GiB each.

    ``jobs`` is how many processes make new batches; what comes out is the same for any number.
    """

    plan: PlanTerms
    segment_bytes: int | None = None
    skip_damaged: bool = False
    jobs: int = 1
    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    advance: Advance = no_progress

    @property
    def chunk_bytes(self) -> int:
        """How much of a log is read at once; batches of different chunks are never merged, so merging fixes it."""
        return BODY_CHUNK_BYTES if self.plan.merge_bytes else _CHUNK_BYTES
