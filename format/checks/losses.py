"""Losses: counted once, in offsets that a consumer could have read; as causes of later findings; at a log's end."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from format.findings import Cause, Certainty, Finding, Severity
from format.layout import CLUSTER_METADATA_TOPIC
from format.node.offsets import PartitionOffsets
from format.offset_ranges import Range, clipped, merged, without
from format.scan.read_log import IntactElsewhere, counted_losses

#: Codes of damage that a crash may leave at the end of a log.
_LOST_ENDS = ("tail-torn", "tail-zeros")
#: After a clean stop a broker does not recover logs when it starts: the torn bytes stay in the middle of the log.
_AFTER_CLEAN_STOP = (
    "After a clean stop a broker leaves the torn bytes and appends after them. With the broker stopped, delete "
    ".kafka_cleanshutdown: the next start then recovers every log."
)
#: What a broker does at its start after an unclean stop, by the code of the finding (storage LogLoader, LogSegment).
_AT_START = {
    "offset-index-mismatch": "rebuilds the indexes of the last segment",
    "time-index-mismatch": "rebuilds the indexes of the last segment",
    "transaction-index-mismatch": "rebuilds the indexes of the last segment",
    "snapshot-mismatch": "deletes the snapshot",
    "leader-epoch-checkpoint-mismatch": "removes the entry",
    "checkpoint-mismatch": "takes the end of the log instead",
}
_STEP_WITHOUT_CLEAN_STOP = (
    "Nothing, if this is a copy of a running broker's files, or another replica leads; else look for the missing "
    "offsets in another replica."
)

_STEP_PAST_USE = (
    "Nothing; after a clean stop they are cut off, and after an unclean one a broker rebuilds the indexes of the last "
    "segment when it starts."
)


def judged_at_end(found: Finding, offsets: PartitionOffsets | None) -> Finding:
    """A finding about a file that ends elsewhere than the log, as a warning unless the broker runs or stopped cleanly.

    A broker appends to the log first, so that no other file is ahead of it. But a crash of the host may lose what was
    not flushed, and in a copy of a running broker's files the one that was copied later is the newer one.
    """
    if offsets is None or offsets.is_clean_shutdown or offsets.is_broker_running:
        return found
    # A broker writes its high watermarks every five seconds: those of a topic that was deleted stay so long.
    anew = ", or deleting a topic and making it anew just before" if found.code == "checkpoint-mismatch" else ""
    message = (
        f"{found.message}; a crash leaves this, and so does copying the files of a running broker{anew}: without a "
        f"clean-shutdown mark, a broker {_AT_START[found.code]} when it starts"
    )
    return replace(
        found,
        severity=min(found.severity, Severity.WARNING),
        certainty=Certainty.LIKELY,
        message=message,
        next_step=_STEP_WITHOUT_CLEAN_STOP,
    )


def judged_past_use(found: Finding) -> Finding:
    """A finding about entries after the last right one of a preallocated index that no start reads, as a warning.

    A broker that truncates a log counts fewer entries, and leaves the others (storage AbstractIndex.truncateToEntries).
    """
    return replace(
        found,
        severity=min(found.severity, Severity.WARNING),
        certainty=Certainty.LIKELY,
        message=f"{found.message}; no right entry follows: a broker that truncates the log, as a follower does after "
        "a change of leaders, leaves such entries, and does not read them",
        next_step=_STEP_PAST_USE,
    )


def after_stop(found: Finding, offsets: PartitionOffsets) -> Finding:
    """The finding with the next step for a clean or an unclean stop of the broker."""
    is_left = found.code == "tail-torn" and bool(offsets.is_clean_shutdown)
    if not is_left or found.location.topic == CLUSTER_METADATA_TOPIC:  # the metadata log is recovered at every start
        return found
    if found.lost_offsets is not None:
        return replace(found, next_step=f"Look for the lost offsets in another replica. {_AFTER_CLEAN_STOP}")
    return replace(found, next_step=_AFTER_CLEAN_STOP)


class LossAccount:
    """Limits the lost offsets of a partition's findings to those that consumers could read, each counted once.

    Offsets below the log start offset were deleted on purpose. Consumers could read up to the high watermark; its
    checkpoint is exact only after a clean stop. ``elsewhere`` has the offsets of batches that are out of order.
    """

    def __init__(self, offsets: PartitionOffsets, elsewhere: IntactElsewhere | None = None) -> None:
        self._elsewhere = elsewhere
        self._is_clean_shutdown = bool(offsets.is_clean_shutdown)
        self._is_broker_running = offsets.is_broker_running
        self._high_watermark = offsets.high_watermark
        self._first = offsets.log_start_offset or 0
        self._end = offsets.high_watermark if offsets.is_clean_shutdown else None
        self._counted: list[Range] = []

    def counted(self, found: Finding) -> Iterator[Finding]:
        """The finding with the lost offsets that it adds, and, if they are fewer, the reason in its message.

        One for each range of these. A torn end is usual after a crash, and in a copy of a running broker's files, in
        which the high watermark may be newer than the log. It is an error after a clean stop, which leaves a complete
        log, and beside a running broker if consumers could read the lost offsets.
        """
        for each in self._bounded(found):
            if each.lost_offsets is None or each.code not in _LOST_ENDS:
                yield each
                continue
            was_served = self._high_watermark is not None and each.lost_offsets[0] < self._high_watermark
            is_error = self._is_clean_shutdown or (was_served and self._is_broker_running)
            yield replace(each, severity=max(each.severity, Severity.ERROR)) if is_error else each

    def _bounded(self, found: Finding) -> list[Finding]:
        if found.lost_offsets is None:
            return [found]
        first, last = found.lost_offsets
        reasons = []
        if first < self._first:
            first = self._first
            reasons.append(f"offsets below the log start offset {first} were deleted on purpose")
        if self._end is not None and last >= self._end:
            last = self._end - 1
            reasons.append(f"consumers could only read up to the high watermark {self._end}")
        served = clipped([found.lost_offsets], first, last)
        lost = without(served, self._counted)
        if lost != served:
            reasons.append("another finding has the same offsets")
        if self._elsewhere is not None:
            lost, more = self._elsewhere.taken_from(lost)
            reasons += more
        self._counted = merged([*self._counted, *lost])
        return counted_losses(found, lost, reasons)


class CauseAccount:
    """The findings of a partition so far that lost offsets, in log order: the causes of later findings."""

    def __init__(self) -> None:
        self._lost: list[tuple[int, int, Cause]] = []
        self._marked: dict[int, int] = {}  # producer id -> offset of its last end marker

    def marked(self, producer_id: int, offset: int) -> int:
        """Remember a producer's end marker, and return the offset of its previous one, -1 for none."""
        before = self._marked.get(producer_id, -1)
        self._marked[producer_id] = offset
        return before

    def note(self, found: Finding) -> None:
        """Remember a finding if offsets are lost by it."""
        if found.lost_offsets is not None and found.caused_by is None:
            self._lost.append((*found.lost_offsets, Cause.of(found)))

    def between(self, after: int, upto: int) -> Cause | None:
        """The last finding that lost an offset after ``after`` and below ``upto``, None for none."""
        for first, last, cause in reversed(self._lost):
            if last > after and first < upto:
                return cause
        return None
