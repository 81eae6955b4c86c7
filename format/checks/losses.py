"""Losses: counted once, in offsets that a consumer could have read; and as the causes of later findings."""

from __future__ import annotations

from dataclasses import replace

from format.findings import Cause, Finding, Severity
from format.layout import CLUSTER_METADATA_TOPIC
from format.node.offsets import PartitionOffsets
from format.offset_ranges import Range, merged

#: What a crash may leave at the end of a log.
_LOST_ENDS = ("tail-torn", "tail-zeros")
#: A broker that stopped cleanly recovers no log when it starts again: the torn bytes stay in the middle of the log.
_AFTER_CLEAN_STOP = (
    "After a clean stop a broker leaves the torn bytes and appends behind them. With the broker stopped, delete "
    ".kafka_cleanshutdown: the next start then recovers every log."
)


def after_stop(found: Finding, offsets: PartitionOffsets) -> Finding:
    """A finding with the next step that fits the way in which the broker stopped."""
    is_left = found.code == "tail-torn" and bool(offsets.is_clean_shutdown)
    if not is_left or found.location.topic == CLUSTER_METADATA_TOPIC:  # the metadata log is recovered at every start
        return found
    if found.lost_offsets is not None:
        return replace(found, next_step=f"Look for the lost offsets in another replica. {_AFTER_CLEAN_STOP}")
    return replace(found, next_step=_AFTER_CLEAN_STOP)


class LossAccount:
    """Keeps the lost offsets of a partition's findings within what was served, and counts none of them twice.

    What lies below the log start offset was deleted on purpose. The high watermark bounds what consumers got; its
    checkpoint is exact only after a clean stop.
    """

    def __init__(self, offsets: PartitionOffsets) -> None:
        self._is_clean_shutdown = bool(offsets.is_clean_shutdown)
        self._high_watermark = offsets.high_watermark
        self._first = offsets.log_start_offset or 0
        self._end = offsets.high_watermark if offsets.is_clean_shutdown else None
        self._counted: list[Range] = []

    def counted(self, found: Finding) -> Finding:
        """The finding with what it adds to the losses, and why that is less than its message says.

        An end that a crash cut off is as usual, but not where consumers could read what is lost. A broker that stopped
        cleanly left a whole log.
        """
        found = self._bounded(found)
        if found.lost_offsets is None or found.code not in _LOST_ENDS:
            return found
        was_served = self._high_watermark is not None and found.lost_offsets[0] < self._high_watermark
        if was_served or self._is_clean_shutdown:
            return replace(found, severity=max(found.severity, Severity.ERROR))
        return found

    def _bounded(self, found: Finding) -> Finding:
        if found.lost_offsets is None:
            return found
        first, last = found.lost_offsets
        reasons = []
        if first < self._first:
            first = self._first
            reasons.append(f"what lies below the log start offset {first} was deleted on purpose")
        if self._end is not None and last >= self._end:
            last = self._end - 1
            reasons.append(f"consumers read no further than the high watermark {self._end}")
        is_known = False
        for begin, end in self._counted:
            if begin <= first <= end:
                first, is_known = end + 1, True
            if begin <= last <= end:
                last, is_known = begin - 1, True
        if is_known:
            reasons.append("the same offsets are not counted twice")
        if not reasons:
            self._counted = merged([*self._counted, (first, last)])
            return found
        why = " and ".join(reasons)
        if first > last:
            return replace(found, message=f"{found.message} (none is counted as lost: {why})", lost_offsets=None)
        self._counted = merged([*self._counted, (first, last)])
        words = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
        return replace(found, message=f"{found.message} ({words} counted as lost: {why})", lost_offsets=(first, last))


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
