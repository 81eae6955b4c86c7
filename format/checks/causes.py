"""Which damage a later finding of the same partition follows from."""

from __future__ import annotations

from format.findings import Cause, Finding


class CauseAccount:
    """The damage of a partition that was reported so far, by the offsets that it lost, in log order."""

    def __init__(self) -> None:
        self._lost: list[tuple[int, int, Cause]] = []

    def note(self, found: Finding) -> None:
        """Remember a finding if offsets are lost by it."""
        if found.lost_offsets is not None and found.caused_by is None:
            self._lost.append((*found.lost_offsets, Cause.of(found)))

    def between(self, after: int, upto: int) -> Cause | None:
        """The last damage that lost an offset past ``after`` and below ``upto``; None where there is none."""
        for first, last, cause in reversed(self._lost):
            if last > after and first < upto:
                return cause
        return None
