"""Losses: counted once, in offsets that a consumer could have read; and as the causes of later findings."""

from __future__ import annotations

from dataclasses import replace

from format.findings import Cause, Finding
from format.node.offsets import PartitionOffsets
from format.offset_ranges import Range, merged


class LossAccount:
    """Keeps the lost offsets of a partition's findings within what was served, and counts none of them twice.

    What lies below the log start offset was deleted on purpose. The high watermark bounds what consumers got; its
    checkpoint is exact only after a clean stop.
    """

    def __init__(self, offsets: PartitionOffsets) -> None:
        self._first = offsets.log_start_offset or 0
        self._last = None
        if offsets.is_clean_shutdown and offsets.high_watermark is not None:
            self._last = offsets.high_watermark - 1
        self._counted: list[Range] = []

    def counted(self, found: Finding) -> Finding:
        """The finding with what it adds to the losses; without any where it adds nothing."""
        if found.lost_offsets is None:
            return found
        first, last = found.lost_offsets
        first = max(first, self._first)
        last = last if self._last is None else min(last, self._last)
        for begin, end in self._counted:
            if begin <= first <= end:
                first = end + 1
            if begin <= last <= end:
                last = begin - 1
        if first > last:
            return replace(found, lost_offsets=None)
        self._counted = merged([*self._counted, (first, last)])
        return found if (first, last) == found.lost_offsets else replace(found, lost_offsets=(first, last))


class CauseAccount:
    """The damage of a partition that was reported so far, by the offsets that it lost, in log order."""

    def __init__(self) -> None:
        self._lost: list[tuple[int, int, Cause]] = []
        self._marked: dict[int, int] = {}  # producer id -> offset of its last end marker

    def marked(self, producer_id: int, offset: int) -> int:
        """Remember a producer's end marker; the offset of the one before it, -1 for none."""
        before = self._marked.get(producer_id, -1)
        self._marked[producer_id] = offset
        return before

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
